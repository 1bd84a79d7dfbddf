"""What all sets must do, over all that are registered. New sets add their rows to CASES."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

from spacy_calib.calibration.sets import COVERAGES
from spacy_calib.errors import CalibError
from spacy_calib.pipe import saved
from spacy_calib.registry import registry
from spacy_calib.types import Groups
from tests.made import N_TAGS, TOKEN_GROUPS, TOKEN_LABELS, fit_data, sample_tokens

# (registered name, settings)
CASES: list[tuple[str, dict[str, Any]]] = [
    ("spacy-calib.ConformalSets.v1", {}),
    *(("spacy-calib.ConformalSets.v1", {"alpha": 0.2, "coverage": coverage}) for coverage in COVERAGES),
    *(("spacy-calib.ConformalSets.v1", {"alpha": 0.3, "coverage": coverage, "nonempty": True}) for coverage in COVERAGES),
    ("spacy-calib.ConformalSets.v1", {"alpha": 0.05, "coverage": "tag", "min_tokens": 3}),
]
every_case = pytest.mark.parametrize(
    "number", [pytest.param(i, id="-".join(map(str, [case[0], *case[1].values()]))) for i, case in enumerate(CASES)]
)
N = 1500
DATA, FRESH = (fit_data(sample_tokens(N, seed, sharpness=1.0, biases=(0.0,) * N_TAGS)) for seed in (1, 2))


def make(number: int) -> Any:
    """Resolved from a config, as `[components.calib.sets]` is."""
    name, settings = CASES[number]
    return registry.resolve({"sets": {"@calib_sets": name, **settings}})["sets"]


def fit(number: int, order: Any = slice(None), groups: Groups = TOKEN_GROUPS) -> Any:
    pairs = DATA.pairs
    return make(number).fit(pairs.rows[order], pairs.tags[order], pairs.scores[order], DATA.gold, groups)


@cache
def fitted(number: int) -> Any:
    """Not to be fitted anew."""
    return fit(number)


def sets_of(made: Any, data: Any = FRESH) -> tuple[np.ndarray, np.ndarray]:
    return made.predict(data.pairs.rows, data.pairs.tags, data.pairs.scores, len(data.gold))


@every_case
def test_resolves_from_config(number):
    name, settings = CASES[number]
    made = make(number)
    assert made.registered == name
    assert {key: made.settings()[key] for key in settings} == settings
    assert type(made)(**made.settings()).settings() == made.settings()
    assert made.n_tags == 0
    with pytest.raises(CalibError, match=r"\[C004\]"):
        sets_of(made)


@every_case
def test_what_is_promised_of_fresh_tokens_is_kept(number):
    in_set, out_of_reach = sets_of(fitted(number))
    holds = out_of_reach.copy()
    right = FRESH.pairs.tags == FRESH.gold[FRESH.pairs.rows]
    holds[FRESH.pairs.rows[in_set & right]] = True
    alpha = fitted(number).settings()["alpha"]
    assert holds.mean() > 1 - alpha - 3 * np.sqrt(2 * alpha * (1 - alpha) / N)


@every_case
def test_no_tokens_with_gold_are_refused(number):
    none = np.zeros(0, dtype=np.intp)
    for gold in (none, np.array([-2, -2])):
        with pytest.raises(CalibError, match=r"\[C071\]"):
            make(number).fit(none, none, np.zeros(0), gold, TOKEN_GROUPS)


@every_case
def test_tokens_without_entries(number):
    none = np.zeros(0, dtype=np.intp)
    in_set, out_of_reach = fitted(number).predict(none, none, np.zeros(0), 3)
    assert (in_set.shape, out_of_reach.shape) == ((0,), (3,))
    made = make(number).fit(none, none, np.zeros(0), np.array([0, 1, -1, -2]), TOKEN_GROUPS)
    assert made.predict(none, none, np.zeros(0), 2)[1].all(), "nothing is known of tags that never have an entry"


@every_case
def test_one_tag_and_labels_that_were_appended_later(number):
    rows, zeros = np.arange(200), np.zeros(200, dtype=np.intp)
    scores = np.random.default_rng(1).uniform(0.5, 1.0, 200)
    made = make(number).fit(rows, zeros, scores, zeros, Groups(("all",), np.zeros(1, dtype=np.intp)))
    assert made.n_tags == 1
    in_set, _ = made.predict(np.array([0, 0]), np.array([0, 7]), np.array([0.99, 0.4]), 1)
    assert in_set[0]


@every_case
def test_the_order_of_the_rows_does_not_matter(number):
    order = np.random.default_rng(1).permutation(len(DATA.pairs))
    other = fit(number, order)
    for one, two in zip(sets_of(other), sets_of(fitted(number)), strict=True):
        np.testing.assert_array_equal(one, two)
    pairs = FRESH.pairs
    order = np.random.default_rng(2).permutation(len(pairs))
    in_set, out_of_reach = other.predict(pairs.rows[order], pairs.tags[order], pairs.scores[order], len(FRESH.gold))
    np.testing.assert_array_equal(in_set, sets_of(other)[0][order])
    np.testing.assert_array_equal(out_of_reach, sets_of(other)[1])


@every_case
def test_it_does_not_change_its_input(number):
    arrays = [array.copy() for array in (DATA.pairs.rows, DATA.pairs.tags, DATA.pairs.scores, DATA.gold)]
    for array in arrays:
        array.flags.writeable = False
    made = make(number).fit(*arrays, TOKEN_GROUPS)
    in_set, out_of_reach = made.predict(*arrays[:3], N)
    in_set[:] = out_of_reach[:] = False
    for one, two in zip(sets_of(made), sets_of(fitted(number)), strict=True):
        np.testing.assert_array_equal(one, two)


@every_case
def test_a_clone_has_the_settings_and_nothing_learned(number):
    clone = fitted(number).clone()
    assert (type(clone), clone.settings(), clone.n_tags) == (type(make(number)), make(number).settings(), 0)


@every_case
def test_saved_and_pickled_ones_make_the_same_sets(number):
    made = fitted(number)
    data = saved.dump({"sets": made.state()})
    back = saved.load_part(saved.load(data, name="calib", path="memory")["sets"], name="calib")
    assert saved.dump({"sets": back.state()}) == data
    for other in (back, pickle.loads(pickle.dumps(made))):
        assert other.settings() == made.settings()
        assert other.describe(TOKEN_LABELS) == made.describe(TOKEN_LABELS)
        for one, two in zip(sets_of(other), sets_of(made), strict=True):
            np.testing.assert_array_equal(one, two)
