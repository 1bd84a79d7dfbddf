"""The joint marginals of the labels of two tokens that follow one another, as pairs that can be calibrated and judged (`analysis.tag_pairs`)."""

from __future__ import annotations

import numpy as np

from ..types import Ints, Marginals
from .inference.sums import Sums

# Probabilities that are looked at together.
_CELLS = 1 << 22


def joint_marginals(sums: Sums, threshold: float = 0.01) -> Marginals:
    """P(labels of tokens i and i + 1 | text) for the tokens of all chains one after the other: the entries of row i that reach the threshold,
    whose tags are codes, first label * K + second label. A row at the end of a chain has none.

    threshold (float): In (0, 1]. RETURNS (Marginals): Of n_tokens - 1 places, what `analysis.tag_pairs.joint_pairs` takes.
    """
    chains = sums.chains
    packing, width = chains.packing, chains.n_labels
    before, after = packing.followed
    order = np.argsort(packing.flat[before], kind="stable")
    size = max(1, _CELLS // max(1, width * width))
    rows, codes, scores = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)], [np.zeros(0)]
    for first in range(0, len(order), size):
        own = order[first : first + size]
        joint = sums.joint(before[own], after[own]).reshape(len(own), width * width)
        place, code = np.nonzero(joint >= threshold)
        rows.append(packing.flat[before[own]][place])
        codes.append(code)
        scores.append(joint[place, code])
    n_places = max(0, int(packing.lengths.sum()) - 1)
    return Marginals(np.concatenate(rows), np.concatenate(codes), np.minimum(np.concatenate(scores), 1.0), n_places)


def places_inside(lengths: Ints) -> np.ndarray:
    """Whether token i and i + 1 stand in one chain, for tokens of chains one after the other, shape (n_tokens - 1,)."""
    inside = np.ones(max(0, int(lengths.sum()) - 1), dtype=bool)
    inside[np.cumsum(lengths)[:-1] - 1] = False
    return inside
