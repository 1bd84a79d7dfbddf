"""Temperature, Platt and beta scaling: by hand, against scikit-learn and scipy, with known truth, and where data leave the map open."""

import numpy as np
import pytest
from hypothesis import given

from spacy_calib.calibration.recalibrators import Beta, Platt, Recalibrator, Temperature
from spacy_calib.calibration.recalibrators.logistic import LogisticMap
from spacy_calib.calibration.solvers import CLIP, PRIOR, fit_logistic, log_odds, sigmoid

from ...strategies import scored_hits

GRID = np.linspace(0, 1, 401)
MAPS: list[type[LogisticMap]] = [Temperature, Platt, Beta]
every_map = pytest.mark.parametrize("kind", MAPS, ids=lambda kind: kind.__name__)


def features_of(kind: type[Recalibrator], scores) -> np.ndarray:
    """The functions of the score written out once more, shape (n, k)."""
    q = np.clip(scores, 1e-6, 1 - 1e-6)
    one = np.ones(len(q))
    columns = {Temperature: [np.log(q / (1 - q))], Platt: [np.log(q / (1 - q)), one], Beta: [np.log(q), -np.log(1 - q), one]}
    return np.stack(columns[kind], axis=1)


def objective(kind: type[Recalibrator], coefficients, scores, hits, weights=None) -> float:
    """Summed log loss plus the prior towards the map that changes nothing."""
    no_change = {Temperature: [1.0], Platt: [1.0, 0.0], Beta: [1.0, 1.0, 0.0]}[kind]
    margins = features_of(kind, scores) @ coefficients
    losses = np.logaddexp(0, margins) - np.asarray(hits) * margins
    weights = np.ones(len(losses)) if weights is None else weights
    return float(weights @ losses + 0.5 * PRIOR * np.sum((coefficients - np.array(no_change)) ** 2))


def drawn_from(chance, seed: int):
    """Hits with these probabilities."""
    return np.random.default_rng(seed).random(len(chance)) < chance


def expected(chance, mass: float = 1e7):
    """(repeat of each score, hits, weights): every score once as a hit and once as a miss, weighted as a known truth expects them."""
    n = len(chance)
    return np.tile(np.arange(n), 2), np.repeat([True, False], n), mass * np.concatenate([chance, 1 - chance])


def test_temperature_worked_by_hand():
    # Scores with log-odds 1 and -1, right as often as log-odds 2 and -2 say: the slope is 2 but for the prior, which weighs nothing here.
    scores = sigmoid(np.array([1.0, -1.0]))
    at, hits, weights = expected(sigmoid(np.array([2.0, -2.0])))
    made = Temperature().fit(scores[at], hits, weights)
    np.testing.assert_allclose(made.coefficients_, [2.0], atol=1e-6)
    np.testing.assert_allclose(made.predict(scores), sigmoid(np.array([2.0, -2.0])), atol=1e-6)
    assert made.predict([0.5])[0] == 0.5


def test_the_prior_worked_by_hand():
    # One pair, score 0.5, a hit: the slopes of Platt stay at 1, and the constant c solves 1 - sigmoid(c) = PRIOR * c.
    made = Platt().fit([0.5], [1])
    slope, constant = made.coefficients_
    assert slope == pytest.approx(1.0, abs=1e-12)
    assert 1 - 1 / (1 + np.exp(-constant)) == pytest.approx(0.01 * constant, abs=1e-12)
    assert PRIOR == 0.01


@every_map
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [0.3, 1.0, 4.0])
def test_newton_equals_scipy_on_the_same_objective(kind, weighted, power):
    from scipy.optimize import minimize

    rng = np.random.default_rng(7)
    scores = rng.beta(0.7, 0.5, 400)
    hits = drawn_from(scores**power, seed=3)
    weights = rng.uniform(0.1, 5, 400) if weighted else None
    made = kind().fit(scores, hits, weights)
    k = len(made.coefficients_)
    bounds = [(0, None)] * kind.slopes + [(None, None)] * (k - kind.slopes)
    theirs = minimize(
        lambda c: objective(kind, c, scores, hits, weights), np.full(k, 0.5), method="L-BFGS-B", bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 10_000, "maxfun": 100_000},
    )  # fmt: skip
    assert objective(kind, made.coefficients_, scores, hits, weights) <= theirs.fun + 1e-9 * abs(theirs.fun)
    np.testing.assert_allclose(made.predict(GRID), sigmoid(features_of(kind, GRID) @ theirs.x), atol=2e-4)


@every_map
@given(pair=scored_hits(min_size=2))
def test_the_minimum_is_one_under_the_conditions_of_kuhn_and_tucker(kind, pair):
    """Where a coefficient is free the slope of the objective is zero; where a slope was left out it rises from there."""
    scores, hits = pair
    made = kind().fit(scores, hits)
    features = features_of(kind, scores)
    no_change = np.array(kind.no_change)
    gradient = features.T @ (sigmoid(features @ made.coefficients_) - hits) + PRIOR * (made.coefficients_ - no_change)
    left_out = np.zeros(len(gradient), dtype=bool)
    left_out[: kind.slopes] = made.coefficients_[: kind.slopes] == 0
    np.testing.assert_allclose(gradient[~left_out], 0, atol=1e-9)
    assert (gradient[left_out] >= -1e-9).all()


@every_map
def test_the_fit_is_at_the_minimum_whatever_the_number_of_pairs(kind):
    """A search that ends when the loss falls by less than a share of itself stops early with many pairs."""
    rng = np.random.default_rng(0)
    for n in (100, 10_000, 300_000):
        scores = rng.beta(0.7, 0.5, n).round(3)
        hits = drawn_from(scores**2, seed=n)
        features = features_of(kind, scores)
        made = kind().fit(scores, hits)
        residual = sigmoid(features @ made.coefficients_) - hits
        gradient = features.T @ residual + PRIOR * (made.coefficients_ - np.array(kind.no_change))
        np.testing.assert_allclose(gradient / n, 0, atol=1e-13)


@every_map
def test_a_prediction_is_the_same_alone_and_in_any_company(kind):
    """Products of matrices round a row as the rows around it fall into blocks; and with several threads as these fall."""
    rng = np.random.default_rng(0)
    scores = rng.random(20_011)
    made = kind().fit(scores[:500], drawn_from(scores[:500] ** 2, seed=1))
    whole = made.predict(scores)
    assert made.predict(scores[::-1]).tobytes() == whole[::-1].tobytes()
    for start, end in ((0, 1), (1, 20_011), (3, 10), (7, 20_000), (20_010, 20_011)):
        assert made.predict(scores[start:end]).tobytes() == whole[start:end].tobytes()


@every_map
@given(pair=scored_hits())
def test_slopes_are_never_negative_and_the_map_never_falls(kind, pair):
    made = kind().fit(*pair)
    assert made.monotone
    assert np.isfinite(made.coefficients_).all()
    assert (made.coefficients_[: kind.slopes] >= 0).all()
    assert (np.diff(made.predict(GRID)) >= 0).all()


@every_map
def test_maps_never_fall_by_a_rounding_error(kind):
    rng = np.random.default_rng(0)
    for _ in range(40):
        made = kind()
        made.coefficients_ = np.concatenate(
            [rng.uniform(0, 3, kind.slopes), rng.normal(0, 2, len(kind.no_change) - kind.slopes)]
        )
        near = [np.concatenate([rng.random(50), 10.0 ** rng.uniform(-7, 0, 50), 1 - 10.0 ** rng.uniform(-7, 0, 50)])]
        for _ in range(6):
            near.append(np.nextafter(near[-1], 2))
        assert (np.diff(made.predict(np.unique(np.clip(np.concatenate(near), 0, 1)))) >= 0).all()


@every_map
def test_hits_that_fall_as_the_score_rises_give_a_constant(kind):
    scores = np.linspace(0.05, 0.95, 400)
    hits = drawn_from(0.7 - 0.6 * scores, seed=2)
    made = kind().fit(scores, hits)
    assert made.coefficients_[: kind.slopes].tolist() == [0.0] * kind.slopes
    wanted = 0.5 if kind is Temperature else hits.mean()  # without a constant there is no other level than one half
    np.testing.assert_allclose(made.predict(GRID), wanted, atol=1e-4)


@pytest.mark.parametrize(("left_out", "kept"), [(0, 1), (1, 0)])
def test_beta_leaves_out_the_one_slope_that_would_be_negative(left_out, kept):
    # Truth sigmoid(a log q - b log(1 - q) + c) with one of a and b negative, the other large enough that hits rise in the middle.
    scores = np.linspace(0.02, 0.98, 300)
    truth = np.zeros(3)
    truth[left_out], truth[kept] = -0.6, 2.0
    features = features_of(Beta, scores)
    at, hits, weights = expected(sigmoid(features @ truth))
    made = Beta().fit(scores[at], hits, weights)
    assert made.coefficients_[left_out] == 0
    assert made.coefficients_[kept] > 0.5
    # The rest is what is best without that function.
    rest = [kept, 2]
    alone = fit_logistic(features[at][:, rest], hits, weights, np.array([1.0, 0.0]), PRIOR)
    np.testing.assert_allclose(made.coefficients_[rest], alone, rtol=1e-9)
    assert (np.diff(made.predict(GRID)) >= 0).all()


def test_beta_with_equal_slopes_is_platt_and_platt_without_a_constant_is_temperature():
    temperature, platt, beta = Temperature(), Platt(), Beta()
    for slope, constant in ((0.0, 0.3), (0.4, -1.0), (1.0, 0.0), (2.5, 2.0)):
        platt.coefficients_, beta.coefficients_ = np.array([slope, constant]), np.array([slope, slope, constant])
        np.testing.assert_allclose(beta.predict(GRID), platt.predict(GRID), rtol=0, atol=1e-14)
        temperature.coefficients_, platt.coefficients_ = np.array([slope]), np.array([slope, 0.0])
        np.testing.assert_allclose(platt.predict(GRID), temperature.predict(GRID), rtol=0, atol=1e-15)


def test_a_richer_map_finds_the_poorer_one_where_that_is_the_truth():
    scores = np.linspace(0.01, 0.99, 200)
    at, hits, weights = expected(sigmoid(0.6 * log_odds(scores)))
    for kind, wanted in ((Temperature, [0.6]), (Platt, [0.6, 0.0]), (Beta, [0.6, 0.6, 0.0])):
        np.testing.assert_allclose(kind().fit(scores[at], hits, weights).coefficients_, wanted, atol=1e-6)


def test_the_coefficients_that_change_nothing_change_nothing():
    for kind in MAPS:
        made = kind()
        made.coefficients_ = np.array(kind.no_change)
        inside = GRID[1:-1]
        np.testing.assert_allclose(made.predict(inside), inside, rtol=1e-12)
        np.testing.assert_allclose(made.predict([0.0, 1.0]), [CLIP, 1 - CLIP], rtol=1e-9)


def test_temperature_is_symmetric():
    # Turning scores and hits round turns the map round.
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    hits = drawn_from(sigmoid(2 * log_odds(scores)), seed=1)
    one, other = Temperature().fit(scores, hits), Temperature().fit(1 - scores, ~hits)
    np.testing.assert_allclose(one.coefficients_, other.coefficients_, rtol=1e-9)
    a, b, c = Beta().fit(scores, hits).coefficients_
    np.testing.assert_allclose(Beta().fit(1 - scores, ~hits).coefficients_, [b, a, -c], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "truth"),
    [(Temperature, [0.5]), (Temperature, [1.8]), (Platt, [0.7, -0.9]), (Platt, [1.5, 0.4]), (Beta, [1.4, 0.5, 0.3]),
     (Beta, [0.4, 1.2, -0.8])],
)  # fmt: skip
def test_known_truth_is_recovered(kind, truth):
    rng = np.random.default_rng(11)
    scores = rng.random(60_000)
    chance = sigmoid(features_of(kind, scores) @ np.array(truth))
    made = kind().fit(scores, drawn_from(chance, seed=5))
    np.testing.assert_allclose(made.coefficients_, truth, atol=0.08)
    np.testing.assert_allclose(made.predict(scores), chance, atol=0.015)


@every_map
@pytest.mark.parametrize("hit", [True, False])
@pytest.mark.parametrize("scores", [[0.0], [1.0], [0.5], [0.2, 0.9], [1e-300, 0.3, 1.0], [0.5] * 5000])
def test_all_hits_and_no_hits_stay_finite(kind, hit, scores):
    made = kind().fit(scores, [hit] * len(scores))
    assert np.isfinite(made.coefficients_).all()
    assert np.abs(made.coefficients_).max() < 1000
    predicted = made.predict(GRID)
    assert np.isfinite(predicted).all()
    if kind is not Temperature:  # the constant carries the map to the side of the hits
        at_fit = made.predict(scores)
        assert (at_fit > 0.5).all() if hit else (at_fit < 0.5).all()


@every_map
@pytest.mark.parametrize("gap", [1e-12, 1e-3, 0.2, 0.49])
@pytest.mark.parametrize("n", [1, 50, 5000])
def test_separable_scores_stay_finite(kind, gap, n):
    # Hits and misses do not overlap: without a prior the slope has no end.
    scores = np.concatenate([np.linspace(0.01, 0.5 - gap, n), np.linspace(0.5 + gap, 0.99, n)])
    hits = np.repeat([False, True], n)
    made = kind().fit(scores, hits)
    assert np.isfinite(made.coefficients_).all()
    predicted = made.predict(scores)
    assert (predicted[:n] <= 0.5 + 1e-9).all()
    assert (predicted[n:] >= 0.5 - 1e-9).all()
    assert np.isfinite(made.predict(GRID)).all()


@every_map
def test_a_miss_in_spite_of_certainty_costs_a_finite_price(kind):
    # Score 1 and wrong: the clip at 1e-6 bounds what it can do to a thousand others.
    scores = np.append(np.linspace(0.05, 0.95, 1000), 1.0)
    hits = np.append(drawn_from(scores[:-1], seed=4), False)
    made = kind().fit(scores, hits)
    np.testing.assert_allclose(made.predict([0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.1)


def test_scores_beyond_the_clip_are_all_alike():
    for kind in MAPS:
        made = kind().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        ends = made.predict([0.0, 1e-300, 1e-7, CLIP])
        assert len(set(ends.tolist())) == 1
        ends = made.predict([1.0, 1 - 1e-9, 1 - CLIP])
        assert len(set(ends.tolist())) == 1
        assert np.isfinite(made.predict([0.0, 1.0])).all()
