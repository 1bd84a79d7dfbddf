"""`spacy calib fit`: learn calibrated probabilities from held-out gold and write the pipeline with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..calibration.sets import COVERAGES
from ..corpus.visible import shown_path
from ..doc.annotations import ARC_EVENTS
from ..doc.events import EVENTS
from ..doc.unit_events import UNIT_EVENTS
from ..sequence.ways import WAYS
from .fitting.fit_event import check_event_fits, drop_events, fit_event, show_event, take_event
from .fitting.fit_output import show_fit
from .fitting.fit_pipe import check_held_out, count_tags, fit_pipe
from .fitting.fitted_pipe import add_calib, load_readable, own_block, with_inline_recognizer
from .fitting.labels import MOST_UNKNOWN, map_labels, map_of_pipe
from .fitting.overrides import WithOverrides
from .fitting.promises import check_sets
from .fitting.settings import NORMALIZE, check_settings, complete_source, pipe_settings, settings_from_file
from .shared.checks import check_option
from .shared.command import Options, choice, command
from .shared.examples import data_files, read_examples
from .shared.gold import check_whole_documents
from .shared.loading import import_user_code, use_gpu
from .shared.options import (
    Bins,
    Code,
    Component,
    DocKey,
    Force,
    Format,
    GoldPreproc,
    GpuId,
    Groups,
    Method,
    NewAttr,
    Scaling,
    Silent,
    TagOffsets,
    Threshold,
)
from .shared.outputs import check_pipeline_folder
from .shared.results import print_json
from .shared.screen import msg, warn

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pipe.component import Calibrator
    from ..pipe.event import EventPipe


@dataclass(frozen=True)
class FitOptions(Options):
    """What is calibrated, on what, and how."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help="Pipeline to calibrate: package name or path")]
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Held-out gold: a .spacy file or a folder of them")]
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Folder to write the calibrated pipeline to")]
    _: KW_ONLY
    component: Component = None
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
    bins: Bins = None
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
    coverage: Annotated[
        str | None,
        choice(COVERAGES, "--coverage", help="What the sets promise that for; marginal: all tokens", show_default="marginal"),
    ] = None
    allow_empty_sets: Annotated[
        bool,
        typer.Option(
            "--allow-empty-sets", help="Leave a set empty where no tag is sure enough; else it holds the likeliest tag"
        ),
    ] = False
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
    granularity: Annotated[
        str | None, choice(("type", "biluo"), "--granularity", help="Token labels of a recognizer", show_default="type")
    ] = None
    beam_width: Annotated[
        int | None, typer.Option("--beam-width", help="Take a recognizer's probabilities from a beam this wide")
    ] = None
    beam_density: Annotated[
        float | None,
        typer.Option("--beam-density", help="Drop parses below this share of the best from the beam", show_default="0.0"),
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
    label_map: Annotated[
        str | None,
        typer.Option(
            "--map",
            help="The component's labels in the words of the data: PERSON=PER,GPE=LOC,DATE= or a .json or .tsv file",
        ),
    ] = None
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Go on where the component knows few of the gold labels")
    ] = False
    second_pass: Annotated[
        bool,
        typer.Option("--second-pass", help="Leave a recognizer as it is and decode again for the scores, which takes longer"),
    ] = False
    attr: NewAttr = None
    format: Format = "table"
    gold_preproc: GoldPreproc = False
    doc_key: DocKey = None
    n_process: Annotated[int, typer.Option("--n-process", help="Worker processes; recognizers are read in one")] = 1
    gpu_id: GpuId = -1
    code: Code = None
    force: Force = False
    silent: Silent = True
    overrides: Mapping[str, Any] | None = None

    def given(self) -> dict[str, Any]:
        """With --no-context, which is more than a flag that is off."""
        return super().given() | ({} if self.context is None else {"context": self.context})


@command(
    FitOptions,
    does="Learn calibrated probabilities from held-out gold",
    example="en_core_web_sm dev.spacy ./calibrated",
    kind=WithOverrides,
)
def fit(options: FitOptions) -> Calibrator:
    """
    Learn calibrated probabilities for a component of a trained pipeline from
    held-out gold, and write the whole pipeline with them to OUTPUT. Use data
    that the pipeline was not trained on.

    Any setting of the pipe can be given as in `spacy train`, for instance
    --components.calib.grouping.n_groups 3. What counts, first to last: options,
    such settings, --config, the calib pipe that the pipeline has already, and
    the defaults named here.

    RETURNS (Calibrator): The fitted pipe.
    RAISES CalibError: every fault of the input.
    """
    from .shared.atomic import write_folder

    event = take_event(options.given())
    nlp, calib, own = prepare(options)
    examples = read_examples(nlp, options.data, options.gold_preproc, options.doc_key)
    counts = None if options.train_data is None else count_tags(nlp, calib, options.train_data)
    fit_pipe(
        nlp,
        calib,
        examples,
        counts,
        counted_on=str(options.train_data and shown_path(Path(options.train_data.name))),
        silent=options.silent,
        n_process=options.n_process,
        max_unknown=1.0 if options.allow_unknown else MOST_UNKNOWN,
    )
    check_held_out(calib.fit_info.held_out, calib.fit_info.method, calib.fit_info.row_unit)
    check_sets(calib.fit_info)
    asked = None
    if event is not None:
        again = read_examples(nlp, options.data, options.gold_preproc, options.doc_key)
        asked = fit_event(nlp, calib, event, again, silent=options.silent)
    write_folder(options.output, lambda folder: nlp.to_disk(folder), options.force)
    if not options.silent:
        tell(nlp, calib, own, options, asked)
    return calib


def prepare(options: FitOptions) -> tuple[Language, Calibrator, str | None]:
    """The pipeline with a calib pipe in its place, not fitted yet; and the name of the pipe of the pipeline whose settings it took over.

    RAISES CalibError: a fault of the options, the files, the pipeline or the settings.
    """
    from ..pairs.label_map import read_map

    given = options.given()
    event = take_event(given)
    import_user_code(options.code)
    check_settings(given)
    table = None if options.label_map is None else read_map(options.label_map)
    base = None if options.config is None else settings_from_file(options.config)
    read = [path for data in (options.data, options.train_data) if data is not None for path in (data, *data_files(data))]
    check_pipeline_folder(options.output, options.force, inputs=[*read, options.config, options.code], model=options.model)
    use_gpu(options.gpu_id)
    nlp, unreadable = load_readable(options.model)
    own = own_block(nlp, options.attr, options.component) if base is None else None
    name, settings = pipe_settings(base or own, given, options.overrides)
    if not options.second_pass:
        nlp = with_inline_recognizer(nlp, options.model, settings["source"].get("component", ""), unreadable)
    complete_source(nlp, settings, given, options.second_pass)
    older = map_of_pipe(nlp, name)
    calib = add_calib(nlp, name, settings)
    check_event_fits(calib, event)
    drop_events(nlp, calib, event)
    map_labels(calib, older if table is None else table)
    annotation = calib.source.annotation(calib.lookup.component())
    wanted = "left out for a component that finds sentences"
    check_option("--gold-preproc", not (options.gold_preproc and annotation.name == "sent"), wanted, "it")
    check_whole_documents(annotation.unit, options.gold_preproc)
    return nlp, calib, own and own[0]


def tell(nlp: Language, calib: Calibrator, own: str | None, options: FitOptions, asked: EventPipe | None) -> None:
    """Print what was fitted, as JSON or in words. own (str | None): The pipe whose settings were taken over. asked (EventPipe | None): Of units."""
    told = None if asked is None else asked.info
    component = calib.source.component
    if component and component not in nlp.pipe_names:
        warn(
            f"Component '{component}' is disabled in this pipeline: without it {calib.fit_info.row_unit}s get no score; see nlp.enable_pipe."
        )
    if options.format == "json":
        of_units = {} if told is None else {"event": told.to_dict()}
        print_json({"output": str(options.output), "pipe": calib.name, **calib.fit_info.to_dict(), **of_units})
        return
    if own is not None:
        msg.info(f"Settings that are not given are those of the pipeline's own pipe '{own}'")
    show_fit(calib, options.output)
    if asked is not None and told is not None:
        show_event(asked.name, told)
