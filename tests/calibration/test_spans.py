"""The probability of a whole span: against scikit-learn, against known truth, and what must not matter."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from spacy_calib.calibration.cutoffs import Cutoffs
from spacy_calib.calibration.span_fit import SpanData, fit_spans
from spacy_calib.calibration.spans import (
    MIN_SPANS,
    NAMES,
    SMALLEST,
    SPANS,
    SpanCalibration,
    SpanRecalibrator,
    design,
    logit,
    product_of,
    span_features,
)
from spacy_calib.errors import CalibError
from spacy_calib.metrics.calibration_errors import calibration_error
from spacy_calib.metrics.noise_floors import noise_floor
from spacy_calib.metrics.proper import log_loss
from spacy_calib.pipe import saved
from spacy_calib.schema import InvalidState, record
from spacy_calib.types import Groups, Spans, stack_spans
from tests import strategies
from tests.forked import in_own_process

# Labels 0 and 1 in the first group, 2 in the second, 3 without a group.
GROUPS = Groups(("often", "seldom"), np.array([0, 0, 1, -1]), np.array([9, 8, 2, 0]))


def draw_spans(n, seed, labels=(0, 1, 2)) -> Spans:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, n)
    ends = np.cumsum(lengths)
    return Spans(
        ends - lengths, ends, rng.choice(labels, n), rng.beta(4, 1, ends[-1]), rng.beta(3, 1, n), np.ones(n, dtype=bool)
    )


def true_probabilities(spans) -> np.ndarray:
    """Rather less than the product says, and another line for each group."""
    margin = logit(product_of(spans))
    seldom = GROUPS.find(spans.labels) == 1
    return 1 / (1 + np.exp(-np.where(seldom, 0.5 * margin - 1.0, 0.8 * margin + 0.3)))


def draw_hits(probabilities, seed) -> np.ndarray:
    return np.random.default_rng(seed).random(len(probabilities)) < probabilities


@pytest.fixture(scope="module")
def fitted() -> SpanRecalibrator:
    spans = draw_spans(300, 0)
    return SpanRecalibrator(GROUPS).fit(spans, draw_hits(true_probabilities(spans), 1))


def test_it_is_scikit_learns_logistic_regression_on_the_features_by_hand():
    spans = draw_spans(120, 3, labels=(0, 1, 2, 3))
    right = draw_hits(true_probabilities(spans), 4)
    rows = []
    at = 0
    for label, own, length in zip(spans.labels, spans.scores, spans.ends - spans.starts, strict=True):
        scores = spans.token_scores[at : at + length].tolist()
        at += length
        slope = math.log(math.prod(scores) / (1 - math.prod(scores)))
        group = {0: 0, 1: 0, 2: 1}.get(int(label))
        indicators = [1.0 if group == g else 0.0 for g in (0, 1)]
        rows.append([*by_hand(own, scores), *indicators, *(slope * one for one in indicators)])
    features = np.array(rows)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    # By Newton steps, to many digits.
    expected = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10, max_iter=500).fit(features, right)
    made = SpanRecalibrator(GROUPS).fit(spans, right)
    np.testing.assert_allclose(made.predict(spans, spans.scores), expected.predict_proba(features)[:, 1], atol=1e-7)
    np.testing.assert_allclose(made.weights_, expected.coef_[0], atol=1e-6)
    np.testing.assert_allclose(made.intercept_, expected.intercept_[0], atol=1e-6)
    assert (made.n_spans_, made.n_hits_, made.fallback_) == (120, int(right.sum()), "")


@in_own_process
def test_spans_are_fitted_by_the_logistic_regression_of_the_maps(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    assert SpanRecalibrator(GROUPS).fit(draw_spans(60, 3), np.arange(60) % 3 == 0).n_spans_ == 60


def test_on_spans_with_known_probabilities_the_scores_are_as_good_as_true_ones():
    fit, test = draw_spans(12_000, 5), draw_spans(6_000, 6)
    made = SpanRecalibrator(GROUPS).fit(fit, draw_hits(true_probabilities(fit), 7))
    truth = true_probabilities(test)
    hits = draw_hits(truth, 8)
    scores = made.predict(test, test.scores)
    for part in (slice(None), GROUPS.find(test.labels) == 0, GROUPS.find(test.labels) == 1):
        floor = noise_floor(scores[part])
        assert calibration_error(scores[part], hits[part]) <= floor.q95
        assert calibration_error(product_of(test)[part], hits[part]) > 2 * floor.q95
    assert np.abs(scores - truth).mean() < 0.01
    assert log_loss(scores, hits) < log_loss(truth, hits) + 0.002


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), n=st.integers(MIN_SPANS, 80))
def test_the_fit_is_deterministic_and_the_order_of_the_rows_does_not_matter(seed, n):
    spans = draw_spans(n, seed, labels=(0, 1, 2, 3))
    right = draw_hits(true_probabilities(spans), seed + 1)
    right[:2] = [True, False]
    made, again = (SpanRecalibrator(GROUPS).fit(spans, right) for _ in range(2))
    assert made.intercept_ == again.intercept_
    np.testing.assert_array_equal(made.weights_, again.weights_)
    order = np.random.default_rng(seed).permutation(n)
    other = SpanRecalibrator(GROUPS).fit(spans.take(order), right[order])
    scores = made.predict(spans, spans.scores)
    assert ((scores >= 0) & (scores <= 1)).all()
    np.testing.assert_allclose(other.predict(spans, spans.scores), scores, atol=1e-4)


@given(
    listed=st.lists(
        st.tuples(st.integers(0, 5), st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=4)), max_size=9
    )
)
def test_a_span_has_the_score_alone_that_it_has_among_others(fitted, listed):
    spans = make_spans(listed)
    scores = fitted.predict(spans, spans.scores)
    assert scores.shape == (len(spans),)
    assert np.isfinite(scores).all()
    assert ((scores >= 0) & (scores <= 1)).all()
    for i in range(len(spans)):
        assert fitted.predict(spans.take(np.array([i])), spans.scores[[i]])[0] == pytest.approx(scores[i], abs=1e-12)


def test_labels_without_a_group_use_no_indicator(fitted):
    # Label 3 has no group, label 7 was appended after the fit.
    three, seven = (make_spans([(label, 0.6, [0.7, 0.9])]) for label in (3, 7))
    expected = np.array([*by_hand(0.6, [0.7, 0.9]), 0, 0, 0, 0])
    margin = (expected - fitted.center_) / fitted.scale_ @ fitted.weights_ + fitted.intercept_
    for spans in (three, seven):
        assert fitted.predict(spans, spans.scores)[0] == pytest.approx(1 / (1 + math.exp(-margin)))
    of_group = fitted.predict(make_spans([(0, 0.6, [0.7, 0.9])]), np.array([0.6]))[0]
    assert of_group != pytest.approx(1 / (1 + math.exp(-margin)))


def test_round_trip_through_the_saved_form_gives_the_same_bits(fitted):
    state = saved.read(saved.dump(fitted.state()), dict, name="calib", path="here")
    back = SpanRecalibrator.read(state)
    spans = draw_spans(50, 9, labels=(0, 1, 2, 3))
    np.testing.assert_array_equal(back.predict(spans, spans.scores), fitted.predict(spans, spans.scores))
    assert (back.n_spans_, back.n_hits_, back.fallback_) == (fitted.n_spans_, fitted.n_hits_, "")
    assert back.groups.names == GROUPS.names


@pytest.mark.parametrize(("n", "right", "reason"), [
    (0, [], f"0 spans, {MIN_SPANS} needed"),
    (MIN_SPANS - 1, None, f"{MIN_SPANS - 1} spans, {MIN_SPANS} needed"),
    (MIN_SPANS, [True] * MIN_SPANS, "every span is right"),
    (MIN_SPANS, [False] * MIN_SPANS, "no span is right"),
])  # fmt: skip
def test_what_cannot_be_fitted_passes_the_raw_scores_through(n, right, reason):
    spans = draw_spans(n, 10) if n else make_spans([])
    right = [i % 2 == 0 for i in range(n)] if right is None else right
    made = SpanRecalibrator(GROUPS).fit(spans, right)
    assert made.fallback_ == reason
    other = draw_spans(7, 11)
    raw = np.linspace(0, 1, 7)
    held = saved.read(saved.dump(made.state()), dict, name="calib", path="here")
    for one in (made, SpanRecalibrator.read(held)):
        assert one.fallback_ == reason
        scores = one.predict(other, raw)
        np.testing.assert_array_equal(scores, raw)
        assert scores is not raw


def test_enough_spans_are_fitted():
    spans = draw_spans(MIN_SPANS, 10)
    made = SpanRecalibrator(GROUPS).fit(spans, [i % 2 == 0 for i in range(MIN_SPANS)])
    assert made.fallback_ == ""
    assert not np.array_equal(made.predict(spans, spans.scores), spans.scores)


def test_before_the_fit_raw_scores_pass_through():
    spans = draw_spans(5, 12)
    np.testing.assert_array_equal(SpanRecalibrator(GROUPS).predict(spans, spans.scores), spans.scores)


def test_features_that_do_not_vary_do_no_harm():
    spans = make_spans([(0, 0.7, [0.7])] * 30)
    made = SpanRecalibrator(GROUPS).fit(spans, [i < 21 for i in range(30)])
    # Nothing to tell the spans apart: the share of right ones.
    np.testing.assert_allclose(made.predict(spans, spans.scores), 0.7, atol=1e-6)


def test_extreme_scores_after_the_fit_stay_probabilities(fitted):
    spans = make_spans([(0, 0.0, [0.0] * 40), (2, 1.0, [1.0] * 40), (1, 1.0, [0.0]), (0, 0.0, [1.0])])
    scores = fitted.predict(spans, spans.scores)
    assert np.isfinite(scores).all()
    assert ((scores >= 0) & (scores <= 1)).all()


def span_data(spans: Spans, hits: np.ndarray) -> SpanData:
    return SpanData(spans, spans.scores, hits, np.arange(len(spans)), np.ones(len(spans), dtype=np.intp))


def test_spans_and_candidates_are_fitted_apart_and_unknown_gold_is_left_out():
    spans = draw_spans(200, 13)
    chosen = np.arange(200) % 4 != 0
    spans = Spans(spans.starts, spans.ends, spans.labels, spans.token_scores, spans.scores, chosen)
    hits = draw_hits(true_probabilities(spans), 14).astype(np.intp)
    hits[::7] = -1
    fitted = fit_spans(span_data(spans, hits), GROUPS)
    of_chosen, of_candidates = fitted.calibration.chosen, fitted.calibration.candidates
    for made, own in ((of_chosen, chosen), (of_candidates, ~chosen)):
        part = np.flatnonzero(own & (hits >= 0))
        alone = SpanRecalibrator(GROUPS).fit(spans.take(part), hits[part])
        assert made.n_spans_ == len(part)
        assert made.n_hits_ == int(hits[part].sum())
        np.testing.assert_array_equal(made.weights_, alone.weights_)
    assert not np.array_equal(of_chosen.weights_, of_candidates.weights_)


def test_hits_of_another_length_or_value_are_refused():
    spans = draw_spans(30, 15)
    with pytest.raises(CalibError, match=r"\[C002\] Fitting spans needs one span for every hit, but got 30 and 29"):
        span_data(spans, np.ones(29, dtype=np.intp))
    with pytest.raises(CalibError, match=r"\[C002\]"):
        SpanRecalibrator(GROUPS).fit(spans, [True] * 29)
    with pytest.raises(CalibError, match=r"\[C001\] hits must be zeros and ones"):
        SpanRecalibrator(GROUPS).fit(spans, [2] * 30)


def test_a_calibration_that_is_not_fitted_passes_raw_scores_through():
    spans = draw_spans(10, 3)
    calibrated, accepted = SpanCalibration().calibrate(spans, spans.scores, ["A", "B", "C"])
    np.testing.assert_array_equal(calibrated, spans.scores)
    assert calibrated is not spans.scores
    assert accepted.tolist() == [-1] * 10
    assert SpanCalibration().groups is None


def test_each_kind_of_span_has_its_map_and_those_from_the_cut_off_on_are_accepted():
    spans = draw_spans(200, 13)
    chosen = np.arange(200) % 4 != 0
    spans = Spans(spans.starts, spans.ends, spans.labels, spans.token_scores, spans.scores, chosen)
    made = fit_spans(span_data(spans, draw_hits(true_probabilities(spans), 14).astype(np.intp)), GROUPS).calibration
    made.cutoffs = Cutoffs(0.9, 0.9, "all", {"all": 0.5})
    again = SpanCalibration.from_state(record(SPANS)(made.state(), "spans"))
    for one in (made, again):
        calibrated, accepted = one.calibrate(spans, spans.scores, ["A", "B", "C"])
        for own, fit in ((chosen, made.chosen), (~chosen, made.candidates)):
            part = np.flatnonzero(own)
            np.testing.assert_array_equal(calibrated[part], fit.predict(spans.take(part), spans.scores[part]))
        assert accepted.tolist() == (calibrated >= 0.5).astype(int).tolist()
        assert {0, 1} == set(accepted.tolist())


def make_spans(given, chosen=None) -> Spans:
    """given: (column of the label, own probability, token probabilities) of each span; the spans follow one another."""
    lengths = np.array([len(scores) for _, _, scores in given], dtype=np.intp)
    ends = np.cumsum(lengths)
    return Spans(
        ends - lengths,
        ends,
        np.array([label for label, _, _ in given], dtype=np.intp),
        np.array([score for _, _, scores in given for score in scores], dtype=np.float64),
        np.array([own for _, own, _ in given], dtype=np.float64),
        np.ones(len(given), dtype=bool) if chosen is None else np.array(chosen, dtype=bool),
    )


spans_given = st.lists(
    st.tuples(st.integers(0, 3), strategies.score, st.lists(strategies.score, min_size=1, max_size=5)), max_size=12
)


def _logit(p):
    p = min(max(p, SMALLEST), 1 - SMALLEST)
    return math.log(p / (1 - p))


def _logs(p):
    p = min(max(p, SMALLEST), 1 - SMALLEST)
    return [math.log(p), math.log(1 - p)]


def by_hand(own, scores) -> list[float]:
    """One row, number by number."""
    product = math.prod(scores)
    return [_logit(min(scores)), *_logs(product), _logit(sum(scores) / len(scores)), *_logs(own), math.log(len(scores))]


def test_one_span_of_two_tokens():
    # minimum 0.5, product 0.5 * 0.75 = 0.375, mean 0.625, own 0.8, two tokens
    row = span_features(make_spans([(0, 0.8, [0.5, 0.75])]))[0]
    expected = [0.0, math.log(0.375), math.log(0.625), math.log(5 / 3), math.log(0.8), math.log(0.2), math.log(2)]
    assert row.tolist() == pytest.approx(expected)
    assert len(row) == len(NAMES)


def test_certain_and_impossible_scores_are_finite():
    rows = span_features(make_spans([(0, 1.0, [1.0]), (0, 0.0, [0.0, 1.0])]))
    certain, impossible = math.log((1 - SMALLEST) / SMALLEST), math.log(SMALLEST)
    near = math.log(1 - SMALLEST)
    assert rows[0].tolist() == pytest.approx([certain, near, impossible, certain, near, impossible, 0.0])
    assert rows[1].tolist() == pytest.approx([-certain, impossible, near, 0.0, impossible, near, math.log(2)])


def test_no_spans():
    none = make_spans([])
    assert product_of(none).shape == (0,)
    assert span_features(none).shape == (0, len(NAMES))
    assert design(none, np.zeros(0, dtype=np.intp), 3).shape == (0, len(NAMES) + 6)


def test_the_design_has_an_indicator_and_a_slope_for_each_group():
    spans = make_spans([(0, 0.5, [0.8]), (1, 0.5, [0.5, 0.5]), (2, 0.5, [0.9])])
    made = design(spans, np.array([1, 0, -1]), 2)
    assert made.shape == (3, len(NAMES) + 4)
    np.testing.assert_array_equal(made[:, : len(NAMES)], span_features(spans))
    np.testing.assert_allclose(
        made[:, len(NAMES) :], [[0, 1, 0, math.log(4)], [1, 0, -math.log(3), 0], [0, 0, 0, 0]], atol=1e-12
    )


@given(spans_given)
def test_every_row_is_that_of_its_own_span(listed):
    spans = make_spans(listed)
    before = spans.token_scores.copy()
    assert product_of(spans).tolist() == pytest.approx([math.prod(scores) for _, _, scores in listed], abs=1e-15)
    rows = span_features(spans)
    assert np.isfinite(rows).all()
    for row, (_, own, scores) in zip(rows, listed, strict=True):
        assert row.tolist() == pytest.approx(by_hand(own, scores), abs=1e-9)
    np.testing.assert_array_equal(spans.token_scores, before)


def with_beside(spans: Spans, *columns) -> Spans:
    return replace(spans, further_scores=np.stack(columns, axis=1))


def test_scores_beside_are_taken_stacked_and_made_features_of():
    spans = with_beside(draw_spans(4, 0), np.array([0.5, 0.6, 0.7, 0.8]), np.array([0.1, 0.2, 0.3, 0.4]))
    index = np.array([1, 3])
    assert spans.take(index).further_scores.tolist() == [[0.6, 0.2], [0.8, 0.4]]
    stacked = stack_spans([spans.take(index), spans.take(np.array([0]))], [20, 20])
    assert stacked.further_scores.tolist() == [[0.6, 0.2], [0.8, 0.4], [0.5, 0.1]]
    columns = design(spans, np.zeros(4, dtype=np.intp), 1)
    assert columns.shape == (4, len(NAMES) + 2 + 2)
    assert np.allclose(columns[:, -2:], logit(spans.further_scores))
    with pytest.raises(CalibError, match="C002"):
        replace(spans, further_scores=np.zeros((3, 2)))


def test_a_score_beside_is_learned_from_and_saved_and_older_states_have_none():
    """The own scores say nothing, the one beside all."""
    plain = draw_spans(600, 1)
    sure = np.random.default_rng(2).random(600)
    spans, hits = with_beside(plain, sure), draw_hits(sure, 3)
    fitted = SpanRecalibrator(GROUPS).fit(spans, hits)
    again = SpanRecalibrator.read(fitted.state(), "map")
    held_out, other = with_beside(draw_spans(600, 4), sure[::-1]), draw_hits(sure[::-1], 5)
    assert np.array_equal(again.predict(held_out, held_out.scores), fitted.predict(held_out, held_out.scores))
    assert log_loss(fitted.predict(held_out, held_out.scores), other) < 0.56  # of sure itself .5, of the mean .69
    with pytest.raises(InvalidState):
        SpanRecalibrator.read({**fitted.state(), "n_beside": 2}, "map")


@pytest.mark.parametrize("useful", [True, False])
def test_scores_beside_take_part_where_held_out_documents_lose_less_with_them(useful):
    sure, noise = np.random.default_rng(2).random((2, 600))
    spans = with_beside(draw_spans(600, 1), sure if useful else noise, noise[::-1])
    hits = draw_hits(sure, 3)
    data = SpanData(spans, spans.scores, hits.astype(np.intp), np.arange(600) // 3, np.full(200, 3))
    assert fit_spans(data, GROUPS).calibration.chosen.n_further_ == (2 if useful else 0)
