"""Sets of tags from a table of more pairs than are looked at one by one: cuts from the scores that maps give to documents that they did not see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..pairs.weighted import TaggedPairs
from ..types import Groups, Ints
from .grouped import Countable, GroupedRecalibrator
from .sets import ConformalSets


@dataclass(frozen=True, eq=False)
class CountedTokens:
    """What was counted of all tokens, where only a sample of them is looked at one by one.

    pairs (Countable): Their raw pairs that reach the threshold. gold (Ints): Tokens of each gold tag, shape (n_tags,).
    unknown (int): Tokens with a gold tag that the model does not know.
    """

    pairs: Countable
    gold: Ints
    unknown: int


def fit_counted_sets(
    prototype: ConformalSets, tokens: CountedTokens, maps: GroupedRecalibrator, groups: Groups, n_folds: int
) -> ConformalSets | None:
    """Conformal sets with the cuts that `ConformalSets.fit` learns of the same tokens and the same folds.

    maps (GroupedRecalibrator): Fitted on all pairs. groups (Groups): The tags of each group, for the cuts.
    RETURNS (ConformalSets | None): None where counts do not do: for coverage "group", which asks for the likeliest tag of a token; for a table
        that cannot hold documents out. RAISES C071: no token has gold.
    """
    hits = [] if prototype.coverage == "group" else held_out_hits(tokens.pairs, maps, n_folds)
    if not hits:
        return None
    scores, _, counts, tags = (np.concatenate(column) for column in zip(*hits, strict=True))
    return prototype.clone().fit_counts(tags, scores, counts.astype(np.intp), tokens.gold, tokens.unknown, groups)


def held_out_hits(counts: Countable, maps: GroupedRecalibrator, n_folds: int) -> list[TaggedPairs]:
    """The pairs that hit, fold by fold, with the scores of maps that did not see the fold, as `TokenFit.mapped` gives them over documents.

    maps (GroupedRecalibrator): Fitted on all pairs; they stand in where the pairs outside of a fold are too few.
    RETURNS (list): [] where the table makes no folds.
    """
    found = []
    for outside, inside in counts.folds(n_folds):
        own = maps
        if outside.total >= maps.prototype.min_pairs:
            own = GroupedRecalibrator(maps.prototype, maps.groups, maps.offsets).fit_counts(outside)
        hit = inside.hits
        scores = own.predict(inside.scores[hit], inside.tags[hit])
        found.append(TaggedPairs(scores, hit[hit], inside.weights[hit], inside.tags[hit]))
    return found
