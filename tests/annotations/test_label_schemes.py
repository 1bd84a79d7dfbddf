"""What the labels of a gold stand for, and what only rejected labels may decide."""

from __future__ import annotations

from spacy_calib.annotations.label_schemes import read_scheme

LABELS = ["PERSON", "ORG", "GPE", "LOC", "FAC", "DATE"]
CARD = {"PERSON": "PER", "ORG": "ORG", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "DATE": ""}


def test_gold_without_gpe_and_fac_is_coarse():
    scheme = read_scheme(LABELS, {"PER": 2, "LOC": 3}, {})
    assert scheme.is_coarse is True
    assert scheme.gold == {"PER": "PERSON", "LOC": "LOC"}
    assert scheme.first_of == {"PERSON": "PERSON", "LOC": "LOC", "GPE": "LOC", "FAC": "LOC"}
    assert scheme.unused_labels == ("ORG", "DATE")
    assert read_scheme(LABELS, {"GPE": 1, "LOC": 3}, {}).is_coarse is False
    assert read_scheme(LABELS, {"PERSON": 1}, {}).is_coarse is None


def test_a_rejected_label_is_that_of_a_queue_and_decides_only_where_no_place_was_accepted():
    for table in ({}, CARD):
        scheme = read_scheme(LABELS, {"LOC": 3}, table, rejected_labels=["GPE", "ORG"])
        assert scheme.is_coarse is True
        assert scheme.first_of["GPE"] == scheme.first_of["LOC"] == scheme.gold["GPE"] == scheme.gold["LOC"]
        assert "ORG" in scheme.gold
        assert read_scheme(LABELS, {"PERSON": 3}, table, rejected_labels=["GPE", "LOC"]).is_coarse is False
        assert read_scheme(LABELS, {"GPE": 3}, table, rejected_labels=["LOC"]).is_coarse is False
        assert read_scheme(LABELS, {"PERSON": 3}, table, rejected_labels=["LOC"]).is_coarse is True
