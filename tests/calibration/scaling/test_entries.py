"""How the tags of a token are laid out beside one another: by hand, and against a slow layout token by token."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.scaling import entries as module
from spacy_calib.calibration.scaling.entries import FLOOR, LEAST, LEAST_REST, Entries, lay_out, number_codes

from ...strategies import score


def layout(rows, tags, scores, n_tags=4, pairwise=True) -> Entries:
    return lay_out(np.array(rows, np.intp), np.array(tags, np.intp), np.array(scores, float), n_tags, pairwise)


def bearing(entries: Entries, token: int) -> dict[int, list[int]]:
    """Tag of each target of a token: the tags that bear on it, in order."""
    held: dict[int, list[int]] = {}
    for source, target in zip(entries.sources.tolist(), entries.targets.tolist(), strict=True):
        assert entries.tokens[source] == entries.tokens[target]
        if entries.tokens[target] == token:
            held.setdefault(int(entries.tags[target]), []).append(int(entries.tags[source]))
    return held


def test_worked_by_hand():
    # Token 3 has tags 2 (.2) and 0 (.7), token 7 has tag 1 (.6): likeliest first, and the rest, tag 4, at the end of each.
    entries = layout([7, 3, 3], [1, 2, 0], [0.6, 0.2, 0.7])
    assert entries.starts.tolist() == [0, 3]
    assert entries.tokens.tolist() == [0, 0, 0, 1, 1]
    assert entries.tags.tolist() == [0, 2, 4, 1, 4]
    np.testing.assert_allclose(np.exp(entries.logs), [0.7, 0.2, 0.1, 0.6, 0.4], rtol=1e-14)
    np.testing.assert_allclose(entries.inputs, [math.log(7000), math.log(2000), 0, math.log(6000), 0], rtol=1e-14)
    assert entries.origin.tolist() == [2, 1, -1, 0, -1]
    assert bearing(entries, 0) == {0: [0, 2], 2: [0, 2], 4: [0, 2]}
    assert bearing(entries, 1) == {1: [1], 4: [1]}
    # Six columns: four tags, the rest, and what is past the end.
    assert entries.codes.tolist() == [0, 12, 2, 14, 4, 16, 7, 10]
    assert len(entries) == 5


def test_equal_scores_stand_by_column():
    assert layout([0, 0, 0], [3, 0, 2], [0.3, 0.3, 0.3]).tags.tolist() == [0, 2, 3, 4]


def test_no_more_than_the_likeliest_bear_on_the_others():
    scores = np.linspace(0.001, 0.08, 20)
    entries = layout([0] * 20, range(20), scores, n_tags=20)
    assert module.MOST_INPUTS == 16
    likeliest = list(range(19, 3, -1))
    assert bearing(entries, 0) == {tag: likeliest for tag in range(21)}
    # A second token with few tags has them all.
    entries = layout([0] * 20 + [1], [*range(20), 5], [*scores, 0.4], n_tags=20)
    assert bearing(entries, 1) == {5: [5], 20: [5]}


def test_tags_past_the_end_are_one_and_not_the_rest():
    entries = layout([0, 0, 0, 0], [4, 5, 99, 3], [0.1, 0.2, 0.3, 0.25])
    assert entries.tags.tolist() == [5, 3, 5, 5, 4]
    assert entries.origin.tolist() == [2, 3, 1, 0, -1]


def test_without_pairs_of_entries():
    with_pairs, without = (layout([0, 0, 1], [0, 1, 1], [0.5, 0.2, 0.9], pairwise=wanted) for wanted in (True, False))
    assert len(without.sources) == len(without.targets) == len(without.codes) == 0
    for name in ("starts", "tokens", "tags", "logs", "inputs", "origin"):
        np.testing.assert_array_equal(getattr(with_pairs, name), getattr(without, name))


@pytest.mark.parametrize(("given_score", "taken"), [(0.0, LEAST), (-0.0, LEAST), (5e-324, LEAST), (1e-12, 1e-12), (1.0, 1.0)])
def test_logarithms_are_finite(given_score, taken):
    entries = layout([0], [0], [given_score])
    assert np.exp(entries.logs[0]) == pytest.approx(taken, rel=1e-12)
    assert entries.logs[1] == pytest.approx(math.log(max(1 - given_score, LEAST_REST)), abs=1e-11)


def test_scores_that_sum_to_more_than_one_leave_the_least_rest():
    assert layout([0, 0], [0, 1], [0.9, 0.9]).logs[-1] == math.log(LEAST_REST)


def test_a_score_at_the_floor_has_no_input():
    assert layout([0, 0, 0], [0, 1, 2], [FLOOR, FLOOR / 2, 2 * FLOOR]).inputs.tolist() == pytest.approx([math.log(2), 0, 0, 0])


def test_nothing_gives_nothing():
    entries = layout([], [], [])
    assert len(entries) == len(entries.starts) == len(entries.codes) == 0


@st.composite
def some_entries(draw):
    """(rows, tags, scores) of some tokens in whatever order; four tags and two past the end."""
    keys = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True, max_size=25))
    values = draw(st.lists(score, min_size=len(keys), max_size=len(keys)))
    return [3 * row for row, _ in keys], [tag for _, tag in keys], values


@given(some_entries(), st.integers(1, 7))
def test_it_is_the_slow_layout(given_entries, most):
    rows, tags, scores = given_entries
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_INPUTS", most)
        entries = layout(rows, tags, scores)
    at = 0
    held = []
    for token, row in enumerate(sorted(set(rows))):
        own = [i for i in range(len(rows)) if rows[i] == row]
        column = {i: tags[i] if tags[i] < 4 else 5 for i in own}
        value = {i: max(scores[i], LEAST) for i in own}
        own.sort(key=lambda i: (-value[i], column[i], i))
        rest = max(1 - sum(scores[i] for i in own), LEAST_REST)
        assert entries.starts[token] == at
        assert entries.origin[at : at + len(own) + 1].tolist() == [*own, -1]
        assert entries.tags[at : at + len(own) + 1].tolist() == [*(column[i] for i in own), 4]
        # Summed in another order, a rest differs by some 1e-16, of at least 1e-6.
        np.testing.assert_allclose(
            entries.logs[at : at + len(own) + 1], np.log([*(value[i] for i in own), rest]), rtol=1e-12, atol=1e-9
        )
        inputs = [max(math.log(value[i] / FLOOR), 0) for i in own]
        np.testing.assert_allclose(entries.inputs[at : at + len(own) + 1], [*inputs, 0], rtol=1e-12, atol=1e-12)
        sources = range(at, at + min(most, len(own)))
        held += [(source, target) for target in range(at, at + len(own) + 1) for source in sources]
        at += len(own) + 1
    assert len(entries) == at
    assert list(zip(entries.sources.tolist(), entries.targets.tolist(), strict=True)) == held


@pytest.mark.parametrize("largest", [0, 1 << 22])
@pytest.mark.parametrize("codes", [[], [3], [5, 0, 5, 9, 3, 0]])
def test_codes_are_numbered_as_by_sorting(codes, largest, monkeypatch):
    monkeypatch.setattr(module, "_LARGEST_TABLE", largest)
    given = np.array(codes, dtype=np.intp)
    distinct, places = number_codes(given, 10)
    wanted = np.unique(given, return_inverse=True)
    np.testing.assert_array_equal(distinct, wanted[0])
    np.testing.assert_array_equal(places, wanted[1])
