"""scripts/cutoff_study.py: splits, what they count, and what made-up scores of known truth say."""

from __future__ import annotations

from dataclasses import replace

import cutoff_study as study
import numpy as np
import pytest

from spacy_calib.pairs.build import JudgedPairs
from tests.made import judged_pairs


@pytest.mark.parametrize("n", [9, 10, 11])
def test_documents_are_dealt_into_halves_and_stay_whole(n):
    documents = np.repeat(np.arange(n) * 7, 3)
    second = study.deal(documents, np.random.default_rng(0))
    assert set(second.reshape(n, 3).sum(axis=1)) == {0, 3}
    assert second.sum() // 3 == n // 2
    assert second.tolist() == study.deal(documents, np.random.default_rng(0)).tolist()
    assert second.tolist() != study.deal(documents, np.random.default_rng(1)).tolist()


def entity_pairs(n: int = 6000, n_documents: int = 2000) -> JudgedPairs:
    """Entities in documents; each is right with the probability of its score."""
    rng = np.random.default_rng(0)
    scores, documents = rng.beta(5, 1, n), np.sort(rng.integers(0, n_documents, n))
    return judged_pairs(scores, rng.random(n) < scores, documents, scores)


def test_a_cut_off_is_found_on_one_half_and_judged_on_the_other():
    data = entity_pairs()
    second, keys = study.deal(data.documents, np.random.default_rng(0)), ["all"] * len(data.documents)
    found, held, share = study.precision_split(data, keys, second, 0.9, 0.95)["all"]
    assert found > 0.9
    assert 0.85 < held < 1
    assert 0.2 < share < 1

    def spoil(which):
        """The same where these entities are wrong."""
        wrong = replace(data, pairs=replace(data.pairs, hits=data.pairs.hits & ~which))
        return study.precision_split(wrong, keys, second, 0.9, 0.95)

    assert spoil(~second) == {}
    assert spoil(second)["all"] == (found, 0.0, share)


def tokens(n_documents: int = 400):
    """Six tokens a document, of which two are one gold entity and likelier by their scores."""
    rng = np.random.default_rng(1)
    wanted = np.tile([True, True, False, False, False, False], n_documents)
    documents = np.repeat(np.arange(n_documents), 6)
    scores = np.where(wanted, rng.beta(4, 1, len(wanted)), rng.beta(1, 4, len(wanted)))
    return study.Judged(scores, wanted, scores > 0.7, documents, np.where(wanted, documents, -1))


def test_a_recall_cut_off_flags_what_it_must_of_the_other_half():
    data = tokens()
    second = study.deal(data.documents, np.random.default_rng(0))
    one = study.recall_split(data, second, 0.9, 0.95)
    assert one["reached"]
    assert one["found"] >= 0.9
    assert one["recall"] == pytest.approx(0.93, abs=0.04)
    assert one["entities"] >= one["recall"]
    assert one["naive_recall"] == data.predicted[data.wanted & second].mean() < one["recall"]
    assert 1 / 3 < one["share"] < 1
    assert one["inside"]


def test_precision_of_known_truth(capsys):
    assert study.true_precision(0.9) == pytest.approx(0.97)
    assert study.true_precision(0.8) == pytest.approx((0.15 * 0.97 + 0.05 * 0.2) / 0.2)
    assert study.main(["precision", "--repeats", "10", "--wanted", "0.8", "0.99"]) == 0
    printed = capsys.readouterr().out
    assert "| 1,000 | 0.8 | yes | 10 / 10 of 10 |" in printed
    assert "| 1,000 | 0.99 | no | 0 / 0 of 10 |" in printed
