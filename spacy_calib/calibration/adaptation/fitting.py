"""Fitting an adaptation, and how well it does on labelled documents that it did not see."""

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
from .adaptation import Adaptation, GoldEntries, Prior

# With fewer documents each is left out by itself.
_FOLDS = 10
# A bin of the calibration error holds at least so many entries, and there are at most so many bins.
_PER_BIN, _BINS = 50, 10
# Smaller offsets, in log-odds, are not named.
_NAMED = 0.1


@dataclass(frozen=True, eq=False)
class AdaptationFit:
    """The entries of the labelled documents, groups of their tags, the prior, and the adaptation learned from all of them."""

    entries: GoldEntries
    groups: Groups
    prior: Prior
    adaptation: Adaptation

    @classmethod
    def of(cls, entries: GoldEntries, groups: Groups, prior: Prior) -> AdaptationFit:
        return cls(entries, groups, prior, Adaptation.fit(entries, groups, prior))

    @cached_property
    def held_out(self) -> Floats | None:
        """The score of each entry by an adaptation that did not see its document; None with less than two documents."""
        entries = self.entries
        if len(np.unique(entries.documents)) < 2:
            return None

        def score(outside: Ints, inside: Ints) -> Floats:
            own = entries.take(inside)
            return Adaptation.fit(entries.take(outside), self.groups, self.prior).move(own.scores, own.leads, own.tags)

        return cross_fit(folds_of(entries.documents, _FOLDS), score)

    def describe(self, labels: Sequence[str]) -> dict[str, Any]:
        """What was learned, in the form ADAPTED: "entries" that lead and how many are "right", both lines, the
        "offsets" of labels that lead (added to their log-odds), and how the scores do "before" and, held out, "after".

        labels (Sequence[str]): Of the tags.
        """
        leads = np.flatnonzero(self.entries.leads)
        after = self.held_out
        return {
            "entries": len(leads),
            "right": int(self.entries.hits[leads].sum()),
            "leading": vars(self.adaptation.leading.line),
            "other": vars(self.adaptation.other.line),
            "offsets": self._named_offsets(np.unique(self.entries.tags[leads]), labels),
            "before": judge(self.entries.scores[leads], self.entries.take(leads)),
            "after": None if after is None else judge(after[leads], self.entries.take(leads)),
        }

    def _named_offsets(self, tags: Ints, labels: Sequence[str]) -> dict[str, float]:
        """Label -> offset, of leading entries with these tags, the greatest first."""
        offsets = self.adaptation.leading.offsets
        if offsets is None:
            return {}
        values = offsets.offsets(tags, self.groups.find(tags).astype(np.intp))
        order = np.argsort(-np.abs(values), kind="stable")
        return {labels[tags[i]]: float(values[i]) for i in order.tolist() if abs(values[i]) >= _NAMED}


def judge(scores: Floats, entries: GoldEntries) -> dict[str, Any] | None:
    """Mean score "expected", "log_loss", "ece", and "gap" with its 95 % interval by document; None without entries."""
    if not len(entries):
        return None
    interval = mean_interval(scores - entries.hits, entries.documents)
    assert interval is not None
    return {
        "expected": float(scores.mean()),
        "log_loss": float(log_losses(scores, entries.hits).mean()),
        "ece": calibration_error(scores, entries.hits, int(np.clip(len(entries) // _PER_BIN, 1, _BINS)), norm="l1"),
        "gap": {"value": interval.estimate, "low": interval.low, "high": interval.high},
    }
