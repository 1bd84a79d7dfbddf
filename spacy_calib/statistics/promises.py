"""Sets of tags from tables alone: cuts from the held-out scores of gold tags, by maps that did not see a block of documents."""

from __future__ import annotations

import numpy as np

from ..calibration.grouped import GroupedRecalibrator
from ..calibration.sets import ConformalSets
from ..errors import calib_error
from ..pairs.folds import cross_fit, folds_of
from ..types import Floats, Groups, Ints
from .tables import PairCounts

_FOLDS = 5


def held_out_scores(counts: PairCounts, maps: GroupedRecalibrator, n_folds: int = _FOLDS) -> Floats:
    """What maps make of each row that did not see its fold of blocks, as `TokenFit.mapped` does over documents.

    maps (GroupedRecalibrator): Fitted on all of them. RETURNS (Floats): Shape (len(counts),).
    RAISES C424: there are not two blocks.
    """
    blocks = np.unique(counts.blocks)
    if len(blocks) < 2:
        raise calib_error("C424", n=len(blocks))
    scores, tags = counts.scores.astype(np.float64), counts.tags.astype(np.intp)

    def score(outside: Ints, inside: Ints) -> Floats:
        rest, own = counts.take(outside), maps
        if rest.total >= maps.prototype.min_pairs:
            own = GroupedRecalibrator(maps.prototype, maps.groups, maps.offsets).fit_counts(rest)
        return own.predict(scores[inside], tags[inside])

    return cross_fit(folds_of(counts.blocks, n_folds, counts.pairs), score)


def fit_sets(
    prototype: ConformalSets, counts: PairCounts, scores: Floats, gold: Ints, unknown: int, groups: Groups
) -> ConformalSets:
    """Conformal sets with the cuts that `ConformalSets.fit` learns from the same tokens; "group" coverage wants documents.

    scores (Floats): Held out, of each row. gold (Ints): Tokens of each gold tag, shape (n_tags,). unknown (int): Tokens with a gold tag that
        the model does not know. RAISES C071, C423: see `ConformalSets.fit_counts`.
    """
    gold_rows = np.flatnonzero(counts.hits)
    tags, tokens = counts.tags[gold_rows].astype(np.intp), counts.hits[gold_rows].astype(np.intp)
    return prototype.clone().fit_counts(tags, scores[gold_rows], tokens, gold, unknown, groups)
