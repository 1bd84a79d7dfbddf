"""Fitting all steps from a source's probability to a calibrated one, on tokens with gold.

A pair passes through four classes: `Marginals` (probabilities of a source), `FitData` (all pairs of a fit, with gold),
`Predictions` (their scores after each step) and `JudgedPairs` (raw and calibrated scores with gold, for tables). A fit passes
through three: `FitInputs` (data), `CalibrationPlan` (choice of steps) and `PipeState` (fitted steps, which are saved).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..pairs.documents import cross_fit, folds_of
from ..pairs.pairing import interleave
from ..pairs.progress import Progress
from ..types import Floats, Groups, Ints, Pairs
from .grouped import GroupedRecalibrator
from .recalibrators import Recalibrator
from .scaling import Scaling
from .steps import Predictions, apply_steps
from .tokens import TokenCalibration

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class FitData:
    """The (token, tag) pairs that a token calibration is fitted on.

    pairs (Pairs): Pairs of tokens with gold; rows are tokens in [0, len(gold)). Only a scaling reads pairs below the threshold.
    gold (Ints): Column of the gold tag of each token: -1 if the model does not know it, -2 if there is no gold.
    documents (Ints): Document of each pair, ascending. n_tags (int): Number of tags. threshold (float): The lowest score kept.
    unlabelled_pairs (Pairs), unlabelled_documents (Ints): Pairs of tokens without gold, whose hits have no meaning.
    words (Any): The words of all tokens, which a context reads; None without context.
    is_complete (bool): Whether gold decides on all pairs of tokens with gold; the answer "not a PERSON" does not.
    """

    pairs: Pairs
    gold: Ints
    documents: Ints
    n_tags: int
    threshold: float
    unlabelled_pairs: Pairs = field(default_factory=Pairs.empty)
    unlabelled_documents: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    words: Any = None
    is_complete: bool = True

    @cached_property
    def kept_indices(self) -> Ints:
        """Indices into `pairs` of the pairs that reach the threshold."""
        return np.flatnonzero(self.pairs.scores >= self.threshold)

    @cached_property
    def kept_pairs(self) -> Pairs:
        return self.pairs.take(self.kept_indices)

    @cached_property
    def kept_documents(self) -> Ints:
        return self.documents[self.kept_indices]

    @cached_property
    def kept_unlabelled(self) -> Ints:
        """Indices into `unlabelled_pairs` (pairs without gold) of the pairs that reach the threshold."""
        return np.flatnonzero(self.unlabelled_pairs.scores >= self.threshold)


@dataclass(frozen=True, eq=False)
class ContextFit:
    """A fitted context (a step that adjusts scores by word and neighbours) with its out-of-fold scores.

    context (Any): Fitted, of a class in `context.tokens`; its `model_` is None if data are too few. view (TokenView | None):
        Features of all tokens, and their scores after the context, for the context of spans; None if spans cannot use it.
    held_out (Floats): Out-of-fold score of each pair; unchanged without a model. unlabelled_scores (Floats): Score of each pair
        without gold. why (str): Why the context changes no scores of tokens, or "".
    about (dict): Facts that `info` shows, such as "size", the number of parameters.
    """

    context: Any
    view: Any
    held_out: Floats
    unlabelled_scores: Floats
    why: str
    about: dict[str, Any]

    @property
    def is_required(self) -> bool:
        """Whether the context is used even if its cross-validated loss is higher than without it."""
        return bool(self.context.when == "always")


# (pairs, pairs of tokens without gold, document of each pair, words, progress) -> fitted context.
LearnContext = Callable[[Pairs, Pairs, Ints, Any, Progress], ContextFit]


@dataclass(frozen=True, eq=False)
class CalibrationPlan:
    """The steps chosen for tokens, with maps still to be fitted; also a candidate that a selector compares with others.

    groups (Groups): Groups of tags, each with a map. prototype (Recalibrator): Copied for each map.
    has_offsets (bool): Whether tags and groups have offsets after the maps.
    evaluation_groups (Groups): The groups by which scores are evaluated.
    scores (Floats): Out-of-fold score of each pair after scaling and context; the raw score without these.
    scaling (Scaling | None), context (ContextFit | None): Steps before the maps, fitted on all pairs; None without.
    uses_context (bool): Whether the context changes scores of tokens.
    name (str), size (int): A candidate's name and number of parameters. losses (Floats): Out-of-fold log loss of each pair that
        reaches the threshold. why (str): Why it is not compared, or "". table (dict): The comparison; {} if there was none.
    """

    groups: Groups
    evaluation_groups: Groups
    prototype: Recalibrator
    scores: Floats
    has_offsets: bool = False
    scaling: Scaling | None = None
    context: ContextFit | None = None
    uses_context: bool = False
    name: str = ""
    size: int = 0
    losses: Floats = field(default_factory=lambda: np.zeros(0))
    why: str = ""
    table: dict[str, Any] = field(default_factory=dict)

    def pairs_of(self, data: FitData) -> Pairs:
        """Return the pairs that maps are fitted on: those that reach the threshold, with scores after scaling and context."""
        return data.kept_pairs.with_scores(self.scores[data.kept_indices])

    def with_context_scores(self, data: FitData) -> CalibrationPlan:
        """Return this plan with its context in use: pairs that reach the threshold get the context's out-of-fold scores."""
        assert self.context is not None
        scores = self.scores.copy()
        scores[data.kept_indices] = self.context.held_out
        return replace(self, scores=scores, uses_context=True)


def fit_tokens(data: FitData, plan: CalibrationPlan, normalize: bool = False) -> TokenCalibration:
    """Fit the maps of a plan, and return them with the plan's other steps as a calibration.

    normalize (bool): Whether scores of a token will be divided by their sum. RAISES C003: no pairs. C006: too few for the maps.
    """
    maps = GroupedRecalibrator(plan.prototype, plan.groups, plan.has_offsets).fit(plan.pairs_of(data))
    calibration = TokenCalibration(maps, scaling=plan.scaling, normalize=normalize)
    if plan.context is not None and plan.uses_context:
        calibration.context = plan.context.context
    return calibration


def score_held_out(data: FitData, plan: CalibrationPlan, calibration: TokenCalibration) -> Floats:
    """Return the out-of-fold calibrated score of each pair that reaches the threshold.

    Folds are of documents (of tokens if there is one document). Only maps are fitted again for each fold: the plan's scores are
    out-of-fold, and the steps after the maps are those of the calibration.
    """
    pairs, documents, maps = plan.pairs_of(data), data.kept_documents, calibration.maps
    assert maps is not None
    if len(np.unique(documents)) < 2:
        documents = pairs.rows

    def score(train: Ints, test: Ints) -> Floats:
        if len(train) < max(1, maps.prototype.min_pairs):  # too few for maps that have not seen the test documents
            return pairs.scores[test]
        fold_maps = GroupedRecalibrator(plan.prototype, maps.groups, plan.has_offsets).fit(pairs.take(train))
        return fold_maps.predict(pairs.scores[test], pairs.tags[test])

    fold_scores = cross_fit(folds_of(documents, _FOLDS), score)
    predictions = Predictions.of_pairs(data.kept_pairs, 0.0).replace_unchecked(scores=fold_scores)  # 0.0: all are kept
    return apply_steps(calibration.steps_after(maps), predictions).scores


def score_unlabelled(data: FitData, plan: CalibrationPlan, calibration: TokenCalibration) -> Floats:
    """Return the calibrated score of each pair without gold that reaches the threshold. calibration: Fitted by this plan."""
    predictions, context = Predictions.of_pairs(data.unlabelled_pairs, data.threshold), plan.context
    if plan.uses_context and context is not None:
        kept_predictions = predictions.take(predictions.kept_indices).replace_unchecked(scores=context.unlabelled_scores)
        return apply_steps(calibration.steps_after(context.context), kept_predictions).scores
    steps = [step for step in calibration.steps if step is not calibration.context]  # the context is for spans only
    return apply_steps(steps, predictions).scores


def before_maps(data: FitData, plan: CalibrationPlan, calibration: TokenCalibration) -> Predictions:
    """Return what the maps get as input in a plan without context: pairs that reach the threshold, with gold and without."""
    assert calibration.maps is not None
    first_steps = calibration.steps[: calibration.steps.index(calibration.maps)]  # they cut off pairs below the threshold
    unlabelled_scores = apply_steps(first_steps, Predictions.of_pairs(data.unlabelled_pairs, data.threshold)).scores
    unlabelled_pairs = data.unlabelled_pairs.take(data.kept_unlabelled).with_scores(unlabelled_scores)
    pairs, _ = interleave(plan.pairs_of(data), unlabelled_pairs)  # in the order of the text
    return Predictions.of_pairs(pairs, 0.0)  # threshold 0: all of these are kept
