"""Effects of documents: learned from made-up documents with a known one, and what they do to a count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_calib import CalibError
from spacy_calib.calibration.recalibrators.logistic import log_odds, sigmoid
from spacy_calib.pipe.record.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW
from spacy_calib.pipe.record.effects import (
    WIDTHS,
    Effects,
    SourceSums,
    between_sources,
    effects_of_labels,
    of_new_source,
    source_sums,
    weights_of,
    with_missed,
    with_widths,
)
from spacy_calib.plugins.counts.counting import Units, centre_of, corrected, counted, estimate, missed, of_another_source
from spacy_calib.plugins.counts.distribution import independent
from spacy_calib.plugins.expect.survey import Known
from spacy_calib.schema import Misfit


def made_documents(tau, n_docs=300, units=40, seed=0):
    """Units whose log-odds a document shifts by a normal number of this deviation."""
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(n_docs), units)
    chances = rng.uniform(0.2, 0.8, n_docs * units)
    shifted = sigmoid(log_odds(chances) + tau * rng.standard_normal(n_docs)[documents])
    return chances, (rng.random(len(chances)) < shifted).astype(float), documents


def effects_alone(chances, holds, documents):
    """Those of a single label."""
    return effects_of_labels(chances, holds, documents, np.zeros(len(chances), dtype=np.intp), [""]).get("", Effects())


def test_an_effect_is_found_and_none_where_there_is_none():
    assert effects_alone(*made_documents(0.6)).between == pytest.approx(0.36, rel=0.25)
    assert effects_alone(*made_documents(0.0)).between < 0.02
    assert effects_alone(*made_documents(0.6, n_docs=1)) == Effects()


def test_labels_learn_from_each_other():
    """One label has few units: what it takes for its effect comes from the others. One is off by half a unit of log-odds."""
    parts = [made_documents(0.6, seed=seed) for seed in range(3)]
    chances, holds, documents = (np.concatenate(column) for column in zip(*parts, strict=True))
    labels = np.repeat(np.arange(3), len(parts[0][0]))
    few = (labels != 2) | (documents < 4)
    chances = np.where(labels == 1, sigmoid(log_odds(chances) - 0.5), chances)
    found = effects_of_labels(chances[few], holds[few], documents[few], labels[few], ["a", "b", "c", "none"])
    assert list(found) == ["a", "b", "c"]
    assert found["c"].between == pytest.approx(0.36, rel=0.4)
    assert found["b"].shift == pytest.approx(0.5, abs=0.12)
    assert abs(found["a"].shift) < 0.1
    assert 0 < found["a"].shared < found["c"].shared
    assert {label: Effects.read(one.state()) for label, one in found.items()} == found


@pytest.mark.parametrize("holds", [[0, 0, 0, 0], [1, 0, 0, 0]])
def test_effects_of_a_label_without_open_units_can_be_saved(holds):
    """Four units with p = 1e-13 in two documents: the error of the shift is 1 / 4e-13, and no state holds 2.5e12."""
    chances, documents = np.full(4, 1e-13), np.array([0, 0, 1, 1])
    effects = effects_of_labels(chances, np.array(holds, dtype=float), documents, np.zeros(4, dtype=int), ["AFX"])["AFX"]
    assert Effects.read(effects.state()) == effects
    assert effects.shared == 1e6
    assert between_sources(np.array([1.0, -1.0]), chances[:2], np.zeros(2)) == 1e6


def test_units_without_a_score():
    """Of 40 documents of 100 units each one in two has 4 units of a label that have no score."""
    documents = np.repeat(np.arange(0, 40, 2), 4)
    made = with_missed({}, np.full(80, 1), documents, np.full(40, 100.0), ["a", "b"])
    assert list(made) == ["b"]
    assert made["b"].missed == pytest.approx(80 / 4000)
    assert made["b"].uneven == pytest.approx(
        (40 * (4 - 2)) / (40 * 4)
    )  # squared residuals 4 each, of which 2 are a Poisson number's
    assert made["b"].unsure == pytest.approx(1 / 80 + 0.5 / 40)
    none = np.zeros(0, dtype=np.intp)
    assert with_missed({}, none, none, np.ones(2), ["a"]) == {}
    found = missed(made["b"], np.full(10, 100.0))
    assert found.mean == pytest.approx(20, rel=1e-3)
    assert found.variance == pytest.approx(20 + 400 * (0.5 / 10 + made["b"].unsure), rel=0.01)
    assert missed(replace(made["b"], uneven=0.0, unsure=0.0), np.full(10, 100.0)).variance == pytest.approx(20, rel=0.01)
    units = Units(none, np.zeros(0), np.zeros(0), np.zeros(10, dtype=np.intp), np.full(10, 100.0))
    assert estimate(units, made["b"]).expected == pytest.approx(20, rel=1e-3)
    assert estimate(units._replace(sizes=None), made["b"]).expected == 0


def test_a_shift_moves_the_count():
    chances, _, documents = made_documents(0.0, 3)
    assert counted(chances, documents, Effects(shift=0.5)).mean == pytest.approx(sigmoid(log_odds(chances) + 0.5).sum())


def test_lengths():
    with pytest.raises(CalibError, match="C002"):
        effects_alone(np.zeros(2), np.zeros(1), np.zeros(2, dtype=np.intp))


def test_without_effects_units_are_independent():
    chances, _, documents = made_documents(0.0, 3)
    for effects in (None, Effects()):
        found = counted(chances, documents, effects)
        np.testing.assert_array_equal(found.chances, independent(chances).chances)


def test_effects_widen_and_leave_the_mean():
    chances, _, documents = made_documents(0.0, 4)
    plain, wide = counted(chances, documents), counted(chances, documents, Effects(between=0.3))
    assert wide.mean == pytest.approx(plain.mean, rel=1e-6)
    spread = np.bincount(documents, chances * (1 - chances))
    assert wide.variance == pytest.approx(plain.variance + 0.3 * np.square(spread).sum(), rel=0.15)
    both = counted(chances, documents, Effects(between=0.3, shared=0.1))
    assert both.variance > wide.variance
    sure = counted(np.append(chances, [1.0, 1.0]), np.append(documents, [0, 1]), Effects(between=0.3))
    assert sure.mean == pytest.approx(plain.mean + 2, rel=1e-6)


def test_intervals_hold_the_count_where_documents_differ():
    effects = effects_alone(*made_documents(0.8, seed=1))
    held = {True: 0, False: 0}
    for seed in range(60):
        chances, holds, documents = made_documents(0.8, n_docs=5, seed=100 + seed)
        for wide in held:
            low, high = counted(chances, documents, effects if wide else None).interval()
            held[wide] += low <= holds.sum() <= high
    assert held[True] >= 52 > held[False]


def test_the_parts_of_an_estimate():
    units = Units(np.array([0, 0, 2]), np.array([0.9, 0.6, 0.4]), np.array([0.5, 0.5, 0.5]), np.array([2, 0, 0]))
    found = estimate(units)
    assert found == (2, 1.5, 0.0, 3.0)
    by_document = units.by_document()
    assert by_document.calibrated.tolist() == pytest.approx([0.75, 0, 0.5])
    assert by_document.found.tolist() == [1, 0, 0]
    assert estimate(units.of(np.array([1, 2])))[:2] == (0, 0.5)
    assert estimate(units.of(np.array([1]))) == (0, 0.0, 0.0, 0.0)


def test_labelled_documents_correct_a_count():
    rng = np.random.default_rng(0)
    n_docs, each = 60, 50
    documents = np.repeat(np.arange(n_docs), each)
    chances = np.full(n_docs * each, 0.5)  # though 7 in 10 hold
    holds = np.bincount(documents, rng.random(len(chances)) < 0.7).astype(float)
    units = Units(documents, chances, chances, np.full(n_docs, 25))
    known = Known(holds[:30, None], units.expected[:30, None], units.open[:30, None], np.full((30, 1), 100.0))
    found = corrected(units.of(np.arange(30, 60)), np.full(30, 100.0), known)
    truth = holds[30:].sum()
    assert found.low < truth < found.high
    assert abs(found.expected - truth) < 60 < abs(estimate(units.of(np.arange(30, 60))).expected - truth)
    assert corrected(units.of(np.zeros(0, dtype=np.intp)), np.zeros(0), known) == (0, 0.0, 0.0, 0.0)


def units_of(n, chance=0.5, found=0):
    """n units with one chance in one document each."""
    return Units(np.arange(n), np.full(n, chance), np.full(n, chance), np.r_[found, np.zeros(n - 1)].astype(np.intp))


def one_width(place, sources=1):
    """Effects of a label whose sources are off by one of the widths."""
    return Effects(widths=tuple(np.eye(len(WIDTHS))[place].tolist()), sources=sources)


def test_texts_that_differ_are_counted_from_what_was_found():
    """100 units of .5, of which 70 were found: v = 25, and a width of .8 log-odds, times sqrt(3) for a single source, is 34.6 units."""
    units, effects = units_of(100, found=70), one_width(4)
    home = estimate(units, effects)
    assert (home.expected, home) == (pytest.approx(50), estimate(units))
    for verdict in (DIFFERENT, OTHER_WEIGHTS):
        away = estimate(units, effects, verdict=verdict)
        assert (away.raw, away.expected) == (70, 70)
        error = 1.96 * np.sqrt(34.64**2 + 25)
        # No more than the 100 units hold, which is less than 70 and the error.
        assert (away.low, away.high) == (pytest.approx(70 - error, abs=1.5), 100)
    assert estimate(units, effects, verdict=TOO_FEW) == home
    assert estimate(units, Effects(between=0.1), verdict=DIFFERENT).expected == pytest.approx(
        50
    )  # of a fit that knows no widths
    assert [centre_of(one, DIFFERENT) for one in (effects, Effects(), None)] == ["found", "expected", "expected"]


def test_where_the_fit_knows_several_sources_texts_may_be_of_another():
    units = units_of(400)
    alone, both = estimate(units, one_width(2)), estimate(units, one_width(2, sources=2))
    assert both.expected == pytest.approx(alone.expected)
    # A width of .2 log-odds times sqrt(2) is 28.3 of 100 (v), beside sqrt(100) = 10 by chance.
    assert both.high - both.low == pytest.approx(2 * 1.96 * np.sqrt(28.28**2 + 100), abs=2)
    assert alone.high - alone.low == pytest.approx(2 * 1.96 * 10, abs=2)


def test_a_count_in_another_source_is_a_distribution():
    home = independent(np.full(10, 0.1))
    found = of_another_source(home, one_width(8), 0.9, 4.0, 10)
    assert found.first >= 0
    assert found.chances.sum() == pytest.approx(1)
    assert found.chances.min() >= 0
    nothing = of_another_source(independent([]), one_width(0), 0.0, 0.0, 0)
    assert nothing.interval() == (0, 0)
    ten = of_another_source(home, one_width(8), 9.0, 9.0, 10)
    assert ten.first + len(ten.chances) == 11  # ten units: no more than ten hold
    further = of_another_source(home, one_width(8), 9.0, 9.0, 10, open_ended=True)
    assert further.interval()[1] > 10


def test_what_is_counted_of_each_source():
    """Documents 0 and 1 of one source, 2 of another: what a pair adds stands in the comments."""
    chances = np.array([0.5, 0.5, 0.2, 0.9])  # p (1 - p) = .25, .25, .16, .09
    documents, labels = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0])
    gold = np.array([0, 1, 2, 2]), np.array([1, 0, 0, 1])
    found = np.array([0, 2, 3])
    sums = source_sums(chances, documents, labels, found, gold, np.array([4, 4, -1]), 2)
    # Sources in the order of their numbers: that without a name first.
    np.testing.assert_allclose(sums.gold, [[1, 1], [1, 1]])
    np.testing.assert_allclose(sums.found, [[1, 0], [2, 0]])
    np.testing.assert_allclose(sums.opens, [[0.09, 0], [0.41, 0.25]])
    np.testing.assert_allclose(sums.squares, [[0.09**2, 0], [0.25**2 + 0.16**2, 0.25**2]])


def test_labels_that_sources_agree_of_and_others():
    """Of 40 labels sources differ by shifts of .2, of 4 by shifts of 6: the widths of both are found, and noise is not taken for a shift."""
    rng = np.random.default_rng(0)
    opens = np.full((2, 44), 100.0)
    widths = np.array([0.2] * 40 + [6.0] * 4)
    errors = rng.standard_normal((2, 44)) * np.sqrt(np.square(widths * opens) + 100)
    errors[:, -4:] = [[600, -500, 700, 400], [300, 800, -500, 600]]
    weights = weights_of(errors, opens, np.full((2, 44), 100.0))
    assert weights.shape == (44, len(WIDTHS))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    middle = np.sqrt(weights @ np.square(WIDTHS))
    assert (middle[:40] < 0.7).all()
    assert (middle[-4:] > 3).all()
    assert np.median(middle[:40]) == pytest.approx(0.2, rel=0.6)


def test_a_label_without_units_is_taken_for_one_like_the_others():
    opens = np.array([[50.0] * 60 + [0.0]])
    weights = weights_of(np.array([[20.0, -20.0] * 30 + [0.0]]), opens, opens)
    assert weights[:60] @ WIDTHS == pytest.approx(0.4, abs=0.15)
    assert weights[60] @ WIDTHS == pytest.approx(0.4, abs=0.2)
    assert weights_of(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2))) is None


def test_effects_get_widths_and_go_through_their_state():
    sums = SourceSums(*(np.array([[30.0, 9.0], [12.0, 9.0]]), np.array([[20.0, 9.0], [20.0, 9.0]]), *np.full((2, 2, 2), 5.0)))
    made = with_widths({"b": Effects(between=0.1)}, sums, ["a", "b"])
    assert list(made) == ["b"]
    assert (made["b"].sources, made["b"].between, len(made["b"].widths)) == (2, 0.1, len(WIDTHS))
    state = made["b"].state()
    assert Effects.read(state) == made["b"]
    with pytest.raises(Misfit, match="9 widths, or none"):
        Effects.read({**state, "widths": [0.5, 0.5]})


def test_few_sources_tell_little_of_a_new_one():
    assert [of_new_source(n) for n in (1, 2, 8)] == pytest.approx([3**0.5, 2**0.5, 1.25**0.5])


def test_the_variance_between_sources():
    # Errors of 30 and -30 where 10 of each square is noise: 2 * 900 - 200 = 1600 over 2 * 50^2 = 5000, twice as much for two sources.
    assert between_sources(np.array([30.0, -30.0]), np.full(2, 50.0), np.full(2, 100.0)) == pytest.approx(0.64)
    assert between_sources(np.array([5.0, -5.0]), np.full(2, 50.0), np.full(2, 100.0)) == 0
    assert between_sources(np.array([30.0]), np.full(1, 50.0), np.zeros(1)) == 0
