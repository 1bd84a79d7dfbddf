"""What every grouping must do, over all that are registered. A new grouping adds its rows to CASES."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from spacy_calib.registry import registry
from spacy_calib.types import Groups

LABELS = ["B-PER", "I-PER", "B-LOC", "I-LOC", "O", "NN", "NNS", "VB"]
# "VB" is a label of the model that the gold has not, "B-ORG" one of the gold that the model has not.
COUNTS = {"O": 60, "B-PER": 12, "I-PER": 9, "B-LOC": 12, "I-LOC": 2, "NN": 30, "NNS": 4, "B-ORG": 7}

# (registered name, settings)
CASES: list[tuple[str, dict[str, Any]]] = [
    ("spacy-calib.TFG.v1", {}), ("spacy-calib.TFG.v1", {"n_groups": 3}), ("spacy-calib.SCW.v1", {}),
    ("spacy-calib.OneVsRest.v1", {}),
]  # fmt: skip
every_case = pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{case[0]}-{len(case[1])}-{i}") for i, case in enumerate(CASES)]
)
Grouping = Callable[[Sequence[str], Mapping[str, int]], Groups]


def make(case) -> Grouping:
    """Resolved from a config, as `[components.calib.grouping]` is."""
    name, settings = case
    grouping: Grouping = registry.resolve({"grouping": {"@calib_groupings": name, **settings}})["grouping"]
    return grouping


def named(groups: Groups, labels: Sequence[str]) -> dict[str, str | None]:
    """Label -> name of its group, None for a label without one."""
    return {label: groups.names[i] if i >= 0 else None for label, i in zip(labels, groups.of_tag.tolist(), strict=True)}


def parts(groups: Groups, labels: Sequence[str]) -> set[frozenset[str]]:
    """The labels that share a group; a label without one stands for itself."""
    return {
        frozenset(label for label, group in zip(labels, groups.of_tag.tolist(), strict=True) if group == wanted)
        for wanted in range(len(groups))
    }


@every_case
def test_every_label_has_a_group_that_there_is_or_none(case):
    groups = make(case)(LABELS, COUNTS)
    assert len(groups.of_tag) == len(LABELS)
    assert len(set(groups.names)) == len(groups.names) > 0
    assert all(isinstance(name, str) and name for name in groups.names)
    assert groups.of_tag.min() >= -1
    assert groups.of_tag.max() < len(groups)
    assert (groups.of_tag >= 0).all(), "a label without a group"
    assert all(groups.sizes), "a group without labels"
    assert groups.n_singletons == 0


@every_case
def test_the_frequency_of_the_labels_is_kept(case):
    assert make(case)(LABELS, COUNTS).counts.tolist() == [COUNTS.get(label, 0) for label in LABELS]


@every_case
def test_labels_that_the_gold_has_not_are_grouped_too(case):
    groups = make(case)(LABELS, {})
    assert (len(groups.of_tag), groups.counts.tolist()) == (len(LABELS), [0] * len(LABELS))
    assert groups.of_tag.max() < len(groups)


@every_case
def test_labels_that_the_model_does_not_know_take_no_part(case):
    known = {label: count for label, count in COUNTS.items() if label in LABELS}
    with_others, without = (named(make(case)(LABELS, counts), LABELS) for counts in (COUNTS, known))
    assert with_others == without


@every_case
def test_one_label(case):
    groups = make(case)(["NN"], {"NN": 5})
    assert groups.of_tag.tolist() == [0]
    assert len(groups) == 1


@every_case
def test_without_labels_there_are_no_tags(case):
    assert len(make(case)([], {"NN": 3}).of_tag) == 0


@every_case
@pytest.mark.parametrize("order", [[7, 6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 7, 4, 2, 5]])
def test_the_order_of_the_labels_and_of_the_counts_does_not_matter(case, order):
    labels = [LABELS[i] for i in order]
    counts = {label: COUNTS[label] for label in sorted(COUNTS)}
    assert parts(make(case)(labels, counts), labels) == parts(make(case)(LABELS, COUNTS), LABELS)


@every_case
def test_it_does_not_change_its_input_and_gives_the_same_again(case):
    grouping = make(case)
    labels, counts = list(LABELS), dict(COUNTS)
    first = grouping(labels, counts)
    first.of_tag[:] = 0
    first.counts[:] = 0
    assert (labels, counts) == (LABELS, COUNTS)
    again = grouping(labels, counts)
    assert named(again, LABELS) == named(make(case)(LABELS, COUNTS), LABELS)
    assert again.counts.sum() > 0


@every_case
def test_it_pickles(case):
    grouping = make(case)
    back = pickle.loads(pickle.dumps(grouping))
    assert named(back(LABELS, COUNTS), LABELS) == named(grouping(LABELS, COUNTS), LABELS)


@every_case
def test_its_groups_are_saved_and_come_back(case):
    groups = make(case)(LABELS, COUNTS)
    back = Groups.read(groups.state())
    assert named(back, LABELS) == named(groups, LABELS)
    assert (back.counts.tolist(), back.sizes) == (groups.counts.tolist(), groups.sizes)
