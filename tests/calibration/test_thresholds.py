"""Cut-offs that reach a precision: values by hand, a plain version to compare with, and simulations with known truth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom, binom, binomtest

from spacy_calib.calibration.thresholds import (
    Threshold,
    _shared_level,
    binomial_p_values,
    effective_sizes,
    find_threshold,
    find_thresholds,
    prediction_interval,
    round_down,
)
from spacy_calib.errors import CalibError
from tests import strategies


def find(scores, hits, precision, confidence=0.95, documents=None) -> Threshold:
    scores = np.asarray(scores, dtype=np.float64)
    documents = np.arange(len(scores)) if documents is None else np.asarray(documents)
    return find_threshold(scores, np.asarray(hits, dtype=bool), documents, precision, confidence)


def falling(n) -> np.ndarray:
    """n different scores, highest first."""
    return np.linspace(0.999, 0.001, n)


def test_chance_where_all_are_right_or_one_is():
    # n of n: p^n; one right or more of n: 1 - (1 - p)^n; none or more is certain.
    assert binomial_p_values(np.array([1.0]), np.array([59.0]), 0.95)[0] == pytest.approx(0.95**59)
    assert binomial_p_values(np.array([0.1]), np.array([10.0]), 0.2)[0] == pytest.approx(1 - 0.8**10)
    assert binomial_p_values(np.array([0.0, 0.0]), np.array([1.0, 50.0]), 0.95).tolist() == [1.0, 1.0]


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_chance_is_that_of_the_exact_binomial_test(seen, precision):
    k, n = seen
    expected = binomtest(k, n, precision, alternative="greater").pvalue
    assert binomial_p_values(np.array([k / n]), np.array([float(n)]), precision)[0] == pytest.approx(expected, abs=1e-9)


def test_chance_rises_with_fewer_spans():
    chances = binomial_p_values(np.full(4, 0.9), np.array([10.0, 12.5, 40.0, 1000.0]), 0.85)
    assert (np.diff(chances) < 0).all()


def test_scores_are_rounded_down_to_three_digits_of_the_doubt_by_hand():
    scores = [0, 0.0123456, 0.1, 0.3, 0.4999, 0.5, 0.8537, 0.9, 0.90014, 0.994178, 1]
    assert round_down(np.array(scores)).tolist() == [0, 0.0123, 0.1, 0.3, 0.499, 0.5, 0.853, 0.9, 0.9001, 0.99417, 1]


@given(strategies.score_arrays(max_size=40))
def test_rounding_down_keeps_the_order_and_never_goes_up(scores):
    rounded = round_down(np.sort(scores))
    assert (np.diff(rounded) >= 0).all()
    assert (rounded <= np.sort(scores)).all()
    assert (np.sort(scores) - rounded <= np.maximum(np.minimum(scores, 1 - scores)[np.argsort(scores)] / 99, 1e-9)).all()


@pytest.mark.parametrize(("n", "found"), [(60, False), (99, True)])
def test_as_many_right_ones_as_the_bound_needs(n, found):
    # .95^60 = .046: all right passes where one test alone is made, and eight are made at cut-offs from the 60th span on alone. .95^99 =
    # .0062 is an eighth of .05, .95^98 is not: so 99 spans are the first with which a test can begin in any case.
    threshold = find(falling(n), [True] * n, 0.95)
    assert 0.95**99 <= 0.05 / 8 < 0.95**98
    assert found == (threshold.low is not None and threshold.low > 0.9)
    assert threshold.cutoff == falling(n)[-1]
    assert (threshold.spans, threshold.kept, threshold.right) == (n, n, n)
    assert threshold.precision == threshold.share == 1.0


def test_the_lowest_cutoff_that_passes():
    # 200 right ones, then none: kept n has 200 right. The shared level of eight tests lies between .05 / 8 and .05.
    scores = falling(400)
    threshold = find(scores, [True] * 200 + [False] * 200, 0.9)
    n = threshold.kept
    passed, beyond = (binomtest(200, kept, 0.9, alternative="greater").pvalue for kept in (n, n + 1))
    assert passed <= 0.05
    assert beyond > 0.05 / 8
    assert threshold.right == 200
    assert threshold.cutoff == scores[n - 1]
    assert threshold.precision == 200 / n
    assert threshold.share == n / 400


def chance_that_one_passes(sizes, precision, level) -> float:
    """By the definition: the share right of ever more spans, and whether at one of these sizes its exact test passes."""
    from scipy.stats import binom as of

    # What is left of all walks that have not passed, by how many are right.
    alive, before = np.array([1.0]), 0
    for n in sizes:
        alive, before = np.convolve(alive, of.pmf(np.arange(n - before + 1), n - before, precision)), n
        alive[of.sf(np.arange(n + 1) - 1, n, precision) <= level] = 0.0
    return float(1 - alive.sum())


@pytest.mark.parametrize("sizes", [[60], [60, 61, 62], [44, 70, 111, 177, 281, 447]])
@pytest.mark.parametrize("error", [0.05, 0.2])
def test_at_the_shared_level_one_of_the_tests_passes_by_luck_as_often_as_allowed(sizes, error):
    level = _shared_level(np.array(sizes, dtype=np.float64), 0.9, error)
    chance = chance_that_one_passes(sizes, 0.9, level)
    assert error / len(sizes) <= level <= error
    assert chance <= 1.05 * error
    if len(sizes) > 3:
        assert level > 1.2 * error / len(sizes)
        assert chance >= 0.8 * error


def test_equal_scores_are_kept_or_dropped_together():
    scores = np.repeat([0.9, 0.5, 0.1], [100, 20, 100])
    hits = np.repeat([True, False, False], [100, 20, 100])
    hits[100] = True
    threshold = find(scores, hits, 0.9)
    assert (threshold.cutoff, threshold.kept, threshold.right) == (0.9, 100, 100)
    # In whatever order the equal ones stand.
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(220)
        assert find(scores[order], hits[order], 0.9) == threshold


def test_all_scores_equal():
    assert find([0.7] * 100, [True] * 100, 0.9).kept == 100
    assert find([0.7] * 100, [True] * 80 + [False] * 20, 0.9) == Threshold(None, 100)


def test_what_cannot_be_reached():
    assert find([], [], 0.9) == Threshold(None, 0)
    assert find([], [], 0.9).precision is None
    assert find([], [], 0.9).share is None
    assert find([0.9], [True], 0.9) == Threshold(None, 1)
    none_right = find(falling(50), [False] * 50, 0.5)
    assert none_right == Threshold(None, 50)
    assert (none_right.kept, none_right.right, none_right.share) == (0, 0, 0.0)
    assert none_right.precision is None
    assert none_right.share == 0.0


def plain_search(scores, hits, precision, confidence):
    """The cut-off by its definition, without documents: a walk over the different scores, from high to low."""
    cutoffs = sorted(set(scores.tolist()), reverse=True)
    kept = [int((scores >= c).sum()) for c in cutoffs]
    first = next((k for k in kept if precision**k <= (1 - confidence) / 8), kept[-1])
    wanted = [first * (kept[-1] / first) ** (i / 7) for i in range(8)]
    starts = sorted({next(i for i, k in enumerate(kept) if k >= one - 1e-9) for one in wanted})
    level = _shared_level(np.array(kept, dtype=np.float64)[starts], precision, 1 - confidence)
    passed, walking = [], False
    for at, cutoff in enumerate(cutoffs):
        chance = binomtest(int(hits[scores >= cutoff].sum()), kept[at], precision, alternative="greater").pvalue
        walking = chance <= level and (walking or at in starts)
        passed += [(cutoff, chance)] if walking else []
    return passed[-1][0] if passed else None


@settings(max_examples=50)
@given(strategies.scored_hits(max_size=60), st.sampled_from([0.3, 0.5, 0.8]), st.sampled_from([0.5, 0.8]))
def test_cutoff_is_that_of_a_plain_search(given_, precision, confidence):
    scores, hits = given_
    threshold = find(scores, hits, precision, confidence)
    expected = plain_search(scores, hits, precision, confidence)
    assert threshold.cutoff == expected
    if expected is not None:
        assert threshold.kept == int((scores >= expected).sum())
        assert threshold.right == int(hits[scores >= expected].sum())
        assert 0 <= threshold.low <= threshold.high <= 1


@given(strategies.scored_hits_with_order(max_size=60), st.integers(1, 8), st.sampled_from([0.3, 0.6]))
def test_neither_the_order_nor_the_names_of_documents_matter(given_, n_documents, precision):
    scores, hits, order = given_
    documents = np.arange(len(scores)) % n_documents
    expected = find(scores, hits, precision, 0.8, documents)
    assert find(scores[order], hits[order], precision, 0.8, documents[order]) == expected
    assert find(scores, hits, precision, 0.8, 1000 - 7 * documents) == expected


def test_documents_that_are_right_or_wrong_as_wholes_need_more_data():
    # Every tenth document of ten spans is wrong: 90 % of 1,000 spans, but only 100 independent ones.
    n = 1000
    hits = (np.arange(n) // 10) % 10 != 9
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    alone, together = find(scores, hits, 0.85), find(scores, hits, 0.85, documents=np.arange(n) // 10)
    assert alone.cutoff is not None
    assert together == Threshold(None, n)
    shuffled = rng.permutation(n) // 10
    assert find(scores, hits, 0.85, documents=shuffled).cutoff is not None


def direct_effect(right, documents) -> float:
    """Variance of the share right with whole documents drawn, over that with independent spans; at least 1."""
    share = right.mean()
    if share in (0, 1):
        return 1.0
    residual = sum(float(((right[documents == d]) - share).sum()) ** 2 for d in set(documents.tolist()))
    return max(1.0, residual / (len(right) * share * (1 - share)))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40))
def test_effective_sizes_by_the_direct_formula(listed):
    right = np.array([hit for hit, _ in listed])
    documents = np.array([document for _, document in listed])
    kept = np.arange(1, len(right) + 1)
    sizes = effective_sizes(right, documents, kept, np.cumsum(right))
    direct = np.array([k / direct_effect(right[:k], documents[:k]) for k in kept])
    # At the lowest cut-off, where all spans say how much a document holds together.
    if 0 < right.mean() < 1:
        assert sizes[-1] == pytest.approx(direct[-1])
    assert (sizes <= direct + 1e-9).all()
    assert (sizes > 0).all()


def test_effective_sizes_by_hand():
    # Two documents of two spans, one right and one wrong: p = 1/2, residuals (2 - 1)^2 + (0 - 1)^2 = 2, independent 4 / 4 = 1.
    whole = effective_sizes(np.array([1, 1, 0, 0], bool), np.array([7, 7, 9, 9]), np.array([4]), np.array([2]))
    assert whole.tolist() == [2.0]
    # One right and one wrong span in each: residuals 0, and no effect below 1.
    mixed = effective_sizes(np.array([1, 0, 1, 0], bool), np.array([7, 7, 9, 9]), np.array([4]), np.array([2]))
    assert mixed.tolist() == [4.0]
    single = effective_sizes(np.array([1, 0, 1], bool), np.array([3, 1, 2]), np.array([1, 3]), np.array([1, 2]))
    assert single.tolist() == [1.0, 3.0]


def test_interval_of_new_spans_is_a_beta_binomial_one():
    low, high = prediction_interval(0.9, 50, 40, 0.8)
    new = betabinom(40, 45.5, 5.5)
    assert low == new.ppf(0.1) / 40
    assert high == new.ppf(0.9) / 40
    assert low < 0.9 < high
    wide, narrow = prediction_interval(0.9, 50, 40, 0.95), prediction_interval(0.9, 5000, 5000, 0.95)
    assert wide[0] <= low < high <= wide[1]
    assert narrow[0] > wide[0]
    assert prediction_interval(1.0, 0.4, 0.4, 0.9) == (0.0, 1.0)


def test_each_key_has_a_threshold_of_its_own():
    n = 200
    scores, hits = np.tile(falling(n), 2), np.append([True] * n, [False] * n)
    keys = ["PER"] * n + ["LOC"] * n
    order = np.random.default_rng(0).permutation(2 * n)
    found = find_thresholds(
        scores[order], hits[order], np.arange(2 * n), [keys[i] for i in order], dict.fromkeys(keys, 0.9), 0.95
    )
    assert found == {"PER": find(falling(n), [True] * n, 0.9), "LOC": Threshold(None, n)}
    assert find_thresholds(scores[:0], hits[:0], np.arange(0), [], {"a": 0.9}, 0.95) == {}


@pytest.mark.parametrize("name", ["precision", "confidence"])
@pytest.mark.parametrize("value", [0, 1, -0.5, 95, math.nan])
def test_numbers_out_of_range_are_refused(name, value):
    with pytest.raises(CalibError, match=rf"\[C001\] {name} must be a number between 0 and 1"):
        find([0.5], [True], **{"precision": 0.9, name: value})


def test_unequal_lengths_are_refused():
    with pytest.raises(CalibError, match=r"\[C002\] A threshold needs one score for every hit, but got 2 and 1"):
        find([0.5, 0.6], [True], 0.9)
    with pytest.raises(CalibError, match=r"\[C002\] A threshold needs one score for every document, but got 2 and 3"):
        find([0.5, 0.6], [True, True], 0.9, documents=[1, 2, 3])


# Simulations: true probability p of a span is its score, drawn from Beta(4, 1), so that the precision above a cut-off t is the mean of
# p among p >= t: 4/5 (1 - t^5) / (1 - t^4).

N_REPETITIONS = 100


def true_precision(cutoff) -> float:
    return 0.8 * (1 - cutoff**5) / (1 - cutoff**4)


def often_enough(seen, n, wanted) -> bool:
    """Whether `seen` of n is no less than a rate of `wanted` gives in all but 1 of 1,000 cases."""
    return seen >= binom.ppf(0.001, n, wanted)


def independent(rng, n):
    scores = rng.beta(4, 1, n)
    return scores, rng.random(n) < scores, np.arange(n)


def in_documents(rng, n, size=5, weight=0.6):
    """Spans of one document share a part of their luck: a normal copula."""
    from scipy.special import ndtri

    scores = rng.beta(4, 1, n)
    luck = math.sqrt(weight) * np.repeat(rng.normal(size=n // size), size) + math.sqrt(1 - weight) * rng.normal(size=n)
    return scores, luck < ndtri(scores), np.repeat(np.arange(n // size), size)


@pytest.mark.parametrize("draw", [independent, in_documents])
@pytest.mark.parametrize(("n", "precision", "confidence"), [(300, 0.9, 0.8), (1500, 0.9, 0.9)])
def test_true_precision_and_interval_hold_as_often_as_stated(draw, n, precision, confidence):
    rng = np.random.default_rng(n)
    found = reached = covered = 0
    for _ in range(N_REPETITIONS):
        threshold = find_threshold(*draw(rng, n), precision, confidence)
        if threshold.cutoff is None:
            continue
        found += 1
        reached += true_precision(threshold.cutoff) >= precision
        scores, hits, _ = draw(rng, n)
        new = hits[scores >= threshold.cutoff]
        covered += threshold.low <= new.mean() <= threshold.high
    none = N_REPETITIONS - found
    assert found > N_REPETITIONS / 3
    assert often_enough(reached + none, N_REPETITIONS, confidence)
    # A statement that turns out wrong is made no more often than stated; where nearly every data set gives one, so is each.
    assert often_enough(covered + none, N_REPETITIONS, confidence)
    if none < 0.05 * N_REPETITIONS:
        assert often_enough(covered, found, confidence)


@pytest.mark.parametrize(("n_documents", "size"), [(15, 20), (30, 10)])
def test_few_documents_that_are_right_or_wrong_as_wholes_do_not_pass_by_luck(n_documents, size):
    """Where the highest scores of few documents are all right, each span counted as independent: a true 0.90 passed for
    0.95 in a third of the cases."""
    rng = np.random.default_rng(2)
    n = n_documents * size
    documents = np.repeat(np.arange(n_documents), size)
    passed = 0
    for _ in range(N_REPETITIONS):
        scores = 0.5 * np.repeat(rng.random(n_documents), size) + 0.5 * rng.random(n)
        hits = np.repeat(rng.random(n_documents) < 0.9, size)
        passed += find_threshold(scores, hits, documents, 0.95, 0.9).cutoff is not None
    assert often_enough(N_REPETITIONS - passed, N_REPETITIONS, 0.9), f"{passed} of {N_REPETITIONS} passed"


# A cut-off that exists: the likeliest 15 % of the spans are .97 right, all others .2, so that the precision at 20 % is .78.

TOP, REST = (0.15, 0.97), 0.2


def cliff(rng, n):
    ranks = rng.random(n)
    return 1 - ranks, rng.random(n) < np.where(ranks < TOP[0], TOP[1], REST), np.arange(n)


def precision_of_cliff(cutoff) -> float:
    share = 1 - cutoff
    return (min(share, TOP[0]) * TOP[1] + max(0.0, share - TOP[0]) * REST) / share


@pytest.mark.parametrize(("precision", "least"), [(0.9, 0.5), (0.85, 0.95), (0.8, 0.99)])
def test_a_cut_off_that_only_few_spans_reach_is_found(precision, least):
    rng = np.random.default_rng(5)
    found = [find_threshold(*cliff(rng, 1000), precision).cutoff for _ in range(100)]
    reached = [precision_of_cliff(cutoff) >= precision for cutoff in found if cutoff is not None]
    assert len(reached) >= 100 * least
    assert often_enough(100 - len(reached) + sum(reached), 100, 0.95)


def test_a_cut_off_that_does_not_exist_is_rarely_found():
    """All spans are just below the precision wanted, wherever the walk begins."""
    rng = np.random.default_rng(6)
    found = sum(
        find_threshold(rng.random(500), rng.random(500) < 0.9 - 1e-9, np.arange(500), 0.9).cutoff is not None
        for _ in range(400)
    )
    assert found > 0
    assert often_enough(400 - found, 400, 0.95)
