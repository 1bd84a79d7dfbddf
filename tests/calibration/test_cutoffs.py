import json

import numpy as np
import pytest

from spacy_calib.calibration.cutoffs import PER, Cutoffs, EntityScores, EntityTypes, RecallCutoffs, keys_of
from spacy_calib.pipe import saved
from spacy_calib.schema import InvalidState
from spacy_calib.types import Groups

LABELS = ["PER", "LOC", "ORG"]
# ORG has no group.
GROUPS = Groups(("1", "2"), np.array([0, 1, -1]))
SCORES = np.array([0.9, 0.9, 0.9, 0.4, 0.4, 0.4])
COLUMNS = np.array([0, 1, 2, 0, 1, 2])


def accepted(per, values, scores=SCORES, columns=COLUMNS):
    return Cutoffs(0.95, 0.9, per, values).accepts(scores, columns, LABELS, GROUPS).tolist()


def test_one_cutoff_for_all():
    assert accepted("all", {"all": 0.5}) == [True, True, True, False, False, False]


def test_a_cutoff_for_each_label():
    assert accepted("label", {"PER": 0.95, "LOC": 0.3, "ORG": 0.5}) == [False, True, True, False, True, False]


def test_a_cutoff_for_each_group_and_none_for_labels_without_one():
    assert accepted("group", {"1": 0.3, "2": 0.5}) == [True, True, False, True, False, False]


def test_a_score_at_the_cutoff_is_accepted():
    below = float(np.nextafter(0.7, 0))
    assert accepted("all", {"all": 0.7}, np.array([0.7, below]), np.array([0, 0])) == [True, False]
    assert accepted("all", {"all": 1.0}, np.array([1.0]), np.array([0])) == [True]
    assert accepted("all", {"all": 0.0}, np.array([0.0]), np.array([0])) == [True]
    assert accepted("all", {"all": 0}, np.array([0.0]), np.array([0])) == [True]


@pytest.mark.parametrize("values", [{"all": None}, {}], ids=["null", "no key"])
def test_no_cutoff_accepts_nothing(values):
    assert accepted("all", values, np.array([1.0, 0.0]), np.array([0, 1])) == [False, False]
    assert Cutoffs(0.95, 0.9, "all", values).get_cutoffs(COLUMNS, LABELS, GROUPS).tolist() == [np.inf] * 6


def test_null_for_one_label_leaves_the_others():
    assert accepted("label", {"PER": None, "LOC": 0.5}) == [False, True, False, False, False, False]


def test_keys():
    assert keys_of("all", COLUMNS, LABELS, GROUPS) == ["all"] * 6
    assert keys_of("label", COLUMNS[:3], LABELS, GROUPS) == LABELS
    assert keys_of("group", COLUMNS[:3], LABELS, GROUPS) == ["1", "2", ""]
    # A label that was appended after the fit.
    longer = [*LABELS, "NEW"]
    assert keys_of("group", np.array([3]), longer, GROUPS) == [""]
    assert all(keys_of(per, COLUMNS[:0], LABELS, GROUPS) == [] for per in PER)


def test_no_spans():
    assert accepted("label", {"PER": 0.5}, SCORES[:0], COLUMNS[:0]) == []


def test_round_trip():
    made = Cutoffs(0.95, 0.9, "label", {"PER": 0.1 + 0.2, "LOC": None})
    for data in (json.loads(json.dumps(made.state())), saved.read(saved.dump(made.state()), dict, name="calib", path="here")):
        assert Cutoffs.read(data) == made
    values = {"precision": 0.95, "confidence": 0.9, "per": "label", "cutoffs": {"PER": 0.1 + 0.2, "LOC": None}}
    assert made.state() == {**values, "targets": None, "sample": None}


GOOD = {"precision": 0.95, "confidence": 0.9, "per": "all", "cutoffs": {"all": 0.5}}


@pytest.mark.parametrize("data", [None, [], "x", 3, {}, {**GOOD, "cutoffs": None}, {**GOOD, "cutoffs": [0.5]}])
def test_what_is_no_set_of_cutoffs_is_refused(data):
    with pytest.raises(InvalidState, match="is not a table|is not there"):
        Cutoffs.read(data)


@pytest.mark.parametrize("change", [
    {"precision": "0.95"}, {"precision": float("nan")}, {"confidence": 95}, {"confidence": None}, {"per": "token"},
    {"per": ["all"]}, {"cutoffs": {"all": 1.5}}, {"cutoffs": {"all": -0.1}}, {"cutoffs": {"PER": 0.5, "LOC": "0.5"}},
])  # fmt: skip
def test_bad_parts_are_refused(change):
    with pytest.raises(InvalidState, match=next(iter(change))):
        Cutoffs.read({**GOOD, **change})


@pytest.mark.parametrize("missing", ["precision", "confidence", "per", "cutoffs"])
def test_missing_parts_are_refused(missing):
    with pytest.raises(InvalidState, match=f"state.{missing}' is not there"):
        Cutoffs.read({key: value for key, value in GOOD.items() if key != missing})


TYPES = EntityTypes.from_labels(["O", "B-PER", "I-PER", "B-LOC"], has_prefix=True)
# Token 0: O .7, PER .2 + .05; 1: O .999 alone; 2: LOC .99 alone, so that P(O) is below the threshold; 3: O .5, LOC .4.
OF_RECALL = EntityScores(
    np.array([0, 0, 0, 1, 2, 3, 3]), TYPES.of_label[[0, 1, 2, 0, 3, 0, 3]], np.array([0.7, 0.2, 0.05, 0.999, 0.99, 0.5, 0.4]),
    4, 0.01,
)  # fmt: skip


def test_types_without_their_prefixes():
    assert TYPES.names == ("PER", "LOC")
    assert TYPES.of_label.tolist() == [-1, 0, 0, 1]
    assert EntityTypes.from_labels(["O", "B-PER"], has_prefix=False).names == ("B-PER",)


def test_scores_by_hand():
    assert OF_RECALL.inside_probability == pytest.approx([0.3, 0.001, 1.0, 0.5])
    # Where a type has no entry: the threshold times what is left to it.
    assert OF_RECALL.type_probability(0) == pytest.approx([0.25, 0.01 * 0.001, 0.01 * 0.01, 0.01 * 0.5])
    assert OF_RECALL.type_probability(1) == pytest.approx([0.01 * 0.3, 0.01 * 0.001, 0.99, 0.4])


def test_what_is_flagged():
    every = RecallCutoffs(0.9, 0.95, "all", {"all": 0.3}).flags(OF_RECALL, TYPES)
    assert {key: flags.tolist() for key, flags in every.items()} == {"all": [True, False, True, True]}
    # Without a cut-off that is sure, every token; a type that the component no longer has flags none.
    each = RecallCutoffs(0.9, 0.95, "label", {"PER": 0.005, "LOC": None, "ORG": None}).flags(OF_RECALL, TYPES)
    assert {key: flags.tolist() for key, flags in each.items()} == {"PER": [True, False, False, True], "LOC": [True] * 4}


def test_saved_and_rebuilt():
    cutoffs = RecallCutoffs(0.9, 0.95, "label", {"PER": 0.25, "LOC": None})
    assert RecallCutoffs.read(cutoffs.state()) == cutoffs
