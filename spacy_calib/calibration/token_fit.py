"""Fitting all steps from a source's probability to a calibrated one, on tokens with gold.

A pair passes through four classes: `Marginals` (what a source gives), `FitData` (all pairs of a fit, with gold), `Predictions` (their
scores after each step) and `JudgedPairs` (raw and calibrated scores with gold, from which tables are made). A fit passes through three:
`FitInputs` (what was read), `CalibrationPlan` (how to calibrate) and `PipeState` (the fitted steps, which are saved).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pairs.build import interleave
from ..pairs.documents import cross_fit, folds_of
from ..pairs.progress import Progress
from ..types import Floats, Groups, Ints, Pairs
from .grouped import GroupedRecalibrator
from .recalibrators import Platt, Recalibrator
from .scaling import Scaling
from .steps import Predictions, walk
from .tag_offsets import TagOffsets
from .tokens import TokenCalibration, rest_of

if TYPE_CHECKING:
    from .sets import ConformalSets

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class FitData:
    """The pairs that a token calibration is fitted on.

    pairs (Pairs): All that reach the lowest score that takes part; rows are tokens in [0, len(gold)).
    gold (Ints): Column of the gold tag of each token: -1 where the model does not know it, -2 where there is no gold.
    documents (Ints): Document of each pair, ascending. n_tags (int): Columns. threshold (float): Pairs below it have no map.
    unlabelled_pairs (Pairs), unlabelled_documents (Ints): Pairs of tokens without gold, whose hits mean nothing.
    words (Any): The words of all tokens, for a context; None without.
    is_complete (bool): Whether all pairs of a token with gold are known to hit or miss.
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
    def kept(self) -> Ints:
        """Index of the pairs that reach the threshold."""
        return np.flatnonzero(self.pairs.scores >= self.threshold)

    @cached_property
    def kept_pairs(self) -> Pairs:
        """The pairs that reach the threshold."""
        return self.pairs.take(self.kept)

    @cached_property
    def kept_documents(self) -> Ints:
        """The document of each kept pair."""
        return self.documents[self.kept]

    @cached_property
    def kept_unlabelled(self) -> Ints:
        """Index of the pairs without gold that reach the threshold."""
        return np.flatnonzero(self.unlabelled_pairs.scores >= self.threshold)


@dataclass(frozen=True, eq=False)
class ContextFit:
    """What was learned of words and what surrounds them.

    context (Any): Fitted; its `model_` is None where there is too little to learn from. Its class is in a later room.
    view (Any): The data as the features see it, with scores as `held_out` and `unlabelled`; None where spans cannot look at it.
    held_out (Floats): The score of each pair by a model that did not see its document; the given one without a model.
    unlabelled_scores (Floats): Scores of entries without gold. why (str): Why it moves no scores of tokens, or "".
    about (dict): What `info` shows.
    """

    context: Any
    view: Any
    held_out: Floats
    unlabelled_scores: Floats
    why: str
    about: dict[str, Any]

    @property
    def is_required(self) -> bool:
        """Whether it is to be kept whatever held-out documents show."""
        return bool(self.context.when == "always")


# (pairs, the entries of tokens without gold, documents of the pairs, words, progress).
LearnContext = Callable[[Pairs, Pairs, Ints, Any, Progress], ContextFit]


@dataclass(frozen=True, eq=False)
class CalibrationPlan:
    """How to calibrate tokens; also a candidate that a selection compares with others.

    groups (Groups), prototype (Recalibrator), offsets (TagOffsets | None): Of the maps.
    evaluation_groups (Groups): The groups by which scores are promised and evaluated.
    scores (Floats): Score of each pair by a scaling and a context that did not see its document, else raw.
    scaling (Scaling | None): Fitted on all pairs. context (ContextFit | None): What was learned of the surroundings.
    moves (bool): Whether the context moves scores of tokens.
    name (str), size (int): Of a candidate, and how many numbers it learned. losses (Floats): Log loss of each kept pair by steps that
        did not see its document. why (str): Why it is not compared. table (dict): What `info` shows of the choice, if any.
    """

    groups: Groups
    evaluation_groups: Groups
    prototype: Recalibrator
    scores: Floats
    offsets: TagOffsets | None = None
    scaling: Scaling | None = None
    context: ContextFit | None = None
    moves: bool = False
    name: str = ""
    size: int = 0
    losses: Floats = field(default_factory=lambda: np.zeros(0))
    why: str = ""
    table: dict[str, Any] = field(default_factory=dict)

    def pairs_of(self, data: FitData) -> Pairs:
        """The pairs that the maps are fitted on: those that reach the threshold, with the scores of scaling and context."""
        return data.kept_pairs.with_scores(self.scores[data.kept])

    def in_context(self, data: FitData) -> CalibrationPlan:
        """The same plan with scores moved by the context."""
        assert self.context is not None
        scores = self.scores.copy()
        scores[data.kept] = self.context.held_out
        return replace(self, scores=scores, moves=True)


def fit_tokens(data: FitData, plan: CalibrationPlan, normalize: bool | str = False) -> TokenCalibration:
    """Fit all steps after the scaling, but no sets. RAISES C003, C006: too few pairs."""
    pairs = plan.pairs_of(data)
    maps = GroupedRecalibrator(plan.prototype, plan.groups, plan.offsets).fit(pairs)
    calibration = TokenCalibration(maps, scaling=plan.scaling, normalize=normalize)
    if plan.context is not None and plan.moves:
        calibration.context = plan.context.context
    if normalize == "other":
        calibration.other = _fit_other(pairs)
    return calibration


def fit_sets(prototype: ConformalSets, data: FitData, plan: CalibrationPlan, held_out: Floats) -> ConformalSets:
    """Fit sets on held-out scores."""
    return prototype.clone().fit(data.kept_pairs.rows, data.kept_pairs.tags, held_out, data.gold, plan.evaluation_groups)


def score_held_out(data: FitData, plan: CalibrationPlan, calibration: TokenCalibration) -> Floats:
    """The score of each kept pair by steps that did not see its document, or its block of tokens with one document only."""
    pairs, documents, maps = plan.pairs_of(data), data.kept_documents, calibration.maps
    assert maps is not None
    if len(np.unique(documents)) < 2:
        documents = pairs.rows  # blocks of tokens

    def score(train: Ints, test: Ints) -> Floats:
        fold_maps = maps
        if 0 < len(train) >= maps.prototype.min_pairs:
            fold_maps = GroupedRecalibrator(plan.prototype, maps.groups, plan.offsets).fit(pairs.take(train))
        return fold_maps.predict(pairs.scores[test], pairs.tags[test])

    fold_scores = cross_fit(folds_of(documents, _FOLDS), score)
    predictions = Predictions.of_pairs(data.kept_pairs, 0.0).having(scores=fold_scores, before_maps=pairs.scores)
    return walk(calibration.behind(maps), predictions).scores


def score_unlabelled(data: FitData, plan: CalibrationPlan, calibration: TokenCalibration) -> Floats:
    """The calibrated score of each pair of a token without gold that reaches the threshold."""
    predictions, context = Predictions.of_pairs(data.unlabelled_pairs, data.threshold), plan.context
    if plan.moves and context is not None:
        kept_predictions = predictions.take(predictions.kept).having(scores=context.unlabelled_scores)
        return walk(calibration.behind(context.context), kept_predictions).scores
    steps = [step for step in calibration.steps if step is not calibration.context]  # at which only spans look
    return walk(steps, predictions).scores


def before_maps(data: FitData, plan: CalibrationPlan, calibration: TokenCalibration) -> Predictions:
    """All tokens after the steps before the maps, where no context moves their scores."""
    assert calibration.maps is not None
    first_steps = calibration.steps[: -len(calibration.behind(calibration.maps)) - 1]
    unlabelled_scores = walk(first_steps, Predictions.of_pairs(data.unlabelled_pairs, data.threshold)).scores
    pairs, _ = interleave(plan.pairs_of(data), data.unlabelled_pairs.take(data.kept_unlabelled).with_scores(unlabelled_scores))
    return Predictions.of_pairs(pairs, 0.0)


def _fit_other(pairs: Pairs) -> Recalibrator:
    """Fit the map of the probability that the right tag of a token is none of its pairs."""
    rows, token = np.unique(pairs.rows, return_inverse=True)
    is_missed = np.bincount(token, weights=pairs.hits, minlength=len(rows)) == 0
    return Platt().fit(rest_of(token, pairs.scores, len(rows)), is_missed)
