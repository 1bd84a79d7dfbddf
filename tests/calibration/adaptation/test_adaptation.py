"""The step that makes scores true on new kinds of text, and the lines of its two sides."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from spacy_calib.calibration.adaptation.adaptation import (
    LEAST_SLOPE,
    Adaptation,
    AdaptationMap,
    GoldEntries,
    Line,
    Prior,
    document_weights,
    fit_line,
)
from spacy_calib.calibration.solvers import log_odds, sigmoid
from spacy_calib.calibration.steps import KEPT, OUTPUT_ONLY, Predictions, apply_steps
from spacy_calib.calibration.tag_offsets import Offsets, TagOffsets
from spacy_calib.errors import CalibError
from spacy_calib.metrics.proper import log_losses
from spacy_calib.schema import InvalidState
from spacy_calib.types import Groups

GROUPS = Groups(("1", "2"), np.array([0, 0, 1, -1]))


def drawn(n_documents: int, slope: float = 1.0, intercept: float = 0.0, seed: int = 0, tag_shift: float = 0.0) -> GoldEntries:
    """Documents of 20 tokens with a leading and another entry; the leading ones hit as the line says, tag 0 by another `tag_shift`."""
    rng = np.random.default_rng(seed)
    n = 20 * n_documents
    leading, other, tags = rng.normal(2.5, 1.5, n), rng.normal(-2.5, 1, n), rng.integers(0, 4, (n, 2))
    chance = sigmoid(np.column_stack([slope * leading + intercept + tag_shift * (tags[:, 0] == 0), other]))
    return GoldEntries(
        sigmoid(np.column_stack([leading, other])).ravel(), (rng.random((n, 2)) < chance).ravel(), np.tile([True, False], n),
        tags.ravel(), np.repeat(np.arange(n_documents), 40),
    )  # fmt: skip


def loss(entries: GoldEntries, adaptation: Adaptation | None = None) -> float:
    scores = entries.scores if adaptation is None else adaptation.adjust(entries.scores, entries.is_top, entries.tags)
    return float(log_losses(scores, entries.hits).mean())


def test_scores_pass_line_and_offsets_of_their_side():
    """Leading entry of tag 2 (group "2"): .8 has log-odds log 4; times .5 less .2, plus the offsets -.1 of its group and .3 of its tag."""
    offsets = TagOffsets(Offsets(np.array([0.0, 0.0, 0.3, 0.0]), 1.0), Offsets(np.array([0.0, -0.1]), 1.0))
    made = Adaptation(GROUPS, AdaptationMap(Line(0.5, -0.2), offsets, 9), AdaptationMap())
    found = made.adjust(np.array([0.8, 0.8, 0.8]), np.array([True, False, True]), np.array([2, 2, 7]))
    np.testing.assert_allclose(found, [sigmoid(np.log(4) / 2 - 0.2 - 0.1 + 0.3), 0.8, sigmoid(np.log(4) / 2 - 0.2)])
    assert found[1] == 0.8  # to the bit: nothing was learned of the others


def test_five_documents_mend_what_is_too_sure_and_leave_what_is_true():
    shifted = Adaptation.fit(drawn(5, 0.6, -0.6), GROUPS)
    rest = drawn(200, 0.6, -0.6, seed=1)
    assert loss(rest, shifted) < 0.9 * loss(rest)
    true = drawn(200, seed=2)
    losses = [loss(true, Adaptation.fit(drawn(5, seed=seed), GROUPS)) for seed in range(3, 9)]
    assert np.mean(losses) < 1.01 * loss(true)


def test_a_tag_that_is_worse_than_the_others_gets_an_offset_where_the_data_show_it():
    made = Adaptation.fit(drawn(50, tag_shift=-2.0), GROUPS)
    assert made.leading.offsets is not None
    tags = np.arange(4)
    offsets = made.leading.offsets.sum_offsets(tags, GROUPS.find(tags).astype(np.intp))
    assert offsets[0] < offsets[1:].min() - 0.7


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(0, 3), st.booleans())
def test_moving_keeps_the_order_of_scores(seed: int, tag: int, leads: bool):
    made = Adaptation.fit(drawn(3, 0.3, -1, seed), GROUPS)
    scores = np.sort(np.random.default_rng(seed).random(30))
    moved = made.adjust(scores, np.full(30, leads), np.full(30, tag))
    assert (np.diff(moved) >= 0).all()
    assert 0 <= moved.min() <= moved.max() <= 1


def test_steps_follow_one_another():
    """Two lines are one line: slopes multiply."""
    one, two = (Adaptation(GROUPS, AdaptationMap(line), AdaptationMap(line)) for line in (Line(0.5, 0.2), Line(0.8, -0.1)))
    scores, leads, tags = np.array([0.1, 0.6]), np.array([False, True]), np.array([0, 1])
    given = Predictions(np.arange(2), tags, scores, scores, np.where(leads, KEPT, OUTPUT_ONLY))
    assert given.is_top.tolist() == leads.tolist()
    np.testing.assert_allclose(log_odds(apply_steps((one, two), given).scores), 0.4 * log_odds(scores) + 0.06)


def test_saved_state():
    made = Adaptation.fit(drawn(6, 0.5, -0.5), GROUPS)
    again = Adaptation.read(made.state())
    held = drawn(4, seed=5)
    arrays = held.scores, held.is_top, held.tags
    assert (again.adjust(*arrays) == made.adjust(*arrays)).all()
    state = made.state()
    state["groups"] = Groups(("1",), np.array([0])).state()
    with pytest.raises(InvalidState, match="fitted to these tags and groups"):
        Adaptation.read(state)


def test_arrays_of_one_length():
    with pytest.raises(CalibError, match="C002"):
        GoldEntries(np.ones(2), np.ones(1, dtype=bool), np.ones(2, dtype=bool), np.zeros(2, dtype=int), np.zeros(2, dtype=int))


def test_a_tag_that_is_wrong_in_one_document_alone_says_less_than_one_that_is_wrong_in_many():
    """Forty misses of tag 0, scored .9 each: all in one of ten documents, or four in each."""

    def offset(documents: np.ndarray) -> float:
        n, rng = 2000, np.random.default_rng(0)
        scores, hits = np.full(n, 0.9), rng.random(n) < 0.9
        tags, leads = rng.integers(1, 4, n), np.ones(n, dtype=bool)
        tags[:40], hits[:40] = 0, False
        made = Adaptation.fit(GoldEntries(scores, hits, leads, tags, documents), GROUPS)
        assert made.leading.offsets is not None
        return float(made.leading.offsets.tags.values[0])

    spread, together = np.arange(2000) % 10, np.arange(2000) // 200
    assert offset(spread) < 1.3 * offset(together) < 0


def test_a_tag_that_others_use_otherwise_is_unlearned_from_several_documents_and_not_from_one():
    """29 tags that are right as often as their scores say, .9, and one that never is: in twenty documents, or twenty times in one."""
    groups, n = Groups(("all",), np.zeros(30, dtype=int)), 3000
    rng = np.random.default_rng(1)
    tags, hits, leads = rng.integers(1, 30, n), rng.random(n) < 0.9, np.ones(n, dtype=bool)
    tags[:20], hits[:20] = 0, False

    def scores(documents: np.ndarray) -> np.ndarray:
        entries = GoldEntries(np.full(n, 0.9), hits, leads, tags, documents)
        return Adaptation.fit(entries, groups).adjust(np.full(30, 0.9), leads[:30], np.arange(30))

    spread, together = scores(np.arange(n) % 20), scores(np.repeat(np.arange(50), 60))
    assert spread[0] < 0.1
    assert together[0] > 0.5
    assert abs(spread[1:] - 0.9).max() < 0.02


ONE = np.ones


def drawn_line(n: int, slope: float, intercept: float, seed: int = 0):
    """(log-odds, hits): what hits as often as this line says."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(2, 2, n)
    return margins, rng.random(n) < sigmoid(slope * margins + intercept)


def test_one_spread_is_the_maximum_a_posteriori():
    margins, hits = drawn_line(60, 0.6, -0.5)
    weights = np.linspace(0.5, 1.5, 60)

    def objective(at):
        moved = at[0] * margins + at[1]
        loss = (weights * np.where(hits, np.log1p(np.exp(-moved)), np.log1p(np.exp(moved)))).sum()
        return loss + 0.5 * ((at[0] - 1) / 0.2) ** 2 + 0.5 * (at[1] / 0.4) ** 2

    wanted = minimize(objective, [1.0, 0.0], tol=1e-12).x
    found = fit_line(margins, hits, weights, Prior(spreads=(0.4,)))
    np.testing.assert_allclose([found.slope, found.intercept], wanted, atol=1e-5)


def test_without_entries_nothing_changes():
    assert fit_line(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0), Prior()) == Line()


def test_a_part_of_the_prior_weighs_as_much_as_the_hits_are_likely_under_it():
    """With one entry of log-odds 0, evidence can be had by integration: the mean of sigmoid over the Gaussian is 1/2 for each spread, so
    all parts weigh the same, up to what Laplace's approximation misses.
    """
    margins, hits = np.zeros(1), ONE(1, dtype=bool)
    wide = fit_line(margins, hits, ONE(1), Prior(spreads=(0.5,)))
    both = fit_line(margins, hits, ONE(1), Prior(spreads=(0.0, 0.5)))
    assert both.intercept == pytest.approx(wide.intercept / 2, rel=0.02)
    assert both.slope == pytest.approx(1.0)  # log-odds of 0 say nothing of it


def test_much_data_finds_the_line_and_true_scores_stay():
    found = fit_line(*drawn_line(20_000, 0.7, -0.5), ONE(20_000), Prior())
    assert (found.slope, found.intercept) == pytest.approx((0.7, -0.5), abs=0.06)
    same = fit_line(*drawn_line(20_000, 1.0, 0.0), ONE(20_000), Prior())
    assert (same.slope, same.intercept) == pytest.approx((1.0, 0.0), abs=0.03)


def test_scores_in_the_wrong_order_keep_their_order():
    margins, hits = drawn_line(5000, -1.0, 0.5)
    assert fit_line(margins, hits, ONE(5000), Prior(spreads=(0.5,))).slope == LEAST_SLOPE


def test_a_long_document_counts_for_no_more_than_its_own_shift_leaves():
    """40 tokens of score 1/2 hold the information 10, 4 tokens 1: weights 1 / (1 + .09 * 10) and 1 / (1 + .09)."""
    documents = np.repeat([7, 3], [40, 4])
    weights = document_weights(np.full(44, 0.5), documents, 0.3)
    np.testing.assert_allclose(weights, np.repeat([1 / 1.9, 1 / 1.09], [40, 4]))
    endless = document_weights(np.full(100_000, 0.5), np.zeros(100_000, dtype=np.intp), 0.3)
    assert (endless * 0.25).sum() < 1 / 0.3**2


def test_sure_scores_that_are_wrong_together_say_it_once():
    """Ten tokens of score .9: information .9 by their scores, and 10 * .81 where all of them miss, so weights 1 / 1.9 and 1 / 9.1."""
    documents, hits = np.repeat([0, 1], 10), np.repeat([True, False], 10)
    weights = document_weights(np.full(20, 0.9), documents, 1.0, hits)
    np.testing.assert_allclose(weights, np.repeat([1 / 1.9, 1 / 9.1], 10))


NARROW = Prior(spreads=(0.0, 0.2), outliers=False)


def test_a_wide_prior_is_taken_where_documents_held_out_want_it():
    """Leading entries are right as often as 2 less in log-odds says: the narrow prior moves them by too little."""
    entries, new = drawn(10, intercept=-2.0), drawn(200, intercept=-2.0, seed=1)
    narrow, wide = (Adaptation.fit(entries, GROUPS, prior) for prior in (NARROW, replace(NARROW, further_spread=0.8)))
    assert wide.leading.line == Adaptation.fit(entries, GROUPS, replace(NARROW, spreads=(0.0, 0.2, 0.8))).leading.line
    assert loss(new, wide) < loss(new, narrow) < loss(new)


def test_a_wide_prior_is_left_where_scores_are_true_and_with_one_document():
    true = drawn(30, seed=3)
    alone = drawn(1, intercept=-1.0)
    for entries in (true, alone):
        narrow, wide = (Adaptation.fit(entries, GROUPS, prior) for prior in (NARROW, replace(NARROW, further_spread=0.8)))
        assert wide.leading.line == narrow.leading.line
