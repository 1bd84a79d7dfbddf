"""scripts/polarity_table.py: bins of a size, what dev chooses, and when the claim of the paper holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import papers.polarity_table as table
import pytest

ROW = table.Row(table.NB, "raw", 0.7, {200: 0.1}, (0.09, 0.11), 0.08, 0.12, 0.03, 0.2, 0.6)


def test_a_curve_has_bins_of_a_size_and_the_rest_in_the_last():
    scores = np.linspace(0.1, 0.9, 45)
    found = table.curve(scores, np.arange(45) >= 23, size=20)
    assert found.pairs == [20, 25]
    assert found.right == [0.0, 22 / 25]
    assert found.scores == pytest.approx([scores[:20].mean(), scores[20:].mean()])


def test_the_claim_holds_where_the_intervals_lie_apart(capsys):
    assert table.verdict([ROW, replace(ROW, model=table.LR, low=0.0, high=0.07)])
    assert not table.verdict([ROW, replace(ROW, model=table.LR, low=0.0, high=0.09)])
    assert capsys.readouterr().out.count("NOT less calibrated") == 1


def test_the_value_with_the_best_f1_on_dev_is_taken():
    from sklearn.naive_bayes import BernoulliNB

    texts = ["good film", "bad film", "good plot", "bad plot", "plot film", "film plot"] * 5
    positive = np.array([True, False] * 15)
    data = {split: table.Snippets(texts, positive) for split in table.SPLITS}
    # So much smoothing that words tell nothing: then all are of the first class, and F1 is 0.
    found = table.classify(data, lambda value: BernoulliNB(alpha=value), (1e9, 1.0), "smoothing")
    assert found.chosen == "smoothing 1"
    assert found.raw[0] > 0.9 > 0.1 > found.raw[1]
    assert np.all((found.calibrated >= 0) & (found.calibrated <= 1))
