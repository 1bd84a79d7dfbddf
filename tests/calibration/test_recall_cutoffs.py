"""The scores that recall cut-offs cut, and what they flag: values by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.calibration.cutoffs import EntityScores, EntityTypes, RecallCutoffs
from spacy_calib.errors import CalibError

TYPES = EntityTypes.of(["O", "B-PER", "I-PER", "B-LOC"], prefixed=True)
# Token 0: O .7, PER .2 + .05; 1: O .999 alone; 2: LOC .99 alone, so that P(O) is below the threshold; 3: O .5, LOC .4.
SCORES = EntityScores(
    np.array([0, 0, 0, 1, 2, 3, 3]),
    TYPES.of_label[[0, 1, 2, 0, 3, 0, 3]],
    np.array([0.7, 0.2, 0.05, 0.999, 0.99, 0.5, 0.4]),
    4,
    0.01,
)


def test_types_without_their_prefixes():
    assert TYPES.names == ("PER", "LOC")
    assert TYPES.of_label.tolist() == [-1, 0, 0, 1]
    assert EntityTypes.of(["O", "B-PER"], prefixed=False).names == ("B-PER",)


def test_scores_by_hand():
    assert SCORES.inside == pytest.approx([0.3, 0.001, 1.0, 0.5])
    # Where a type has no entry: the threshold times what is left to it.
    assert SCORES.of_type(0) == pytest.approx([0.25, 0.01 * 0.001, 0.01 * 0.01, 0.01 * 0.5])
    assert SCORES.of_type(1) == pytest.approx([0.01 * 0.3, 0.01 * 0.001, 0.99, 0.4])


def test_what_is_flagged():
    every = RecallCutoffs(0.9, 0.95, "all", {"all": 0.3}).flags(SCORES, TYPES)
    assert {key: flags.tolist() for key, flags in every.items()} == {"all": [True, False, True, True]}
    # Without a cut-off that is sure, every token; a type that the component no longer has flags none.
    each = RecallCutoffs(0.9, 0.95, "label", {"PER": 0.005, "LOC": None, "ORG": None}).flags(SCORES, TYPES)
    assert {key: flags.tolist() for key, flags in each.items()} == {"PER": [True, False, False, True], "LOC": [True] * 4}


def test_saved_and_rebuilt():
    cutoffs = RecallCutoffs(0.9, 0.95, "label", {"PER": 0.25, "LOC": None})
    assert RecallCutoffs.read(cutoffs.state()) == cutoffs


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((1.0, 0.95, "all", {}), "recall must be a number between 0 and 1"),
        ((0.9, "high", "all", {}), "confidence must be a number between 0 and 1"),
        ((0.9, 0.95, "group", {}), "per must be one of all, label"),
        ((0.9, 0.95, "all", {"all": 2}), "cut-off of 'all' must be a number in"),
    ],
)
def test_what_is_out_of_range(given, sentence):
    with pytest.raises(CalibError, match=sentence):
        RecallCutoffs(*given)
