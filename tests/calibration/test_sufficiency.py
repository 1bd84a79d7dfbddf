"""Whether there is enough data: known differences, known standard errors, and what a fit on next to nothing gives away."""

import numpy as np
import pytest

from spacy_calib.calibration.fit_summaries import HeldOut
from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.calibration.sufficiency import documents_or_blocks, evaluate_held_out
from spacy_calib.metrics import log_loss
from spacy_calib.pairs.pairing import JudgedPairs

from ..strategies import make_pairs


def test_of_few_documents_blocks_of_tokens_are_held_out():
    rows = np.repeat(np.arange(100), 2)
    ten, nine = rows // 10, np.minimum(rows // 10, 8)
    assert documents_or_blocks(rows, ten) is ten
    assert documents_or_blocks(rows, nine).tolist() == (rows // 5).tolist()


@pytest.mark.parametrize(("difference", "error", "verdict"), [
    (0.0, 0.0, "same"), (0.011, 0.01, "worse"), (0.009, 0.01, "unclear"), (0.002, 0.0001, "unclear"), (0.004, 0.0001, "worse"),
    (-0.019, 0.01, "unclear"), (-0.021, 0.01, "better"),
])  # fmt: skip
def test_standard_errors_decide(difference, error, verdict):
    held = HeldOut(0.3, 0.3 + difference, error, 100, 0.1, 0.1, 0.0)
    assert held.verdict == held.state()["verdict"] == verdict


def drawn(n: int, seed: int):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.02, 0.98, n)
    return make_pairs(scores, rng.random(n) < scores)


def judge(pairs, calibrated, documents=None) -> HeldOut:
    """documents: Of each pair; one where they are not given."""
    return evaluate_held_out(JudgedPairs(pairs, calibrated, np.zeros(len(pairs), int) if documents is None else documents))


def test_the_error_is_that_of_the_difference_over_documents():
    pairs = drawn(60, 1)
    moved = np.clip(pairs.scores * 0.8, 0.01, 1)
    documents = np.repeat(np.arange(12), 5)
    held = judge(pairs, moved, documents)
    assert (held.raw, held.calibrated, held.tokens) == (
        pytest.approx(log_loss(pairs.scores, pairs.hits)), pytest.approx(log_loss(moved, pairs.hits)), 60,
    )  # fmt: skip
    each = np.where(pairs.hits, np.log(pairs.scores / moved), np.log((1 - pairs.scores) / (1 - moved)))
    by_document = each.reshape(12, 5).sum(axis=1) - 5 * each.mean()
    assert held.error == pytest.approx(np.sqrt((by_document**2).sum()) / 60)
    # One document: its blocks of three tokens.
    of_blocks = each.reshape(20, 3).sum(axis=1) - 3 * each.mean()
    assert judge(pairs, moved).error == pytest.approx(np.sqrt((of_blocks**2).sum()) / 60)


def test_raw_scores_are_the_same():
    pairs = drawn(60, 1)
    assert judge(pairs, pairs.scores).verdict == "same"


def test_steps_learned_from_few_true_scores_are_worse_and_a_line_from_many_wrong_ones_is_better():
    few, many = drawn(60, 1), drawn(3000, 2)
    held = np.empty(60)
    for fold in range(3):
        inside = np.arange(60) % 3 == fold
        held[inside] = IsotonicRegression().fit(few.scores[~inside], few.hits[~inside]).predict(few.scores[inside])
    assert judge(few, held, np.arange(60)).verdict == "worse"
    too_sure = make_pairs(many.scores**3, many.hits)
    assert judge(too_sure, many.scores, np.arange(3000)).verdict == "better"
