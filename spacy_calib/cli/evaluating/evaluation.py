"""Model and gold -> an `Evaluation`: the tables of each pipe, slices of the data, and how another pipeline compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...annotations import plain_name
from ...errors import CalibError, calib_error
from ...pipe.loading import check_readable
from ..shared.command import check_option
from ..shared.evidence import check_bins
from ..shared.run import judge, pipes_to_run
from .against import check_other, compare, read_side, show_against, side_of
from .outputs import Section
from .raw_scores import fit_command, judge_raw, verdict_on_raw, without_calibrated
from .tables import show_slices

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...metrics.judged_view import JudgedView
    from ...metrics.slices import SliceTable
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from ...pipe.evaluation import PipeScores
    from .options import EvaluateRun

# Of the simulated noise floor and of intervals.
_SEED = 0
ENTITIES = "entities"


@dataclass(frozen=True, eq=False)
class PipeEvaluation:
    """The evaluation of one pipe.

    judged (Judged): Its tokens and spans with gold, and the overlap with the fit data. conventions (list | None): Where labels and gold look
    like two conventions, see `FitInfo`; None where it is not known. pipe, corpus: The fitted pipe, and its scores with their places in the texts;
    None of raw scores, and where it cannot be read.
    """

    run: EvaluateRun
    judged: PipeScores
    conventions: list[dict[str, Any]] | None = None
    pipe: Calibrator | None = None
    corpus: ScoredCorpus | None = None

    @cached_property
    def units(self) -> dict[str, JudgedView]:
        """ "entities", where there are, then "tokens" or "documents" -> their scores, by the groups of the fit or by as many as were asked for."""
        from ...metrics.judged_view import judged_entities, judged_tokens, without_positions
        from ...pipe.registered import metrics
        from ...pipe.scorer import scorer_like

        judged, corpus = self.judged, self.corpus
        scorer = scorer_like(judged.scorer, self.run.bins, self.run.groups)
        about: dict[str, Any] = {"n_bins": scorer.n_bins, "seed": _SEED, "metrics": metrics()}
        spans, of_tokens = {}, {**about, "labels": judged.labels, "groups": scorer.judging(judged.groups, judged.labels)}
        if judged.spans is not None and judged.span_groups is not None:
            about["span_words"], about["labels"] = judged.annotation.span_words, judged.span_labels
            about["groups"] = scorer.judging(judged.span_groups, judged.span_labels)
            unplaced = partial(without_positions, judged.spans, kind=ENTITIES)
            spans[ENTITIES] = unplaced(**about) if corpus is None else judged_entities(corpus, **about)
        unplaced = partial(without_positions, judged.tokens, kind=f"{judged.annotation.unit}s")
        tokens = unplaced(**of_tokens) if corpus is None else judged_tokens(corpus, **of_tokens)
        return {**spans, tokens.kind: tokens}

    def table(self) -> dict[str, Any]:
        """The table, see `evaluate`; raw scores alone of a pipe that is not fitted. RAISES C005: there are fewer pairs than bins."""

        judged, bins = self.judged, self.run.bins
        *spans, tokens = self.units.values()
        if len(tokens):
            check_bins(len(tokens), bins, judged.threshold)
        table = {
            "component": judged.component,
            "layer": plain_name(judged.layer),
            "accuracy_is": judged.annotation.accuracy_name,
            "seen": judged.overlap,
            "weights_changed": judged.weights_changed,
            "misaligned": judged.misaligned_tokens,
            **({"without_map": dict(judged.without_map)} if judged.without_map else {}),
            **self._figures(tokens),
        }
        for view in spans:
            about = {
                "called": list(view.span_words),
                "event": judged.event,
                "accepted": judged.accepted,
                "flagged": judged.flagged,
            }
            table[ENTITIES] = {**about, **self._figures(view)}
        if judged.events:
            table["events"] = [event_table(bins or 10, _SEED) for event_table in judged.events]
        if not judged.fitted:
            raw_table = {"verdict": verdict_on_raw(judged), "fit": fit_command(self.run, judged.component)}
            table = {**without_calibrated(table), "unfitted": raw_table}
        return {**table, "conventions": self.conventions}

    def _figures(self, view: JudgedView) -> dict[str, Any]:
        from ...metrics.sentences import never_right
        from ...metrics.table import calibration_table
        from ...types import OPEN

        documents = view.documents if view.unit else None
        figures = calibration_table(
            view.pairs, view.calibrated, view.groups, view.n_bins, view.seed, documents, view.unit, view.metrics
        )
        never = [] if plain_name(self.judged.layer) in OPEN else never_right(view, view.labels)
        return {"bins": view.n_bins, **figures, "never_right": never}


@dataclass(eq=False, kw_only=True)
class Evaluation:
    """The evaluation of a pipeline on gold: what `evaluate` shows, and what writers get.

    run (EvaluateRun): Its options. name, version (str): Of the pipeline. pipes (list[PipeEvaluation]): All that were evaluated.
    examples (Sequence[Example]): The gold, with the predicted Docs; none of raw scores. skipped (list[str]): Sentences about what is not
    evaluated. sections (list[Section]): What was added to the tables.
    """

    run: EvaluateRun
    name: str
    version: str
    pipes: list[PipeEvaluation]
    examples: Sequence[Example] = ()
    skipped: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    @cached_property
    def tables(self) -> dict[str, dict[str, Any]]:
        """By pipe, with all sections, see `evaluate`. RAISES C005: more bins were asked for than there are pairs."""
        return {evaluated.judged.name: evaluated.table() for evaluated in self.pipes}

    def add(self, sections: Iterable[Section]) -> None:
        """Add sections to the tables."""
        for section in sections:
            self.sections.append(section)
            if section.pipe:
                self.table_of(section.pipe, section.unit)[section.key] = section.rows

    def table_of(self, pipe: str, unit: str) -> dict[str, Any]:
        """The part of a pipe's table that is of one unit."""
        table: dict[str, Any] = self.tables[pipe][ENTITIES] if unit == ENTITIES else self.tables[pipe]
        return table

    def placed(self) -> list[tuple[Calibrator, ScoredCorpus, PipeEvaluation]]:
        """The fitted pipes that can be read, with their scores."""
        return [
            (evaluated.pipe, evaluated.corpus, evaluated)
            for evaluated in self.pipes
            if evaluated.pipe is not None and evaluated.corpus is not None
        ]

    def nothing_to_show(self) -> CalibError:
        """C030: no unit of any pipe has both gold and a score."""
        first = self.pipes[0].judged
        return calib_error("C030", layer=plain_name(first.layer), component=first.component or "the source")

    def values_of(self, by: str) -> Sequence[str | None]:
        """The value of each Doc under a key. RAISES CalibError: a key that tells nothing, see `names_under`."""
        from ...gold.keys import names_under

        return names_under([example.reference for example in self.examples], by)

    def slices(self, by: str) -> list[Section]:
        """How true the scores are in each slice: the documents that share a value of a key; the rows are a `SliceTable`."""
        values = self.values_of(by)
        return [
            Section(pipe.name, unit, "slices", {"by": by, **_slice_table(corpus, view, values)}, show_slices)
            for pipe, corpus, evaluated in self.placed()
            for unit, view in evaluated.units.items()
        ]

    def against(self, other: str) -> list[Section]:
        """How another pipeline compares; the rows are a `Comparison`. RAISES C615 to C618: nothing to compare."""
        run, sides = self.run, [side_of(pipe, corpus, self.examples) for pipe, corpus, _ in self.placed()]
        values = None if run.by is None else self.values_of(run.by)
        return [
            Section(side.name, unit, "against", rows, show_against)
            for side in sides or [read_side(run, run.model, self.pipes[0].judged.component)]
            for unit, rows in compare(side, read_side(run, other, side.component), run, values).items()
        ]


def _slice_table(corpus: ScoredCorpus, view: JudgedView, values: Sequence[str | None]) -> SliceTable:
    from ...metrics.judged_view import predicted_units
    from ...metrics.slices import judge_slices, slices_by

    docs, places = predicted_units(corpus, view)
    return judge_slices(view, slices_by(values, docs, places), places, view.n_bins, view.seed)


def evaluate_pipeline(run: EvaluateRun, fitted_only: bool = False) -> Evaluation:
    """Evaluate what the run is about, with slices, comparisons and the tables of plug-ins; nothing is written.

    fitted_only (bool): Refuse raw scores. RAISES CalibError: any fault of the input.
    """
    if run.against is not None:
        check_other(run.against)
    nlp = run.begin(run.files())
    fitted_only |= run.by is not None or any(request.writer.fitted_only for request in run.requests)
    name, version = f"{nlp.meta['lang']}_{nlp.meta['name']}", nlp.meta["version"]
    if _reads_fitted(run, nlp, fitted_only):
        evaluation = Evaluation(run=run, name=name, version=version, pipes=[])
        _evaluate_fitted(evaluation, nlp, sentences=fitted_only or bool(run.requests))
    else:
        evaluation = Evaluation(run=run, name=name, version=version, pipes=[PipeEvaluation(run, *judge_raw(run, nlp))])
    slices = [] if run.by is None else evaluation.slices(run.by)
    evaluation.add([] if run.against is None else evaluation.against(run.against))
    evaluation.add(slices)
    for request in run.requests:
        if not request.paths:
            evaluation.add(request.write(evaluation))
    return evaluation


def _evaluate_fitted(evaluation: Evaluation, nlp: Language, sentences: bool) -> None:
    """Add the fitted pipes. sentences (bool): Find sentences, too, for what is shown in its context."""
    from ...pipe.component import fitted_pipes

    run = evaluation.run
    examples = run.read(nlp)
    pipes = run.pipes(nlp, examples, several=True)
    last_pipes = [pipes_to_run(nlp, pipe, sentences=True)[-1] for pipe in pipes] if sentences else []
    all_judged, corpora, evaluation.examples = judge(run, nlp, pipes, examples, also=last_pipes)
    if run.attr is None and run.component is None:
        without_gold = [pipe for pipe in fitted_pipes(nlp) if pipe not in pipes]
        reason = "Not judged: pipe {}. The data has no gold for '{}'."
        evaluation.skipped += [reason.format(pipe.name, pipe.source.component) for pipe in without_gold]
    for pipe, judged, corpus in zip(pipes, all_judged, corpora, strict=True):
        evaluation.pipes.append(_evaluate_pipe(evaluation, nlp, judged, pipe, corpus))


def _evaluate_pipe(
    evaluation: Evaluation, nlp: Language, judged: PipeScores, pipe: Calibrator, corpus: ScoredCorpus
) -> PipeEvaluation:
    """The evaluation of a pipe; one that cannot be read has a table alone, and is named among the skipped."""
    from ...pipe.evaluation import find_gold_conventions

    try:
        check_readable(nlp, pipe)
    except CalibError as error:
        evaluation.skipped.append(f"Not judged: pipe {pipe.name}. {error.message}")
        return PipeEvaluation(evaluation.run, judged)
    return PipeEvaluation(evaluation.run, judged, find_gold_conventions(pipe, corpus), pipe, corpus)


def _reads_fitted(run: EvaluateRun, nlp: Language, fitted_only: bool) -> bool:
    """Whether fitted pipes are evaluated, not raw scores. RAISES C027, C056: none that can be shown on a page or in pictures."""
    from ...pipe.component import Calibrator, fitted_pipes

    fitted_calibs = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if run.attr is not None or any(run.component in (None, pipe.source.component) for pipe in fitted_calibs):
        return True
    if fitted_only:
        fitted_pipes(nlp)
        check_option("--component", False, "one that is calibrated, to be shown on a page or in pictures", run.component)
    return False
