"""Groupings without frequencies: all tags in one group (shared class-wise binning, SCW), and one group per tag."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...types import Groups
from .tag_frequency import tag_frequency_groups


def shared_group(labels: Sequence[str], counts: Mapping[str, int]) -> Groups:
    """Put all tags into one group (Patel et al. 2021; Kranzlein et al. 2021, section 3.2). counts: Tag -> gold frequency."""
    return tag_frequency_groups(labels, counts, n_groups=1)


def make_shared_grouping() -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
    """Make the grouping that puts all tags into one group. Registered as spacy-calib.SCW.v1."""
    return shared_group


def one_group_per_tag(labels: Sequence[str], counts: Mapping[str, int]) -> Groups:
    """Put each tag into a group of its own (Zadrozny and Elkan 2002). Tags with too few pairs use the map fitted to all pairs.

    labels (Sequence[str]): The tags of the model, by column. counts (Mapping): Tag -> frequency in the gold; 0 if missing.
    """
    frequency = np.array([counts.get(label, 0) for label in labels], dtype=np.intp)
    return Groups(tuple(labels), np.arange(len(labels)), frequency)


def make_one_vs_rest_grouping() -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
    """Make the grouping of one group per tag. Registered as spacy-calib.OneVsRest.v1."""
    return one_group_per_tag
