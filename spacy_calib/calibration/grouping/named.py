"""Groups that the user names, and labels that stand alone beside the groups of all others ("O" beside types)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ...errors import calib_error
from ...types import Groups


def mapped_groups(labels: Sequence[str], counts: Mapping[str, int], mapping: Mapping[str, str]) -> Groups:
    """Group tags as the user's mapping says; a tag that it leaves out has no group and uses the pooled map.

    mapping (Mapping[str, str]): Tag -> name of its group. Groups are ordered by their first tag in the mapping.
    RAISES C001: the mapping names none of the labels.
    """
    known = set(labels)
    names = list(dict.fromkeys(group for tag, group in mapping.items() if tag in known))
    if not names:
        wanted = f"a mapping from labels such as {list(labels[:3])} to group names"
        raise calib_error("C001", name="mapping", wanted=wanted, given=dict(mapping))
    of_tag = np.array([names.index(mapping[label]) if label in mapping else -1 for label in labels], dtype=np.intp)
    return Groups(tuple(names), of_tag, np.array([counts.get(label, 0) for label in labels], dtype=np.intp))


def make_mapping_grouping(mapping: dict[str, str]) -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
    """Registered as spacy-calib.Mapping.v1. mapping (Dict[str, str]): Tag -> name of its group."""
    return partial(mapped_groups, mapping=mapping)


def group_beside(
    grouping: Callable[[Sequence[str], Mapping[str, int]], Groups],
    labels: Sequence[str],
    counts: Mapping[str, int],
    alone: Sequence[str] = (),
    key: Callable[[str], str] = str,
) -> Groups:
    """Group the keys of the labels by any grouping, and give each label of `alone` a group of its own in front.

    grouping (Callable): (labels, counts) -> Groups. labels (Sequence[str]): As columns. counts: Gold frequency.
    alone (Sequence[str]): Those that are not among the labels take no part. key (Callable): Labels with one key share a
        group; the frequency of a key is that of its labels together.
    """
    alone = [label for label in alone if label in set(labels)]
    keys = list(dict.fromkeys(key(label) for label in labels if label not in alone))
    of_key: Counter[str] = Counter()
    for label, count in counts.items():
        if label not in alone:
            of_key[key(label)] += count
    others = grouping(keys, of_key)
    column = {name: i for i, name in enumerate(keys)}
    of_tag = []
    for label in labels:
        group = -1 if label in alone else int(others.of_tag[column[key(label)]])
        of_tag.append(alone.index(label) if label in alone else -1 if group < 0 else len(alone) + group)
    frequency = np.array([counts.get(label, 0) for label in labels], dtype=np.intp)
    return Groups((*alone, *others.names), np.array(of_tag, dtype=np.intp), frequency, len(alone))
