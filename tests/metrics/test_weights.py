"""Weighted figures: those of the same pairs repeated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.metrics.calibration_error import calibration_error, gmce, smce
from spacy_calib.metrics.proper import brier, log_loss
from spacy_calib.types import Groups, Pairs

ROWS = st.lists(
    st.tuples(st.integers(0, 40).map(lambda i: i / 40), st.booleans(), st.integers(1, 9), st.integers(0, 1)),
    min_size=1,
    max_size=40,
)
GROUPS = Groups(("a", "b"), np.array([0, 1]))


@pytest.mark.parametrize("bins", [{"n_bins": 3}, {"bin_size": 4}])
@given(ROWS)
@settings(max_examples=25, deadline=None)
def test_a_weight_is_as_many_pairs(bins, rows):
    scores, hits, weights, tags = (np.array(column) for column in zip(*rows, strict=True))

    def figures(scores, hits, tags, **weights):
        pairs = Pairs(np.zeros(len(scores), int), tags, scores, hits, 1)
        return [
            calibration_error(scores, hits, **bins, **weights),
            calibration_error(scores, hits, **bins, norm="l1", **weights),
            smce(pairs, **bins, **weights),
            gmce(pairs, GROUPS, **bins, **weights),
            brier(scores, hits, **weights),
            log_loss(scores, hits, **weights),
        ]

    repeated = (np.repeat(column, weights) for column in (scores, hits, tags))
    for ours, theirs in zip(figures(scores, hits, tags, weights=weights), figures(*repeated), strict=True):
        # a difference of rounding errors alone has a root of about 1e-8
        assert np.allclose(np.array(ours, float), np.array(theirs, float), rtol=1e-12, atol=1e-7, equal_nan=True)


def test_golden_values_of_weighted_pairs():
    scores, hits, weights = [0.2, 0.8, 0.8], [False, True, False], [2, 3, 1]
    # two bins: the two pairs of .2 without a hit, and the four of .8 with three: gaps .2 and .05
    assert calibration_error(scores, hits, 2, weights=weights) == pytest.approx(np.sqrt((2 * 0.04 + 4 * 0.0025) / 6))
    assert brier(scores, hits, weights) == pytest.approx((2 * 0.04 + 3 * 0.04 + 0.64) / 6)
    assert log_loss(scores, hits, weights) == pytest.approx(-(2 * np.log(0.8) + 3 * np.log(0.8) + np.log(0.2)) / 6)
