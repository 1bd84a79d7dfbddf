"""Shared class-wise binning (SCW): all tags in one group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...types import Groups
from .tag_frequency import tag_frequency_groups


def shared_group(labels: Sequence[str], counts: Mapping[str, int]) -> Groups:
    """One group that holds every tag (Patel et al. 2021; Kranzlein et al. 2021, section 3.2)."""
    return tag_frequency_groups(labels, counts, n_groups=1)


def make_shared_grouping() -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
    """Registered as spacy-calib.SCW.v1."""
    return shared_group
