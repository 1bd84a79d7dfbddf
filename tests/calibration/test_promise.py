"""calibration/promise.py: what answers will probably promise, and whether a promise holds on new ones."""

import numpy as np
import pytest
from scipy.stats import binom

from spacy_calib.calibration.promise import BROKEN, HOLDS, UNCLEAR, answers_to_check, check_promise, expect_promise


def answered(right, n, documents=None):
    return np.arange(n) < right, np.arange(n) if documents is None else documents


@pytest.mark.parametrize(("right", "verdict"), [(30, HOLDS), (28, HOLDS), (27, UNCLEAR), (20, UNCLEAR), (19, BROKEN)])
def test_thirty_answers_worked_by_hand(right, verdict):
    """P(28 or more of 30 | .8) = .044, P(27 or more) = .123; P(20 or fewer) = .061, P(19 or fewer) = .026."""
    assert check_promise(*answered(right, 30), 0.8) == verdict


def test_answers_of_one_document_count_for_less():
    """28 of 30 in one document, where the wrong ones are together with right ones as chance has it, are no 30 documents."""
    hits, documents = answered(36, 40)
    assert check_promise(hits, documents, 0.75) == HOLDS
    assert check_promise(hits, np.repeat(np.arange(10), 4), 0.75) == UNCLEAR


def test_no_answers_show_nothing():
    assert check_promise(*answered(0, 0), 0.8) == UNCLEAR


def test_a_verdict_is_wrong_in_at_most_one_case_of_twenty():
    """A precision that is just reached is called broken, and one that is just missed is said to hold, that seldom."""
    for n in (30, 120, 250):
        right = np.arange(n + 1)
        verdicts = np.array([check_promise(*answered(k, n), 0.8) for k in right.tolist()])
        chance = binom.pmf(right, n, 0.8)
        assert chance[verdicts == HOLDS].sum() <= 0.05
        assert chance[verdicts == BROKEN].sum() <= 0.05
        assert chance[verdicts == HOLDS].sum() > 0.02


def test_how_many_answers_a_check_takes():
    """At .9 right, P(28 or more of 30) = .41: thirty mostly end in "unclear"."""
    assert answers_to_check(0.9, 0.8) == 120
    assert answers_to_check(0.95, 0.8) == 30
    assert answers_to_check(0.81, 0.8) is None
    assert answers_to_check(0.8, 0.8) is None
    assert answers_to_check(0.5, 0.8) is None


def test_what_is_expected_is_what_samples_find():
    scores = np.random.default_rng(1).beta(4, 1, 5000)
    rows = [expect_promise(scores, precision) for precision in (0.7, 0.8, 0.9, 0.99)]
    answers = [row["answers"] for row in rows]
    assert answers[:2] == sorted(answers[:2])
    assert answers[2] > answers[1]
    assert rows[3] == {"precision": 0.99, "answers": None, "accepted": None}
    assert 0.5 < rows[0]["accepted"] <= 1
    assert expect_promise(scores, 0.8) == rows[1]
    assert expect_promise(np.full(100, 0.5), 0.8)["answers"] is None
    assert expect_promise(np.zeros(0), 0.8)["answers"] is None
