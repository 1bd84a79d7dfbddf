from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.sequence.inference import maxima
from spacy_calib.sequence.inference.maxima import Maxima, order_from_best, parts_of


@pytest.mark.parametrize("cells", [1 << 17, 1])
@pytest.mark.parametrize("spread", [0.1, 2.0, 50.0])
@pytest.mark.parametrize("n_labels", [1, 40, 65, 100])
def test_trying_a_few_labels_first_changes_nothing(monkeypatch, n_labels, spread, cells):
    monkeypatch.setattr(maxima, "_CELLS", cells)
    rng = np.random.default_rng(n_labels)
    scores, transitions = rng.normal(scale=spread, size=(20, n_labels)), rng.normal(size=(n_labels, n_labels))
    transitions[rng.random((n_labels, n_labels)) < 0.3] = -np.inf
    scores[rng.random((20, n_labels)) < 0.3] = -np.inf
    scores[:2], transitions[:, 0] = -np.inf, -np.inf  # nothing leads to label 0, and from the first two nothing does
    wanted = (scores[:, :, None] + transitions).max(axis=1)
    assert (Maxima(transitions).of(scores) == wanted).all()


def test_what_neither_side_tries_is_looked_at_where_it_may_be_best(monkeypatch):
    # Of 100 labels the 16 with the best scores lead to label 0 by -9, the 16 with the best transitions to it score -9: label 50 has neither, and wins.
    scores, into = np.zeros(100), np.zeros(100)
    scores[:16], into[:16] = 1.0, -9.0
    scores[-16:], into[-16:] = -9.0, 1.0
    scores[50] = into[50] = 0.9
    found = Maxima(np.repeat(into[:, None], 100, axis=1)).of(scores[None])
    assert (found == 1.8).all()


def test_greatest_first():
    values = np.array([[3.0, 1.0, 4.0, 1.0], [-np.inf, 2.0, -np.inf, 5.0]])
    assert order_from_best(values, 2, np).tolist() == [[2, 0], [3, 1]]
    assert order_from_best(values, 4, np).tolist() == [[2, 0, 1, 3], [3, 1, 0, 2]]


def test_parts_are_all_of_it_and_no_greater_than_said():
    size = maxima._CELLS // 1000
    assert [part for part in parts_of(2 * size + 1, 1000, np)] == [
        slice(0, size),
        slice(size, 2 * size),
        slice(2 * size, 3 * size),
    ]
    assert len(list(parts_of(3, 10 * maxima._CELLS, np))) == 3
    assert list(parts_of(0, 5, np)) == []
