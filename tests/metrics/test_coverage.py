"""Accuracy against coverage: by hand, with ties, and whatever comes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.metrics.coverage import accuracy_at_coverage

PAIRS = st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9, 1.0]), st.booleans()), min_size=1, max_size=30)


def test_worked_by_hand():
    found = accuracy_at_coverage([0.9, 0.2, 0.8, 0.4], [1, 0, 0, 1], [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(found, [1.0, 0.5, 2 / 3, 0.5])


def test_equal_scores_are_kept_in_no_order():
    # The half that is kept of four equal scores, one of them right, has their accuracy.
    np.testing.assert_allclose(accuracy_at_coverage([0.5] * 4, [1, 0, 0, 0], [0.25, 0.5, 1.0]), 0.25)
    np.testing.assert_allclose(accuracy_at_coverage([0.9, 0.5, 0.5], [1, 1, 0], [1 / 3, 2 / 3]), [1.0, 0.75])


@given(PAIRS)
def test_all_that_is_kept_has_the_accuracy_of_all(pairs):
    scores, hits = zip(*pairs, strict=True)
    found = accuracy_at_coverage(scores, hits, np.linspace(0.01, 1, 100))
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()
    np.testing.assert_allclose(found[-1], np.mean(hits))
