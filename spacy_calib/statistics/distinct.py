"""How many documents there are, without all their names: exact for a million, an estimate beyond, whatever the order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]

# So many digests are kept, the lowest ones.
MOST = 1 << 20


def lowest(parts: Iterable[Digests], most: int = MOST) -> Digests:
    """The lowest digests of all parts, each once, ascending."""
    return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]))[:most]


def count_distinct(kept: Digests, most: int = MOST) -> int:
    """How many digests there were. Where all of them were kept their number; else as many as leave the last one where it stands
    (Bar-Yossef et al. 2002, the k-th minimum value; with a million kept the standard error is .1 %).
    """
    return len(kept) if len(kept) < most else round((most - 1) * 2.0**64 / float(kept[-1]))
