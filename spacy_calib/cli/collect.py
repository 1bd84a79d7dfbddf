"""`spacy calib collect`: what a fit or a judgement needs of one shard of gold, in a file that adds up with those of other shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..corpus.visible import shown_path
from ..doc.annotations import ARC_EVENTS
from ..doc.events import EVENTS
from ..errors import calib_error
from ..pairs.documents import counted
from ..pairs.keyed import Key
from ..pipe.loading import open_model, pipe_of
from ..statistics.identity import is_shard_name
from .fitting.fit_event import check_event_fits
from .fitting.fit_pipe import ready_to_read
from .fitting.new_calib import new_calib
from .shared.arguments import SUFFIX, TakesStatistics, WithOverrides
from .shared.checks import check_option
from .shared.collected import describe_statistics, read_any, statistics_files
from .shared.command import Options, argument, command, option
from .shared.examples import data_files, read_examples
from .shared.options import Code, Component, DocKey, FirstAttr, Format, GoldPreproc, GpuId, LabelMap, Score, Silent, Source
from .shared.outputs import Output, check_files
from .shared.run import Run, judge
from .shared.screen import msg, warn
from .shared.writing import print_json

if TYPE_CHECKING:
    from ..statistics.collected import FitStatistics
    from ..statistics.judged import JudgedStatistics

# What is said of files without a key, and of those for a fit.
_WITHOUT_KEY = "Without --key a document that stands in two shards counts as two."
_FIT_WITHOUT_KEY = "A context does not look at how often forms were met then, and `evaluate` does not know the data of the fit."
# What the pipe says of itself, and what is said of one shard.
_OF_PIPE = ("component", "source", "score", "config", "event", "label_map", "second_pass")
_OF_SHARD = ("shard", "judge", "sample", "attr", "gold_preproc", "doc_key", "key")


@dataclass(frozen=True)
class CollectOptions(Options):
    """Of which model and shard, and how it is read. merge: Files to add up; model and data are None then."""

    model: Annotated[str | None, argument("MODEL", "Pipeline to calibrate: package name or path; left out beside --merge")]
    data: Annotated[
        Path | None,
        argument(
            "DATA",
            "One shard of gold: a .spacy or .conllu file, answers that an annotation tool exported (.jsonl, .json), or a folder of them; left out beside --merge",
        ),
    ]
    stats: Annotated[Path, argument("STATS", "File to write the statistics to (.npz)")]
    _: KW_ONLY
    merge: Annotated[list[Path], option("Add up the statistics in these files, or folders of them", metavar="STATS...")] = (
        field(default_factory=list)
    )
    shard: Annotated[
        str | None,
        option("Name of the shard; of shards called 1/7 to 7/7 none may be missing later", show_default="DATA"),
    ] = None
    component: Component = None
    source: Source = None
    score: Score = None
    config: Annotated[Path | None, option("Config with a [components.calib] block: which source is read, and how")] = None
    event: Annotated[
        str | None,
        option("When an entity or an arc counts as right", words=(*EVENTS, *ARC_EVENTS), show_default="exact; of parsers head"),
    ] = None
    label_map: LabelMap = None
    second_pass: Annotated[bool, option("Leave a recognizer as it is and decode again for the scores")] = False
    key: Annotated[
        Path | None,
        option("Key of all digests, the same for all shards, which stays with you; made where it is not there", metavar="FILE"),
    ] = None
    judge: Annotated[bool, option("Gather what `calib evaluate --from` needs of a fitted pipeline, in place of a fit")] = False
    sample: Annotated[
        int,
        option("Pairs of whole documents, with those below the threshold, that are kept for choices and scalings"),
    ] = 500_000
    attr: FirstAttr = None
    format: Format = "table"
    gold_preproc: GoldPreproc = False
    doc_key: DocKey = None
    n_process: Annotated[int, option("Worker processes; recognizers are read in one")] = 1
    gpu_id: GpuId = -1
    code: Code = None
    force: Annotated[bool, option("Replace a file at STATS", "-F")] = False
    silent: Silent = True
    overrides: Mapping[str, Any] | None = None

    def check_options(self) -> None:
        """RAISES C433: both DATA and --merge, or neither. C056: an option that has nothing to do."""
        if bool(self.merge) == (self.data is not None) or (self.data is not None and self.model is None):
            raise calib_error("C433", option="--merge", given="MODEL and DATA")
        if self.judge:
            self._without(_OF_PIPE, "left out beside --judge, where the fitted pipe says it")
        if self.merge:
            self._without((*_OF_PIPE, *_OF_SHARD), "left out beside --merge, which adds up what is there")
        if self.shard is not None:
            check_option(
                "--shard", is_shard_name(self.shard), "a name, or the number of the shard and of all, as 1/7", repr(self.shard)
            )

    def _without(self, names: Sequence[str], wanted: str) -> None:
        """RAISES C056: one of these options is given."""
        for name in names:
            given = getattr(self, name)
            told = "it" if given is True else given
            check_option(
                f"--{name.replace('label_', '').replace('_', '-')}", given == getattr(CollectOptions, name), wanted, told
            )


class CollectCommand(WithOverrides, TakesStatistics):
    """With dotted settings, and files to merge in the place of MODEL and DATA."""

    several = "--merge"
    replaced = ("model", "data")


@command(
    CollectOptions,
    does="Gather what a fit needs of one shard; shards add up",
    example="en_core_web_sm shard1.spacy shard1.npz --shard 1/7",
    kind=CollectCommand,
)
def collect(options: CollectOptions) -> FitStatistics | JudgedStatistics:
    """
    Gather what a fit needs of one shard of held-out gold in a file: counts of
    all pairs, and a sample of whole documents. The files of all shards add up
    in any order, on any machine, and `calib fit MODEL --from STATS... OUTPUT`
    learns from them what it would learn from all data at once. --merge adds
    files up beforehand. With --judge it gathers what a fitted pipeline says of
    the gold, for `calib evaluate --from STATS...`. The file holds no words and no
    texts; what has to be known again in another shard is a digest that nobody
    can guess from without the key (--key).

    RETURNS (FitStatistics | JudgedStatistics): What is in the file.
    RAISES CalibError: every fault of the input.
    """
    from .shared.writing import write_file

    files = statistics_files(options.merge) if options.merge else []
    if files:
        _check_output(options, files)
        for folder in filter(Path.is_dir, options.merge):
            check_option(
                "STATS", options.stats.resolve().parent != folder.resolve(), "outside the folder of --merge", options.stats
            )
    if options.data is None:
        found: FitStatistics | JudgedStatistics = read_any(files)
    else:
        found = judged(options, options.data) if options.judge else collected(options, options.data)
    write_file(options.stats, found.to_bytes())
    if not options.silent:
        tell(found, options)
    return found


def collected(options: CollectOptions, data: Path) -> FitStatistics:
    """The statistics of DATA. RAISES CalibError: every fault of the options, the data, the pipeline or the settings."""
    from ..pipe.collecting import collect_statistics

    files = data_files(data)
    nlp, calib, _ = new_calib(
        options, options.given(), lambda: _check_output(options, [data, *files, options.config, options.code, options.key])
    )
    check_event_fits(calib, None)
    examples = read_examples(nlp, data, options.gold_preproc, options.doc_key)
    ready = ready_to_read(nlp, calib, examples, silent=options.silent, n_process=options.n_process)
    name = options.shard or str(shown_path(data))
    return collect_statistics(calib, ready, name, sample=options.sample, gold_preproc=options.gold_preproc, key=key_of(options))


def judged(options: CollectOptions, data: Path) -> JudgedStatistics:
    """The statistics of what a fitted pipe says of DATA. RAISES CalibError: every fault of the options, the data or the pipeline."""
    run = Run(
        options.model or "", data, gold_preproc=options.gold_preproc, doc_key=options.doc_key,
        n_process=options.n_process, silent=options.silent,
    )  # fmt: skip
    _check_output(options, [data, *data_files(data), options.code, options.key])
    nlp = open_model(run.model, code=options.code, gpu_id=options.gpu_id)
    shard = options.shard or str(shown_path(data))
    (found,), *_ = judge(run, nlp, [pipe_of(nlp, options.attr)], shard, "Scoring", key_of(options))
    return found


def key_of(options: CollectOptions) -> Key | None:
    """The key of --key, which is made where there is none. RAISES C480: something else is there. C055: it cannot be written."""
    if options.key is None:
        return None
    if not options.key.exists():
        try:
            Key.draw().write(options.key)
        except FileExistsError:  # by another shard that is collected now
            pass
        except OSError as error:
            raise calib_error("C055", path=options.key, why=error.strerror or error) from None
        else:
            warn(
                f"A new key was made in {options.key}: give it with every shard and with `fit --from`, and keep it apart from the statistics."
            )
    return Key.read(options.key)


def _check_output(options: CollectOptions, inputs: Sequence[Path | None]) -> None:
    """RAISES C054 to C056, C100: STATS may not be written, see `check_files`, or is no file that a folder of statistics is searched for."""
    check_option("STATS", options.stats.suffix == SUFFIX, f"a file that ends in {SUFFIX}", options.stats)
    check_files([Output("STATS", options.stats)], options.force, inputs=inputs, model=options.model or "")


def tell(found: FitStatistics | JudgedStatistics, options: CollectOptions) -> None:
    """Print what was gathered."""
    told = describe_statistics(found)
    if options.format == "json":
        print_json({"output": str(options.stats), **told})
        return
    of = f"{told['pipe']} ({told['component']})" if "pipe" in told else told["component"]
    read = f"{counted('document', told['documents'])}, {counted('pair', told['pairs'])}"
    msg.good(f"Statistics of {of}, {read}: {options.stats}")
    if told.get("sampled_pairs", 0) < told.get("pairs_in_all", 0):
        of = f"{told['sampled_pairs']:,} of {counted('pair', told['pairs_in_all'])}, with those below the threshold"
        msg.info(f"{told['sampled_documents']:,} of the documents are sampled whole ({of})")
    if not (found.identity.key or options.merge):
        msg.info(_WITHOUT_KEY if "pipe" in told else f"{_WITHOUT_KEY} {_FIT_WITHOUT_KEY}")
