"""The drift check: differences worked by hand, what counts as one that matters, and that no document can be told from a profile."""

import numpy as np
import pytest

from spacy_calib.pipe.record.drift import DIFFERENT, LIKE, MIN_DOCUMENTS, TOO_FEW, Check, DriftProfile, UnitScores
from spacy_calib.schema import InvalidState


def drawn(seed, n_docs, power=0.3, rare=0.2, length=60):
    """Documents with scores u ** power, and labels of which "B" is the rarer one."""
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(n_docs), length)
    raw = rng.random(len(documents)) ** power
    labels = np.where(rng.random(len(documents)) < rare, "B", "A").tolist()
    return UnitScores(documents, n_docs, labels, raw, raw)


def compare(profile, tokens, spans=None):
    return profile.compare(profile.sums_of(tokens, spans))


def by_name(drift):
    return {check.name: check for check in drift.checks}


@pytest.fixture(scope="module")
def profile():
    return DriftProfile.from_units(drawn(0, 200))


def test_documents_of_the_same_kind_are_like_the_fit_data(profile):
    drift = compare(profile, drawn(1, 150))
    assert (drift.verdict, drift.is_trusted) == (LIKE, True)
    assert list(by_name(drift)) == ["scores", "labels", "expected accuracy"]


@pytest.mark.parametrize(
    ("settings", "named"), [({"power": 0.6}, {"scores", "expected accuracy"}), ({"rare": 0.5}, {"labels"})]
)
def test_documents_of_another_kind_differ_by_what_is_another(profile, settings, named):
    drift = compare(profile, drawn(1, 150, **settings))
    assert (drift.verdict, drift.is_trusted) == (DIFFERENT, False)
    assert {check.name for check in drift.checks if check.differs} == named


def test_fewer_than_twenty_documents_are_not_compared(profile):
    few = compare(profile, drawn(1, MIN_DOCUMENTS - 1, power=3.0))
    assert (few.verdict, few.checks) == (TOO_FEW, ())
    assert compare(profile, drawn(1, MIN_DOCUMENTS, power=3.0)).verdict == DIFFERENT
    assert DriftProfile.from_units(drawn(0, MIN_DOCUMENTS - 1)) is None
    # Documents without tokens do not count.
    empty = drawn(0, MIN_DOCUMENTS)
    assert DriftProfile.from_units(empty.take(np.flatnonzero(empty.documents > 0))) is None


def test_batches_add_up(profile):
    new = drawn(1, 100)
    halves = [new.of_documents(np.arange(first, 100, 2)) for first in (0, 1)]
    joined = profile.compare(profile.sums_of(halves[0]) + profile.sums_of(halves[1]))
    for check, other in zip(joined.checks, compare(profile, new).checks, strict=True):
        assert check.value == pytest.approx(other.value)
        assert check.chance == pytest.approx(other.chance)


def test_a_small_difference_in_many_documents_does_not_matter(profile):
    drift = compare(profile, drawn(1, 3000, rare=0.23))
    labels = by_name(drift)["labels"]
    assert labels.chance < labels.value < labels.limit
    assert drift.verdict == LIKE


def by_hand():
    """Twenty documents of five tokens: mean scores 0.4 and 0.6 by turns, one "B" in each."""
    means = np.tile([0.4, 0.6], 10)
    return UnitScores(np.repeat(np.arange(20), 5), 20, ["A", "A", "A", "A", "B"] * 20, np.repeat(means, 5), np.full(100, 0.9))


def test_the_differences_by_hand():
    profile = DriftProfile.from_units(by_hand())
    # Of four labels two are A, one is B, one was never seen.
    new = UnitScores(np.repeat(np.arange(20), 4), 20, ["A", "B", "A", "never seen"] * 20, np.full(80, 0.9), np.full(80, 0.7))
    checks = by_name(compare(profile, new))
    assert checks["scores"].value == pytest.approx(0.4)
    assert checks["labels"].value == pytest.approx((abs(0.5 - 0.8) + abs(0.25 - 0.2) + 0.25) / 2)
    assert checks["expected accuracy"].value == pytest.approx(0.2)
    # A quarter of the errors (0.1) would be 0.025, but 0.02 matters always.
    assert checks["expected accuracy"].limit == pytest.approx(0.02)
    # A document's sum of scores is 0.5 from its expectation, and all new ones are equal. The quantile of 0.995 is 3.174
    # standard deviations by Student's t with 19 degrees of freedom (the normal one is simulated: to 3 %).
    assert checks["scores"].chance == pytest.approx(3.174 * np.sqrt(20 * 0.25 / 100**2 * 20 / 19), rel=0.03)
    # All documents have the same labels and calibrated scores.
    assert (checks["labels"].chance, checks["expected accuracy"].chance) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_differences_of_parts_of_the_fit_data_do_not_count():
    parts = [drawn(seed, 40, rare=rare) for seed, rare in enumerate((0.1, 0.2, 0.3, 0.4, 0.5))]
    joined = UnitScores(
        np.concatenate([part.documents + 40 * i for i, part in enumerate(parts)]), 200, sum((part.labels for part in parts), []),
        np.concatenate([part.raw for part in parts]), np.concatenate([part.raw for part in parts]),
    )  # fmt: skip
    labels = by_name(compare(DriftProfile.from_units(joined), drawn(9, 100, rare=0.45)))["labels"]
    # The last fifth has 0.5 of them, the others 0.25.
    assert labels.limit == pytest.approx(0.25, abs=0.02)
    assert labels.value > labels.chance
    assert not labels.differs


def test_entities_are_compared_too():
    spans = drawn(2, 200, length=3)
    profile = DriftProfile.from_units(drawn(0, 200), spans)
    same = compare(profile, drawn(1, 150), drawn(3, 150, length=3))
    assert "entity scores" in by_name(same)
    assert same.verdict == LIKE
    other = compare(profile, drawn(1, 150), drawn(3, 150, power=0.8, length=3))
    assert {check.name for check in other.checks if check.differs} == {"entity scores"}
    # No entities at all: nothing to compare.
    none = compare(profile, drawn(1, 150), UnitScores(np.zeros(0, dtype=int), 150, None, np.zeros(0), np.zeros(0)))
    assert "entity scores" not in by_name(none)


@pytest.mark.parametrize("n_docs", [40, 200])
def test_samples_of_one_source_rarely_differ_by_chance(n_docs):
    """Each check's chance is a 99.5 % quantile: of 3 x 100 differences 1 or 2 exceed it, and 7 would be far too many."""
    exceeded = 0
    for seed in range(100):
        drift = compare(DriftProfile.from_units(drawn(seed, 200, length=10)), drawn(seed + 1000, n_docs, length=10))
        exceeded += sum(check.value > check.chance for check in drift.checks)
    assert exceeded < 7


def test_one_odd_document_is_no_other_source(profile):
    """Its own spread is looked at: nine tenths of the tokens are in one of thirty documents."""
    few, odd = drawn(1, 29, length=10), drawn(2, 1, power=0.6, length=2600)
    new = UnitScores(
        np.append(few.documents, odd.documents + 29), 30, few.labels + odd.labels, np.append(few.raw, odd.raw),
        np.append(few.raw, odd.raw),
    )  # fmt: skip
    assert compare(profile, new).verdict == TOO_FEW


def test_labels_and_entities_of_few_documents_have_no_number_of_their_own():
    tokens = drawn(0, 200)
    tokens.labels[:600:60] = ["in ten documents"] * 10
    tokens.labels[1:1800:60] = ["in thirty"] * 30
    profile = DriftProfile.from_units(tokens, drawn(2, 19, length=3))
    assert (profile.labels, profile.entities) == (("A", "B"), 0.0)
    tokens.labels[2:1200:60] = ["in twenty"] * 20
    # Others are of twenty documents or more, as those of ten and of twenty are pooled.
    tokens.labels[1200 + 2 : 1800 : 60] = ["rare"] * 10
    assert DriftProfile.from_units(tokens).labels == ("A", "B", "in thirty", "in twenty")


def test_what_one_document_has_changes_no_saved_digit_alone():
    """Nothing has one row for each document, and numbers are rounded."""
    profile = DriftProfile.from_units(drawn(0, 1500, length=2))
    assert all(np.size(value) < 10 for value in profile.state().values())
    for values in (profile.means, profile.chances, profile.limits):
        assert [float(f"{value:.4g}") for value in values] == values.tolist()


def test_a_state_gives_the_same_again(profile):
    new = drawn(1, 20)
    assert compare(DriftProfile.read(profile.state()), new) == compare(profile, new)


@pytest.mark.parametrize(("name", "value"), [("means", 1.5), ("chances", -1.0), ("documents", 19)])
def test_numbers_that_cannot_be_are_refused(profile, name, value):
    state = profile.state()
    state[name] = np.append(state[name][:-1], value) if np.ndim(state[name]) else value
    with pytest.raises(InvalidState, match=name):
        DriftProfile.read(state)


@pytest.mark.parametrize(
    ("value", "limit", "chance", "differs", "undecided"),
    [(0.06, 0.05, 0.02, True, False), (0.06, 0.05, 0.07, False, True), (0.04, 0.05, 0.02, False, False), (0.04, 0.05, 0.11, False, True)],
)  # fmt: skip
def test_what_differs_is_above_limit_and_chance(value, limit, chance, differs, undecided):
    check = Check("scores", value, limit, chance)
    assert (check.differs, check.is_undecided) == (differs, undecided)
