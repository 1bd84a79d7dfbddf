"""What every recalibrator must do, over all that are registered (STYLE section 3). A new recalibrator adds its rows to CASES."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.recalibrators import Recalibrator
from spacy_calib.errors import CalibError
from spacy_calib.pipe import saved
from spacy_calib.registry import registry
from tests.sentences import says

from ...strategies import SPECIAL, bernoulli, score_arrays, scored_hits, scored_hits_with_order

IDENTITY = {"@calib_recalibrators": "spacy-calib.Identity.v1"}
HISTOGRAM = {"@calib_recalibrators": "spacy-calib.Histogram.v1", "n_bins": 5}
PLATT = {"@calib_recalibrators": "spacy-calib.Platt.v1"}

# (registered name, settings)
CASES = [
    ("spacy-calib.Identity.v1", {}), ("spacy-calib.Histogram.v1", {}), ("spacy-calib.Histogram.v1", {"n_bins": 3}),
    ("spacy-calib.Histogram.v1", {"bin_size": 4}), ("spacy-calib.Isotonic.v1", {}), ("spacy-calib.ScalingBinning.v1", {}),
    ("spacy-calib.ScalingBinning.v1", {"n_bins": 3}), ("spacy-calib.ScalingBinning.v1", {"bin_size": 4}),
    ("spacy-calib.ScalingBinning.v1", {"n_bins": 3, "scaling": IDENTITY}),
    ("spacy-calib.ScalingBinning.v1", {"n_bins": 3, "scaling": HISTOGRAM}), ("spacy-calib.Temperature.v1", {}),
    ("spacy-calib.Platt.v1", {}), ("spacy-calib.Beta.v1", {}),
    ("spacy-calib.ScalingBinning.v1", {"n_bins": 3, "scaling": PLATT}),
]  # fmt: skip


def name_of(case) -> str:
    name, settings = case
    shown = "-".join(f"{k}={v['@calib_recalibrators'] if isinstance(v, dict) else v}" for k, v in settings.items())
    return name.removeprefix("spacy-calib.") + (f"[{shown}]" if shown else "")


CASE_PARAMS = [pytest.param(case, id=name_of(case)) for case in CASES]
every_case = pytest.mark.parametrize("case", CASE_PARAMS)


def resolve(case) -> Recalibrator:
    """From a config, as `[components.calib.recalibrator]` is."""
    name, settings = case
    return registry.resolve({"recalibrator": {"@calib_recalibrators": name, **settings}})["recalibrator"]


RESOLVED = {name_of(case): resolve(case) for case in CASES}


def make(case) -> Recalibrator:
    """A new one; none of those that it is made from is ever fitted."""
    return RESOLVED[name_of(case)].clone()


# Fitted below, and everything in between and beyond.
GRID = np.unique(np.concatenate([np.linspace(0, 1, 201), np.abs(SPECIAL)]))


@every_case
def test_resolves_from_config(case):
    name, settings = case
    made = resolve(case)
    assert isinstance(made, Recalibrator)
    assert made.registered == name
    plain = {key: value for key, value in settings.items() if key != "scaling"}
    assert {key: made.settings()[key] for key in plain} == plain
    assert made.min_pairs >= 0


@every_case
@given(pair=scored_hits(), others=score_arrays(max_size=20))
def test_stays_in_the_unit_interval_and_is_finite_for_any_score(case, pair, others):
    made = make(case).fit(*pair)
    for scores in (pair[0], others, GRID, np.array([0.0, 1.0, -0.0])):
        predicted = made.predict(scores)
        assert predicted.shape == scores.shape
        assert predicted.dtype == np.float64
        assert np.isfinite(predicted).all()
        assert (predicted >= 0).all()
        assert (predicted <= 1).all()


@every_case
def test_is_finite_between_denormal_scores(case):
    # A slope of 1 / 1e-310 overflows: a line through the two points gives infinity in between.
    predicted = make(case).fit([0.0, 1e-310], [0, 1]).predict([0.0, 5e-311, 1e-310, 1.0])
    assert np.isfinite(predicted).all()
    assert (predicted >= 0).all()
    assert (predicted <= 1).all()


@every_case
def test_does_not_change_its_input(case):
    scores, hits = bernoulli(50, seed=0)
    scores[:2] = -0.0, 1.0
    weights = np.linspace(1, 2, 50)
    copies = scores.tobytes(), hits.tobytes(), weights.tobytes()
    for given_weights in (None, weights):
        predicted = make(case).fit(scores, hits, given_weights).predict(scores)
        predicted[:] = 0.5  # nor hands it out
        assert (scores.tobytes(), hits.tobytes(), weights.tobytes()) == copies
    frozen = scores.copy()
    frozen.flags.writeable = False
    assert np.isfinite(make(case).fit(frozen, hits).predict(frozen)).all()


@every_case
def test_does_not_hand_out_what_it_learned(case):
    scores, hits = bernoulli(60, seed=1)
    made = make(case).fit(scores, hits)
    before = made.predict(GRID)
    made.predict(GRID)[:] = 0
    scores[:] = 0
    np.testing.assert_array_equal(made.predict(GRID), before)


@every_case
@given(drawn=scored_hits_with_order())
def test_the_order_of_rows_is_irrelevant(case, drawn):
    scores, hits, order = drawn
    one = make(case).fit(scores, hits).predict(GRID)
    other = make(case).fit(scores[order], hits[order]).predict(GRID)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@every_case
@given(pair=scored_hits())
def test_each_prediction_depends_on_its_own_score_only(case, pair):
    made = make(case).fit(*pair)
    whole = made.predict(GRID)
    np.testing.assert_array_equal(whole[::-1], made.predict(GRID[::-1]))
    np.testing.assert_array_equal(whole[:7], made.predict(GRID[:7]))
    assert made.predict(GRID[5:6])[0] == whole[5]


@every_case
@given(pair=scored_hits(max_size=25), data=st.data())
def test_whole_weights_are_repetitions(case, pair, data):
    scores, hits = pair
    times = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(scores), max_size=len(scores))))
    weighted = make(case).fit(scores, hits, times).predict(GRID)
    repeated = make(case).fit(np.repeat(scores, times), np.repeat(hits, times)).predict(GRID)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-12)


@every_case
@given(pair=scored_hits())
def test_a_declared_monotone_map_never_falls(case, pair):
    made = make(case).fit(*pair)
    inside = np.concatenate([pair[0], np.nextafter(pair[0], 0), np.nextafter(pair[0], 1), GRID])
    if made.monotone:
        assert (np.diff(made.predict(np.unique(np.abs(inside)))) >= 0).all()


@every_case
def test_a_declared_monotone_map_never_falls_on_many_random_data_sets(case):
    # Means of a constant over bins of different size differ by a rounding error; a fall is a fall.
    for seed in range(60):
        scores, hits = bernoulli(20 + seed, seed)
        made = make(case).fit(scores, hits)
        if made.monotone:
            assert (np.diff(made.predict(np.sort(np.concatenate([scores, GRID])))) >= 0).all()


@every_case
def test_empty_input_is_refused(case):
    with pytest.raises(CalibError, match=says("C003")):
        make(case).fit([], [])


@every_case
def test_bad_input_is_refused(case):
    with pytest.raises(CalibError, match=r"\[C001\] scores"):
        make(case).fit([0.5, np.nan], [0, 1])
    with pytest.raises(CalibError, match=r"\[C001\] scores"):
        make(case).fit([[0.5]], [0])
    with pytest.raises(CalibError, match=r"\[C001\] hits"):
        make(case).fit([0.5, 0.5], [0, 2])
    with pytest.raises(CalibError, match=r"\[C002\]"):
        make(case).fit([0.5, 0.5], [0])
    with pytest.raises(CalibError, match=r"\[C001\] weights"):
        make(case).fit([0.5, 0.5], [0, 1], [0, 1])
    with pytest.raises(CalibError, match=r"\[C002\]"):
        make(case).fit([0.5, 0.5], [0, 1], [1])
    made = make(case).fit([0.2, 0.8], [0, 1])
    with pytest.raises(CalibError, match=r"\[C001\] scores"):
        made.predict([1.5])


@every_case
def test_predicting_nothing_gives_nothing(case):
    assert make(case).fit([0.2, 0.8], [0, 1]).predict([]).shape == (0,)


@every_case
def test_an_unfitted_one_says_so(case):
    made = make(case)
    if not made.fitted:
        with pytest.raises(CalibError, match=r"\[C004\] \w+ is not fitted yet"):
            made.predict([0.5])
    else:
        assert case[0] == "spacy-calib.Identity.v1", "only the identity has nothing to learn"


@every_case
def test_fitting_returns_itself_and_again_forgets(case):
    first, second = bernoulli(60, seed=1), bernoulli(60, seed=2, power=3)
    made = make(case)
    assert made.fit(*first) is made
    again = made.fit(*second).predict(GRID)
    np.testing.assert_array_equal(again, make(case).fit(*second).predict(GRID))


@every_case
def test_a_clone_has_the_settings_and_nothing_learned(case):
    made = make(case).fit(*bernoulli(60, seed=1))
    before = made.predict(GRID)
    clone = made.clone()
    assert clone.state() == resolve(case).state()
    assert clone.min_pairs == made.min_pairs
    clone.fit(*bernoulli(60, seed=2, power=3))
    np.testing.assert_array_equal(made.predict(GRID), before)


@every_case
@given(pair=scored_hits())
def test_a_saved_one_predicts_the_same_bits(case, pair):
    made = make(case).fit(*pair)
    data = saved.dump({"recalibrator": made.state()})
    state = saved.read(data, dict, name="calib", path="memory")["recalibrator"]
    back = saved.load_part(state, name="calib")
    assert type(back) is type(made)
    assert back.predict(GRID).tobytes() == made.predict(GRID).tobytes()
    assert back.min_pairs == made.min_pairs
    assert saved.dump({"recalibrator": back.state()}) == data


@every_case
def test_a_saved_unfitted_one_comes_back_unfitted(case):
    made = make(case)
    back = saved.load_part(made.state(), name="calib")
    assert back.fitted == made.fitted
    assert back.state() == made.state()


@every_case
def test_scores_of_any_number_type_give_the_same(case):
    scores, hits = bernoulli(60, seed=1)
    narrow = scores.astype(np.float32)
    wide = make(case).fit(narrow.astype(np.float64), hits)
    for other in (make(case).fit(narrow, hits.astype(int)), make(case).fit(narrow.tolist(), hits.tolist())):
        np.testing.assert_array_equal(wide.predict(GRID), other.predict(GRID))


@every_case
def test_maps_that_are_perfectly_calibrated_already_stay_near_the_scores(case):
    # 4 of 16 hit at 0.25 and 12 of 16 at 0.75: nothing to mend, and every method finds that.
    scores = np.repeat([0.25, 0.75], 16)
    hits = np.concatenate([np.arange(16) < 4, np.arange(16) < 12])
    np.testing.assert_allclose(make(case).fit(scores, hits).predict([0.25, 0.75]), [0.25, 0.75], atol=1e-12)
