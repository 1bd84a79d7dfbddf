from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.plugins.events.draws import REST, draw_apart, draw_each, draw_entries, make_rng

N = 4000


def agree(shares, wanted, n=N):
    """No share is further off than five standard errors and three draws."""
    wanted = np.asarray(wanted, dtype=float)
    assert (np.abs(shares - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / n) + 3 / n).all(), (shares, wanted)


def test_each_label_has_its_probability_and_the_rest_what_is_left():
    rows, scores = np.array([0, 0, 2, 3, 3]), np.array([0.5, 0.2, 1.0, 0.9, 0.3])
    chosen, scale = draw_entries(rows, scores, 5, N, make_rng(N, 0, 1))
    assert scale.tolist() == [1.0, 1.0, 1.0, pytest.approx(1 / 1.2), 1.0]
    shares = np.array([(chosen[:, row] == i).mean() for i, row in enumerate(rows)])
    agree(shares, [0.5, 0.2, 1.0, 0.75, 0.25])
    agree((chosen == REST).mean(axis=0), [0.3, 1.0, 0.0, 0.0, 1.0])
    # Units know nothing of each other.
    agree(((chosen[:, 0] == 0) & (chosen[:, 3] == 3)).mean(), 0.5 * 0.75)


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(0, 1), max_size=4), max_size=40), st.integers(0, 99))
def test_what_is_drawn_belongs_to_its_unit(units, seed):
    rows = np.repeat(np.arange(len(units)), [len(one) for one in units]).astype(np.intp)
    scores = np.array([score for one in units for score in one])
    chosen, scale = draw_entries(rows, scores, len(units), 7, make_rng(7, seed, 0))
    assert chosen.shape == (7, len(units))
    assert ((scale > 0) & (scale <= 1)).all()
    for column, place in zip(np.tile(np.arange(len(units)), (7, 1)).ravel(), chosen.ravel(), strict=True):
        assert place == REST or (rows[place] == column and scores[place] > 0)


def test_spans_have_their_probability_and_never_overlap():
    # A chosen one, two candidates across it, one that only touches it, and one far off.
    starts, ends = np.array([2, 1, 3, 4, 9]), np.array([4, 3, 6, 5, 10])
    scores = np.array([0.5, 0.3, 0.2, 0.6, 0.1])
    held, scale = draw_apart(starts, ends, scores, N, make_rng(N, 3, 0))
    assert scale.tolist() == [1.0] * 5
    agree(held.mean(axis=0), scores)
    agree((held[:, 0] & held[:, 4]).mean(), 0.05)


def test_spans_that_cannot_have_their_probability_are_scaled_down():
    starts, ends = np.array([0, 1, 5]), np.array([3, 2, 6])
    held, scale = draw_apart(starts, ends, np.array([0.9, 0.6, 0.6]), N, make_rng(N, 0, 0))
    assert scale.tolist() == [pytest.approx(1 / 1.5)] * 2 + [1.0]
    agree(held.mean(axis=0), [0.6, 0.4, 0.6])
    assert not (held[:, 0] & held[:, 1]).any()


spans = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), st.floats(0, 1)), max_size=12).map(
    lambda made: (
        np.array([start for start, _, _ in made], dtype=np.intp),
        np.array([start + length for start, length, _ in made], dtype=np.intp),
        np.array([score for *_, score in made]),
    )
)


@settings(max_examples=100)
@given(spans, st.integers(0, 99))
def test_no_set_of_spans_overlaps(made, seed):
    starts, ends, scores = made
    held, scale = draw_apart(*made, 20, make_rng(20, seed, 0))
    for one in held:
        covered = [token for i in np.flatnonzero(one) for token in range(starts[i], ends[i])]
        assert len(covered) == len(set(covered))
    assert not held[:, scores == 0].any()
    assert len(scale) == len(starts)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(spans)
def test_every_span_has_its_scaled_probability(made):
    held, scale = draw_apart(*made, N, make_rng(N, 0, 0))
    if len(scale):
        agree(held.mean(axis=0), made[2] * scale)


def test_the_first_draws_are_those_that_are_drawn_alone():
    rows, scores = np.repeat(np.arange(30), 2), np.tile([0.5, 0.4], 30)
    spans = np.arange(30), np.arange(30) + 2
    for draw in (
        lambda n: draw_entries(rows, scores, 30, n, make_rng(n, 1, 2))[0],
        lambda n: draw_apart(*spans, np.full(30, 0.4), n, make_rng(n, 1, 2))[0],
        lambda n: draw_each(np.full(30, 0.4), n, make_rng(n, 1, 2)),
    ):
        assert (draw(100)[:10] == draw(10)).all()
        assert draw(0).shape == (0, 30)


def test_texts_and_seeds_are_drawn_apart():
    first = [make_rng(1, seed, text).random() for seed, text in ((0, 1), (0, 2), (1, 1))]
    assert len(set(first)) == 3


@pytest.mark.parametrize(("n", "seed"), [(-1, 0), (1, -1), (1.5, 0), (1, "a")])
def test_bad_numbers_are_said(n, seed):
    with pytest.raises(CalibError, match="whole number, 0 or more"):
        make_rng(n, seed, 0)
