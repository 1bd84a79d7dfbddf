"""Tag frequency groups: a hand-made Figure 1, ties, unseen tags, the comparison in integers, and the papers' own tag counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.grouping.tag_frequency import make_tag_frequency_grouping, tag_frequency_groups
from spacy_calib.errors import CalibError


def tags_by_group(groups, labels):
    return [{labels[tag] for tag in groups.tags_in(g)} for g in range(len(groups))]


def literal(labels, counts, n_groups):
    """The paper's section 3.3, word by word: add the next most frequent tag until held * G >= total."""
    total = sum(counts.get(label, 0) for label in labels)
    seen = sorted((label for label in labels if counts.get(label, 0)), key=lambda label: (-counts[label], label))
    groups = [[]]
    for label in seen:
        if len(groups) < n_groups and sum(counts[t] for t in groups[-1]) * n_groups >= total:
            groups.append([])
        groups[-1].append(label)
    groups[-1] += [label for label in labels if not counts.get(label, 0)]
    return [set(group) for group in groups]


def test_like_figure_1():
    # 45 instances, G = 3: a group is full with 15. A has 10, with B 18: full, overflowing by 3. C 7, D 13, E 17: full. The rest: 10.
    # E and F are tied at 4; E comes first by name, though F stands before it in the labels.
    counts = {"A": 10, "B": 8, "C": 7, "D": 6, "E": 4, "F": 4, "G": 3, "H": 2, "I": 1}
    assert sum(counts.values()) == 45
    labels = list("IHGFEDCBA")
    groups = tag_frequency_groups(labels, counts, 3)
    assert groups.names == ("1", "2", "3")
    assert tags_by_group(groups, labels) == [set("AB"), set("CDE"), set("FGHI")]
    assert groups.sizes == [2, 3, 4]
    assert groups.counts.tolist() == [1, 2, 3, 4, 4, 6, 7, 8, 10]


def test_a_group_that_holds_exactly_its_share_is_full():
    # 4 of 12 with G = 3 is exactly a third.
    labels = ["A", "B", "C", "D"]
    groups = tag_frequency_groups(labels, {"A": 4, "B": 4, "C": 2, "D": 2}, 3)
    assert tags_by_group(groups, labels) == [{"A"}, {"B"}, {"C", "D"}]


def test_shares_are_compared_in_integers():
    # 10^17 of 2 * 10^17 + 1 is less than a half, but the quotient of floats is exactly 0.5.
    counts = {"A": 10**17, "B": 10**17 - 1, "C": 2}
    assert counts["A"] / sum(counts.values()) == 0.5
    labels = ["A", "B", "C"]
    assert tags_by_group(tag_frequency_groups(labels, counts, 2), labels) == [{"A", "B"}, {"C"}]


def test_ties_are_broken_by_name_whatever_the_order_of_the_labels():
    counts = {"x": 5, "a": 5, "m": 5, "b": 5}
    for labels in (["x", "a", "m", "b"], ["b", "m", "a", "x"]):
        assert tags_by_group(tag_frequency_groups(labels, counts, 2), labels) == [{"a", "b"}, {"m", "x"}]


def test_unseen_tags_go_into_the_last_group():
    # "aa" sorts before every other name, but was never seen; "zz" is not counted at all.
    labels = ["aa", "N", "V", "zz"]
    groups = tag_frequency_groups(labels, {"N": 6, "V": 4, "aa": 0}, 2)
    assert tags_by_group(groups, labels) == [{"N"}, {"aa", "V", "zz"}]
    # One tag holds everything: no group is opened for unseen tags alone.
    assert tag_frequency_groups(labels, {"N": 6}, 5).sizes == [4]


def test_more_groups_than_tags():
    labels = ["A", "B", "C"]
    groups = tag_frequency_groups(labels, {"A": 1, "B": 1, "C": 1}, 50)
    assert groups.names == ("1", "2", "3")
    assert tags_by_group(groups, labels) == [{"A"}, {"B"}, {"C"}]


def test_all_counts_zero_gives_one_group():
    for counts in ({}, {"A": 0, "B": 0}):
        groups = tag_frequency_groups(["A", "B"], counts, 5)
        assert groups.names == ("1",)
        assert groups.of_tag.tolist() == [0, 0]


def test_no_labels():
    groups = tag_frequency_groups([], {"A": 3}, 5)
    assert groups.of_tag.shape == (0,)
    assert groups.find(np.array([0])).tolist() == [-1]


tag_counts = st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.integers(0, 12), min_size=1)


@given(tag_counts, st.integers(1, 8), st.randoms(use_true_random=False))
def test_equals_the_words_of_the_paper(counts, n_groups, random):
    labels = list(counts)
    random.shuffle(labels)
    groups = tag_frequency_groups(labels, counts, n_groups)
    assert tags_by_group(groups, labels) == literal(labels, counts, n_groups)
    assert sum(groups.sizes) == len(labels), "every tag has a group"
    assert 0 not in groups.sizes
    assert groups.names == tuple(str(i + 1) for i in range(len(groups)))


@pytest.mark.parametrize("n_groups", [0, -2, 2.5, "5", None, True])
def test_a_number_of_groups_out_of_range_is_refused(n_groups):
    with pytest.raises(CalibError, match=r"\[C001\] n_groups must be a whole number of at least 1"):
        tag_frequency_groups(["A"], {}, n_groups)
    with pytest.raises(CalibError, match=r"\[C001\] n_groups"):
        make_tag_frequency_grouping(n_groups)


def test_the_registered_function_groups_by_its_setting():
    labels, counts = ["A", "B"], {"A": 1, "B": 1}
    assert make_tag_frequency_grouping(n_groups=2)(labels, counts).sizes == [1, 1]
    assert make_tag_frequency_grouping(n_groups=1)(labels, counts).sizes == [2]
    assert make_tag_frequency_grouping()(list("ABCDEF"), dict.fromkeys("ABCDEF", 1)).sizes == [2, 2, 2]


@pytest.mark.parametrize(("task", "sizes"), [("ccg", [1, 2, 6, 23, 393]), ("lsr", [3, 4, 11, 57, 523])])
def test_golden_group_sizes_of_the_paper(counts_of, task, sizes):
    counts = counts_of(task)
    assert tag_frequency_groups(sorted(counts), counts, 5).sizes == sizes


def test_golden_groups_of_the_paper(counts_of):
    ccg = counts_of("ccg")
    labels = sorted(ccg)
    groups = tag_frequency_groups(labels, ccg, 5)
    total = sum(ccg.values())
    assert total == 927_497
    assert tags_by_group(groups, labels)[0] == {"N"}
    assert round(100 * ccg["N"] / total, 1) == 22.2
    assert round(100 * ccg[labels[groups.tags_in(4)[0]]] / total, 2) == 0.41
    lsr = counts_of("lsr")
    labels = sorted(lsr)
    groups = tag_frequency_groups(labels, lsr, 5)
    assert sum(lsr.values()) == 44_801
    assert [labels[tag] for tag in groups.tags_in(0)] == ["O-PUNCT", "O-PRON", "I_"]
    # The 33 tags that were never seen are in the last group.
    assert {tag for tag, count in lsr.items() if not count} <= tags_by_group(groups, labels)[4]


@pytest.mark.parametrize("task", ["ccg", "lsr"])
def test_groups_of_the_paper_do_not_depend_on_the_order_of_the_labels(counts_of, task):
    counts = counts_of(task)
    labels = list(counts)
    wanted = tags_by_group(tag_frequency_groups(labels, counts, 5), labels)
    for order in (sorted(labels), sorted(labels, reverse=True)):
        assert tags_by_group(tag_frequency_groups(order, counts, 5), order) == wanted
    assert wanted == literal(labels, counts, 5)
