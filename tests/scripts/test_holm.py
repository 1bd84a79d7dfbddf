"""Holm's procedure in scripts/quality: worked by hand, and by how often all bounds hold together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quality.judge import holm, holm_upper_bounds, p_value_of, upper_bound

from spacy_calib.metrics.by_document import ResampledMean, resample_means


def test_bounds_are_order_statistics():
    mean = ResampledMean(10.0, 10.0 - 2.0 * np.arange(-50.0, 49.0), 60)
    # 99 resamples: the 5th lowest distance is -46.
    assert upper_bound(mean, 0.95) == 10 + 2 * 46


def test_p_value_worked_by_hand():
    # Nine resamples: distances of at most (10 - 12) / 2 = -1 are -4 to -1, and one more is counted, of ten.
    mean = ResampledMean(10.0, 10.0 - 2.0 * np.arange(-4.0, 5.0), 60)
    assert [p_value_of(mean, margin) for margin in (12.0, 12.5, 99.0, -99.0)] == [0.5, 0.4, 0.1, 1.0]
    assert p_value_of(resample_means([[1.0, 2.0]], [0, 0])[0], 5.0) == 1.0


def test_holm_worked_by_hand():
    # Ascending .005 .01 .03 .04 times 4 3 2 1 is .02 .03 .06 .04; none below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def differences(truths, seed, n_documents=40, n_samples=1999):
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(n_documents), 3)
    # All rivals share each document's luck.
    luck = rng.normal(size=n_documents)[documents]
    losses = [truth + luck + rng.normal(size=len(documents)) for truth in truths]
    return resample_means(losses, documents, n_samples, seed)


@given(st.lists(st.sampled_from([-3.0, -0.6, -0.3, 0.0, 0.5]), min_size=1, max_size=6), st.integers(0, 20))
def test_bounds_stay_under_the_margin_exactly_where_holm_rejects(truths, seed):
    made = differences(truths, seed, n_samples=199)
    margins = [0.1 * k for k in range(len(truths))]
    bounds = holm_upper_bounds(made, margins)
    assert [bound.rejected for bound in bounds] == (holm([bound.p_value for bound in bounds]) <= 0.05).tolist()
    retained = sum(not bound.rejected for bound in bounds)
    for bound, one, margin in zip(bounds, made, margins, strict=True):
        assert (bound.upper <= margin) == bound.rejected
        assert bound.bonferroni == upper_bound(one, 1 - 0.05 / len(truths))
        assert bound.estimate == one.estimate
        if not bound.rejected:
            assert bound.upper == upper_bound(one, 1 - 0.05 / retained)
        else:
            assert bound.upper == (margin if retained else min(margin, bound.bonferroni))
