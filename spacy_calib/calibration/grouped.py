"""One recalibrator per group of tags, with a map fitted on all pairs (the pooled map) as the fallback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import calib_error
from ..pairs.bins import WeightedPairs, collapse_groups
from ..schema import InvalidState, Serializable, lengths, list_of, maybe, record, saved_field, text, whole
from ..types import Floats, Groups, Ints, Pairs, as_probabilities, check_lengths
from .recalibrators.identity import Identity
from .recalibrators.recalibrator import MAP, MapTable, Recalibrator
from .solvers import sigmoid
from .steps import Predictions
from .tag_offsets import TagOffsets


@dataclass(frozen=True)
class GroupFit(Serializable):
    """Summary of one map's fit. pairs, hits (int): Numbers of pairs, hits. fallback (str): Map used instead and why, or ""."""

    pairs: int = saved_field(whole())
    hits: int = saved_field(whole())
    fallback: str = saved_field(text, "")

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        return "there are more hits than pairs" if fields["hits"] > fields["pairs"] else ""


# The form of a saved GroupedRecalibrator; `make_part` checks its maps.
GROUPED = record(
    {
        "prototype": MAP, "groups": Groups.read, "pooled": MAP, "pooled_fit": GroupFit.read, "maps": list_of(maybe(MAP)),
        "fits": list_of(GroupFit.read), "pooling": maybe(TagOffsets.read),
    },
    lambda fields: lengths(dict.fromkeys(("maps", "fits"), len(fields["groups"])), fields),
)  # fmt: skip


class GroupedRecalibrator:
    """Maps the score of a (token, tag) pair by the recalibrator of the tag's group, then perhaps by the tag's offset.

    prototype (Recalibrator): Copied for every group and for the pooled map. groups (Groups): The tags of each group.
    has_offsets (bool): Whether offsets of tags and groups are added to the log-odds after the maps.
    pooled_ (Recalibrator): Fitted on all pairs; used for tags without a group and groups that cannot be fitted by themselves.
    maps_ (list): One fitted map per group, None if the group uses the pooled map.
    offsets_ (TagOffsets | None): The fitted offsets.
    fits_ (list[GroupFit]), pooled_fit_ (GroupFit): Summary of the fit of each group's map, and of the pooled map.
    """

    def __init__(self, prototype: Recalibrator, groups: Groups, has_offsets: bool = False):
        self.prototype = prototype
        self.groups = groups
        self.has_offsets = has_offsets
        self.offsets_: TagOffsets | None = None
        self.pooled_: Recalibrator | None = None
        self.maps_: list[Recalibrator | None] = []
        self.fits_: list[GroupFit] = []
        self.pooled_fit_ = GroupFit(0, 0)
        self._table: MapTable | None = None
        self._is_identity = False

    def fit(self, pairs: Pairs) -> GroupedRecalibrator:
        """Fit the pooled map, the map of every group, and offsets. RAISES C003: no pairs. C006: fewer than the method needs."""
        # Equal pairs of a group are merged, and weighted by their number.
        all_pairs, group_pairs = collapse_groups(pairs.scores, pairs.hits, self.groups.find(pairs.tags), len(self.groups))
        n_pairs, method_name = len(pairs), type(self.prototype).__name__
        if not n_pairs and type(self.prototype) is not Identity:
            raise calib_error("C003", what=method_name, threshold="the threshold")
        if n_pairs < self.prototype.min_pairs:
            raise calib_error("C006", n_pairs=n_pairs, what=method_name, wanted=self.prototype.min_pairs)
        pooled_map, self.pooled_fit_ = self._fit_map(all_pairs, fallback="identity")
        self.pooled_ = pooled_map or Identity()
        group_fits = [self._fit_map(weighted_pairs, fallback="pooled map") for weighted_pairs in group_pairs]
        self.maps_ = [group_map for group_map, _ in group_fits]
        self.fits_ = [fit for _, fit in group_fits]
        self._prepare_predict()
        self.offsets_ = None
        if self.has_offsets:
            mapped_scores, groups = self.predict(pairs.scores, pairs.tags), self.groups.find(pairs.tags).astype(np.intp)
            n_tags, n_groups = len(self.groups.of_tag), len(self.groups)
            self.offsets_ = TagOffsets.fit(mapped_scores, pairs.hits, pairs.tags, n_tags, groups, n_groups)
        return self

    def _fit_map(self, pairs: WeightedPairs, fallback: str) -> tuple[Recalibrator | None, GroupFit]:
        """Return (map fitted to these pairs or None, summary). fallback (str): Name of the map that is used instead of None."""
        _, hits, weights = pairs
        n, n_hits = int(weights.sum()), int(weights[hits].sum())
        min_pairs, why = self.prototype.min_pairs, ""
        if n == 0:
            why = "no pairs"
        elif n < min_pairs:
            why = "one pair" if n == 1 else f"{n} pairs, {min_pairs} needed"
        elif min_pairs and n_hits in (0, n):  # only a method that learns (min_pairs > 0) needs hits and misses
            why = "no pair hits" if n_hits == 0 else "every pair hits"
        if why:
            return None, GroupFit(n, n_hits, f"{fallback}: {why}")
        return self.prototype.clone().fit(*pairs), GroupFit(n, n_hits)

    def apply(self, predictions: Predictions) -> Predictions:
        """Return the predictions with mapped scores."""
        return predictions.replace_unchecked(scores=self.predict(predictions.scores, predictions.tags))

    def predict(self, scores: Floats, tags: Ints) -> Floats:
        """Return the calibrated probabilities of n pairs; each depends only on its own score and tag.

        scores (Floats): Raw scores in [0, 1], shape (n,). tags (Ints): Columns of their labels, shape (n,); columns past those
            fitted use the pooled map. RETURNS (Floats): Shape (n,).
        RAISES C001: scores out of [0, 1]. C002: lengths differ. C004: not fitted.
        """
        if self.pooled_ is None:
            raise calib_error("C004", what=type(self).__name__)
        check_lengths("Mapping", "score", len(scores), {"tag": tags})
        if self._is_identity and self.offsets_ is None:
            return scores.copy()
        scores, groups = as_probabilities("scores", scores), self.groups.find(tags)
        if self._table is not None:  # one function for the maps of all groups
            margins = self._table(scores, groups)
            return sigmoid(margins if self.offsets_ is None else self.offsets_.adjust_margins(margins, tags, groups))
        calibrated_scores = self._map(scores, groups)
        return calibrated_scores if self.offsets_ is None else self.offsets_.predict(calibrated_scores, tags, groups)

    def _prepare_predict(self) -> None:
        """Store what makes `predict` fast: whether all maps are identities, and one function for the maps of all groups."""
        assert self.pooled_ is not None
        # The pooled map is last, where index -1 finds it.
        maps = [*(group_map or self.pooled_ for group_map in self.maps_), self.pooled_]
        self._is_identity = all(type(recalibrator) is Identity for recalibrator in maps)
        self._table = self.pooled_.as_table(maps)

    def _map(self, scores: Floats, groups: Ints) -> Floats:
        """Return the scores after the maps and before offsets, shape (n,). groups (Ints): Group of each score, shape (n,).

        The pooled map is used for group -1 and for groups without a map of their own.
        """
        assert self.pooled_ is not None
        order = np.argsort(groups, kind="stable")
        bounds = [0, *np.cumsum(np.bincount(groups + 1)).tolist()]  # of each group in `order`; group -1 comes first
        calibrated_scores = np.empty(len(scores))
        for group, (start, end) in enumerate(zip(bounds[:-1], bounds[1:], strict=True), start=-1):
            if start < end:
                index = order[start:end]
                group_map = self.maps_[group] if group >= 0 else None
                calibrated_scores[index] = (group_map or self.pooled_)._predict(scores[index])
        return calibrated_scores

    def state(self) -> dict[str, Any]:
        """Return prototype, groups, fitted maps, summaries and offsets as plain data and arrays, for `from_state`."""
        assert self.pooled_ is not None
        return {
            "prototype": self.prototype.clone().state(), "groups": self.groups.state(),
            "pooled": self.pooled_.state(), "pooled_fit": self.pooled_fit_.state(),
            "maps": [None if m is None else m.state() for m in self.maps_], "fits": [fit.state() for fit in self.fits_],
            "pooling": None if self.offsets_ is None else self.offsets_.state(),
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: dict[str, Any], load: Callable[[dict[str, Any]], Any]) -> GroupedRecalibrator:
        """Rebuild from a saved state that the form GROUPED has checked and read: groups, offsets and summaries are objects.

        load (Callable): Takes the state of a recalibrator, which has its registered name, and returns the recalibrator.
        RAISES InvalidState: a map is not fitted, or the offsets are fitted to other tags and groups.
        """
        offsets = state["pooling"]
        calibrator = cls(load(state["prototype"]), state["groups"], has_offsets=offsets is not None)
        calibrator.offsets_ = offsets
        if offsets is not None and offsets.sizes != (len(calibrator.groups.of_tag), len(calibrator.groups)):
            raise InvalidState("pooling", "fitted to these tags and groups")
        calibrator.pooled_ = _check_fitted(load(state["pooled"]))
        calibrator.pooled_fit_, calibrator.fits_ = state["pooled_fit"], state["fits"]
        calibrator.maps_ = [None if m is None else _check_fitted(load(m)) for m in state["maps"]]
        calibrator._prepare_predict()
        return calibrator


def _check_fitted(part: Recalibrator) -> Recalibrator:
    """Return `part`, a map, unchanged. RAISES InvalidState: it is not fitted."""
    if not part.fitted:
        raise InvalidState("learned", "there")  # the message: 'learned' is not there
    return part
