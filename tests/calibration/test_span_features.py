"""The features of spans, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.span_features import NAMES, SMALLEST, design, logit, product_of, span_features
from spacy_calib.types import Spans
from tests import strategies


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


def test_logit():
    assert logit(np.array([0.5, 0.8, 0.2])).tolist() == pytest.approx([0.0, math.log(4), -math.log(4)])


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
