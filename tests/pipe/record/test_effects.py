"""Effects of documents, labels and sources: by hand, by a second opinion, and learned from made-up documents with known ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from spacy_calib import CalibError
from spacy_calib.calibration.recalibrators.logistic import log_odds, sigmoid
from spacy_calib.pipe.record.effects import (
    WIDTHS,
    Effects,
    LabelCells,
    Moments,
    SourceSums,
    learn_effects,
    source_sums,
    variance_between_sources,
    widening,
    width_probabilities,
    with_missed,
    with_widths,
)
from spacy_calib.schema import InvalidState


def made_documents(tau, n_docs=300, units=40, seed=0):
    """Units whose log-odds a document shifts by a normal number of this deviation."""
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(n_docs), units)
    chances = rng.uniform(0.2, 0.8, n_docs * units)
    shifted = sigmoid(log_odds(chances) + tau * rng.standard_normal(n_docs)[documents])
    return chances, (rng.random(len(chances)) < shifted).astype(float), documents


def effects_alone(chances, holds, documents):
    """Those of a single label."""
    cells = LabelCells.from_pairs(chances, holds, documents, np.zeros(len(chances), dtype=np.intp))
    return learn_effects(cells, [""]).get("", Effects())


def moments_of(*cells, n_labels=2):
    """Of (label, residual, variance), each of another document."""
    labels, residuals, variances = (np.array(column) for column in zip(*cells, strict=True))
    return Moments.from_cells(LabelCells(labels, np.arange(len(cells)), residuals, variances), n_labels)


# By hand


def test_moments_by_hand():
    """Label 0: r = 2 - 1 and 2 - 3 about its mean, 1 times v; a cell without variance is left out. Label 1: its mean is .8 times v, not .8 / .2."""
    moments = moments_of((0, 2.0, 1.0), (0, 2.0, 3.0), (0, -1.0, 0.0), (1, 0.5, 0.1), (1, 0.3, 0.1))
    assert moments.n_documents.tolist() == [2, 2]
    assert moments.residual == pytest.approx([4, 0.8])
    assert moments.variance == pytest.approx([4, 0.2])
    assert moments.squares == pytest.approx([1 + 9, 0.02])
    assert moments.excess == pytest.approx([1 + 1 - 4, 0.42**2 + 0.22**2 - 0.2])
    assert moments.noise == pytest.approx([4 + 2 * 10, 0.2 + 2 * 0.02])
    assert moments.shift_error(np.array([0.5, 2.0])) == pytest.approx([(4 + 0.5 * 10) / 16, (0.2 + 2 * 0.02) / 0.04])


def test_variances_are_shrunk_as_far_as_they_are_noise():
    """Excess 4 and 0, squares 8 and 2, noise 20 and 6: the common variance is 4 / 10, a label's own 4 / 8 and 0 / 2."""
    moments = moments_of((0, 2.0, 2.0), (0, -2.0, 2.0), (1, 1.0, 1.0), (1, -1.0, 1.0))
    assert moments.common_variance == pytest.approx(0.4)
    weights = [0.16 / (0.16 + 20 / 64), 0.16 / (0.16 + 6 / 4)]
    assert moments.shrinkage == pytest.approx(weights)
    assert moments.variance_between == pytest.approx([weights[0] * 0.5 + (1 - weights[0]) * 0.4, (1 - weights[1]) * 0.4])


def test_a_label_alone_keeps_its_own_variance_and_none_is_negative():
    alone = moments_of((0, 2.0, 2.0), (0, -2.0, 2.0), n_labels=1)
    assert (alone.shrinkage.tolist(), alone.variance_between.tolist()) == ([1.0], [0.5])
    even = moments_of((0, 1.0, 2.0), (0, -1.0, 2.0), (1, 1.0, 1.0), (1, -1.0, 1.0))
    assert (even.common_variance, even.variance_between.tolist()) == (0.0, [0.0, 0.0])


def test_effects_of_two_labels_by_hand():
    """Of 8 units of .5 in each document 7 and 5 have label a, 4 and 0 label b: v = 2, r = 3, 1 and 0, -4."""
    hits = np.concatenate([np.arange(8) < n for n in (7, 5, 4, 0)]).astype(float)
    documents, labels = np.tile(np.repeat([0, 1], 8), 2), np.repeat([0, 1], 16)
    effects = learn_effects(LabelCells.from_pairs(np.full(32, 0.5), hits, documents, labels), ["a", "b"])
    # Excess -2 and 4, squares 8 each: the common variance is 1 / 8, and the weight of their own (1 / 64) / (1 / 64 + 20 / 64).
    a, b = (-0.25 + 20 / 8) / 21, (0.5 + 20 / 8) / 21
    assert (effects["a"].variance_between, effects["b"].variance_between) == (pytest.approx(a), pytest.approx(b))
    # The labels are off by 4 / 4 and -4 / 4.
    errors = [(4 + 8 * a) / 16, (4 + 8 * b) / 16]
    common = 1 - 2 / (1 / errors[0] + 1 / errors[1])
    for effect, error, shift in zip(effects.values(), errors, (1, -1), strict=True):
        assert effect.shift == pytest.approx(shift * common / (common + error))
        assert effect.shift_variance == pytest.approx(common * error / (common + error))


def test_widths_by_a_second_opinion():
    """Expectation maximization written out, source by source and label by label; the last label says nothing of the common widths."""
    rng = np.random.default_rng(4)
    variances = np.array([[40.0, 9.0, 0.6, 0.4], [60.0, 0.2, 3.0, 0.5]])
    noise = variances * 1.2
    errors = np.round(rng.normal(0, 1, (2, 4)) * np.sqrt(noise + (0.6 * variances) ** 2), 2)
    likelihood = [
        [
            np.prod([norm.pdf(errors[s, k], 0, np.sqrt((width * variances[s, k]) ** 2 + noise[s, k])) for s in range(2)])
            for width in WIDTHS
        ]
        for k in range(4)
    ]
    prior = [1 / 9] * 9
    for _ in range(100):
        totals = [1 / 9] * 9
        for row in likelihood[:3]:
            joint = [p * q for p, q in zip(row, prior, strict=True)]
            totals = [total + value / sum(joint) for total, value in zip(totals, joint, strict=True)]
        prior = [total / sum(totals) for total in totals]
    expected = np.array(likelihood) * prior
    np.testing.assert_allclose(
        width_probabilities(errors, variances, noise), expected / expected.sum(axis=1, keepdims=True), atol=1e-10
    )


def test_a_label_farther_off_than_any_width_has_the_widest():
    """The error of 100,000 is 78 times the widest deviation, whose likelihood is below the smallest number."""
    probabilities = width_probabilities(np.array([[1e5, 1.0]]), np.full((1, 2), 100.0), np.full((1, 2), 100.0))
    assert probabilities[0, -1] == pytest.approx(1)
    assert probabilities[1, :2].sum() > 0.5


# Made-up documents


def test_an_effect_is_found_and_none_where_there_is_none():
    assert effects_alone(*made_documents(0.6)).variance_between == pytest.approx(0.36, rel=0.25)
    assert effects_alone(*made_documents(0.0)).variance_between < 0.02
    assert effects_alone(*made_documents(0.6, n_docs=1)) == Effects()


def test_labels_learn_from_each_other():
    """One label has few units: what it takes for its effect comes from the others. One is off by half a unit of log-odds."""
    parts = [made_documents(0.6, seed=seed) for seed in range(3)]
    chances, holds, documents = (np.concatenate(column) for column in zip(*parts, strict=True))
    labels = np.repeat(np.arange(3), len(parts[0][0]))
    few = (labels != 2) | (documents < 4)
    chances = np.where(labels == 1, sigmoid(log_odds(chances) - 0.5), chances)
    cells = LabelCells.from_pairs(chances[few], holds[few], documents[few], labels[few])
    found = learn_effects(cells, ["a", "b", "c", "none"])
    assert list(found) == ["a", "b", "c"]
    assert found["c"].variance_between == pytest.approx(0.36, rel=0.4)
    assert found["b"].shift == pytest.approx(0.5, abs=0.12)
    assert abs(found["a"].shift) < 0.1
    assert 0 < found["a"].shift_variance < found["c"].shift_variance
    assert {label: Effects.read(one.state()) for label, one in found.items()} == found


@pytest.mark.parametrize("holds", [[0, 0, 0, 0], [1, 0, 0, 0]])
def test_effects_of_a_label_without_open_units_can_be_saved(holds):
    """Four units with p = 1e-13 in two documents: the error of the shift is 1 / 4e-13, and no state holds 2.5e12."""
    chances, documents = np.full(4, 1e-13), np.array([0, 0, 1, 1])
    effects = effects_alone(chances, np.array(holds, dtype=float), documents)
    assert Effects.read(effects.state()) == effects
    assert effects.shift_variance == 1e6
    assert variance_between_sources(np.array([1.0, -1.0]), chances[:2], np.zeros(2)) == 1e6


def test_units_without_a_score():
    """Of 40 documents of 100 units each one in two has 4 units of a label that have no score."""
    documents = np.repeat(np.arange(0, 40, 2), 4)
    made = with_missed({}, np.full(80, 1), documents, np.full(40, 100.0), ["a", "b"])
    assert list(made) == ["b"]
    assert made["b"].missed_rate == pytest.approx(80 / 4000)
    assert made["b"].overdispersion == pytest.approx(
        (40 * (4 - 2)) / (40 * 4)
    )  # squared residuals 4 each, of which 2 are a Poisson number's
    assert made["b"].missed_variance == pytest.approx(1 / 80 + 0.5 / 40)
    none = np.zeros(0, dtype=np.intp)
    assert with_missed({}, none, none, np.ones(2), ["a"]) == {}


def test_lengths():
    with pytest.raises(CalibError, match="C002"):
        effects_alone(np.zeros(2), np.zeros(1), np.zeros(2, dtype=np.intp))


def test_what_is_counted_of_each_source():
    """Documents 0 and 1 of one source, 2 of another: what a pair adds stands in the comments."""
    chances = np.array([0.5, 0.5, 0.2, 0.9])  # p (1 - p) = .25, .25, .16, .09
    documents, labels = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0])
    gold = np.array([0, 1, 2, 2]), np.array([1, 0, 0, 1])
    predicted = np.array([0, 1, 2]), np.array([0, 0, 0])
    cells = LabelCells.from_pairs(chances, np.zeros(4), documents, labels)
    sums = source_sums(cells, predicted, gold, np.array([4, 4, -1]), 2)
    # Sources in the order of their numbers: that without a name first.
    np.testing.assert_allclose(sums.gold, [[1, 1], [1, 1]])
    np.testing.assert_allclose(sums.predicted, [[1, 0], [2, 0]])
    np.testing.assert_allclose(sums.variance, [[0.09, 0], [0.41, 0.25]])
    np.testing.assert_allclose(sums.squares, [[0.09**2, 0], [0.25**2 + 0.16**2, 0.25**2]])


def test_labels_that_sources_agree_of_and_others():
    """Of 40 labels sources differ by shifts of .2, of 4 by shifts of 6: the widths of both are found, and noise is not taken for a shift."""
    rng = np.random.default_rng(0)
    opens = np.full((2, 44), 100.0)
    widths = np.array([0.2] * 40 + [6.0] * 4)
    errors = rng.standard_normal((2, 44)) * np.sqrt(np.square(widths * opens) + 100)
    errors[:, -4:] = [[600, -500, 700, 400], [300, 800, -500, 600]]
    weights = width_probabilities(errors, opens, np.full((2, 44), 100.0))
    assert weights.shape == (44, len(WIDTHS))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    middle = np.sqrt(weights @ np.square(WIDTHS))
    assert (middle[:40] < 0.7).all()
    assert (middle[-4:] > 3).all()
    assert np.median(middle[:40]) == pytest.approx(0.2, rel=0.6)


def test_a_label_without_units_is_taken_for_one_like_the_others():
    opens = np.array([[50.0] * 60 + [0.0]])
    weights = width_probabilities(np.array([[20.0, -20.0] * 30 + [0.0]]), opens, opens)
    assert weights[:60] @ WIDTHS == pytest.approx(0.4, abs=0.15)
    assert weights[60] @ WIDTHS == pytest.approx(0.4, abs=0.2)
    assert width_probabilities(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2))) is None


def test_effects_get_widths_and_go_through_their_state():
    sums = SourceSums(*(np.array([[30.0, 9.0], [12.0, 9.0]]), np.array([[20.0, 9.0], [20.0, 9.0]]), *np.full((2, 2, 2), 5.0)))
    made = with_widths({"b": Effects(variance_between=0.1)}, sums, ["a", "b"])
    assert list(made) == ["b"]
    assert (made["b"].n_sources, made["b"].variance_between, len(made["b"].width_probabilities)) == (2, 0.1, len(WIDTHS))
    state = made["b"].state()
    assert Effects.read(state) == made["b"]
    with pytest.raises(InvalidState, match="9 widths, or none"):
        Effects.read({**state, "width_probabilities": [0.5, 0.5]})


def test_few_sources_tell_little_of_a_new_one():
    assert [widening(n) for n in (1, 2, 8)] == pytest.approx([3**0.5, 2**0.5, 1.25**0.5])


def test_the_variance_between_sources():
    # Errors of 30 and -30 where 10 of each square is noise: 2 * 900 - 200 = 1600 over 2 * 50^2 = 5000, twice as much for two sources.
    assert variance_between_sources(np.array([30.0, -30.0]), np.full(2, 50.0), np.full(2, 100.0)) == pytest.approx(0.64)
    assert variance_between_sources(np.array([5.0, -5.0]), np.full(2, 50.0), np.full(2, 100.0)) == 0
    assert variance_between_sources(np.array([30.0]), np.full(1, 50.0), np.zeros(1)) == 0
