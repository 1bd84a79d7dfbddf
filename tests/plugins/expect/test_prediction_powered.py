"""Accuracy and F from few labels: values worked by hand, and intervals that hold the truth of simulated texts, whatever the scores are."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.pipe.record.estimates import ShareEstimate
from spacy_calib.plugins.expect.few_labels import ScoredTexts, SurveyBuilder
from spacy_calib.plugins.expect.survey import LabelledDocuments, Survey, estimate_accuracy, estimate_entities
from tests.made import corpus_of, hand_tokens


def column(*values):
    return np.array(values, dtype=float)[:, None]


def by_hand(inside=0.0, inside_units=0.0):
    known = LabelledDocuments(column(8, 6), column(9, 8), column(0.2, 0.2), column(10, 10))
    return Survey(known, np.array([inside]), np.array([inside_units]), column(18), column(20))


def test_the_scores_are_corrected_by_what_the_labelled_documents_miss():
    survey = by_hand()
    # 14 right of 17 expected in 20 tokens: 0.15 less a token; 18 expected in 20 other tokens.
    assert survey.correction() == pytest.approx([-0.15])
    assert survey.totals() == pytest.approx([15])
    assert estimate_accuracy(survey)[0].expected == pytest.approx(0.75)


def test_variance_by_hand():
    # Residuals about the correction: 0.5 and -0.5, each half of the ratio: 0.25 / 0.5 both. The text has as many tokens as both documents
    # (reach 1), in one document: 400 / 200 of their squares, so twice as much again for its own residual.
    assert by_hand().variance(np.ones(1)) == pytest.approx(1.0 * (1 + 2))


def test_labelled_documents_among_the_texts_are_counted_once():
    apart, among = by_hand(), by_hand(inside=14.0, inside_units=20.0)
    assert among.totals() == pytest.approx([14 + 15])
    found, classical = estimate_accuracy(among)
    assert found.expected == pytest.approx(29 / 40)
    assert classical.expected == pytest.approx(14 / 20)
    # What is known already has no error.
    assert among.variance(np.ones(1)) / 40**2 == pytest.approx(apart.variance(np.ones(1)) / 20**2 / 4)


def test_texts_that_are_all_labelled_leave_nothing_to_estimate():
    known = by_hand().sample
    survey = Survey(known, np.array([14.0]), np.array([20.0]), np.zeros((0, 1)), np.zeros((0, 1)))
    for found in estimate_accuracy(survey):
        assert found == pytest.approx(ShareEstimate(0.7, 0.7, 0.7), abs=1e-5)


def test_labelled_documents_without_an_error_do_not_show_that_there_is_none():
    known = LabelledDocuments(column(20, 20, 20), column(19.99, 19.98, 19.99), column(0.01, 0.02, 0.01), column(20, 20, 20))
    found, classical = estimate_accuracy(Survey(known, np.zeros(1), np.zeros(1), column(999), column(1000)))
    # The rule of three says 95 % of 60 tokens; documents differ too, and there are three.
    assert 0.5 < classical.low < 0.95
    assert 0.5 < found.low < 0.95
    assert (classical.high, found.high) == pytest.approx((1, 1), abs=1e-6)


def test_precision_recall_and_f_by_hand():
    # Two documents with 4 entities found, 3 right and 1 missed each, where 3.5 and 0.5 were expected; texts with 10 found in 100 tokens.
    known = LabelledDocuments(
        np.array([[3.0, 1.0]] * 2), np.array([[3.5, 0.5]] * 2), np.full((2, 2), 0.3), np.array([[4.0, 50.0]] * 2)
    )
    survey = Survey(known, np.zeros(2), np.zeros(2), np.array([[9.0, 2.0]]), np.array([[10.0, 100.0]]))
    right, gold, shares = estimate_entities(survey)
    # Right: 9 - 10 / 8; missed: 2 + 100 / 100.
    assert (right, gold) == (pytest.approx(7.75), pytest.approx(10.75))
    expected = {name: both[0].expected for name, both in shares.items()}
    assert expected == pytest.approx({"precision": 0.775, "recall": 7.75 / 10.75, "f": 15.5 / 20.75})
    classical = {name: both[1].expected for name, both in shares.items()}
    assert classical == pytest.approx(dict.fromkeys(("precision", "recall", "f"), 0.75))


def test_shares_of_nothing_are_left_out():
    known = LabelledDocuments(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2)), np.array([[0.0, 5.0]] * 2))
    survey = Survey(known, np.zeros(2), np.zeros(2), np.array([[1.0, 1.0]]), np.array([[2.0, 50.0]]))
    assert estimate_entities(survey)[2] == {}


def test_how_many_are_missed_says_nothing_of_the_precision():
    def precision(missed):
        observed = np.array([[30.0, missed], [20.0, 0.0], [26.0, 2.0], [36.0, 0.0]])
        known = LabelledDocuments(observed, np.array([[33.0, 5.0]] * 4), np.zeros((4, 2)), np.array([[40.0, 50.0]] * 4))
        texts = np.array([[800.0, 100.0]]), np.array([[1000.0, 1000.0]])
        return estimate_entities(Survey(known, np.zeros(2), np.zeros(2), *texts))[2]["precision"][0]

    few, many = precision(1.0), precision(40.0)
    assert (few.expected, few.low, few.high) == pytest.approx((many.expected, many.low, many.high))
    assert few.low < few.expected < few.high


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=8),
    st.integers(0, 500),
    st.floats(0, 1),
)
def test_intervals_hold_their_estimate_and_stay_inside(documents, units, share):
    n, right, score = (np.array(part, dtype=float) for part in zip(*documents, strict=True))
    observed = np.round(n * right)
    known = LabelledDocuments(observed[:, None], (n * score)[:, None], (n * score * (1 - score))[:, None], n[:, None])
    inside = (observed.sum(keepdims=True), n.sum(keepdims=True))
    for found in estimate_accuracy(Survey(known, *inside, column(share * units), column(units))):
        assert 0 <= found.low <= found.expected <= found.high <= 1


def simulated(n_docs, seed):
    """(units, expected, variance, right) of documents whose scores are too high, and whose lengths and difficulty differ."""
    rng = np.random.default_rng(seed)
    units = np.maximum(1, np.exp(rng.normal(3, 0.6, n_docs)).astype(int))
    documents = np.repeat(np.arange(n_docs), units)
    strength = rng.normal(2, 1.5, len(documents)) + rng.normal(0, 0.4, n_docs)[documents]
    score = 1 / (1 + np.exp(-strength))
    hits = rng.random(len(score)) < 1 / (1 + np.exp(0.8 - 0.8 * strength - rng.normal(0, 0.6, n_docs)[documents]))
    by = (np.bincount(documents, values, minlength=n_docs) for values in (score, score * (1 - score), hits))
    return units.astype(float), *by


@pytest.mark.parametrize("n", [5, 10, 20, 50])
def test_95_percent_intervals_hold_the_truth_and_are_narrower_than_the_classical_ones(n):
    units, expected, variance, right = simulated(1000, 1)
    true, rng = right.sum() / units.sum(), np.random.default_rng(n)
    held, widths = [], []
    for _ in range(300):
        own = np.zeros(len(units), dtype=bool)
        own[rng.choice(len(units), n, replace=False)] = True
        known = LabelledDocuments(*(part[own][:, None] for part in (right, expected, variance, units)))
        rest = (expected[~own][:, None], units[~own][:, None])
        both = estimate_accuracy(Survey(known, known.gold_events.sum(axis=0), known.units.sum(axis=0), *rest))
        held.append([found.low <= true <= found.high for found in both])
        widths.append([found.high - found.low for found in both])
    assert abs(expected.sum() / units.sum() - true) > 0.1
    assert 0.9 <= np.mean(held, axis=0)[0] <= 0.995
    assert np.mean(widths, axis=0)[0] < 0.95 * np.mean(widths, axis=0)[1]


def test_each_labelled_text_is_that_of_one_text_at_most():
    few = SimpleNamespace(digests=[7, 5, 7, 9], has_gold=lambda: np.array([True, True, True, False]))
    texts = SurveyBuilder(few, (), None)
    assert texts.match_sample([7, 8, 7]).tolist() == [True, False, True]
    assert texts.match_sample([9, 7]).tolist() == [False, False]  # those that came before count too
    assert texts.find_overlap().tolist() == [True, False, True, False]


def test_a_document_without_gold_is_no_observation_and_one_with_a_single_token_is():
    corpus = corpus_of([[hand_tokens(0.9, 0.6)], [hand_tokens(0.5)], [hand_tokens(0.8)]])
    sample = ScoredTexts(replace(corpus, right=np.array([1, 0, -1, 1], dtype=np.int8)), np.zeros(3, dtype=int), [1, 2, 3])
    builder = SurveyBuilder(sample, ("A", "B"), None)
    builder.add(ScoredTexts(corpus_of([[hand_tokens(0.7, 0.7)]]), np.zeros(1, dtype=int), [9]))
    (survey,) = builder.build()
    assert [part.tolist() for part in survey.sample[::3]] == [[[1], [1]], [[2], [1]]]
    assert survey.sample.expected_events == pytest.approx(np.array([[1.5], [0.8]]))


def test_texts_that_are_summed_say_what_they_say_one_by_one():
    units, expected, variance, right = simulated(60, 2)
    known = LabelledDocuments(*(part[:9][:, None] for part in (right, expected, variance, units)))
    rest = (expected[9:][:, None], units[9:][:, None])
    sums = (*(part.sum(axis=0, keepdims=True) for part in rest), float(np.square(rest[1]).sum()))
    both = (Survey(known, np.zeros(1), np.zeros(1), *texts) for texts in (sums, rest))
    assert estimate_accuracy(next(both)) == estimate_accuracy(next(both))
