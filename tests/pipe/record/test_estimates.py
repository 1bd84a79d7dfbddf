"""Expected accuracy and F: values worked by hand, and intervals that hold the truth of simulated data as often as they say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from spacy_calib.calibration.span_fit import SpanData, fit_spans
from spacy_calib.errors import CalibError
from spacy_calib.pairs.pairing import JudgedPairs
from spacy_calib.pipe.record.drift import DIFFERENT, LIKE, UnitScores
from spacy_calib.pipe.record.estimates import (
    EntityModel,
    EntitySums,
    EventSums,
    Residuals,
    ShareEstimate,
    cross_sums,
    entity_estimates,
    expected_accuracy,
    interval,
    token_sums,
    variance_between_sources,
)
from spacy_calib.pipe.record.fit_record import FitRecord, record_fit
from spacy_calib.types import Groups, Pairs, Spans


def one_kind(expected, independent, units):
    return EventSums(np.array(expected)[:, None], np.array(independent)[:, None], np.array(units, dtype=float))


def test_sums_of_documents_by_hand():
    sums = token_sums(np.array([0.9, 0.5, 1.0]), np.array([0, 0, 2]), 3)
    np.testing.assert_allclose(sums.expected[:, 0], [1.4, 0.0, 1.0])
    np.testing.assert_allclose(sums.independent[:, 0], [0.34, 0.0, 0.0])
    np.testing.assert_allclose(sums.units, [2, 0, 1])


def test_tables_of_two_numbers_by_hand():
    rows, columns = np.array([0, 1, 1, 1]), np.array([2, 0, 0, 1])
    np.testing.assert_array_equal(cross_sums(rows, columns, (2, 3)), [[0, 0, 1], [2, 1, 0]])


def test_the_variance_between_sources():
    # Errors of 30 and -30, of whose squares 100 is noise: 2 * 900 - 200 = 1600 over 2 * 50^2 = 5000, times 2 / (2 - 1) for the
    # mean that two sources share, times 1 + 2 / 2, as two sources show too little.
    assert variance_between_sources(np.array([30.0, -30.0]), np.full(2, 50.0), np.full(2, 100.0)) == pytest.approx(1.28)
    assert variance_between_sources(np.array([5.0, -5.0]), np.full(2, 50.0), np.full(2, 100.0)) == 0
    assert variance_between_sources(np.array([30.0]), np.full(1, 50.0), np.zeros(1)) == 0
    assert variance_between_sources(np.array([1.0, -1.0]), np.full(2, 1e-13), np.zeros(2)) == 2e6


def test_sources_that_are_right_more_and_less_often_than_scored_widen_the_interval():
    n = 40
    scores, documents = np.full(10 * n, 0.8), np.repeat(np.arange(n), 10)
    hits = np.tile([True] * 8 + [False] * 2, n)
    hits[: 5 * n] = np.tile([True] * 9 + [False], n // 2)  # the first half of the documents, and 7 of 10 in the others
    hits[5 * n :] = np.tile([True] * 7 + [False] * 3, n // 2)
    pairs = Pairs(np.arange(10 * n), np.zeros(10 * n, dtype=np.intp), scores, hits, n_units=10 * n)
    judged_pairs, sums = JudgedPairs(pairs, scores, documents), token_sums(scores, documents, n)
    unknown, named = (record_fit(judged_pairs, n, ["A"], sources=sources) for sources in (None, np.repeat([0, 1], n // 2)))
    assert unknown.source_variance == 0
    assert named.source_variance > 0
    wide, narrow = (
        expected_accuracy(record.tokens, sums, source_variance=record.source_variance) for record in (named, unknown)
    )
    assert wide.low < narrow.low < narrow.high < wide.high


def test_residuals_by_hand():
    # 1 and -3 over 10 tokens each, an empty document between them; about their mean of -0.1 a token: 2 and -2.
    sums = one_kind([8.0, 0.0, 9.0], [1.0, 0.0, 2.0], [10, 0, 10])
    found = Residuals.from_events(np.array([[9.0], [0.0], [6.0]]), sums)
    assert (found.docs, found.units, found.squares) == (2, 20, 200)
    assert found.residual == [-2.0]
    assert found.moment == [[8.0]]
    # Lag 1, weight 2/3, both ways: 2 * 2/3 * (2 * -2).
    np.testing.assert_allclose(found.neighbours, [[-16 / 3]])
    assert found.correction(5.0) == [-0.5]


def test_variance_by_hand():
    found = Residuals(10, 100.0, 1000.0, np.array([0.0]), np.array([10.0]), np.array([[20.0]]), np.array([[5.0]]))
    new = one_kind([0.0, 0.0], [3.0, 1.0], [10, 40])
    # 100 tokens in squares of 1000 are those of 10 equal documents, whose deviations from their own mean are too small: 20 / .9.
    # Neighbours: times 1 + 5 / (20 / .9). A shared shift of (20 - 10) / 1000 a squared token over 100 + 1600 squared tokens; independent: 3 + 1.
    # The fit's own: 20 / .9 at 100 tokens, so a fourth of it at the 50 of the new ones.
    assert found.n_effective == 10
    assert found.variance(np.ones(1), new) == pytest.approx(4 + 0.01 * 1.225 * 1700 + 20 / 0.9 * 1.225 / 4)


def test_the_interval_is_that_of_a_beta_distribution():
    # A mean of 1/2 and a variance of 1/12: the uniform distribution.
    assert interval(0.5, 1 / 12, 10**9, 0.95) == pytest.approx(ShareEstimate(0.5, 0.025, 0.975), abs=1e-6)
    low, high = interval(0.5, 1e-4, 10**9, 0.9)[1:]
    assert (low, high) == pytest.approx((0.5 - 0.01 * norm.ppf(0.95), 0.5 + 0.01 * norm.ppf(0.95)), abs=1e-5)


def test_few_fit_documents_widen_the_interval():
    # Student's t with 4 degrees of freedom: 2.776 in place of 1.960.
    few, many = interval(0.5, 1e-6, 5, 0.95), interval(0.5, 1e-6, 10**9, 0.95)
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(2.776 / 1.960, rel=1e-3)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 2.0])
def test_a_confidence_out_of_range_is_refused(confidence):
    with pytest.raises(CalibError, match=r"\[C001\] confidence must be a number between 0 and 1"):
        interval(0.5, 0.01, 10, confidence)


@given(st.floats(-0.5, 1.5), st.floats(0, 10), st.integers(2, 1000), st.floats(0.5, 0.99))
def test_intervals_hold_their_estimate_and_stay_inside(share, variance, docs, confidence):
    found = interval(share, variance, docs, confidence)
    assert 0 <= found.low <= found.expected <= found.high <= 1
    wider = interval(share, variance, docs, min(0.999, confidence + 0.3))
    assert wider.high - wider.low >= found.high - found.low - 1e-9


def simulated(rng, n_docs, length, shift=0.0, bias=0.0):
    """(scores, hits, documents): documents shift all their probabilities; scores are too high by `bias`."""
    documents = np.repeat(np.arange(n_docs), rng.integers(length // 2, 2 * length, n_docs))
    score = rng.uniform(0.6, 0.95, len(documents))
    p = np.clip(score - bias + rng.normal(0, shift, n_docs)[documents], 0, 1)
    return score, rng.random(len(p)) < p, documents


def learned(rng, n_docs, **settings):
    scores, hits, documents = simulated(rng, n_docs, 40, **settings)
    return Residuals.from_events(np.bincount(documents, hits, minlength=n_docs)[:, None], token_sums(scores, documents, n_docs))


def share_inside(shift, bias, new_docs, new_length, draws=400):
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(draws):
        residuals = learned(rng, 60, shift=shift, bias=bias)
        scores, hits, documents = simulated(rng, new_docs, new_length, shift=shift, bias=bias)
        found = expected_accuracy(residuals, token_sums(scores, documents, new_docs))
        held += found.low <= hits.mean() <= found.high
    return held / draws


@pytest.mark.parametrize(("shift", "bias", "new_docs", "new_length"), [
    (0.0, 0.0, 20, 40), (0.05, 0.0, 20, 40), (0.05, 0.0, 300, 40), (0.05, 0.05, 20, 40), (0.05, 0.0, 5, 300),
    (0.05, 0.0, 60, 4),
])  # fmt: skip
def test_95_percent_intervals_hold_the_truth_of_simulated_data(shift, bias, new_docs, new_length):
    # Documents that shift, scores that are all too high, more, longer and shorter documents than those of the fit.
    assert 0.925 <= share_inside(shift, bias, new_docs, new_length) <= 0.995


def test_what_the_scores_miss_on_the_fit_data_is_corrected():
    rng = np.random.default_rng(2)
    residuals = learned(rng, 400, bias=0.08)
    scores, hits, documents = simulated(rng, 400, 40, bias=0.08)
    found = expected_accuracy(residuals, token_sums(scores, documents, 400))
    assert scores.mean() - hits.mean() > 0.07
    assert found.expected == pytest.approx(hits.mean(), abs=0.01)


def expected_entities(model, sums):
    return entity_estimates(model, model.sums(sums), float(sums.predicted.sum()))


def entity_sums(rng, n_docs):
    predicted = rng.integers(1, 6, n_docs).astype(float)
    right = predicted * rng.uniform(0.3, 0.9, n_docs)
    return EntitySums(predicted, right, right * 0.2, rng.uniform(0, 2, n_docs), np.full(n_docs, 20.0))


def test_the_rates_of_missed_entities_are_found():
    sums = entity_sums(np.random.default_rng(3), 50)
    model = EntityModel.fit(sums, sums.right, sums.right + 0.5 * sums.wrong + 2 * sums.missed_tokens)
    assert (model.per_wrong, model.per_outside) == pytest.approx((0.5, 2.0))
    np.testing.assert_allclose(model.residuals.moment, 0, atol=1e-9)


def test_precision_recall_and_f_by_hand():
    sums = EntitySums(*(np.array([value]) for value in (10.0, 8.0, 1.0, 3.0, 100.0)))
    model = EntityModel(0.5, 1.0, Residuals(50, 5000.0, 5e5, *(np.zeros(2),) * 2, *(np.zeros((2, 2)),) * 2))
    found = expected_entities(model, sums)
    # Missed: 0.5 * 2 + 1 * 3.
    assert (found.predicted, found.right, found.gold) == (10, pytest.approx(8.0), pytest.approx(12.0))
    assert found.precision.expected == pytest.approx(0.8)
    assert found.recall.expected == pytest.approx(8 / 12)
    assert found.f.expected == pytest.approx(2 * 8 / (10 + 12))


def test_precision_recall_and_f_add_what_the_fit_data_lacked_by_hand():
    """The fit had 0.5 right and 0.1 missed entities more than expected in 100 tokens; two Docs of 100 tokens get 1 and 0.2 more."""
    sums = EntitySums(*(np.array([value] * 2) for value in (5.0, 3.0, 1.0, 1.0, 100.0)))
    residuals = Residuals(
        50, 5000.0, 5e5, np.array([25.0, 5.0]), np.ones(2), np.array([[90.0, 20.0], [20.0, 40.0]]), np.zeros((2, 2))
    )
    model = EntityModel(0.5, 1.0, residuals)
    found = expected_entities(model, sums)
    # Right: 2 * 3 + 1. Missed: 2 * (0.5 * 2 + 1) + 0.2.
    assert (found.predicted, found.right, found.gold) == (10, pytest.approx(7.0), pytest.approx(11.2))
    # Intervals: by the slopes of each share in the numbers of right and missed entities.
    for estimate, share in ((found.precision, lambda right, _: right / 10), (found.recall, lambda right, missed: right / (right + missed)), (found.f, lambda right, missed: 2 * right / (10 + right + missed))):  # fmt: skip
        slopes = np.array([share(7.001, 4.2) - share(6.999, 4.2), share(7.0, 4.201) - share(7.0, 4.199)]) / 0.002
        expected = interval(share(7.0, 4.2), residuals.variance(slopes, model.sums(sums)), residuals.n_effective, 0.95)
        assert estimate == pytest.approx(expected, rel=1e-5)
    # More missed entities in the fit than expected can leave none, not fewer.
    none_missed = replace(residuals, residual=np.array([25.0, -500.0]))
    assert expected_entities(EntityModel(0.5, 1.0, none_missed), sums).gold == pytest.approx(7.0)


def test_nothing_found_has_no_precision():
    nothing = EntitySums(*(np.zeros(2),) * 4, np.array([5.0, 5.0]))
    model = EntityModel(0.5, 1.0, Residuals(50, 500.0, 5e3, *(np.zeros(2),) * 2, *(np.zeros((2, 2)),) * 2))
    found = expected_entities(model, nothing)
    assert (found.predicted, found.precision, found.recall, found.f) == (0, None, None, None)
    some = expected_entities(model, nothing._replace(missed_tokens=np.array([1.0, 0.0])))
    assert (some.precision, some.recall.expected, some.f.expected) == (None, 0.0, 0.0)


def drawn_entities(rng, n_docs):
    """(sums, right, gold) of documents that differ: found ones right by their scores, missed ones by chance."""
    documents = np.repeat(np.arange(n_docs), rng.integers(0, 6, n_docs))
    p = rng.uniform(0.3, 0.95, len(documents))
    shift = rng.normal(0, 0.1, n_docs)
    hits = rng.random(len(p)) < np.clip(p + shift[documents], 0, 1)
    outside = rng.uniform(0.05, 0.6, n_docs)

    def by(values):
        return np.bincount(documents, values, minlength=n_docs)

    missed = rng.poisson(outside) + by(~hits & (rng.random(len(p)) < 0.7))
    sums = EntitySums(by(np.ones(len(p))), by(p), by(p * (1 - p)), outside, np.full(n_docs, 25.0))
    return sums, by(hits), by(hits) + missed


def test_95_percent_intervals_hold_the_f_of_simulated_data():
    rng = np.random.default_rng(4)
    held = {"precision": 0, "recall": 0, "f": 0}
    for _ in range(300):
        model = EntityModel.fit(*drawn_entities(rng, 150))
        sums, right, gold = drawn_entities(rng, 60)
        found = expected_entities(model, sums)
        predicted = sums.predicted.sum()
        true = {"precision": right.sum() / predicted, "recall": right.sum() / gold.sum()}
        true["f"] = 2 * right.sum() / (predicted + gold.sum())
        for name, value in true.items():
            held[name] += getattr(found, name).low <= value <= getattr(found, name).high
    assert all(0.92 <= count / 300 <= 0.995 for count in held.values()), held


def fit_pairs(n_docs):
    rng = np.random.default_rng(5)
    scores, hits, documents = simulated(rng, n_docs, 20)
    return Pairs(np.arange(len(scores)), np.arange(len(scores)) % 2, scores, hits, len(scores)), documents


def test_a_record_of_a_fit_goes_through_its_state():
    pairs, documents = fit_pairs(30)
    record = record_fit(JudgedPairs(pairs, pairs.scores, documents), 30, ["A", "B"])
    assert record.accuracy == pytest.approx(pairs.hits.mean())
    assert record.entities is None
    again = FitRecord.read(record.state())
    sums = token_sums(pairs.scores, documents, 30)
    assert expected_accuracy(again.tokens, sums) == expected_accuracy(record.tokens, sums)


def test_a_single_document_leaves_no_record():
    pairs, documents = fit_pairs(1)
    assert record_fit(JudgedPairs(pairs, pairs.scores, documents), 1, ["A", "B"]) is None


def span_data(n_docs, hits):
    n = len(hits)
    rng = np.random.default_rng(6)
    scores = rng.uniform(0.1, 0.9, n)
    spans = Spans(np.arange(n), np.arange(n) + 1, np.zeros(n, dtype=int), scores, scores, np.ones(n, dtype=bool))
    return SpanData(spans, scores, hits, np.arange(n) * n_docs // n, np.ones(n_docs, dtype=int))


def held_out(data):
    return fit_spans(data, Groups(("1",), np.array([0]))).held_out


def test_spans_are_scored_by_maps_that_did_not_see_their_document():
    hits = np.random.default_rng(7).integers(0, 2, 200)
    before = held_out(span_data(20, hits))
    # The hits of the first of five parts do not change its own scores, only those of the others.
    turned = hits.copy()
    turned[:40] = 1 - turned[:40]
    after = held_out(span_data(20, turned))
    np.testing.assert_array_equal(before[:40], after[:40])
    assert (before[40:] != after[40:]).any()


def test_tokens_without_gold_are_compared_but_not_judged():
    """Where only the hard tokens are annotated, new texts, of which all tokens count, seemed to be of another kind."""
    pairs, documents = fit_pairs(60)
    hard = pairs.scores < np.median(pairs.scores)
    some, rest = (JudgedPairs(pairs.take(np.flatnonzero(own)), pairs.scores[own], documents[own]) for own in (hard, ~hard))
    new = UnitScores(documents, 60, [["A", "B"][tag] for tag in pairs.tags.tolist()], pairs.scores, pairs.scores)
    alone, both = (record_fit(some, 60, ["A", "B"], None, other) for other in (None, rest))
    assert alone.profile.compare(alone.profile.sums_of(new)).verdict == DIFFERENT
    assert both.profile.compare(both.profile.sums_of(new)).verdict == LIKE
    assert both.accuracy == alone.accuracy
