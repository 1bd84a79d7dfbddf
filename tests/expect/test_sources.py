"""How far counting what was found is off from source to source, learned of made-up sources with known widths."""

import numpy as np
import pytest

from spacy_calib.expect.effects import EFFECTS, WIDTHS, Effects, effects_from_state, of_new_source
from spacy_calib.expect.sources import SourceSums, between_sources, source_sums, weights_of, with_widths
from spacy_calib.schema import Misfit


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
    state = {label: one.state() for label, one in made.items()}
    assert effects_from_state(EFFECTS(state, "effects")) == made
    state["b"]["widths"] = [0.5, 0.5]
    with pytest.raises(Misfit, match="9 widths, or none"):
        EFFECTS(state, "effects")
    older = {"b": {name: 0.0 for name in ("between", "shift", "shared", "missed", "uneven", "unsure")}}
    assert effects_from_state(EFFECTS(older, "effects")) == {"b": Effects()}


def test_few_sources_tell_little_of_a_new_one():
    assert [of_new_source(n) for n in (1, 2, 8)] == pytest.approx([3**0.5, 2**0.5, 1.25**0.5])


def test_the_variance_between_sources():
    # Errors of 30 and -30 where 10 of each square is noise: 2 * 900 - 200 = 1600 over 2 * 50^2 = 5000, twice as much for two sources.
    assert between_sources(np.array([30.0, -30.0]), np.full(2, 50.0), np.full(2, 100.0)) == pytest.approx(0.64)
    assert between_sources(np.array([5.0, -5.0]), np.full(2, 50.0), np.full(2, 100.0)) == 0
    assert between_sources(np.array([30.0]), np.full(1, 50.0), np.zeros(1)) == 0
