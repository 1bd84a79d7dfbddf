"""Groups of tags that the user names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ...errors import calib_error
from ...types import Groups


def mapped_groups(labels: Sequence[str], counts: Mapping[str, int], mapping: Mapping[str, str]) -> Groups:
    """Group tags by the user's mapping; a tag that it leaves out has no group and uses the pooled map.

    mapping (Mapping[str, str]): Tag -> name of its group. Groups are ordered by their first tag in the mapping.
    RAISES C001: the mapping names none of the labels.
    """
    known_labels = set(labels)
    names = list(dict.fromkeys(group for tag, group in mapping.items() if tag in known_labels))
    if not names:
        group_names = f"a mapping from labels such as {list(labels[:3])} to group names"
        raise calib_error("C001", name="mapping", wanted=group_names, given=dict(mapping))
    of_tag = np.array([names.index(mapping[label]) if label in mapping else -1 for label in labels], dtype=np.intp)
    return Groups(tuple(names), of_tag, np.array([counts.get(label, 0) for label in labels], dtype=np.intp))


def make_mapping_grouping(mapping: dict[str, str]) -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
    """Make the grouping of a mapping, tag -> name of its group. Registered as spacy-calib.Mapping.v1."""
    return partial(mapped_groups, mapping=mapping)
