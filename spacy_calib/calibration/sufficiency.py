"""Whether data are enough: to choose among methods, to trust a fit, to promise sets. Knows arrays, never Docs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from ..metrics.calibration_error import ece
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.build import JudgedPairs, top_pairs
from ..pairs.documents import DOCUMENTS_TO_CHOOSE, folds_of
from ..schema import Saved, kept, number, whole
from ..types import Ints

# With few documents so many blocks of tokens are held out instead, and standard errors are taken over them.
_BLOCKS = 20
# Sets are worth making if expected to miss so many fit tokens: else the share missed of other tokens is chance.
_MISSES_FOR_SETS = 10
# A loss that rises by less than this share does not count as worse.
_MATERIAL = 0.01
# On fewer tokens a lower loss is not yet a gain.
_FEWEST_TOKENS = 100


def documents_or_blocks(rows: Ints, documents: Ints) -> Ints:
    """What is held out as a whole: each pair's document, or with few documents its block. rows, documents: Ascending."""
    return documents if len(np.unique(documents)) >= DOCUMENTS_TO_CHOOSE else folds_of(rows, _BLOCKS)


def tokens_for_sets(alpha: float) -> tuple[int, int]:
    """(fewest tokens for sets that miss at most this share, see `quantile_rank`; fewest on which they are worth making)."""
    exact = Fraction(repr(float(alpha)))
    return ceil(1 / exact) - 1, ceil(_MISSES_FOR_SETS / exact)


@dataclass(frozen=True)
class HeldOut(Saved):
    """How calibrated scores do beside raw ones on held-out parts of the fit data, by log loss per pair.

    raw, calibrated (float): Mean log loss. error (float): Standard error of the difference. tokens (int): With a pair.
    off_raw, off (float): ECE of raw and calibrated scores. excess (float): Mean raw score of likeliest labels less
        the share of them that is right.
    """

    raw: float = kept(number())
    calibrated: float = kept(number())
    error: float = kept(number())
    tokens: int = kept(whole())
    off_raw: float = kept(number())
    off: float = kept(number())
    excess: float = kept(number())

    @property
    def verdict(self) -> str:
        """One of "worse" (calibrated scores lose by over a standard error and a hundredth of the raw loss), "better"
        (they gain over two standard errors, on 100 tokens at least), "unclear", and "same" where nothing is changed.
        """
        difference = self.calibrated - self.raw
        if difference == 0.0 and self.error == 0.0:
            return "same"
        if difference > max(self.error, _MATERIAL * self.raw):
            return "worse"
        return "better" if difference < -2 * self.error and self.tokens >= _FEWEST_TOKENS else "unclear"

    def state(self) -> dict[str, Any]:
        """Plain data, with the verdict."""
        return {**super().state(), "verdict": self.verdict}


def judge_held_out(pairs_judged: JudgedPairs) -> HeldOut:
    """Compare raw with cross-fitted scores, which maps gave that did not see the pair's document (with one alone: its block of tokens)."""
    pairs, scores = pairs_judged.pairs, pairs_judged.calibrated
    units = documents_or_blocks(pairs.rows, pairs_judged.documents)
    raw_losses, calibrated_losses = log_losses(pairs.scores, pairs.hits), log_losses(scores, pairs.hits)
    mean, error = mean_with_error(calibrated_losses - raw_losses, units)
    top = top_pairs(pairs)
    return HeldOut(
        float(raw_losses.mean()),
        float(raw_losses.mean()) + mean,
        error,
        len(top),
        off_raw=ece(pairs, top=top) or 0.0,
        off=ece(pairs, scores, top=top) or 0.0,
        excess=float(pairs.scores[top].mean() - pairs.hits[top].mean()),
    )
