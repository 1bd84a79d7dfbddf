"""Arrays of a file, looked at before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema import Misfit

_CALLED = {"b": "yes and no", "f": "numbers", "i": "whole numbers", "u": "whole numbers from 0 on"}


def column_of(held: Mapping[str, NDArray[Any]], name: str, kind: str, ndim: int = 1) -> NDArray[Any]:
    """One of the arrays. kind (str): Of its numbers, as numpy names it: b, f, i, or u.

    RAISES Misfit: it is not there, holds numbers of another kind, or has another number of dimensions.
    """
    if name not in held:
        raise Misfit(name, "there")
    array = np.asarray(held[name])
    if array.ndim != ndim or array.dtype.kind != kind or not array.dtype.isnative:
        raise Misfit(name, f"{'a one' if ndim == 1 else 'a two'}-dimensional array of {_CALLED[kind]}")
    return array


def check_length(arrays: Mapping[str, NDArray[Any]], n: int) -> None:
    """RAISES Misfit: an array has not this length."""
    for name, array in arrays.items():
        if len(array) != n:
            raise Misfit(name, f"as long as the others ({n})")


def check_within(name: str, array: NDArray[Any], low: float, high: float) -> None:
    """RAISES Misfit: a number is not in [low, high], or none at all (NaN)."""
    if array.size and not (array.min() >= low and array.max() <= high):
        raise Misfit(name, f"an array of numbers from {low:.12g} to {high:.12g}")
