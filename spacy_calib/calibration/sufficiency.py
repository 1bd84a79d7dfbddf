"""Units of cross-validation when documents are few, and the comparison of raw with held-out calibrated scores. For arrays."""

from __future__ import annotations

import numpy as np

from ..metrics.calibration_errors import ece
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.documents import DOCUMENTS_TO_CHOOSE, folds_of
from ..pairs.pairing import JudgedPairs, top_pairs
from ..types import Ints
from .fit_summaries import HeldOut

# With few documents cross-validation and standard errors are over so many blocks of tokens instead.
_BLOCKS = 20


def documents_or_blocks(rows: Ints, documents: Ints) -> Ints:
    """Return the unit of cross-validation that each (token, tag) pair belongs to: its document, or a block of tokens.

    rows, documents (Ints): Token and document of each pair, ascending. RETURNS (Ints): `documents` itself if there are at least
        ten; else numbers of at most 20 blocks of consecutive tokens, which have about equally many pairs.
    """
    return documents if len(np.unique(documents)) >= DOCUMENTS_TO_CHOOSE else folds_of(rows, _BLOCKS)


def evaluate_held_out(judged_pairs: JudgedPairs) -> HeldOut:
    """Compare raw with out-of-fold calibrated scores by log loss and ECE. judged_pairs: Both scores of pairs with gold."""
    pairs, scores = judged_pairs.pairs, judged_pairs.calibrated
    clusters = documents_or_blocks(pairs.rows, judged_pairs.documents)  # independent of each other, for the standard error
    raw_losses, calibrated_losses = log_losses(pairs.scores, pairs.hits), log_losses(scores, pairs.hits)
    difference, error = mean_with_error(calibrated_losses - raw_losses, clusters)
    top = top_pairs(pairs)  # the pair with the highest raw score of each token
    return HeldOut(
        raw=float(raw_losses.mean()),
        calibrated=float(raw_losses.mean()) + difference,  # exactly `raw` if no score changes
        error=error,
        tokens=len(top),
        off_raw=ece(pairs, top=top) or 0.0,  # None only without pairs
        off=ece(pairs, scores, top=top) or 0.0,
        excess=float(pairs.scores[top].mean() - pairs.hits[top].mean()),  # mean raw score less accuracy
    )
