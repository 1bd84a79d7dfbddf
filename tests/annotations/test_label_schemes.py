"""What the labels of a gold stand for, and what only rejected labels may decide."""

from __future__ import annotations

from spacy_calib.annotations.label_schemes import propose_gold_labels, read_scheme

LABELS = ["PERSON", "ORG", "GPE", "LOC", "FAC", "DATE"]
CARD = {"PERSON": "PER", "ORG": "ORG", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "DATE": ""}


def test_gold_without_gpe_and_fac_is_coarse():
    scheme = read_scheme(LABELS, {"PER": 2, "LOC": 3}, {})
    assert scheme.is_coarse is True
    assert scheme.gold == {"PER": "PERSON", "LOC": "LOC"}
    assert scheme.first_of == {"PERSON": "PERSON", "LOC": "LOC", "GPE": "LOC", "FAC": "LOC"}
    assert scheme.unused_labels == ("ORG", "DATE")
    assert read_scheme(LABELS, {"GPE": 1, "LOC": 3}, {}).is_coarse is False
    # In a fine scheme LOC is LOC, which this component does not have.
    assert read_scheme(["PERSON", "GPE", "FAC"], {"GPE": 1, "LOC": 3}, {}).gold == {"GPE": "GPE"}
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


def test_a_proposed_name_is_a_common_one_or_one_of_three_spans_that_no_other_gold_label_beats():
    assert propose_gold_labels(["PERSON", "Org"], ["Per", "oRG", "folk"], {}) == {"PERSON": "Per", "Org": "oRG"}
    # Of two common names the one with more spans, however many spans another name has.
    assert propose_gold_labels(["GPE"], ["LOC", "Place", "folk"], {("GPE", "Place"): 1, ("GPE", "folk"): 9}) == {"GPE": "Place"}
    # No common name: three spans of this label, whatever another label has.
    assert propose_gold_labels(["NORP"], ["x", "folk"], {("NORP", "folk"): 3, ("NORP", "x"): 2, ("ORG", "x"): 9}) == {
        "NORP": "folk"
    }
    assert propose_gold_labels(["NORP"], ["folk"], {("NORP", "folk"): 2}) == {}
    # A known gold label, or none, has more of them.
    assert propose_gold_labels(["NORP"], ["folk"], {("NORP", "folk"): 3, ("NORP", "ORG"): 4}) == {}
    assert propose_gold_labels(["NORP"], ["folk"], {}) == {}
