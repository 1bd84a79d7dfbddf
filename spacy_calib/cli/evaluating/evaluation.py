"""`Evaluation` of a pipeline on gold: the tables of each pipe, slices of the data, and further sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...annotations import plain_name
from ...errors import CalibError, calib_error
from ...pipe.pipeline import check_readable
from ..shared.command import check_option
from ..shared.run import evaluate_pipes
from .outputs import Section
from .raw_scores import evaluate_raw, fit_command, verdict_on_raw, without_calibrated
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

# Seed of the simulated noise floor and of intervals.
_SEED = 0
ENTITIES = "entities"


@dataclass(frozen=True, eq=False)
class PipeEvaluation:
    """The evaluation of one pipe.

    gold_scores (PipeScores): Scores of its tokens and spans with gold. conventions (list | None): Labels that gold and
    component seem to use differently, as in `FitInfo`; None if not known. pipe, corpus: The fitted pipe, and its scores with
    their positions in the texts; None for raw scores, and if its component is missing or disabled.
    """

    run: EvaluateRun
    gold_scores: PipeScores
    conventions: list[dict[str, Any]] | None = None
    pipe: Calibrator | None = None
    corpus: ScoredCorpus | None = None

    @cached_property
    def units(self) -> dict[str, JudgedView]:
        """Scores of "entities", if it scores these, then of "tokens" or "documents", in the groups of the fit or of --groups."""
        from ...metrics.judged_view import judged_entities, judged_tokens, without_positions
        from ...pipe.registered import metrics
        from ...pipe.scorer import scorer_like

        scores, corpus = self.gold_scores, self.corpus
        scorer = scorer_like(scores.scorer, self.run.groups)
        options: dict[str, Any] = {"n_bins": scorer.n_bins, "seed": _SEED, "metrics": metrics()}
        spans, token_options = {}, {**options, "labels": scores.labels, "groups": scorer.judging(scores.groups, scores.labels)}
        if scores.spans is not None and scores.span_groups is not None:
            options["span_words"], options["labels"] = scores.annotation.span_words, scores.span_labels
            options["groups"] = scorer.judging(scores.span_groups, scores.span_labels)
            raw_view = partial(without_positions, scores.spans, kind=ENTITIES)
            spans[ENTITIES] = raw_view(**options) if corpus is None else judged_entities(corpus, **options)
        raw_view = partial(without_positions, scores.tokens, kind=f"{scores.annotation.unit}s")
        tokens = raw_view(**token_options) if corpus is None else judged_tokens(corpus, **token_options)
        return {**spans, tokens.kind: tokens}

    def table(self) -> dict[str, Any]:
        """Return the table of the pipe for `evaluate`; without a fit only raw scores."""
        scores = self.gold_scores
        *spans, tokens = self.units.values()
        table = {
            "component": scores.component,
            "layer": plain_name(scores.layer),
            "accuracy_is": scores.annotation.accuracy_name,
            "seen": scores.overlap,
            "weights_changed": scores.weights_changed,
            "misaligned": scores.misaligned_tokens,
            **({"without_map": dict(scores.without_map)} if scores.without_map else {}),
            **self._figures(tokens),
        }
        for view in spans:
            fields = {
                "called": list(view.span_words),
                "event": scores.event,
                "accepted": scores.accepted,
                "flagged": scores.flagged,
            }
            table[ENTITIES] = {**fields, **self._figures(view)}
        if not scores.fitted:
            raw_table = {"verdict": verdict_on_raw(scores), "fit": fit_command(self.run, scores.component)}
            table = {**without_calibrated(table), "unfitted": raw_table}
        return {**table, "conventions": self.conventions}

    def _figures(self, view: JudgedView) -> dict[str, Any]:
        """Return the table of calibration errors as a dict, with "bins" and the labels that are never right."""
        from ...metrics.sentences import never_right
        from ...metrics.table import calibration_table
        from ...types import OPEN

        documents = view.documents if view.unit else None
        figures = calibration_table(
            view.pairs, view.calibrated, view.groups, view.n_bins, view.seed, documents, view.unit, view.metrics
        )
        never = [] if plain_name(self.gold_scores.layer) in OPEN else never_right(view, view.labels)
        return {"bins": view.n_bins, **figures, "never_right": never}


@dataclass(eq=False, kw_only=True)
class Evaluation:
    """The evaluation of a pipeline on gold, which `evaluate` prints and writers get.

    run (EvaluateRun): Its options. name, version (str): Of the pipeline. pipes (list[PipeEvaluation]): The evaluated pipes.
    examples (Sequence[Example]): The gold, with the predicted Docs; empty for raw scores. notes (list[str]): Sentences about
    pipes that are not evaluated. sections (list[Section]): Further sections of the tables.
    """

    run: EvaluateRun
    name: str
    version: str
    pipes: list[PipeEvaluation]
    examples: Sequence[Example] = ()
    notes: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    @cached_property
    def tables(self) -> dict[str, dict[str, Any]]:
        """Pipe name -> its table with all sections, as `evaluate` returns them."""
        return {pipe.gold_scores.name: pipe.table() for pipe in self.pipes}

    def add(self, sections: Iterable[Section]) -> None:
        for section in sections:
            self.sections.append(section)
            if section.pipe:
                self.table_of(section.pipe, section.unit)[section.key] = section.rows

    def table_of(self, pipe: str, unit: str) -> dict[str, Any]:
        """Return the table of one unit of a pipe: its "entities", else the whole table."""
        table: dict[str, Any] = self.tables[pipe][ENTITIES] if unit == ENTITIES else self.tables[pipe]
        return table

    def fitted_pipes(self) -> list[tuple[Calibrator, ScoredCorpus, PipeEvaluation]]:
        """Return (pipe, scores, evaluation) of the fitted pipes whose component is there and enabled."""
        return [
            (evaluation.pipe, evaluation.corpus, evaluation)
            for evaluation in self.pipes
            if evaluation.pipe is not None and evaluation.corpus is not None
        ]

    def nothing_to_show(self) -> CalibError:
        """Build C030: no unit of any pipe has both gold and a score."""
        scores = self.pipes[0].gold_scores
        return calib_error("C030", layer=plain_name(scores.layer), component=scores.component or "the source")

    def values_of(self, key: str) -> Sequence[str | None]:
        """Return the value of each Doc under a key. RAISES C600 to C602: the key gives no slices."""
        from ...gold.keys import names_under

        return names_under([example.reference for example in self.examples], key)

    def slices(self, key: str) -> list[Section]:
        """Return the sections about slices, documents that share a value of a key; their rows are a `SliceTable`."""
        values, show = self.values_of(key), partial(show_slices, details=self.run.everything)
        return [
            Section(pipe.name, unit, "slices", {"by": key, **_slice_table(corpus, view, values)}, show)
            for pipe, corpus, evaluation in self.fitted_pipes()
            for unit, view in evaluation.units.items()
        ]


def _slice_table(corpus: ScoredCorpus, view: JudgedView, values: Sequence[str | None]) -> SliceTable:
    from ...metrics.judged_view import predicted_units
    from ...metrics.slices import judge_slices, slices_by

    docs, rows = predicted_units(corpus, view)
    return judge_slices(view, slices_by(values, docs, rows), rows, view.n_bins, view.seed)


def evaluate_pipeline(run: EvaluateRun, fitted_only: bool = False) -> Evaluation:
    """Evaluate a pipeline on gold, with slices; write no files.

    fitted_only (bool): Whether raw scores are refused. RAISES CalibError: any error in the input.
    """
    nlp = run.begin(run.files())
    fitted_only |= run.by is not None or bool(run.pages) or run.has_pictures
    name, version = f"{nlp.meta['lang']}_{nlp.meta['name']}", nlp.meta["version"]
    if _has_fitted(run, nlp, fitted_only):
        evaluation = Evaluation(run=run, name=name, version=version, pipes=[])
        _evaluate_fitted(evaluation, nlp, sentences=fitted_only)
    else:
        evaluation = Evaluation(run=run, name=name, version=version, pipes=[PipeEvaluation(run, *evaluate_raw(run, nlp))])
    evaluation.add([] if run.by is None else evaluation.slices(run.by))
    return evaluation


def _evaluate_fitted(evaluation: Evaluation, nlp: Language, sentences: bool) -> None:
    """Evaluate the fitted pipes. sentences (bool): Whether the pipes that set sentences must run, for outputs with examples."""
    from ...pipe.pipeline import fitted_pipes

    run = evaluation.run
    examples = run.read(nlp)
    pipes = run.pipes(nlp, examples, allow_many=True)
    all_scores, corpora, evaluation.examples = evaluate_pipes(run, nlp, pipes, examples, sentences)
    if run.component is None:
        without_gold = [pipe for pipe in fitted_pipes(nlp) if pipe not in pipes]
        reason = "Not evaluated: pipe {}. The data has no gold for '{}'."
        evaluation.notes += [reason.format(pipe.name, pipe.source.component) for pipe in without_gold]
    for pipe, scores, corpus in zip(pipes, all_scores, corpora, strict=True):
        evaluation.pipes.append(_evaluate_pipe(evaluation, nlp, scores, pipe, corpus))


def _evaluate_pipe(
    evaluation: Evaluation, nlp: Language, scores: PipeScores, pipe: Calibrator, corpus: ScoredCorpus
) -> PipeEvaluation:
    """Build the evaluation of a pipe. If its component is missing or disabled it has only a table, and a note."""
    from ...pipe.evaluation import find_gold_conventions

    try:
        check_readable(nlp, pipe)
    except CalibError as error:
        evaluation.notes.append(f"Not evaluated: pipe {pipe.name}. {error.message}")
        return PipeEvaluation(evaluation.run, scores)
    return PipeEvaluation(evaluation.run, scores, find_gold_conventions(pipe, corpus), pipe, corpus)


def _has_fitted(run: EvaluateRun, nlp: Language, fitted_only: bool) -> bool:
    """Whether fitted pipes are evaluated, not raw scores. RAISES C027, C056: there is none, though an output needs one."""
    from ...pipe.component import Calibrator
    from ...pipe.pipeline import fitted_pipes

    fitted_calibs = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if any(run.component in (None, pipe.source.component, pipe.attr) for pipe in fitted_calibs):
        return True
    if fitted_only:
        fitted_pipes(nlp)
        check_option("--component", False, "one that is calibrated, to be shown on a page or in pictures", run.component)
    return False
