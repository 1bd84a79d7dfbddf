"""What every scaling must do, over all that are registered. A new scaling adds its rows to CASES."""

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from spacy_calib.calibration.scaling import FLOOR, Scaling
from spacy_calib.errors import CalibError
from spacy_calib.pipe import saved
from spacy_calib.registry import registry
from spacy_calib.types import Pairs
from tests.made import N_TAGS, fit_data, sample_tokens

from ...strategies import make_pairs, pairs_of_tokens

# (registered name, settings)
CASES: list[tuple[str, dict[str, Any]]] = [
    ("spacy-calib.TemperatureScaling.v1", {}),
    ("spacy-calib.VectorScaling.v1", {}),
    ("spacy-calib.VectorScaling.v1", {"ridge": 3.0}),
    ("spacy-calib.MatrixScaling.v1", {}),
    ("spacy-calib.MatrixScaling.v1", {"ridge": 300.0}),
]
every_case = pytest.mark.parametrize(
    "number", [pytest.param(i, id=f"{case[0]}-{len(case[1])}") for i, case in enumerate(CASES)]
)
DATA = fit_data(sample_tokens(200, 1), lowest=1e-5)


def make(number: int) -> Scaling:
    """Resolved from a config, as `[components.calib.scaling]` is."""
    name, settings = CASES[number]
    return registry.resolve({"scaling": {"@calib_scalings": name, **settings}})["scaling"]


@cache
def fitted(number: int) -> Scaling:
    """Not to be fitted anew."""
    return make(number).fit(DATA.pairs, N_TAGS)


def scaled(scaling: Scaling, pairs: Pairs = DATA.pairs) -> np.ndarray:
    return scaling.scale_pairs(pairs)


@every_case
def test_resolves_from_config(number):
    name, settings = CASES[number]
    made = make(number)
    assert isinstance(made, Scaling)
    assert made.registered == name
    assert {key: made.settings()[key] for key in settings} == settings
    assert type(made)(**made.settings()).settings() == made.settings()


@every_case
def test_it_is_told_whether_it_is_fitted(number):
    made = make(number)
    assert (made.fitted, made.n_tags) == (False, 0)
    for ask in (made.size, made.describe, lambda: scaled(made)):
        with pytest.raises(CalibError, match=r"\[C004\]"):
            ask()
    assert made.fit(DATA.pairs, N_TAGS) is made
    assert (made.fitted, made.n_tags) == (True, N_TAGS)
    said = made.describe()
    assert (said["name"], said["biased"], said["size"]) == (made.registered, made.biased, made.size())
    assert made.size() >= 1


@every_case
def test_no_pairs_above_the_floor_are_refused(number):
    few = make_pairs([FLOOR / 2], [0])
    for pairs in (few, few.take(np.zeros(0, dtype=np.intp))):
        with pytest.raises(CalibError, match=r"\[C003\]"):
            make(number).fit(pairs, N_TAGS)


@every_case
@given(pairs=pairs_of_tokens(n_tags=6))
def test_scores_lie_in_the_unit_interval_and_a_token_has_no_more_than_one(number, pairs):
    found = scaled(fitted(number), pairs)
    assert found.shape == pairs.scores.shape
    assert ((found >= 0) & (found <= 1)).all()
    counted = pairs.scores >= FLOOR
    assert np.bincount(pairs.rows, found * counted).max(initial=0.0) <= 1 + 1e-9


@every_case
def test_nothing_to_scale(number):
    none = np.zeros(0, dtype=np.intp)
    assert fitted(number).scale(none, none, np.zeros(0)).shape == (0,)


@every_case
def test_one_tag(number):
    pairs = make_pairs([0.9, 0.6, 0.7, 0.8], [1, 0, 1, 1])
    found = scaled(make(number).fit(pairs, 1), pairs)
    assert ((found > 0) & (found < 1)).all()


@every_case
def test_tags_that_the_fit_did_not_see(number):
    """A tag without pairs, and labels that were appended later."""
    seen = DATA.pairs.take(DATA.pairs.tags != 3)
    scaling = make(number).fit(seen, N_TAGS)
    rows, tags = np.zeros(4, dtype=np.intp), np.array([0, 3, N_TAGS, N_TAGS + 5])
    found = scaling.scale(rows, tags, np.array([0.4, 0.3, 0.2, 0.05]))
    assert ((found > 0) & (found < 1)).all()


@every_case
def test_the_order_of_entries_does_not_matter(number):
    pairs, order = DATA.pairs, np.random.default_rng(1).permutation(len(DATA.pairs))
    counted = pairs.scores >= FLOOR
    mixed = fitted(number).scale(pairs.rows[order], pairs.tags[order], pairs.scores[order], counted[order])
    np.testing.assert_allclose(mixed, scaled(fitted(number))[order], rtol=1e-8)


@every_case
def test_the_order_of_the_rows_of_a_fit_does_not_matter(number):
    rng = np.random.default_rng(1)
    mixed = DATA.pairs.take(np.lexsort([rng.random(len(DATA.pairs)), DATA.pairs.rows]))
    np.testing.assert_allclose(scaled(make(number).fit(mixed, N_TAGS)), scaled(fitted(number)), rtol=0, atol=5e-4)


@every_case
def test_scores_of_a_token_hang_on_no_other_token(number):
    part = np.flatnonzero(DATA.pairs.rows % 7 == 3)
    np.testing.assert_array_equal(scaled(fitted(number), DATA.pairs.take(part)), scaled(fitted(number))[part])


@every_case
def test_it_does_not_change_its_input_and_does_not_hand_out_what_it_learned(number):
    arrays = [getattr(DATA.pairs, name).copy() for name in ("rows", "tags", "scores", "hits")]
    for array in arrays:
        array.flags.writeable = False
    pairs = Pairs(*arrays, DATA.pairs.n_units)
    scaling = make(number).fit(pairs, N_TAGS)
    scaled(scaling, pairs)[:] = 0
    learned = scaling.state()["learned"]
    for values in learned.values():
        if isinstance(values, np.ndarray):
            values[:] = 0
    np.testing.assert_array_equal(scaled(scaling, pairs), scaled(fitted(number)))


@every_case
def test_scores_of_a_document_come_from_a_scaling_that_did_not_see_it(number):
    """Where a document has other hits, its own scores stay, but for where a search began; those of the other folds move."""
    documents = DATA.documents
    settings = {"ridge": 100.0} if "ridge" in make(number).settings() else {}  # chosen anew it would differ itself
    own = documents == 4
    turned = Pairs(DATA.pairs.rows, DATA.pairs.tags, DATA.pairs.scores, DATA.pairs.hits & ~own, DATA.pairs.n_units)
    scores = [type(make(number))(**settings).cross_fit(pairs, documents, N_TAGS) for pairs in (DATA.pairs, turned)]
    moved = np.abs(scores[0] - scores[1])
    assert moved[own].max() < moved[documents == 0].max() / 10


@every_case
def test_of_one_document_its_own_scores_are_given(number):
    scaling = make(number)
    found = scaling.cross_fit(DATA.pairs, np.zeros(len(DATA.pairs), dtype=np.intp), N_TAGS)
    np.testing.assert_array_equal(found, scaled(scaling))


@every_case
def test_a_clone_has_the_settings_and_nothing_learned(number):
    clone = fitted(number).clone()
    assert type(clone) is type(fitted(number))
    assert (clone.settings(), clone.fitted) == (fitted(number).settings(), False)


@every_case
def test_a_saved_one_scales_the_same_bits(number):
    scaling = fitted(number)
    data = saved.dump({"scaling": scaling.state()})
    back = saved.load_part(saved.read(data, dict, name="calib", path="memory")["scaling"], name="calib")
    assert type(back) is type(scaling)
    assert (back.settings(), back.size(), back.n_tags) == (scaling.settings(), scaling.size(), N_TAGS)
    assert scaled(back).tobytes() == scaled(scaling).tobytes()
    assert saved.dump({"scaling": back.state()}) == data


@every_case
def test_a_pickled_one_scales_the_same_bits(number):
    assert scaled(pickle.loads(pickle.dumps(fitted(number)))).tobytes() == scaled(fitted(number)).tobytes()
