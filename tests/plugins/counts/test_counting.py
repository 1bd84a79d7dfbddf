"""The count of uncertain units: by effects of documents and sources, and corrected by labelled documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.calibration.recalibrators.logistic import log_odds, sigmoid
from spacy_calib.pipe.record.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW
from spacy_calib.pipe.record.effects import WIDTHS, Effects
from spacy_calib.plugins.counts.counting import (
    UncertainUnits,
    add_source_shift,
    choose_centre,
    correct_count,
    count_distribution,
    estimate_count,
    missed_distribution,
)
from spacy_calib.plugins.counts.distribution import poisson_binomial
from spacy_calib.plugins.expect.survey import LabelledDocuments
from tests.pipe.record.test_effects import effects_alone, made_documents


def test_units_without_a_score_are_counted_by_their_rate():
    """Two in a hundred, half of whose variance documents share, learned of 80: 1 / 80 + .5 / 40."""
    effects = Effects(missed_rate=0.02, overdispersion=0.5, missed_variance=0.025)
    none = np.zeros(0, dtype=np.intp)
    found = missed_distribution(effects, np.full(10, 100.0))
    assert found.mean == pytest.approx(20, rel=1e-3)
    assert found.variance == pytest.approx(20 + 400 * (0.5 / 10 + effects.missed_variance), rel=0.01)
    plain = replace(effects, overdispersion=0.0, missed_variance=0.0)
    assert missed_distribution(plain, np.full(10, 100.0)).variance == pytest.approx(20, rel=0.01)
    units = UncertainUnits(none, np.zeros(0), np.zeros(0), np.zeros(10, dtype=np.intp), np.full(10, 100.0))
    assert estimate_count(units, effects).expected == pytest.approx(20, rel=1e-3)
    assert estimate_count(units._replace(sizes=None), effects).expected == 0


def test_a_shift_moves_the_count():
    chances, _, documents = made_documents(0.0, 3)
    moved = sigmoid(log_odds(chances) + 0.5).sum()
    assert count_distribution(chances, documents, Effects(shift=0.5)).mean == pytest.approx(moved)


def test_without_effects_units_are_independent():
    chances, _, documents = made_documents(0.0, 3)
    for effects in (None, Effects()):
        found = count_distribution(chances, documents, effects)
        np.testing.assert_array_equal(found.probabilities, poisson_binomial(chances).probabilities)


def test_effects_widen_and_leave_the_mean():
    chances, _, documents = made_documents(0.0, 4)
    plain, wide = count_distribution(chances, documents), count_distribution(chances, documents, Effects(variance_between=0.3))
    assert wide.mean == pytest.approx(plain.mean, rel=1e-6)
    spread = np.bincount(documents, chances * (1 - chances))
    assert wide.variance == pytest.approx(plain.variance + 0.3 * np.square(spread).sum(), rel=0.15)
    both = count_distribution(chances, documents, Effects(variance_between=0.3, shift_variance=0.1))
    assert both.variance > wide.variance
    sure = count_distribution(np.append(chances, [1.0, 1.0]), np.append(documents, [0, 1]), Effects(variance_between=0.3))
    assert sure.mean == pytest.approx(plain.mean + 2, rel=1e-6)


def test_intervals_hold_the_count_where_documents_differ():
    effects = effects_alone(*made_documents(0.8, seed=1))
    held = {True: 0, False: 0}
    for seed in range(60):
        chances, holds, documents = made_documents(0.8, n_docs=5, seed=100 + seed)
        for wide in held:
            low, high = count_distribution(chances, documents, effects if wide else None).interval()
            held[wide] += low <= holds.sum() <= high
    assert held[True] >= 52 > held[False]


def test_the_parts_of_an_estimate():
    units = UncertainUnits(np.array([0, 0, 2]), np.array([0.9, 0.6, 0.4]), np.array([0.5, 0.5, 0.5]), np.array([2, 0, 0]))
    found = estimate_count(units)
    assert found == (2, 1.5, 0.0, 3.0)
    by_document = units.as_documents()
    assert by_document.calibrated.tolist() == pytest.approx([0.75, 0, 0.5])
    assert by_document.n_found.tolist() == [1, 0, 0]
    assert estimate_count(units.select(np.array([1, 2])))[:2] == (0, 0.5)
    assert estimate_count(units.select(np.array([1]))) == (0, 0.0, 0.0, 0.0)


def test_labelled_documents_correct_a_count():
    rng = np.random.default_rng(0)
    n_docs, each = 60, 50
    documents = np.repeat(np.arange(n_docs), each)
    chances = np.full(n_docs * each, 0.5)  # though 7 in 10 hold
    holds = np.bincount(documents, rng.random(len(chances)) < 0.7).astype(float)
    units = UncertainUnits(documents, chances, chances, np.full(n_docs, 25))
    known = LabelledDocuments(
        holds[:30, None], units.expected_counts[:30, None], units.variances[:30, None], np.full((30, 1), 100.0)
    )
    found = correct_count(units.select(np.arange(30, 60)), np.full(30, 100.0), known)
    truth = holds[30:].sum()
    assert found.low < truth < found.high
    assert abs(found.expected - truth) < 60 < abs(estimate_count(units.select(np.arange(30, 60))).expected - truth)
    assert correct_count(units.select(np.zeros(0, dtype=np.intp)), np.zeros(0), known) == (0, 0.0, 0.0, 0.0)


def units_of(n, chance=0.5, found=0):
    """n units with one chance in one document each."""
    return UncertainUnits(np.arange(n), np.full(n, chance), np.full(n, chance), np.r_[found, np.zeros(n - 1)].astype(np.intp))


def one_width(place, n_sources=1):
    """Effects of a label whose sources are off by one of the widths."""
    return Effects(width_probabilities=tuple(np.eye(len(WIDTHS))[place].tolist()), n_sources=n_sources)


def test_texts_that_differ_are_counted_from_what_was_found():
    """100 units of .5, of which 70 were found: v = 25, and a width of .8 log-odds, times sqrt(3) for a single source, is 34.6 units."""
    units, effects = units_of(100, found=70), one_width(4)
    home = estimate_count(units, effects)
    assert (home.expected, home) == (pytest.approx(50), estimate_count(units))
    for verdict in (DIFFERENT, OTHER_WEIGHTS):
        away = estimate_count(units, effects, verdict=verdict)
        assert (away.raw, away.expected) == (70, 70)
        error = 1.96 * np.sqrt(34.64**2 + 25)
        # No more than the 100 units hold, which is less than 70 and the error.
        assert (away.low, away.high) == (pytest.approx(70 - error, abs=1.5), 100)
    assert estimate_count(units, effects, verdict=TOO_FEW) == home
    no_widths = Effects(variance_between=0.1)
    assert estimate_count(units, no_widths, verdict=DIFFERENT).expected == pytest.approx(50)
    assert [choose_centre(one, DIFFERENT) for one in (effects, Effects(), None)] == ["found", "expected", "expected"]


def test_where_the_fit_knows_several_sources_texts_may_be_of_another():
    units = units_of(400)
    alone, both = estimate_count(units, one_width(2)), estimate_count(units, one_width(2, n_sources=2))
    assert both.expected == pytest.approx(alone.expected)
    # A width of .2 log-odds times sqrt(2) is 28.3 of 100 (v), beside sqrt(100) = 10 by chance.
    assert both.high - both.low == pytest.approx(2 * 1.96 * np.sqrt(28.28**2 + 100), abs=2)
    assert alone.high - alone.low == pytest.approx(2 * 1.96 * 10, abs=2)


def test_a_count_in_another_source_is_a_distribution():
    home = poisson_binomial(np.full(10, 0.1))
    found = add_source_shift(home, one_width(8), 0.9, 4.0, 10)
    assert found.first >= 0
    assert found.probabilities.sum() == pytest.approx(1)
    assert found.probabilities.min() >= 0
    nothing = add_source_shift(poisson_binomial([]), one_width(0), 0.0, 0.0, 0)
    assert nothing.interval() == (0, 0)
    ten = add_source_shift(home, one_width(8), 9.0, 9.0, 10)
    assert ten.first + len(ten.probabilities) == 11  # ten units: no more than ten hold
    further = add_source_shift(home, one_width(8), 9.0, 9.0, 10, open_ended=True)
    assert further.interval()[1] > 10
