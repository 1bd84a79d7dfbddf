"""Labels that stand alone before the groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.grouping.fixed import make_one_vs_rest_grouping, make_shared_grouping
from spacy_calib.calibration.grouping.tag_frequency import group_with_singletons, make_tag_frequency_grouping

TFG = make_tag_frequency_grouping(2)


def entity_type(label: str) -> str:
    return label if label == "O" else label[2:]


def test_o_stands_alone_in_front():
    counts = {"O": 900, "PER": 6, "LOC": 3, "ORG": 1}
    groups = group_with_singletons(TFG, ["O", "PER", "LOC", "ORG"], counts, ("O",))
    # The 900 of O do not count: PER holds 6 of 10, which is half of them, so that it is a group; the others are the second.
    assert groups.names == ("O", "1", "2")
    assert groups.of_tag.tolist() == [0, 1, 2, 2]
    assert groups.counts.tolist() == [900, 6, 3, 1]
    assert groups.n_singletons == 1
    assert groups.tags_in(0).tolist() == [0]


def test_labels_with_one_key_share_a_group_by_their_frequency_together():
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    # PER 3 + 3, LOC 5 + 0: by single labels B-LOC would come first.
    counts = {"O": 50, "B-PER": 3, "I-PER": 3, "B-LOC": 5}
    groups = group_with_singletons(TFG, labels, counts, ("O",), entity_type)
    assert groups.names == ("O", "1", "2")
    assert groups.of_tag.tolist() == [0, 1, 1, 2, 2]
    assert groups.counts.tolist() == [50, 3, 3, 5, 0]


def test_a_gold_label_that_the_model_does_not_know_counts_as_the_grouping_counts_it():
    plain = TFG(["PER", "LOC"], {"PER": 4, "LOC": 3, "ORG": 90})
    beside = group_with_singletons(TFG, ["PER", "LOC"], {"PER": 4, "LOC": 3, "ORG": 90})
    assert beside.of_tag.tolist() == plain.of_tag.tolist()
    assert beside.names == plain.names


def test_a_lonely_label_that_is_no_label_takes_no_part():
    groups = group_with_singletons(make_shared_grouping(), ["PER"], {"PER": 1, "O": 5}, ("O",))
    assert groups.names == make_shared_grouping()(["PER"], {"PER": 1}).names
    assert groups.of_tag.tolist() == [0]
    assert groups.n_singletons == 0


def test_only_lonely_labels():
    groups = group_with_singletons(make_one_vs_rest_grouping(), ["O"], {"O": 5}, ("O",))
    assert groups.of_tag.tolist() == [0]
    assert groups.names[0] == "O"


def test_several_lonely_labels_keep_the_order_in_which_they_are_given():
    groups = group_with_singletons(make_shared_grouping(), ["X", "PER", "O"], {}, ("O", "X"))
    assert groups.names[:2] == ("O", "X")
    assert groups.of_tag.tolist() == [1, 2, 0]


@pytest.mark.parametrize("make", [lambda: TFG, make_shared_grouping, make_one_vs_rest_grouping])
@given(counts=st.dictionaries(st.sampled_from(["A", "B", "C", "D", "E", "O"]), st.integers(1, 9)))
def test_without_lonely_labels_it_is_the_grouping_itself(make, counts):
    labels = ["A", "B", "C", "D", "E"]
    of_labels = {label: n for label, n in counts.items() if label != "O"}
    plain, beside = make()(labels, of_labels), group_with_singletons(make(), ["O", *labels], counts, ("O",))
    assert beside.names == ("O", *plain.names)
    assert beside.of_tag.tolist() == [0, *(plain.of_tag + 1).tolist()]
    assert beside.counts.tolist() == [counts.get("O", 0), *plain.counts.tolist()]
