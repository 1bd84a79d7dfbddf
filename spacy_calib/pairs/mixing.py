"""Whole numbers of 64 bits, mixed: what counters and digests are made random with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# What splitmix64 counts by: an odd number near 2^64 divided by the golden ratio.
STEP = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64 (Steele et al. 2014), which takes each number to another one: nearby numbers are no longer near."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
