"""Fitting all steps from a source's probability to a calibrated one, on tokens with gold."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..pairs.folds import cross_fit, folds_of
from ..types import Floats, Grouping, Groups, Ints, Pairs
from .grouped import GroupedRecalibrator
from .intervals import GroupedVennAbers
from .recalibrators import Platt, Recalibrator
from .scaling import Scaling
from .sets import ConformalSets
from .tag_offsets import TagOffsets
from .tokens import TokenCalibration, rest_of

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class TokenData:
    """What a token calibration is fitted on.

    pairs (Pairs): All that reach the lowest score that takes part; rows are tokens in [0, len(gold)).
    gold (Ints): Column of the gold tag of each token: -1 where the model does not know it, -2 where there is no gold.
    documents (Ints): Of each pair, ascending. n_tags (int): Columns. threshold (float): Pairs below it have no map.
    """

    pairs: Pairs
    gold: Ints
    documents: Ints
    n_tags: int
    threshold: float

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
        """The document of each of them."""
        return self.documents[self.kept]


@dataclass(frozen=True, eq=False)
class Chosen:
    """How to calibrate.

    grouping (Grouping), prototype (Recalibrator), offsets (TagOffsets | None): Of the maps.
    scaling (Scaling | None): Fitted on all pairs. scaled (Floats): The score of each pair by scalings that did not see its document; the
        raw ones without a scaling. table (dict): What `info` shows of the choice, {} where nothing was chosen.
    """

    grouping: Grouping
    prototype: Recalibrator
    offsets: TagOffsets | None
    scaling: Scaling | None
    scaled: Floats
    table: dict[str, Any] = field(default_factory=dict)

    def pairs_of(self, data: TokenData) -> Pairs:
        """What the maps are fitted on: the pairs that reach the threshold, with their scaled scores."""
        return data.kept_pairs.with_scores(self.scaled[data.kept])


@dataclass(frozen=True, eq=False)
class TokenFit:
    """A fitted calibration, with what it was fitted on.

    calibration (TokenCalibration): The fitted steps. maps (GroupedRecalibrator): The maps among these steps.
    data (TokenData), chosen (Chosen): What it was fitted on, and how. pairs (Pairs): What the maps were fitted on, see `Chosen.pairs_of`.
    """

    calibration: TokenCalibration
    maps: GroupedRecalibrator
    data: TokenData
    chosen: Chosen
    pairs: Pairs

    @cached_property
    def held_out(self) -> Floats:
        """The score of each pair by maps that did not see its document, or its block of tokens where there is one document only."""
        pairs, documents = self.pairs, self.data.kept_documents
        if len(np.unique(documents)) < 2:
            documents = pairs.rows  # blocks of tokens, then

        def score(outside: Ints, inside: Ints) -> Floats:
            maps = self.maps
            if 0 < len(outside) >= maps.prototype.min_pairs:
                maps = GroupedRecalibrator(self.chosen.prototype, maps.groups, self.chosen.offsets).fit(pairs.take(outside))
            return maps.predict(pairs.scores[inside], pairs.tags[inside])

        return self.calibration.normalized(pairs.rows, pairs.scores, cross_fit(folds_of(documents, _FOLDS), score))


def fit_tokens(
    data: TokenData,
    chosen: Chosen,
    groups: Groups,
    *,
    normalize: bool | str = False,
    intervals: bool = False,
    sets: ConformalSets | None = None,
    promise_groups: Groups | None = None,
) -> TokenFit:
    """Fit all steps after the scaling.

    groups (Groups): The tags of each group. promise_groups (Groups | None): Those for intervals and sets, where they are others (a
        selection may find that one group is enough for the maps). intervals (bool): Whether tokens get a Venn-Abers interval.
    sets (ConformalSets | None): Prototype; it is fitted on scores of maps that did not see the token's document.
    RAISES C003, C006: too few pairs.
    """
    pairs = chosen.pairs_of(data)
    maps = GroupedRecalibrator(chosen.prototype, groups, chosen.offsets).fit(pairs)
    made = TokenCalibration(maps, scaling=chosen.scaling, normalize=normalize)
    fitted = TokenFit(made, maps, data, chosen, pairs)
    if normalize == "other":
        made.other = _fit_other(pairs)
    if intervals:
        made.intervals = GroupedVennAbers(promise_groups or groups).fit(pairs)
    if sets is not None:
        made.sets = sets.clone().fit(pairs.rows, pairs.tags, fitted.held_out, data.gold, promise_groups or groups)
    return fitted


def _fit_other(pairs: Pairs) -> Recalibrator:
    """The map of the probability that the right tag of a token is none of its pairs."""
    present, token = np.unique(pairs.rows, return_inverse=True)
    missed = np.bincount(token, weights=pairs.hits, minlength=len(present)) == 0
    return Platt().fit(rest_of(token, pairs.scores, len(present)), missed)
