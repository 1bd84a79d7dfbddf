"""Tag frequency groups (TFG): tags that are about equally frequent in the gold training data share a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ...pairs.bins import check_count
from ...types import Groups


def tag_frequency_groups(labels: Sequence[str], counts: Mapping[str, int], n_groups: int = 5) -> Groups:
    """Sort tags by falling frequency and fill groups, each with 1/G of all tokens (Kranzlein et al. 2021, section 3.3).

    Equally frequent tags are sorted by name. A group is full once it has 1/G of all tokens or more. Tags of frequency 0 go into
    the last group. Tags that are not among the labels are ignored.
    labels (Sequence[str]): The tags of the model, by column. counts (Mapping): Gold frequency of each tag; 0 if missing.
    n_groups (int): G, at least 1. Fewer groups result where frequent tags hold more than 1/G each. RETURNS (Groups): Named "1"
        (the most frequent tags) to at most str(G). RAISES C001: n_groups is not a whole number of at least 1.
    """
    check_count("n_groups", n_groups)
    frequency = np.array([counts.get(label, 0) for label in labels], dtype=np.intp)
    total = int(frequency.sum())
    of_tag = np.zeros(len(labels), dtype=np.intp)
    group = group_total = 0
    for column in sorted(range(len(labels)), key=lambda i: (-frequency[i], labels[i])):
        is_full = group_total * n_groups >= total and total > 0
        if is_full and frequency[column] > 0 and group < n_groups - 1:  # tags never seen stay in the last group
            group, group_total = group + 1, 0
        of_tag[column] = group
        group_total += int(frequency[column])
    return Groups(tuple(str(i + 1) for i in range(group + 1)), of_tag, frequency)


def regroup_by_frequency(groups: Groups, labels: Sequence[str], n_groups: int) -> Groups:
    """Make tag frequency groups of labels by the gold frequencies that are stored in `groups`.

    For instance, a calibration with one map for all tags can then be evaluated for frequent and for rare tags.
    groups (Groups): Groups of the labels; labels that it lacks, since they were appended later, have frequency 0.
    n_groups (int): Maximum number of groups. The first `groups.n_singletons` groups, of one label each, stay as further groups.
    RAISES C001: n_groups is not a whole number of at least 1.
    """
    counts = dict(zip(labels, groups.counts.tolist(), strict=False))
    singleton_labels = [labels[i] for i, group in enumerate(groups.of_tag.tolist()) if 0 <= group < groups.n_singletons]
    return group_with_singletons(partial(tag_frequency_groups, n_groups=n_groups), labels, counts, singleton_labels)


def make_tag_frequency_grouping(n_groups: int = 5) -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
    """Make a function that groups tags by falling frequency into n_groups or fewer groups. Registered as spacy-calib.TFG.v1."""
    check_count("n_groups", n_groups)
    return partial(tag_frequency_groups, n_groups=n_groups)


def group_with_singletons(
    grouping: Callable[[Sequence[str], Mapping[str, int]], Groups],
    labels: Sequence[str],
    counts: Mapping[str, int],
    singleton_labels: Sequence[str] = (),
    key: Callable[[str], str] = str,
) -> Groups:
    """Put each singleton label into its own group (these come first), and group the keys of all other labels by a grouping.

    grouping (Callable): (keys, their gold frequencies) -> Groups. labels (Sequence[str]): The tags, as columns. counts: Gold
        frequency of each tag. singleton_labels (Sequence[str]): Those not among the labels are ignored. key (Callable): Returns
        the key of a label (its type, for instance): labels with one key share a group, and their frequencies add up.
    """
    singletons = [label for label in singleton_labels if label in set(labels)]
    keys = list(dict.fromkeys(key(label) for label in labels if label not in singletons))
    key_counts: Counter[str] = Counter()
    for label, count in counts.items():
        if label not in singletons:
            key_counts[key(label)] += count
    key_groups = grouping(keys, key_counts)
    of_key = key_groups.of_tag + len(singletons) * (key_groups.of_tag >= 0)  # below 0: no group
    group_of_key = dict(zip(keys, of_key.tolist(), strict=True))
    of_label = [singletons.index(label) if label in singletons else group_of_key[key(label)] for label in labels]
    of_tag = np.array(of_label, dtype=np.intp)
    frequency = np.array([counts.get(label, 0) for label in labels], dtype=np.intp)
    return Groups((*singletons, *key_groups.names), of_tag, frequency, len(singletons))
