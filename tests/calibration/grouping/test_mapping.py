"""Groups that the user names."""

from __future__ import annotations

import pytest

from spacy_calib.calibration.grouping.mapping import make_mapping_grouping, mapped_groups
from spacy_calib.errors import CalibError

LABELS = ["DET", "NOUN", "VERB", "X", "ADJ"]
MAPPING = {"VERB": "content", "DET": "function", "NOUN": "content", "INTJ": "never seen", "ADJ": "content"}


def test_groups_are_ordered_by_their_first_tag_in_the_mapping():
    groups = mapped_groups(LABELS, {"NOUN": 7, "DET": 3, "INTJ": 1}, MAPPING)
    # INTJ is no label of the model: its group has no tag and is left out. X is not in the mapping: no group.
    assert groups.names == ("content", "function")
    assert groups.of_tag.tolist() == [1, 0, 0, -1, 0]
    assert groups.sizes == [3, 1]
    assert groups.counts.tolist() == [3, 7, 0, 0, 0]


def test_the_registered_function_equals_the_plain_one():
    made = make_mapping_grouping(MAPPING)(LABELS, {"NOUN": 7})
    assert made.of_tag.tolist() == mapped_groups(LABELS, {"NOUN": 7}, MAPPING).of_tag.tolist()


@pytest.mark.parametrize("mapping", [{}, {"INTJ": "g"}])
def test_a_mapping_without_any_label_is_refused(mapping):
    with pytest.raises(CalibError, match=r"\[C001\] mapping must be a mapping from labels such as \['DET', 'NOUN', 'VERB'\]"):
        mapped_groups(LABELS, {}, mapping)
