"""Fits an adaptation to labelled documents, and evaluates it by cross-validation over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...metrics.by_document import mean_interval
from ...metrics.calibration_errors import calibration_error
from ...metrics.proper import log_losses
from ...pairs.documents import cross_fit, folds_of
from ...types import Floats, Groups, Ints
from .adaptation import FOLDS, Adaptation, GoldEntries, Prior

# Minimum number of entries in a bin of the calibration error, and maximum number of bins.
_PER_BIN, _BINS = 50, 10
_LEAST_OFFSET = 0.1  # smaller offsets, in log-odds, are not reported


@dataclass(frozen=True, eq=False)
class AdaptationFit:
    """A fitted `adaptation`, with what it was fitted to: `entries` of labelled documents, `groups` of tags, and the `prior`."""

    entries: GoldEntries
    groups: Groups
    prior: Prior
    adaptation: Adaptation

    @classmethod
    def from_entries(cls, entries: GoldEntries, groups: Groups, prior: Prior) -> AdaptationFit:
        return cls(entries, groups, prior, Adaptation.fit(entries, groups, prior))

    @cached_property
    def held_out(self) -> Floats | None:
        """Out-of-fold score of each entry, by cross-validation over documents; None with fewer than two documents."""
        entries = self.entries
        if len(np.unique(entries.documents)) < 2:
            return None

        def score(train: Ints, test: Ints) -> Floats:
            adaptation, fold = Adaptation.fit(entries.take(train), self.groups, self.prior), entries.take(test)
            return adaptation.adjust(fold.scores, fold.is_top, fold.tags)

        return cross_fit(folds_of(entries.documents, FOLDS), score)

    def describe(self, labels: Sequence[str]) -> dict[str, Any]:
        """Summarize the adaptation and its effect on held-out top entries. labels: Name of each tag.

        RETURNS (dict): "entries", "right": Numbers of top entries, and of right ones. "leading", "other": Slope and intercept
            of the maps of top entries and of the others. "offsets": Label -> offset. "before", "after": `evaluate_scores`
            without the adaptation, and of `held_out` (None if there is one document).
        """
        top = np.flatnonzero(self.entries.is_top)
        held_out, top_entries = self.held_out, self.entries.take(top)
        return {
            "entries": len(top), "right": int(top_entries.hits.sum()),
            "leading": vars(self.adaptation.leading.line), "other": vars(self.adaptation.other.line),
            "offsets": self._named_offsets(np.unique(top_entries.tags), labels),
            "before": evaluate_scores(top_entries.scores, top_entries),
            "after": None if held_out is None else evaluate_scores(held_out[top], top_entries),
        }  # fmt: skip

    def _named_offsets(self, tags: Ints, labels: Sequence[str]) -> dict[str, float]:
        """Return label -> offset of its top entries, for `tags`; the farthest from 0 first, none nearer than _LEAST_OFFSET."""
        offsets = self.adaptation.leading.offsets
        if offsets is None:
            return {}
        values = offsets.sum_offsets(tags, self.groups.find(tags).astype(np.intp))
        order = np.argsort(-np.abs(values), kind="stable")
        return {labels[tags[i]]: float(values[i]) for i in order.tolist() if abs(values[i]) >= _LEAST_OFFSET}


def evaluate_scores(scores: Floats, entries: GoldEntries) -> dict[str, Any] | None:
    """Evaluate scores of entries with gold; None without entries.

    RETURNS (dict): "expected": mean score; "log_loss"; "ece"; "gap": mean of score - hit, as a dict of "value" and the ends of
        its 95 % interval, "low" and "high".
    """
    if not len(entries):
        return None
    interval = mean_interval(scores - entries.hits, entries.documents)
    assert interval is not None
    n_bins = int(np.clip(len(entries) // _PER_BIN, 1, _BINS))
    return {
        "expected": float(scores.mean()),
        "log_loss": float(log_losses(scores, entries.hits).mean()),
        "ece": calibration_error(scores, entries.hits, n_bins, norm="l1"),
        "gap": {"value": interval.estimate, "low": interval.low, "high": interval.high},
    }
