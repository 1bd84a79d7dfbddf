"""The interval of Algorithm 2 (Nguyen & O'Connor 2015)."""

import math

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, calibration_error_interval

from ..strategies import bernoulli


def algorithm_2(bins, n_samples, seed):
    """Step 2 and 3 as the paper writes them. bins: (count, mean score, share of hits) of each."""
    rng = np.random.default_rng(seed)
    total = sum(count for count, _, _ in bins)
    errors = []
    for _ in range(n_samples):
        squared = 0.0
        for count, q, p in bins:
            drawn = min(1, max(0, rng.normal(p, math.sqrt(p * (1 - p) / count))))
            squared += count * (q - drawn) ** 2
        errors.append(math.sqrt(squared / total))
    return np.mean(errors), np.std(errors)


@pytest.mark.parametrize(
    ("counts", "hits_of"), [((20, 30, 10), (8, 10, 9)), ((6, 300, 14), (3, 150, 9))], ids=["near in size", "far in size"]
)
def test_equals_the_words_of_the_paper_within_sampling_error(counts, hits_of):
    # Three scores, each in a bin of its own: 64 bins are too many for any two to share one.
    means = (0.2, 0.5, 0.9)
    scores = np.repeat(means, counts)
    hits = np.concatenate([np.arange(count) < n for count, n in zip(counts, hits_of, strict=True)])
    bins = [(count, q, n / count) for count, q, n in zip(counts, means, hits_of, strict=True)]
    mean, std = algorithm_2(bins, 5000, seed=1)
    low, high = calibration_error_interval(scores, hits, n_bins=64, n_samples=5000)
    error = 5 * std * math.sqrt(2 / 5000)
    assert (low + high) / 2 == pytest.approx(mean, abs=error)
    assert (high - low) / 2 == pytest.approx(1.96 * std, abs=1.96 * error)


def test_hits_all_alike_in_every_bin_leave_no_doubt():
    # p (1 - p) is 0: every draw is the error itself.
    scores, hits = [0.1, 0.1, 0.8, 0.8], [0, 0, 1, 1]
    error = calibration_error(scores, hits, n_bins=2)
    assert calibration_error_interval(scores, hits, n_bins=2) == pytest.approx((error, error))


def test_covers_the_true_error_about_as_often_as_it_says():
    # Scores in [0.2, 0.6] and a true error of 0.2 everywhere; 2000 pairs each, so that the bias of sampling is small beside it.
    rng = np.random.default_rng(3)
    covered = 0
    for seed in range(200):
        scores = rng.uniform(0.2, 0.6, 2000)
        low, high = calibration_error_interval(scores, rng.random(2000) < scores + 0.2, n_samples=200, seed=seed)
        covered += low <= 0.2 <= high
    # 95 % of 200 is 190; five standard deviations of a binomial are 15.
    assert covered >= 175


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    scores, hits = bernoulli(200, seed=1)
    assert calibration_error_interval(scores, hits, seed=3) == calibration_error_interval(scores, hits, seed=3)
    assert calibration_error_interval(scores, hits, seed=3) != calibration_error_interval(scores, hits, seed=4)


def test_bins_by_size():
    scores, hits = bernoulli(500, seed=1)
    low, high = calibration_error_interval(scores, hits, bin_size=100)
    assert low <= calibration_error(scores, hits, bin_size=100) <= high


def test_no_pairs_have_no_interval_and_bad_input_is_refused():
    assert calibration_error_interval([], []) is None
    for scores, hits, settings, sentence in (
        ([1.5], [0], {}, r"\[C001\] scores"),
        ([0.5], [0, 1], {}, r"\[C002\]"),
        ([0.5], [0], {"n_samples": 0}, r"\[C001\] n_samples must be a whole number of at least 1"),
    ):
        with pytest.raises(CalibError, match=sentence):
            calibration_error_interval(scores, hits, **settings)
