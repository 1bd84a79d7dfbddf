"""One group per tag."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...types import Groups


def one_group_per_tag(labels: Sequence[str], counts: Mapping[str, int]) -> Groups:
    """A recalibrator for every tag (Zadrozny and Elkan 2002); tags with too few pairs fall back to the pooled map."""
    frequency = np.array([counts.get(label, 0) for label in labels], dtype=np.intp)
    return Groups(tuple(labels), np.arange(len(labels)), frequency)


def make_one_vs_rest_grouping() -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
    """Registered as spacy-calib.OneVsRest.v1."""
    return one_group_per_tag
