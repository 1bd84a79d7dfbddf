"""Fitting all steps from a source's probability to a calibrated one, on tokens with gold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..pairs.build import interleave
from ..pairs.documents import TOKEN, cross_fit, folds_of
from ..pairs.progress import Progress
from ..types import Floats, Grouping, Groups, Ints, Pairs
from .grouped import GroupedRecalibrator
from .recalibrators import Platt, Recalibrator
from .scaling import Scaling
from .sets import ConformalSets
from .steps import Predictions, walk
from .tag_offsets import TagOffsets
from .tokens import TokenCalibration, rest_of

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class TokenData:
    """What a token calibration is fitted on.

    pairs (Pairs): All that reach the lowest score that takes part; rows are tokens in [0, len(gold)).
    gold (Ints): Column of the gold tag of each token: -1 where the model does not know it, -2 where there is no gold.
    documents (Ints): Of each pair, ascending. n_tags (int): Columns. threshold (float): Pairs below it have no map.
    others (Pairs): The pairs of tokens without gold, whose hits mean nothing. words: Of the tokens, for a context, or
        None. unit (str): What a row is, "token" or "document".
    """

    pairs: Pairs
    gold: Ints
    documents: Ints
    n_tags: int
    threshold: float
    others: Pairs = field(default_factory=Pairs.none)
    words: Any = None
    unit: str = TOKEN

    @cached_property
    def kept(self) -> Ints:
        """Index of the pairs that reach the threshold."""
        return np.flatnonzero(self.pairs.scores >= self.threshold)

    @cached_property
    def kept_pairs(self) -> Pairs:
        """The pairs that reach the threshold."""
        return self.pairs.take(self.kept)

    @cached_property
    def kept_others(self) -> Ints:
        """Index of the pairs without gold that reach it."""
        return np.flatnonzero(self.others.scores >= self.threshold)

    @cached_property
    def kept_documents(self) -> Ints:
        """The document of each kept pair."""
        return self.documents[self.kept]


@dataclass(frozen=True, eq=False)
class ContextFit:
    """What was learned of words and what surrounds them; its class, in a later room, knows what `context` is.

    context (Any): Fitted; its `model_` is None where there is too little to learn from. view (Any): Of the data as the
        features see it, with scores as `held_out` and `others`.
    held_out (Floats): The score of each pair by a model that did not see its document; the given one without a model.
    others (Floats): Scores of entries without gold. why (str): Why it moves no scores of tokens, or "".
    about (dict): What `info` shows.
    """

    context: Any
    view: Any
    held_out: Floats
    others: Floats
    why: str
    about: dict[str, Any]

    @property
    def always(self) -> bool:
        """Whether it is to be kept whatever held-out documents say."""
        return bool(self.context.when == "always")

    @property
    def size(self) -> int:
        """How many numbers were fitted."""
        return int(self.about["size"])


# (pairs, the entries of tokens without gold, documents of the pairs, words, progress).
LearnContext = Callable[[Pairs, Pairs, Ints, Any, Progress], ContextFit]


@dataclass(frozen=True, eq=False)
class Chosen:
    """How to calibrate.

    grouping (Grouping), prototype (Recalibrator), offsets (TagOffsets | None): Of the maps.
    scaling (Scaling | None): Fitted on all pairs. scaled (Floats): Score of each pair by a scaling and a context that
        did not see its document, else raw. table (dict): What `info` shows of the choice, if any.
    context (ContextFit | None): What was learned of the surroundings. moves (bool): Whether it moves scores of tokens.
    """

    grouping: Grouping
    prototype: Recalibrator
    offsets: TagOffsets | None
    scaling: Scaling | None
    scaled: Floats
    table: dict[str, Any] = field(default_factory=dict)
    context: ContextFit | None = None
    moves: bool = False

    def pairs_of(self, data: TokenData) -> Pairs:
        """What the maps are fitted on: the pairs that reach the threshold, with the scores of scaling and context."""
        return data.kept_pairs.with_scores(self.scaled[data.kept])

    def in_context(self, data: TokenData) -> Chosen:
        """The same with scores moved by the context."""
        assert self.context is not None
        scaled = self.scaled.copy()
        scaled[data.kept] = self.context.held_out
        return replace(self, scaled=scaled, moves=True)


@dataclass(frozen=True, eq=False)
class TokenFit:
    """A fitted calibration, with what it was fitted on.

    calibration (TokenCalibration): The fitted steps. maps (GroupedRecalibrator): The maps among these steps.
    data (TokenData), chosen (Chosen): What it was fitted on, and how. pairs (Pairs): As of `Chosen.pairs_of`.
    """

    calibration: TokenCalibration
    maps: GroupedRecalibrator
    data: TokenData
    chosen: Chosen
    pairs: Pairs

    @cached_property
    def mapped(self) -> Floats:
        """Score of each pair by maps that did not see its document, or its block of tokens with one document only."""
        pairs, documents = self.pairs, self.data.kept_documents
        if len(np.unique(documents)) < 2:
            documents = pairs.rows  # blocks of tokens, then

        def score(outside: Ints, inside: Ints) -> Floats:
            maps = self.maps
            if 0 < len(outside) >= maps.prototype.min_pairs:
                maps = GroupedRecalibrator(self.chosen.prototype, maps.groups, self.chosen.offsets).fit(pairs.take(outside))
            return maps.predict(pairs.scores[inside], pairs.tags[inside])

        return cross_fit(folds_of(documents, _FOLDS), score)

    @cached_property
    def held_out(self) -> Floats:
        """The score of each pair by steps that did not see its document."""
        raw = Predictions.of_pairs(self.data.kept_pairs, 0.0)
        given = raw.having(scores=self.mapped, before_maps=self.pairs.scores)
        return walk(self.calibration.behind(self.maps), given).scores

    def before_maps(self) -> Predictions:
        """What the steps before the maps make of all tokens, where no context moves their scores."""
        first = self.calibration.steps[: -len(self.calibration.behind(self.maps)) - 1]
        others = walk(first, Predictions.of_pairs(self.data.others, self.data.threshold)).scores
        every, _ = interleave(self.pairs, self.data.others.take(self.data.kept_others).with_scores(others))
        return Predictions.of_pairs(every, 0.0)

    @cached_property
    def others(self) -> tuple[Ints, Floats]:
        """(index of the pairs of tokens without gold that reach the threshold, their calibrated scores)."""
        given, context = Predictions.of_pairs(self.data.others, self.data.threshold), self.chosen.context
        if self.chosen.moves and context is not None:
            kept = given.take(given.kept).having(scores=context.others)
            return given.kept, walk(self.calibration.behind(context.context), kept).scores
        steps = [step for step in self.calibration.steps if step is not self.calibration.context]  # at which spans alone look
        return given.kept, walk(steps, given).scores


def fit_tokens(
    data: TokenData,
    chosen: Chosen,
    groups: Groups,
    *,
    normalize: bool | str = False,
    sets: ConformalSets | None = None,
    promise_groups: Groups | None = None,
) -> TokenFit:
    """Fit all steps after the scaling.

    groups (Groups): The tags of each group. promise_groups (Groups | None): Those of sets, if others (one group may
        be enough for the maps). sets (ConformalSets | None): Prototype, to be fitted on held-out scores.
    RAISES C003, C006: too few pairs.
    """
    pairs = chosen.pairs_of(data)
    maps = GroupedRecalibrator(chosen.prototype, groups, chosen.offsets).fit(pairs)
    made = TokenCalibration(maps, scaling=chosen.scaling, normalize=normalize)
    if chosen.context is not None and chosen.moves:
        made.context = chosen.context.context
    fitted = TokenFit(made, maps, data, chosen, pairs)
    if normalize == "other":
        made.other = _fit_other(pairs)
    if sets is not None:
        made.sets = sets.clone().fit(pairs.rows, pairs.tags, fitted.held_out, data.gold, promise_groups or groups)
    return fitted


def _fit_other(pairs: Pairs) -> Recalibrator:
    """The map of the probability that the right tag of a token is none of its pairs."""
    present, token = np.unique(pairs.rows, return_inverse=True)
    missed = np.bincount(token, weights=pairs.hits, minlength=len(present)) == 0
    return Platt().fit(rest_of(token, pairs.scores, len(present)), missed)
