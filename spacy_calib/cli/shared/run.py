"""A run of a pipeline over data: the options that commands share, and loading, reading and scoring by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import calib_error
from ...pairs.documents import DOCUMENT
from ...pairs.label_map import read_map
from ...pipe.pipeline import check_readable, fitted_pipes, open_model, sentence_finders, units_of
from .choose_pipe import choose_pipes
from .examples import RunSettings, data_files, holds_gold, read_examples, read_through, run_pipes, stream_examples, text_files
from .gold import check_whole_documents, match_gold, report_dropped, report_unknown
from .outputs import Output, check_files, check_pipeline_folder
from .records import Fields

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator


# Attributes in the `assigns` of pipes that may set entities; the span ruler, which assigns doc.spans, may set them, too.
_ENTITY_ATTRIBUTES = {"doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"}
FIRST_TEXTS = 1_000  # number of texts that are read to find out which gold there is
MIN_BLOCK_ROWS = 1 << 18  # minimum number of rows (tokens, spans or documents) of a block of scores: about 50 MB of tokens


def pipes_to_run(nlp: Language, pipe: Calibrator, sentences: bool = False) -> list[str]:
    """Return the names of the first pipes of the pipeline, up to the last one that the scores of a calib pipe need.

    Scores need the calib pipe, and all later pipes that merge or split tokens. Scores of entities also need later pipes that
    set entities or spans, or do not declare what they set. If `sentences`, the first pipe that sets sentence starts is needed.
    """
    order = nlp.pipe_names
    later_metas = {name: nlp.get_pipe_meta(name) for name in order[order.index(pipe.name) + 1 :]}
    needed = [pipe.name, *(name for name, meta in later_metas.items() if meta.retokenizes)]
    if "entity" in units_of(pipe):
        needed += [name for name, meta in later_metas.items() if not meta.assigns or _ENTITY_ATTRIBUTES & set(meta.assigns)]
    if sentences:
        needed += sentence_finders(nlp)[:1]
    return order[: max(order.index(name) for name in needed) + 1]


def score(
    nlp: Language,
    pipe: Calibrator,
    examples: Iterable[Example],
    settings: RunSettings = RunSettings(),
    *,
    sentences: bool = False,
) -> ScoredCorpus:
    """Run the pipeline over the examples, free the Docs, and return the scores of a calib pipe, with the gold if there is some.

    settings (RunSettings): Processes, progress bar, and whether there is gold. sentences (bool): Whether a pipe that sets
    sentences must run. RAISES C075, C745: nothing got a score.
    """
    (corpus,) = score_blocks(nlp, pipe, examples, settings, sentences=sentences, as_one=True)
    return corpus


def score_blocks(
    nlp: Language,
    pipe: Calibrator,
    examples: Iterable[Example],
    settings: RunSettings = RunSettings(),
    *,
    sentences: bool = False,
    as_one: bool = False,
) -> Iterator[ScoredCorpus]:
    """Run the pipeline over the examples, and yield the scores of a calib pipe for many texts at a time, which saves memory.

    All scores come at once if `as_one` or `settings.gold`. settings, sentences: As for `score`. RAISES C075, C745: as `score`.
    """
    from ...gold.scored_corpora import Collector
    from ...pipe.silence import SilenceCheck

    annotation = pipe.annotation
    names = pipes_to_run(nlp, pipe, sentences and not annotation.kind.of_documents)
    collector, silence_check = Collector(pipe.attr, annotation, pipe.lookup.labels()), SilenceCheck(pipe)
    any_scored = False
    # `collector.add` returns nothing; the collected scores are taken out when they fill a block.
    for _ in read_through(nlp, examples, names, lambda batch: collector.add(silence_check.watch(batch)), settings):
        if collector.n_rows >= MIN_BLOCK_ROWS and not (settings.gold or as_one):
            corpus = collector.take()
            any_scored = any_scored or bool(corpus.is_counted.any())
            yield corpus
    if collector.n_docs:  # the last block, or the only one
        corpus = collector.take()
        any_scored = any_scored or bool(corpus.is_counted.any())
        if any_scored:  # else the error below
            yield corpus
    if not any_scored:
        raise silence_check.error()


@dataclass(frozen=True)
class Run:
    """A run of a pipeline over DATA, with the values of a command's options. needs_gold (bool): Whether DATA has to be gold.

    model (str): Package or folder of the pipeline. component (str | None): Calibrated component, or prefix of its calib pipe.
    columns (str | None): "text=NAME,id=NAME", the fields of records with texts and ids. by (str | None): Key whose values group
    documents. gold_preproc (bool): Whether to use the gold's tokens and sentences. code (Path | None): Python file to import.
    force (bool): Whether outputs may replace files or pipelines. label_map (str | None): Value of --map, "PERSON=PER,GPE=LOC".
    """

    needs_gold: ClassVar[bool] = False

    model: str
    data: Path
    _: KW_ONLY
    component: str | None = None
    columns: str | None = None
    by: str | None = None
    gold_preproc: bool = False
    n_process: int = 1
    gpu_id: int = -1
    code: Path | None = None
    force: bool = False
    silent: bool = True
    label_map: str | None = None

    @property
    def fields(self) -> Fields:
        """The names of text and id in the records of DATA. RAISES C056: --columns names something else."""
        return Fields.read(self.columns)

    def data_files(self) -> list[Path]:
        """Return the files at DATA: gold if `needs_gold`, else texts. RAISES: as the functions `data_files`, `text_files`."""
        return data_files(self.data) if self.needs_gold else text_files(self.data, self.fields)

    def begin(self, outputs: Sequence[Output] = (), *, folder: Output | None = None, read: Sequence[Path] = ()) -> Language:
        """Check all inputs and outputs, then load the pipeline.

        outputs (Sequence[Output]): Files to write. folder (Output | None): Folder of a pipeline to write. read
        (Sequence[Path]): Inputs besides DATA. RAISES C051 to C053, C073, C081: DATA cannot be read. C054 to C056, C070, C100 to
        C102: an output cannot be written, or would replace something else. C062: --code cannot be imported. C057: a GPU allows
        one process. C060: the GPU cannot be used. C050: the pipeline cannot be loaded.
        """
        files = self.data_files()
        inputs = [self.data, *read, self.code]
        check_files(outputs, self.force, inputs=inputs, model=self.model, folder=folder and folder.path)
        if folder is not None:
            check_pipeline_folder(folder.path, self.force, inputs=[*inputs, *files], model=self.model, option=folder.option)
        return open_model(self.model, code=self.code, gpu_id=self.gpu_id, n_process=self.n_process)

    def pipes(
        self, nlp: Language, examples: Sequence[Example] | None = None, *, allow_many: bool = False, **options: Any
    ) -> list[Calibrator]:
        """Return the calib pipes that --component names, else the ones that suit the gold in DATA and the requested unit.

        examples (Sequence | None): Examples of DATA. For None, the first texts are read if the choice depends on their gold.
        allow_many (bool): Whether several may be returned. options: `unit`, `flag` and `is_useful` of `choose_pipes`.
        """
        is_undecided = self.component is None and len(fitted_pipes(nlp)) > 1
        if examples is None and is_undecided and not allow_many and holds_gold(self.data):
            examples = list(islice(self.stream(nlp), FIRST_TEXTS))
        options |= {"gold": examples, "needs_gold": self.needs_gold, "allow_many": allow_many, "silent": self.silent}
        return choose_pipes(nlp, self.component, **options)

    def pipe(self, nlp: Language, examples: Sequence[Example] | None = None, **options: Any) -> Calibrator:
        """Return the one pipe of `pipes` (same arguments). RAISES C077: several. C021, C069, C084: no enabled component."""
        (pipe,) = self.pipes(nlp, examples, **options)
        check_readable(nlp, pipe)
        return pipe

    def read(self, nlp: Language) -> list[Example]:
        """Read the examples of DATA, all with gold. RAISES: as `read_examples`."""
        return read_examples(nlp, self.data, self.gold_preproc)

    def match(self, pipes: Sequence[Calibrator], examples: list[Example]) -> list[Example]:
        """Rename gold labels to those of these pipes, by --map if given, in place; return the examples."""
        label_map = None if self.label_map is None else read_map(self.label_map)
        return match_gold(pipes, examples, self.silent, gold_names=label_map)

    def annotate(
        self, nlp: Language, pipes: Sequence[Calibrator], examples: list[Example], title: str, sentences: bool = False
    ) -> list[Example]:
        """Rename the gold labels, run the pipes that the scores of these calib pipes need, and return the examples.

        title (str): Title of the progress bar. sentences (bool): Whether a pipe that sets sentences must run. RAISES C030,
        C151: there is no gold, or no known label in it.
        """
        from ...pipe.gold_checks import check_has_gold, unknown_in_examples

        for pipe in pipes:
            check_whole_documents(pipe.annotation.kind, self.gold_preproc)
        self.match(pipes, examples)
        if len(pipes) == 1:
            check_has_gold(examples, pipes[0])
        enabled_pipes = [pipe for pipe in pipes if pipe.name in nlp.pipe_names]
        # Each list has the first pipes of the pipeline, so the longest has all.
        names = max((pipes_to_run(nlp, pipe, sentences) for pipe in enabled_pipes), key=len, default=[])
        annotated_examples = list(run_pipes(nlp, examples, names, silent=self.silent, title=title, n_process=self.n_process))
        for pipe in pipes:
            report_unknown(pipe, unknown_in_examples(pipe, annotated_examples), self.silent)
            report_dropped(pipe.annotation, annotated_examples, self.silent)
        return annotated_examples

    def stream(self, nlp: Language) -> Iterator[Example]:
        """Yield the examples of DATA, texts or gold. A text without gold has its value of --by in its origin (`origin_of`)."""
        return stream_examples(nlp, self.data, key=self.by, fields=self.fields)

    def make_settings(self, title: str) -> RunSettings:
        """Return settings to run the pipeline over DATA, texts or gold. title (str): Title of the progress bar."""
        return RunSettings(self.n_process, self.silent, title, gold=holds_gold(self.data))

    def score(
        self, nlp: Language, pipe: Calibrator, title: str, watch: Callable[[Iterable[Example]], Iterable[Example]]
    ) -> tuple[ScoredCorpus, dict[str, Any] | None]:
        """Score DATA, texts or gold; return (scores, overlap with the fit data as a dict, or None if not known).

        title (str): Title of the progress bar. watch (Callable): Gets the examples and must yield each one; it may count or
        check them. RAISES C075, C745: nothing got a score. C151: the component knows no gold label.
        """
        from ...gold.reading import TextWatch
        from ...pipe.gold_checks import unknown_in_corpus

        text_watch, examples, settings = TextWatch(pipe.annotation), self.stream(nlp), self.make_settings(title)
        if settings.gold:
            examples = iter(self.match([pipe], list(examples)))
        corpus = score(nlp, pipe, text_watch.watch(watch(examples)), settings, sentences=True)
        report_unknown(pipe, unknown_in_corpus(pipe, corpus), self.silent)
        return corpus, pipe.learned.overlap_with(text_watch.units())


@dataclass(frozen=True)
class GoldRun(Run):
    """A run over DATA that has to be gold."""

    needs_gold = True


def unit_of(pipe: Calibrator, unit: str | None) -> str:
    """Return what each row of a command is: `unit`, or by default "entity" if the pipe scores any, else "token" or "document".

    RAISES C065: the pipe scores no entities. C265: it has no scores of this unit.
    """
    kind = pipe.annotation.kind
    message_names = {"name": pipe.name, "component": pipe.source.component or "the source"}
    # Links are evaluated as rows of tokens, but people review whole entities.
    has_entities = pipe.spans.groups is not None or kind.of_links
    if unit is None:
        return "entity" if has_entities and not kind.of_arcs else kind.unit
    if unit == "entity" and not has_entities:
        raise calib_error("C065", **message_names)
    longer_units = () if kind.of_documents else ("sentence", DOCUMENT)
    if unit not in ("entity", kind.unit, *longer_units):
        raise calib_error("C265", **message_names, own=kind.unit, given=unit)
    if kind.of_links and unit == kind.unit:  # its rows are first tokens of entities
        return "entity"
    return unit
