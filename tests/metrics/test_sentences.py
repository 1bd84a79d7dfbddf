import numpy as np
import pytest

from spacy_calib.metrics.judged_view import never_right
from spacy_calib.metrics.sentences import warn_of_higher_loss, warn_of_never_right
from spacy_calib.pairs.pairing import JudgedPairs
from spacy_calib.types import Pairs


def sample_predictions(labels, n=40, score=0.9):
    """n predictions of each label; of the first one none is right, of the others nearly all."""
    tags = np.repeat(np.arange(len(labels)), n)
    hits = (tags > 0) & (np.arange(len(tags)) % 10 > 0)
    return Pairs(np.arange(len(tags)), tags, np.full(len(tags), score), hits, len(tags))


def never(pairs, labels):
    """Of scores as they are, all of one document."""
    judged = JudgedPairs(pairs, pairs.scores, np.zeros(len(pairs), dtype=int))
    return never_right(judged, labels)


def test_labels_that_are_never_right():
    pairs = sample_predictions(["PERSON", "LOC"])
    assert never(pairs, ["PERSON", "LOC"]) == [{"label": "PERSON", "predicted": 40, "promised": pytest.approx(36)}]
    few = sample_predictions(["PERSON", "LOC"], n=19)
    assert never(few, ["PERSON", "LOC"]) == []
    nothing = Pairs(*(np.zeros(0, dtype=kind) for kind in (int, int, float, bool)), 0)
    assert never(nothing, []) == []


def test_a_score_that_is_not_the_highest_predicts_nothing():
    pairs = Pairs(np.repeat(np.arange(30), 2), np.tile([0, 1], 30), np.tile([0.1, 0.9], 30), np.tile([False, True], 30), 30)
    assert never(pairs, ["A", "B"]) == []


def test_what_is_said_of_them():
    assert warn_of_never_right([]) is None
    one = {"label": "PERSON", "predicted": 1200, "promised": 300.4}
    assert "PERSON (1,200 times), though by the scores 300 of these should be." in warn_of_never_right([one])
    assert "though" not in warn_of_never_right([{**one, "promised": 0.2}])
    assert "and 2 more" in warn_of_never_right([one] * 10)


@pytest.mark.parametrize(("value", "low", "high", "sentence"), [
    (-0.01, -0.02, -0.005, None),
    (None, None, None, None),
    (0.02, 0.01, 0.03, "WORSE than raw ones on this data: log loss +0.0200 (95 % interval +0.0100 to +0.0300)."),
    (
        0.02,
        -0.01,
        0.05,
        "no better than raw ones on this data: log loss +0.0200 (95 % interval -0.0100 to +0.0500); that may be",
    ),
    (0.02, None, None, "no better than raw ones on this data: log loss +0.0200."),
])  # fmt: skip
def test_worse_than_raw(value, low, high, sentence):
    warning = warn_of_higher_loss({"nll": {"value": value, "low": low, "high": high}})
    assert warning is None if sentence is None else sentence in warning
