"""The drift check: differences worked by hand, what counts as one that matters, and what too few texts can show."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.pipe.record.drift import DIFFERENT, LIKE, TOO_FEW, Check, DriftProfile, UnitScores, _in_stretches
from spacy_calib.schema import InvalidState


def drawn(seed, n_docs, power=0.3, rare=0.2, length=60):
    """Documents with scores u ** power, and labels of which "B" is the rarer one."""
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(n_docs), length)
    raw = rng.random(len(documents)) ** power
    labels = np.where(rng.random(len(documents)) < rare, "B", "A").tolist()
    return UnitScores(documents, n_docs, labels, raw, raw)


def by_name(drift):
    return {check.name: check for check in drift.checks}


@pytest.fixture(scope="module")
def profile():
    return DriftProfile.from_units(drawn(0, 200))


def test_documents_of_the_same_kind_are_like_the_fit_data(profile):
    drift = profile.compare(drawn(1, 150))
    assert (drift.verdict, drift.is_trusted) == (LIKE, True)
    assert list(by_name(drift)) == ["scores", "labels", "expected accuracy"]


@pytest.mark.parametrize(
    ("settings", "named"), [({"power": 0.6}, {"scores", "expected accuracy"}), ({"rare": 0.5}, {"labels"})]
)
def test_documents_of_another_kind_differ_by_what_is_another(profile, settings, named):
    drift = profile.compare(drawn(1, 150, **settings))
    assert (drift.verdict, drift.is_trusted) == (DIFFERENT, False)
    assert {check.name for check in drift.checks if check.differs} == named


def test_so_few_documents_tell_nothing(profile):
    drift = profile.compare(drawn(1, 1))
    assert (drift.verdict, drift.is_trusted) == (TOO_FEW, False)


def test_a_great_difference_shows_in_few_documents(profile):
    assert profile.compare(drawn(1, 5, power=3.0)).verdict == DIFFERENT


def test_a_small_difference_in_many_documents_does_not_matter(profile):
    drift = profile.compare(drawn(1, 3000, rare=0.23))
    labels = by_name(drift)["labels"]
    assert labels.chance < labels.value < labels.limit
    assert drift.verdict == LIKE


def test_the_differences_by_hand():
    fit = UnitScores(
        np.repeat(np.arange(4), 5), 4, ["A", "A", "A", "A", "B"] * 4, np.tile(np.linspace(0.1, 0.9, 5), 4), np.full(20, 0.9)
    )
    profile = DriftProfile.from_units(fit)
    # All scores at or above the highest edge: a fifth of the fit data is there. Of four labels two are A, one is B, one was never seen.
    new = UnitScores(np.zeros(4, dtype=int), 1, ["A", "B", "A", "never seen"], np.full(4, 0.9), np.full(4, 0.7))
    found = by_name(profile.compare(new))
    assert found["scores"].value == pytest.approx(0.8)
    assert found["labels"].value == pytest.approx((abs(0.5 - 0.8) + abs(0.25 - 0.2) + 0.25) / 2)
    assert found["expected accuracy"].value == pytest.approx(0.2)
    # A quarter of the errors (0.1) would be 0.025, but 0.02 matters always.
    assert found["expected accuracy"].limit == pytest.approx(0.02)


def test_differences_that_the_fit_data_holds_itself_do_not_count():
    parts = [drawn(seed, 40, rare=rare) for seed, rare in enumerate((0.1, 0.2, 0.3, 0.4, 0.5))]
    joined = UnitScores(
        np.concatenate([part.documents + 40 * i for i, part in enumerate(parts)]), 200, sum((part.labels for part in parts), []),
        np.concatenate([part.raw for part in parts]), np.concatenate([part.raw for part in parts]),
    )  # fmt: skip
    labels = by_name(DriftProfile.from_units(joined).compare(drawn(9, 100, rare=0.45)))["labels"]
    # The last fifth has 0.5 of them, the others 0.25.
    assert labels.limit == pytest.approx(0.25, abs=0.02)
    assert labels.value > labels.chance
    assert not labels.differs


def test_entities_are_compared_too():
    spans = drawn(2, 200, length=3)
    profile = DriftProfile.from_units(drawn(0, 200), spans)
    same = profile.compare(drawn(1, 150), drawn(3, 150, length=3))
    assert "entity scores" in by_name(same)
    assert same.verdict == LIKE
    other = profile.compare(drawn(1, 150), drawn(3, 150, power=0.8, length=3))
    assert {check.name for check in other.checks if check.differs} == {"entity scores"}
    # No entities at all: nothing to compare.
    none = profile.compare(drawn(1, 150), UnitScores(np.zeros(0, dtype=int), 150, None, np.zeros(0), np.zeros(0)))
    assert "entity scores" not in by_name(none)


def test_no_more_is_said_than_the_smaller_of_documents_and_tokens(profile):
    # The same tokens in one long document, or in many short ones, say no more than as few fit documents.
    few = by_name(profile.compare(drawn(1, 10)))["scores"].chance
    one_long = by_name(profile.compare(drawn(1, 1, length=600)))["scores"].chance
    many_short = by_name(profile.compare(drawn(1, 600, length=1)))["scores"].chance
    assert one_long > few
    assert many_short == pytest.approx(few)


def test_at_most_a_thousand_documents_are_kept():
    profile = DriftProfile.from_units(drawn(0, 1500, length=2))
    assert profile.scores.shape[0] == 1000
    assert profile.calibrated.shape == (1000,)


def test_state_and_seed_give_the_same_again(profile):
    new = drawn(1, 20)
    again = DriftProfile.read(profile.state())
    assert again.compare(new, seed=3) == profile.compare(new, seed=3)
    assert again.compare(new, seed=3) != profile.compare(new, seed=4)


@pytest.mark.parametrize("name", ["edges", "span_edges"])
def test_edges_beyond_the_scores_there_can_be_are_refused(profile, name):
    state = profile.state() | {"span_edges": np.array([0.5]), "spans": np.ones((len(profile.scores), 2))}
    assert DriftProfile.read(state).spans.shape[1] == 2
    state[name] = np.append(state[name][:-1], 1.5)
    with pytest.raises(InvalidState, match=f"{name}' is not an array of numbers from 0 to 1"):
        DriftProfile.read(state)


@pytest.mark.parametrize(
    ("value", "limit", "chance", "differs", "undecided"),
    [(0.06, 0.05, 0.02, True, False), (0.06, 0.05, 0.07, False, True), (0.04, 0.05, 0.02, False, False), (0.04, 0.05, 0.11, False, True)],
)  # fmt: skip
def test_what_differs_is_above_limit_and_chance(value, limit, chance, differs, undecided):
    check = Check("scores", value, limit, chance)
    assert (check.differs, check.is_undecided) == (differs, undecided)


def test_few_long_documents_are_compared_by_stretches():
    short, long_ = DriftProfile.from_units(drawn(0, 200)), DriftProfile.from_units(drawn(0, 30, length=1000))
    assert (short.stretch, long_.stretch, len(long_.scores)) == (0, 100, 300)
    for profile, stretch in ((short, 60), (long_, 100)):
        same = profile.compare(drawn(1, 30, length=1000))
        assert (same.verdict, same.stretch) == (LIKE, stretch)
        assert profile.compare(drawn(1, 30, length=1000, rare=0.4)).verdict == DIFFERENT
    assert long_.compare(drawn(1, 300)).stretch == 100
    # A handful of documents stands for no others, however long they are.
    few = short.compare(drawn(1, 1, length=30000))
    assert (few.verdict, few.stretch) == (TOO_FEW, 0)
    assert short.compare(drawn(1, 9, length=3000)).stretch == 0
    assert DriftProfile.from_units(drawn(0, 5, length=6000)).stretch == 0


def test_stretches_are_of_one_document_and_about_equal():
    tokens = UnitScores(np.repeat([0, 1, 2], [250, 90, 0]), 3, ["A"] * 340, np.linspace(0, 1, 340), np.ones(340))
    spans = UnitScores(np.array([0, 0, 1]), 3, None, np.ones(3), np.ones(3))
    cut, of_spans = _in_stretches(tokens, spans, 100)
    assert np.bincount(cut.documents).tolist() == [125, 125, 90]
    assert (cut.n_docs, of_spans.documents.tolist()) == (4, [0, 1, 2])
