"""Shared class-wise binning: one group for all."""

from __future__ import annotations

from spacy_calib.calibration.grouping.fixed import make_shared_grouping, shared_group


def test_one_group_holds_every_tag():
    groups = shared_group(["N", "V", "X"], {"N": 9, "V": 1, "unknown": 5})
    assert len(groups) == 1
    assert groups.of_tag.tolist() == [0, 0, 0]
    assert groups.sizes == [3]
    assert groups.counts.tolist() == [9, 1, 0]


def test_without_counts():
    assert shared_group(["N", "V"], {}).of_tag.tolist() == [0, 0]


def test_the_registered_function():
    assert make_shared_grouping()(["N", "V"], {"N": 1}).sizes == [2]
