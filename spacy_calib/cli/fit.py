"""`spacy calib fit`: learn calibrated probabilities from held-out gold and write the pipeline with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..corpus.visible import shown_path
from ..doc.annotations import ARC_EVENTS
from ..doc.events import EVENTS, UNIT_EVENTS
from ..pairs.keyed import Key
from ..sequence.factory import WAYS
from .fitting.fit_event import check_event_fits, drop_events, fit_event, show_event, take_event
from .fitting.fit_output import show_fit
from .fitting.fit_pipe import check_held_out, count_tags, fit_on_statistics, fit_pipe, share_of_training
from .fitting.labels import MOST_UNKNOWN
from .fitting.new_calib import as_collected, new_calib
from .fitting.overrides import WithOverrides
from .fitting.promises import check_sets
from .fitting.settings import NORMALIZE
from .scores import fit_scores, is_scores
from .shared.checks import check_option
from .shared.command import Options, choice, command
from .shared.examples import data_files, read_examples
from .shared.from_statistics import From, TakesStatistics, check_source, read_fit_statistics
from .shared.options import (
    Code,
    Component,
    DocKey,
    Force,
    Format,
    GoldPreproc,
    GpuId,
    Groups,
    KeyFile,
    LabelMap,
    Method,
    NewAttr,
    Scaling,
    Score,
    Silent,
    Source,
    TagOffsets,
    Threshold,
)
from .shared.outputs import check_pipeline_folder
from .shared.results import print_json
from .shared.screen import msg, warn
from .shared.seen import check_apart
from .shared.sources import NamedGold, sources_of

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..pipe.component import Calibrator
    from ..pipe.event import EventPipe
    from ..statistics.collected import FitStatistics


@dataclass(frozen=True)
class FitOptions(Options):
    """What is calibrated, on what, and how. statistics: Files of `calib collect`; DATA is None then. gold: NAME=PATH of each source; DATA may be None."""

    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="Pipeline to calibrate: package name or path; left out for scores")
    ]
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="Held-out gold: a .spacy or .conllu file, or a folder of them; left out beside --from, and where --gold says "
            "all. Or scores of any tagger: .csv, .tsv, .jsonl, .parquet or .npz with tag, score and gold on each row",
        ),
    ]
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Folder for the calibrated pipeline; of scores a file")]
    _: KW_ONLY
    statistics: From = field(default_factory=list)
    gold: NamedGold = field(default_factory=list)
    component: Component = None
    source: Source = None
    score: Score = None
    train_data: Annotated[
        Path | None, typer.Option("--train-data", "-t", help="Training gold, for tag frequencies; else those of DATA")
    ] = None
    groups: Groups = None
    method: Method = None
    scaling: Scaling = None
    tag_offsets: TagOffsets = False
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Config with a [components.calib] block, in place of the one that the pipeline may have"),
    ] = None
    threshold: Threshold = None
    normalize: Annotated[
        str | None,
        choice(
            tuple(NORMALIZE),
            "--normalize",
            help="Rescale a token's scores: kept (they sum to 1), other (room for the tags below the threshold)",
            show_default="none",
        ),
    ] = None
    context: Annotated[
        bool | None,
        typer.Option(
            "--context/--no-context",
            help="Look at the rest of the document too, always or never",
            show_default="with auto, where it is no worse",
        ),
    ] = None
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Give every token a Venn-Abers interval (Token._.calib_interval)")
    ] = False
    sets: Annotated[
        float | None,
        typer.Option(
            "--sets", help="Make sets of tags (Token._.calib_set) that miss the right tag of at most this share of tokens"
        ),
    ] = None
    event: Annotated[
        str | None,
        choice(
            (*EVENTS, *ARC_EVENTS, *UNIT_EVENTS),
            "--event",
            help="When an entity counts as right, or an arc of a parser: by its head, or by head and label; sentence: forecast "
            "too whether all labels of a sentence are right (Span._.calib_right)",
            show_default="exact; of parsers head",
        ),
    ] = None
    way: Annotated[
        str | None,
        choice(
            tuple(WAYS),
            "--way",
            help="Score a labeller by how much its answer moves, in place of its probabilities",
            show_default="of calib_online kd_pc",
        ),
    ] = None
    label_map: LabelMap = None
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Go on where the component knows few of the gold labels")
    ] = False
    allow_seen: Annotated[
        bool, typer.Option("--allow-seen", help="Go on where much of the fit data stands in --train-data")
    ] = False
    second_pass: Annotated[
        bool,
        typer.Option("--second-pass", help="Leave a recognizer as it is and decode again for the scores, which takes longer"),
    ] = False
    attr: NewAttr = None
    key: KeyFile = None
    format: Format = "table"
    gold_preproc: GoldPreproc = False
    doc_key: DocKey = None
    n_process: Annotated[int, typer.Option("--n-process", help="Worker processes; recognizers are read in one")] = 1
    gpu_id: GpuId = -1
    code: Code = None
    force: Force = False
    silent: Silent = True
    overrides: Mapping[str, Any] | None = None

    def check_options(self) -> None:
        """RAISES C056: MODEL beside scores, or neither. C433: both DATA and statistics, or neither. C435: an option that looks at documents, beside statistics. C545 to C547: see `sources_of`."""
        of_documents = {
            "--gold": self.gold, "--gold-preproc": self.gold_preproc, "--doc-key": self.doc_key, "--n-process": self.n_process != 1,
            "--event": self.event in UNIT_EVENTS,
        }  # fmt: skip
        given = self.data is not None or (self.gold and not self.statistics)
        check_source(self.statistics, Path() if given else None, of_documents)
        scores = is_scores(self.data)
        check_option("MODEL", not scores or self.model is None, "left out where DATA is a file of scores", self.model)
        check_option("MODEL", scores or self.model is not None, "given, as DATA is no file of scores", "none")
        sources_of(self.gold, self.data)

    @property
    def gold_paths(self) -> list[Path]:
        """All gold that is read, of DATA and of named sources."""
        return [*sources_of(self.gold, self.data).values()] or ([] if self.data is None else [self.data])

    def examples(self, nlp: Language) -> list[Example]:
        """Of DATA, and of the named sources, whose predicted Docs say which they are of."""
        from ..doc.gold import named_examples

        paths = sources_of(self.gold, self.data)
        if not paths:
            assert self.data is not None
            return read_examples(nlp, self.data, self.gold_preproc, self.doc_key)
        read = {name: read_examples(nlp, path, self.gold_preproc, self.doc_key) for name, path in paths.items()}
        return list(named_examples(read))

    def given(self) -> dict[str, Any]:
        """With --no-context, which is more than a flag that is off."""
        return super().given() | ({} if self.context is None else {"context": self.context})


class FitCommand(WithOverrides, TakesStatistics):
    """With dotted settings, and statistics or named sources in the place of DATA."""

    headings = {
        "How the maps are learned": ("groups", "scaling", "tag_offsets", "context", "threshold", "normalize", "config"),
        "What else is learned": ("intervals", "sets", "event"),
        "Where the scores come from": ("source", "score", "way", "second_pass", "label_map"),
        "Several sources, and shards": ("gold", "statistics", "key", "doc_key"),
        "How it runs": ("gold_preproc", "allow_unknown", "allow_seen", "format", "n_process", "gpu_id", "code", "silent"),
    }

    def may_be_missing(self, args: list[str]) -> tuple[str, ...]:
        """DATA beside --gold, and MODEL where there are scores."""
        from ..arrays.files import is_score_file

        if any(one.partition("=")[0] == "--gold" for one in args):
            return self.replaced
        return ("model",) if any(is_score_file(Path(one)) for one in args) else ()


@command(
    FitOptions,
    does="Learn calibrated probabilities from held-out gold",
    example="en_core_web_sm dev.spacy ./calibrated",
    kind=FitCommand,
)
def fit(options: FitOptions) -> Any:
    """
    Learn calibrated probabilities for a component of a trained pipeline from
    held-out gold, and write the whole pipeline with them to OUTPUT. Use data
    that the pipeline was not trained on.

    Or learn the same from a file of scores, of any tagger: `fit SCORES OUTPUT`.
    A row holds document, unit (a token of it), tag, score and gold.

    Any setting of the pipe can be given as in `spacy train`, for instance
    --components.calib.grouping.n_groups 3. What counts, first to last: options,
    such settings, --config, the calib pipe that the pipeline has already, and
    the defaults named here.

    RETURNS (Calibrator | TagCalibrator): The fitted pipe; of scores the fitted calibrator.
    RAISES CalibError: every fault of the input.
    """
    if options.model is None and options.data is not None:
        return fit_scores(options, options.data)
    from .shared.loading import write_pipeline

    event = take_event(options.given())
    collected = read_fit_statistics(options.statistics) if options.statistics else None
    nlp, calib, own = prepare(options, collected)
    key = None if options.key is None else Key.read(options.key)
    counts = None if options.train_data is None else count_tags(nlp, calib, options.train_data)
    told: dict[str, Any] = {
        "counted_on": str(options.train_data and shown_path(Path(options.train_data.name))),
        "max_unknown": 1.0 if options.allow_unknown else MOST_UNKNOWN,
        "key": key,
    }
    read: Any = options.examples(nlp) if collected is None else collected
    if counts is not None:
        share = share_of_training(calib, counts, read, key)
        check_apart(share, "documents" if collected is None else "texts", options.allow_seen)
    if collected is not None:
        fit_on_statistics(calib, collected, counts, **told)
    else:
        fit_pipe(nlp, calib, read, counts, silent=options.silent, n_process=options.n_process, **told)
    info = calib.fit_info
    check_held_out(info.held_out, info.method, info.row_unit, sampled=info.sampled is not None)
    check_sets(calib.fit_info)
    asked = None
    if event is not None:
        asked = fit_event(nlp, calib, event, options.examples(nlp), silent=options.silent)
    write_pipeline(nlp, options.output, options.force)
    if not options.silent:
        tell(nlp, calib, own, options, asked)
    return calib


def prepare(options: FitOptions, collected: FitStatistics | None = None) -> tuple[Language, Calibrator, str | None]:
    """See `new_calib`, with the place of the output looked at before. collected (FitStatistics | None): What it is to be fitted on.

    RAISES CalibError: a fault of the options, the files, the pipeline or the settings.
    """
    given = options.given()
    if collected is not None:
        given = as_collected(collected.identity, given)
    take_event(given)
    sources = [*options.gold_paths, *([] if options.train_data is None else [options.train_data])]
    read = [path for data in sources for path in (data, *data_files(data))]
    inputs = [*read, *options.statistics, options.config, options.code, options.key]

    def check() -> None:
        check_pipeline_folder(options.output, options.force, inputs=inputs, model=options.model or "")

    nlp, calib, own = new_calib(options, given, check)
    event = take_event(options.given())
    check_event_fits(calib, event)
    drop_events(nlp, calib, event)
    return nlp, calib, own


def tell(nlp: Language, calib: Calibrator, own: str | None, options: FitOptions, asked: EventPipe | None) -> None:
    """Print what was fitted, as JSON or in words. own (str | None): The pipe whose settings were taken over. asked (EventPipe | None): Of units."""
    told = None if asked is None else asked.info
    component = calib.source.component
    if component and component not in nlp.pipe_names:
        warn(
            f"Component '{component}' is disabled in this pipeline: without it {calib.fit_info.row_unit}s get no score; see nlp.enable_pipe."
        )
    if options.format == "json":
        of_units = {} if told is None else {"event": told.state()}
        print_json({"output": str(options.output), "pipe": calib.name, **calib.fit_info.state(), **of_units})
        return
    if own is not None:
        msg.info(f"Settings that are not given are those of the pipeline's own pipe '{own}'")
    if options.statistics and options.key is None:
        msg.info(
            "Without the --key of the statistics the context, if any, does not look at how often forms were met, and `evaluate` does not know the data of this fit."
        )
    show_fit(calib, options.output)
    if asked is not None and told is not None:
        show_event(asked.name, told)
