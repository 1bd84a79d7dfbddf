"""Whether data are enough: to choose among methods, to trust a fit, to promise sets. Knows arrays, never Docs."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from ..metrics.calibration_errors import ece
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.build import JudgedPairs, top_pairs
from ..pairs.documents import DOCUMENTS_TO_CHOOSE, folds_of
from ..types import Ints
from .fit_summaries import HeldOut

# With few documents so many blocks of tokens are held out instead, and standard errors are taken over them.
_BLOCKS = 20
# Sets are worth making if expected to miss so many fit tokens: else the share missed of other tokens is chance.
_MISSES_FOR_SETS = 10


def documents_or_blocks(rows: Ints, documents: Ints) -> Ints:
    """What is held out as a whole: each pair's document, or with few documents its block. rows, documents: Ascending."""
    return documents if len(np.unique(documents)) >= DOCUMENTS_TO_CHOOSE else folds_of(rows, _BLOCKS)


def tokens_for_sets(alpha: float) -> tuple[int, int]:
    """(fewest tokens for sets that miss at most this share, see `quantile_rank`; fewest on which they are worth making)."""
    exact = Fraction(repr(float(alpha)))
    return ceil(1 / exact) - 1, ceil(_MISSES_FOR_SETS / exact)


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
