"""Temperature, vector and matrix scaling: against the documented model written densely, known truth, and what may not matter."""

import math
import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from spacy_calib.calibration.scaling import FLOOR, MatrixScaling, Scaling, TemperatureScaling, VectorScaling, entries
from spacy_calib.calibration.scaling.objective import Objective
from spacy_calib.calibration.scaling.scaling import RIDGES
from spacy_calib.calibration.solvers import PRIOR
from spacy_calib.errors import CalibError
from spacy_calib.types import Pairs

from ...strategies import make_pairs, pairs_of_tokens

KINDS = [TemperatureScaling, VectorScaling, MatrixScaling]
every_kind = pytest.mark.parametrize("kind", KINDS)
ridged = pytest.mark.parametrize("kind", [VectorScaling, MatrixScaling])

# The search ends within this of the least loss, and scores within that of the best ones.
LOSS = 2e-3
SCORE = 5e-4


class Dense(NamedTuple):
    """Tokens by outcomes: log-probabilities (-inf without an entry), inputs of the tags, the gold outcome."""

    logs: np.ndarray
    inputs: np.ndarray
    gold: np.ndarray


def dense_of(pairs: Pairs, n_tags: int) -> Dense:
    rows, token = np.unique(pairs.rows, return_inverse=True)
    chances = np.zeros((len(rows), n_tags + 1))
    chances[token, pairs.tags] = pairs.scores
    chances[:, n_tags] = np.maximum(1 - chances.sum(axis=1), entries.LEAST_REST)
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    gold = np.full(len(rows), n_tags)
    gold[token[pairs.hits]] = pairs.tags[pairs.hits]
    return Dense(logs, np.maximum(logs[:, :n_tags] - math.log(FLOOR), 0), gold)


class Weights(NamedTuple):
    """factor, biases of the tags and the rest, weights (tags, tags and the rest)."""

    factor: float
    biases: np.ndarray
    weights: np.ndarray


def unflatten(values: np.ndarray, n_tags: int, kind: type[Scaling]) -> Weights:
    """From one vector: the factor, the biases and, for a matrix, all weights; for a vector, its diagonal."""
    biases, weights = np.zeros(n_tags + 1), np.zeros((n_tags, n_tags + 1))
    if kind is not TemperatureScaling:
        biases[:] = values[1 : n_tags + 2]
    if kind is VectorScaling:
        weights[np.arange(n_tags), np.arange(n_tags)] = values[n_tags + 2 :]
    if kind is MatrixScaling:
        weights[:] = values[n_tags + 2 :].reshape(n_tags, n_tags + 1)
    return Weights(values[0], biases, weights)


def flatten(scaling: Scaling) -> np.ndarray:
    """The learned weights as `unflatten` takes them."""
    n = scaling.n_tags_
    weights = np.zeros((n + 2, n + 2))
    weights.ravel()[scaling.codes_] = scaling.weights_
    parts = [scaling.factor_]
    if scaling.biased:
        parts.append(scaling.biases_[: n + 1])
    if scaling.pairwise == "self":
        parts.append(np.diag(weights)[:n])
    if scaling.pairwise == "all":
        parts.append(weights[:n, : n + 1].ravel())
    return np.concatenate(parts)


def n_values(n_tags: int, kind: type[Scaling]) -> int:
    return {TemperatureScaling: 1, VectorScaling: 2 + 2 * n_tags, MatrixScaling: 2 + n_tags + n_tags * (n_tags + 1)}[kind]


def dense_logs(dense: Dense, weights: Weights) -> np.ndarray:
    """Log-probabilities of the outcomes, -inf without an entry."""
    own = np.where(np.isfinite(dense.logs), dense.logs, 0)
    margins = weights.factor * own + weights.biases + dense.inputs @ weights.weights
    return log_softmax(np.where(np.isfinite(dense.logs), margins, -np.inf), axis=1)


def dense_loss(dense: Dense, weights: Weights, ridge: float) -> float:
    logs = dense_logs(dense, weights)
    penalty = ridge * ((weights.weights**2).sum() + (weights.biases**2).sum() / 100) + PRIOR * (weights.factor - 1) ** 2
    return float(-logs[np.arange(len(logs)), dense.gold].sum() + penalty / 2)


def dense_gradient(dense: Dense, weights: Weights, ridge: float, kind: type[Scaling]) -> np.ndarray:
    residuals = np.exp(dense_logs(dense, weights))
    residuals[np.arange(len(residuals)), dense.gold] -= 1
    of_weights = dense.inputs.T @ residuals + ridge * weights.weights
    of_factor = (residuals * np.where(np.isfinite(dense.logs), dense.logs, 0)).sum()
    parts = [[of_factor + PRIOR * (weights.factor - 1)]]
    if kind is not TemperatureScaling:
        parts.append(residuals.sum(axis=0) + ridge / 100 * weights.biases)
        parts.append(np.diag(of_weights) if kind is VectorScaling else of_weights.ravel())
    return np.concatenate(parts)


def dense_minimum(dense: Dense, n_tags: int, kind: type[Scaling], ridge: float) -> np.ndarray:
    def loss(values):
        weights = unflatten(values, n_tags, kind)
        return dense_loss(dense, weights, ridge), dense_gradient(dense, weights, ridge, kind)

    found = minimize(
        loss, np.full(n_values(n_tags, kind), 0.1), jac=True, method="BFGS", options={"maxiter": 2000, "gtol": 1e-6}
    )
    return found.x


def no_distortion(n_tags: int) -> Weights:
    return Weights(1.0, np.zeros(n_tags + 1), np.zeros((n_tags, n_tags + 1)))


def drawn(n: int, n_tags: int, seed: int, truth: Weights | None = None, spread: float = 2.0) -> tuple[Pairs, np.ndarray]:
    """(pairs, log-probabilities (n, n_tags + 1) of what the gold tags were drawn from); gold may be none of the tags."""
    rng = np.random.default_rng(seed)
    chances = softmax(rng.normal(0, spread, (n, n_tags + 1)), axis=1)
    rows, tags = np.nonzero(chances[:, :n_tags] >= FLOOR)
    pairs = Pairs(rows, tags, chances[rows, tags], np.zeros(len(rows), bool), n)
    dense = dense_of(pairs, n_tags)
    logs = dense_logs(dense, no_distortion(n_tags) if truth is None else truth)
    gold = (np.exp(logs).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return Pairs(rows, tags, pairs.scores, gold[rows] == tags, n), logs


def distortion(n_tags: int, seed: int, size: float = 1.0) -> Weights:
    """A factor of 0.6, biases, and weights around 0, all of which the penalties do not tell from another."""
    rng = np.random.default_rng(seed)
    biases = rng.normal(0, size, n_tags + 1)
    weights = rng.normal(0, 0.2 * size, (n_tags, n_tags + 1))
    return Weights(0.6, biases - biases.mean(), weights - weights.mean(axis=1, keepdims=True))


def scaled_by(scaling: Scaling, pairs: Pairs) -> np.ndarray:
    return scaling.scale(pairs.rows, pairs.tags, pairs.scores)


def log_loss_of(scores: np.ndarray, pairs: Pairs) -> float:
    """Mean log loss of the tokens' outcomes, the rest being one."""
    rows, token = np.unique(pairs.rows, return_inverse=True)
    gold = 1 - np.bincount(token, scores, len(rows))
    gold[token[pairs.hits]] = scores[pairs.hits]
    return float(-np.log(np.maximum(gold, 1e-12)).mean())


def learned(kind: type[Scaling], n_tags: int, seed: int) -> Scaling:
    """One with made-up weights, some pairs of tags having none."""
    rng = np.random.default_rng(seed)
    width = n_tags + 2
    every = {"none": [], "self": np.arange(n_tags) * (width + 1), "all": np.arange(width**2)}[kind.pairwise]
    codes = np.array(every, dtype=np.intp)[rng.random(len(every)) < 0.7]
    biases = rng.normal(0, 1, width) if kind.biased else np.zeros(width)
    weights = rng.normal(0, 0.2, len(codes))
    factor = rng.uniform(0.2, 2, 1)
    return kind().load_learned(
        {"ridge_": 1.0, "n_tags_": n_tags, "factor_": factor, "biases_": biases, "codes_": codes, "weights_": weights}
    )


def slow_scale(scaling: Scaling, pairs: Pairs, counted=None, most: int = entries.MOST_INPUTS) -> list[float]:
    """Token by token, from the sentence that documents the class; most: how many tags of a token bear on the others."""
    n_tags = scaling.n_tags_
    weight = dict(zip(scaling.codes_.tolist(), scaling.weights_.tolist(), strict=True))
    flags = [True] * len(pairs) if counted is None else counted
    scaled = [0.0] * len(pairs)
    for row in set(pairs.rows.tolist()):
        own = [i for i in range(len(pairs)) if pairs.rows[i] == row]
        tag = {i: int(pairs.tags[i]) if pairs.tags[i] < n_tags else n_tags + 1 for i in own} | {-1: n_tags}
        chance = {i: max(float(pairs.scores[i]), 1e-12) for i in own}
        chance[-1] = max(1 - sum(float(pairs.scores[i]) for i in own if flags[i]), 1e-6)
        margin = {i: scaling.factor_[0] * math.log(chance[i]) + scaling.biases_[tag[i]] for i in [*own, -1]}
        sources = sorted((i for i in own if flags[i] and chance[i] > FLOOR), key=lambda i: -chance[i])[:most]
        if scaling.pairwise == "self":  # an entry bears on itself, counted or not
            for i in own:
                own_weight = weight.get(tag[i] * (n_tags + 2) + tag[i], 0.0)
                margin[i] += own_weight * max(math.log(chance[i] / FLOOR), 0.0)
        if scaling.pairwise == "all":
            for source in sources:
                for i in [*own, -1]:
                    code = tag[source] * (n_tags + 2) + tag[i]
                    margin[i] += weight.get(code, 0.0) * math.log(chance[source] / FLOOR)
        highest = max(margin.values())
        whole = sum(math.exp(margin[i] - highest) for i in [*own, -1] if i < 0 or flags[i])
        for i in own:
            scaled[i] = min(math.exp(margin[i] - highest) / whole, 1.0)
    return scaled


@every_kind
@given(pairs=pairs_of_tokens(), seed=st.integers(0, 1000), data=st.data())
def test_it_is_the_documented_model(kind, pairs, seed, data):
    # Tags 4 and 5 are past the end. Summed in another order a rest differs by 1e-16, of at least 1e-6.
    scaling = learned(kind, 4, seed)
    np.testing.assert_allclose(scaled_by(scaling, pairs), slow_scale(scaling, pairs), rtol=1e-8, atol=1e-300)
    counted = np.array(data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))), dtype=bool)
    scaled = scaling.scale(pairs.rows, pairs.tags, pairs.scores, counted)
    np.testing.assert_allclose(scaled, slow_scale(scaling, pairs, counted.tolist()), rtol=1e-8, atol=1e-300)


@given(pairs=pairs_of_tokens(), seed=st.integers(0, 1000), most=st.integers(1, 3))
def test_only_the_likeliest_bear_on_the_others(pairs, seed, most):
    # Rounded: scores whose logarithms are equal are equal too, and the first of them stays.
    pairs = Pairs(pairs.rows, pairs.tags, pairs.scores.round(3), pairs.hits, pairs.n_units)
    scaling = learned(MatrixScaling, 6, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "MOST_INPUTS", most)
        scaled = scaled_by(scaling, pairs)
    np.testing.assert_allclose(scaled, slow_scale(scaling, pairs, most=most), rtol=1e-8, atol=1e-300)


def test_worked_by_hand():
    # Tags of .64 and .32, the rest .04; a factor of 1/2 and a bias of log 2 for tag 1: .8, 2 * .5657 and .2, over their sum.
    none = np.zeros(0, dtype=np.intp)
    state = {
        "ridge_": 1.0, "n_tags_": 2, "factor_": np.array([0.5]), "biases_": np.array([0, math.log(2), 0, 0]), "codes_": none,
        "weights_": none,
    }  # fmt: skip
    scaled = VectorScaling().load_learned(state).scale(np.array([0, 0]), np.array([0, 1]), np.array([0.64, 0.32]))
    whole = 0.8 + 2 * math.sqrt(0.32) + 0.2
    np.testing.assert_allclose(scaled, [0.8 / whole, 2 * math.sqrt(0.32) / whole], rtol=1e-12)
    # A weight of .5 of tag 0 on tag 1: times (.64 / .0001) ** .5 = 80.
    state |= {"codes_": np.array([1]), "weights_": np.array([0.5])}
    scaled = MatrixScaling().load_learned(state).scale(np.array([0, 0]), np.array([0, 1]), np.array([0.64, 0.32]))
    whole = 0.8 + 160 * math.sqrt(0.32) + 0.2
    np.testing.assert_allclose(scaled, [0.8 / whole, 160 * math.sqrt(0.32) / whole], rtol=1e-12)


@given(pairs=pairs_of_tokens(), seed=st.integers(0, 1000))
def test_scores_of_a_token_and_its_rest_sum_to_one(pairs, seed):
    # What all tags without an entry hold together is asked for as one further entry, with the biases of the rest.
    state = learned(VectorScaling, 6, seed).state()["learned"]
    state["biases_"][7] = state["biases_"][6]
    held = np.unique(pairs.rows)
    rest = np.maximum(1 - np.bincount(pairs.rows, pairs.scores, pairs.n_units)[held], 1e-6)
    scaled = VectorScaling().load_learned(state).scale(
        np.append(pairs.rows, held), np.append(pairs.tags, np.full(len(held), 7)), np.append(pairs.scores, rest),
        np.arange(len(pairs) + len(held)) < len(pairs),
    )  # fmt: skip
    whole = np.bincount(np.append(pairs.rows, held), scaled, pairs.n_units)[held]
    np.testing.assert_allclose(whole, 1, rtol=0, atol=1e-9)


@every_kind
def test_loss_and_gradient_are_those_of_the_dense_model(kind):
    pairs, _ = drawn(60, 3, seed=1)
    dense = dense_of(pairs, 3)
    scaling = kind() if kind is TemperatureScaling else kind(ridge=7.0)
    scaling.ridge_ = 7.0
    problem = Objective(scaling, pairs, 3)
    rng = np.random.default_rng(2)
    for _ in range(3):
        values = rng.normal(0, 0.3, len(problem.units))
        loss, gradient = problem.loss(values / problem.units)
        holder = kind()
        holder.n_tags_ = 3
        holder.factor_, holder.biases_, holder.codes_, holder.weights_ = problem.unpack(values)
        given_weights = unflatten(flatten(holder), 3, kind)
        # Penalties of what has no column here: the biases past the end, and the weight of the rest on itself.
        beyond = 0.0 if kind is TemperatureScaling else 0.07 * holder.biases_[4] ** 2 / 2
        if kind is VectorScaling:
            beyond += 7.0 * holder.weights_[holder.codes_ == 3 * 6].sum() ** 2 / 2
        assert loss == pytest.approx(dense_loss(dense, given_weights, 7.0) + beyond, rel=1e-11)
        small = check_grad(lambda x: problem.loss(x)[0], lambda x: problem.loss(x)[1], values / problem.units)
        assert small < 1e-4 * np.abs(gradient).max()


@every_kind
@pytest.mark.parametrize("ridge", [3000.0, 100.0, 1.0])
def test_the_fit_has_the_least_penalized_loss(kind, ridge):
    pairs, _ = drawn(300, 3, seed=3, truth=distortion(3, seed=4))
    scaling = (kind() if kind is TemperatureScaling else kind(ridge)).fit(pairs, 3)
    dense = dense_of(pairs, 3)
    best = dense_minimum(dense, 3, kind, ridge)
    least, found = (dense_loss(dense, unflatten(values, 3, kind), ridge) for values in (best, flatten(scaling)))
    assert -1e-6 < found - least < LOSS
    wanted = np.exp(dense_logs(dense, unflatten(best, 3, kind)))
    np.testing.assert_allclose(scaled_by(scaling, pairs), wanted[pairs.rows, pairs.tags], rtol=0, atol=5e-3)
    assert ridge / 100 * scaling.biases_.sum() == pytest.approx(0, abs=0.02)  # a common bias changes nothing but its penalty


@pytest.mark.parametrize("factor", [0.4, 1.0, 1.7])
def test_temperature_scaling_is_that_of_the_logits(factor):
    """With every tag above the floor, and next to no rest, it is softmax(z * factor), and the factor has the least plain loss."""
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 1.2, (1500, 6)) + 40.0
    chances = softmax(logits, axis=1)
    gold = (softmax(factor * logits, axis=1).cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)
    rows, tags = np.divmod(np.arange(chances.size), 6)
    assert chances.min() > FLOOR

    def loss(value):
        return -log_softmax(value * logits, axis=1)[np.arange(1500), gold].sum()

    best = minimize_scalar(loss, bounds=(0.05, 5), method="bounded", options={"xatol": 1e-9}).x
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "LEAST_REST", 1e-300)
        pairs = Pairs(rows, tags, chances.ravel(), tags == gold[rows], 1500)
        scaling = TemperatureScaling().fit(pairs, 6)
        scaled = scaled_by(scaling, pairs).reshape(chances.shape)
        # A rest of 1e-16, which is rounding, is 4e-7 at a factor of .4.
        np.testing.assert_allclose(scaled, softmax(scaling.factor_[0] * logits, axis=1), rtol=2e-6)
        assert scaling.factor_[0] == pytest.approx(best, abs=2e-4)
        assert best == pytest.approx(factor, abs=0.08)
    # The least rest that is assumed is no more than noticeable: the tags keep their ratios, and the factor hardly moves.
    scaling.fit(pairs, 6)
    scaled = scaled_by(scaling, pairs).reshape(chances.shape)
    ratios = scaled / scaled.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ratios, softmax(scaling.factor_[0] * logits, axis=1), rtol=1e-10)
    assert scaling.factor_[0] == pytest.approx(best, abs=0.02)


def one_tag(n: int, seed: int) -> tuple[Pairs, np.ndarray]:
    """(pairs, log-odds): a tag for each token, and the rest."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.02, 0.98, n)
    odds = np.log(scores / (1 - scores))
    return make_pairs(scores, rng.random(n) < 1 / (1 + np.exp(-0.5 * odds - 0.7))), odds


def test_with_one_tag_it_is_logistic_regression():
    pairs, odds = one_tag(800, seed=6)
    scaling = TemperatureScaling().fit(pairs, 1)
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(odds[:, None], pairs.hits)
    assert scaling.factor_[0] == pytest.approx(peer.coef_[0, 0], abs=1e-3)
    np.testing.assert_allclose(scaled_by(scaling, pairs), peer.predict_proba(odds[:, None])[:, 1], rtol=0, atol=SCORE)


@pytest.mark.parametrize("ridge", [100.0, 3000.0])
def test_with_one_tag_and_penalties_it_is_logistic_regression_on_columns_in_their_units(ridge):
    pairs, odds = one_tag(800, seed=7)
    scaling, bias_ridge = VectorScaling(ridge).fit(pairs, 1), ridge / 100
    # Tag and rest share a difference d of biases as d / 2 and -d / 2: a penalty of bias_ridge / 4 * d ** 2. The peer's is
    # w ** 2 / 2 for each column; the factor, with a column 1e4 times as large, has next to none.
    columns = np.stack(
        [1e4 * odds, np.full(800, np.sqrt(2 / bias_ridge)), np.log(pairs.scores / FLOOR) / np.sqrt(ridge)], axis=1
    )
    peer = LogisticRegression(C=1, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(columns, pairs.hits)
    assert scaling.factor_[0] == pytest.approx(1e4 * peer.coef_[0, 0], abs=5e-3)
    assert scaling.biases_[0] - scaling.biases_[1] == pytest.approx(np.sqrt(2 / bias_ridge) * peer.coef_[0, 1], abs=5e-3)
    np.testing.assert_allclose(scaled_by(scaling, pairs), peer.predict_proba(columns)[:, 1], rtol=0, atol=SCORE)


def test_log_loss_falls_on_fresh_data_and_each_kind_finds_what_it_can():
    truth = distortion(5, seed=14)
    pairs, _ = drawn(2000, 5, seed=15, truth=truth)
    fresh, logs = drawn(4000, 5, seed=16, truth=truth)
    raw = log_loss_of(fresh.scores, fresh)
    temperature, vector, matrix = (log_loss_of(scaled_by(kind().fit(pairs, 5), fresh), fresh) for kind in KINDS)
    least = log_loss_of(np.exp(logs)[fresh.rows, fresh.tags], fresh)
    assert raw - 0.02 > temperature > vector + 0.02
    assert vector > matrix + 0.02
    assert matrix < least + 0.01


@every_kind
def test_what_is_calibrated_is_left_as_it_is(kind):
    pairs, _ = drawn(2000, 4, seed=17)
    fresh, _ = drawn(4000, 4, seed=18)
    scaling = kind().fit(pairs, 4)
    assert scaling.factor_[0] == pytest.approx(1, abs=0.1)
    assert log_loss_of(scaled_by(scaling, fresh), fresh) < log_loss_of(fresh.scores, fresh) + 0.005


def test_penalties_without_bound_leave_the_factor_alone():
    pairs, _ = drawn(1000, 4, seed=20, truth=distortion(4, seed=21))
    plain = scaled_by(TemperatureScaling().fit(pairs, 4), pairs)
    for kind in (VectorScaling, MatrixScaling):
        bare = scaled_by(kind(ridge=1e12).fit(pairs, 4), pairs)
        np.testing.assert_allclose(bare, plain, rtol=0, atol=SCORE)
        assert np.abs(plain - scaled_by(kind().fit(pairs, 4), pairs)).max() > 0.05


@every_kind
@given(pairs=pairs_of_tokens(), seed=st.integers(0, 1000), data=st.data())
def test_the_order_of_tokens_does_not_matter_to_the_last_bit_and_that_of_entries_to_eight_digits(kind, pairs, seed, data):
    scaling = learned(kind, 6, seed)
    whole = scaled_by(scaling, pairs)
    numbers = np.array(data.draw(st.permutations(range(pairs.n_units))))
    np.testing.assert_array_equal(scaling.scale(5 * numbers[pairs.rows], pairs.tags, pairs.scores), whole)
    # The rest of a token is 1 less the sum of its scores, which hangs on their order by 1e-16; it is 1e-6 at least.
    order = np.array(data.draw(st.permutations(range(len(pairs)))), dtype=np.intp)
    mixed = scaling.scale(pairs.rows[order], pairs.tags[order], pairs.scores[order])
    np.testing.assert_allclose(mixed, whole[order], rtol=1e-8)


@every_kind
def test_tags_permuted_results_permuted(kind):
    pairs, _ = drawn(300, 4, seed=35, truth=distortion(4, seed=36))
    names = np.random.default_rng(37).permutation(4)
    moved = Pairs(pairs.rows, names[pairs.tags], pairs.scores, pairs.hits, 300)
    one, other = kind().fit(pairs, 4), kind().fit(moved, 4)
    np.testing.assert_allclose(scaled_by(other, moved), scaled_by(one, pairs), rtol=0, atol=SCORE)
    np.testing.assert_allclose(other.biases_[names], one.biases_[:4], rtol=0, atol=0.01)


@every_kind
@given(pairs=pairs_of_tokens(), seed=st.integers(0, 1000))
def test_a_further_entry_does_not_change_the_others(kind, pairs, seed):
    scaling = learned(kind, 4, seed)
    rows = np.append(pairs.rows, np.arange(pairs.n_units))
    tags, scores = np.append(pairs.tags, np.full(pairs.n_units, 6)), np.append(pairs.scores, np.full(pairs.n_units, FLOOR / 3))
    counted = np.arange(len(rows)) < len(pairs)
    scaled = scaling.scale(rows, tags, scores, counted)
    np.testing.assert_allclose(scaled[: len(pairs)], scaled_by(scaling, pairs), rtol=1e-13)
    assert ((scaled[len(pairs) :] > 0) & (scaled[len(pairs) :] <= 1)).all()


@every_kind
@pytest.mark.parametrize("chunk", [1, 2, 7, 50, 10_000])
def test_scaling_in_parts_changes_nothing(kind, chunk, monkeypatch):
    pairs, _ = drawn(60, 6, seed=38)
    scaling = learned(kind, 6, seed=39)
    mixed = np.random.default_rng(40).permutation(len(pairs))
    pairs = pairs.take(mixed)
    counted = np.arange(len(pairs)) % 5 > 0
    whole, further = scaled_by(scaling, pairs), scaling.scale(pairs.rows, pairs.tags, pairs.scores, counted)
    monkeypatch.setattr(entries, "_CELLS", chunk)
    np.testing.assert_array_equal(scaled_by(scaling, pairs), whole)
    np.testing.assert_array_equal(scaling.scale(pairs.rows, pairs.tags, pairs.scores, counted), further)
    # Made ready anew, its table of weights is too large for so few cells, and kept sparse.
    sparse = learned(kind, 6, seed=39)
    np.testing.assert_allclose(scaled_by(sparse, pairs), whole, rtol=1e-12)
    np.testing.assert_allclose(sparse.scale(pairs.rows, pairs.tags, pairs.scores, counted), further, rtol=1e-12)


@every_kind
def test_margins_far_from_zero_are_taken_from_the_highest(kind, monkeypatch):
    """The way for exponents that could overflow gives what the quick one gives."""
    pairs, _ = drawn(60, 6, seed=44)
    scaling = learned(kind, 6, seed=39)
    counted = np.arange(len(pairs)) % 5 > 0
    whole, further = scaled_by(scaling, pairs), scaling.scale(pairs.rows, pairs.tags, pairs.scores, counted)
    monkeypatch.setattr(entries, "_SAFE_MARGIN", 0.0)
    np.testing.assert_allclose(scaled_by(scaling, pairs), whole, rtol=1e-12)
    np.testing.assert_allclose(scaling.scale(pairs.rows, pairs.tags, pairs.scores, counted), further, rtol=1e-12)


@every_kind
def test_beginning_elsewhere_ends_at_the_same(kind):
    pairs, _ = drawn(300, 4, seed=42, truth=distortion(4, seed=43))
    fresh = kind().fit(pairs, 4)
    wanted = scaled_by(fresh, pairs)
    elsewhere = kind().fit(drawn(200, 4, seed=44)[0], 4)
    np.testing.assert_allclose(scaled_by(kind().fit(pairs, 4, start=elsewhere), pairs), wanted, rtol=0, atol=2 * SCORE)


@every_kind
def test_beginning_at_the_end_takes_few_steps(kind, monkeypatch):
    pairs, _ = drawn(300, 4, seed=46, truth=distortion(4, seed=47))
    asked = []
    loss = Objective.loss
    monkeypatch.setattr(Objective, "loss", lambda self, values: asked.append(1) or loss(self, values))
    fitted = kind().fit(pairs, 4)
    steps = len(asked)
    asked.clear()
    kind().fit(pairs, 4, start=fitted)
    assert len(asked) <= min(3, steps - 1)


def test_what_info_shows():
    pairs, _ = drawn(100, 4, seed=54)
    fitted = TemperatureScaling().fit(pairs, 4)
    name, temperature = "spacy-calib.TemperatureScaling.v1", 1 / float(fitted.factor_[0])
    assert fitted.describe() == {"name": name, "biased": False, "temperature": temperature, "ridge": 100.0, "size": 1}


def test_the_size_is_how_many_numbers_were_learned():
    # Three tags met each other and the rest; nothing was past the end.
    pairs = make_pairs([0.5, 0.2, 0.1, 0.6, 0.3], [1, 0, 0, 0, 1], tags=[0, 1, 2, 0, 1], rows=[0, 0, 0, 1, 1])
    assert TemperatureScaling().fit(pairs, 7).size() == 1
    assert MatrixScaling().fit(pairs, 7).size() == 1 + 4 + 3 * 4


def documents_of_rows(pairs: Pairs, length: int) -> np.ndarray:
    return pairs.rows // length


def other_hits(pairs: Pairs, where: np.ndarray) -> Pairs:
    """The hits of these pairs' tokens given to their least likely tag."""
    hits = pairs.hits.copy()
    for row in np.unique(pairs.rows[where]):
        own = np.flatnonzero(pairs.rows == row)
        hits[own] = False
        hits[own[pairs.scores[own].argmin()]] = True
    return Pairs(pairs.rows, pairs.tags, pairs.scores, hits, pairs.n_units)


def test_the_ridge_is_chosen_on_held_out_documents():
    # Weights of a spread of 1/10 and more are worth learning; where nothing is confused, the strongest ridge keeps noise out.
    confused, _ = drawn(3000, 4, seed=62, truth=distortion(4, seed=63, size=3.0))
    plain, _ = drawn(300, 4, seed=64)
    ridges = {}
    for name, pairs in (("confused", confused), ("plain", plain)):
        scaling = MatrixScaling()
        scaling.cross_fit(pairs, documents_of_rows(pairs, 10), 4)
        ridges[name] = scaling.ridge_
        assert scaling.describe()["ridge"] == scaling.ridge_ in RIDGES
    assert ridges["confused"] < ridges["plain"] == max(RIDGES)
    again = MatrixScaling().load_learned(scaling.state()["learned"])
    assert again.ridge_ == scaling.ridge_
    assert again.settings() == {"ridge": None}


def test_a_single_document_chooses_no_ridge():
    pairs, _ = drawn(40, 4, seed=65)
    scaling = MatrixScaling()
    scaling.cross_fit(pairs, np.zeros(len(pairs), np.intp), 4)
    assert scaling.ridge_ == 100.0


def watch(monkeypatch, kind: type[Scaling]) -> list[tuple[set[float], set[float]]]:
    """(scores fitted on, scores scaled) of each scaling that scales, as it does."""
    seen: list[tuple[set[float], set[float]]] = []
    fit, scale = kind.fit, kind.scale

    def watched_fit(self, pairs, n_tags, *how):
        self.seen = set(pairs.scores.tolist())
        return fit(self, pairs, n_tags, *how)

    def watched_scale(self, rows, tags, scores, counted=None):
        seen.append((self.seen, set(scores.tolist())))
        return scale(self, rows, tags, scores, counted)

    monkeypatch.setattr(kind, "fit", watched_fit)
    monkeypatch.setattr(kind, "scale", watched_scale)
    return seen


@pytest.mark.parametrize("most", [10_000, 400])
def test_what_is_scaled_was_not_fitted_on(most, monkeypatch):
    pairs, _ = drawn(300, 5, seed=62)
    monkeypatch.setattr("spacy_calib.calibration.scaling.scaling.MOST_PAIRS", most)
    seen = watch(monkeypatch, TemperatureScaling)
    scaled = TemperatureScaling().cross_fit(pairs, documents_of_rows(pairs, 10), 5)
    assert len(seen) == 5
    assert all(not fitted_on & held for fitted_on, held in seen)
    assert all(fitted_on for fitted_on, _ in seen)
    assert set.union(*(held for _, held in seen)) == set(pairs.scores.tolist())
    assert np.isfinite(scaled).all()


def test_documents_left_out_leave_none_that_is_fitted_on_itself(monkeypatch):
    pairs, _ = drawn(200, 5, seed=63)
    monkeypatch.setattr("spacy_calib.calibration.scaling.scaling.MOST_PAIRS", 100)
    seen = watch(monkeypatch, TemperatureScaling)
    documents = np.searchsorted([10, 20], pairs.rows, side="right")
    TemperatureScaling().cross_fit(pairs, documents, 5)
    assert len(seen) == 2
    assert all(not fitted_on & held for fitted_on, held in seen)


def test_fewer_documents_than_folds_have_a_fold_each(monkeypatch):
    pairs, _ = drawn(90, 4, seed=65)
    seen = watch(monkeypatch, TemperatureScaling)
    TemperatureScaling().cross_fit(pairs, documents_of_rows(pairs, 30), 4)
    assert len(seen) == 3


@every_kind
def test_tags_never_met_have_no_weight(kind):
    pairs, _ = drawn(400, 4, seed=70, truth=distortion(4, seed=71))
    scaling = kind().fit(pairs, 8)
    assert scaling.biases_[4:8].tolist() == [0, 0, 0, 0]
    assert scaling.biases_[9] == 0
    asked = make_pairs([0.5, 0.2, 0.1, 0.6, 0.3], [0] * 5, tags=[6, 7, 0, 50, 6], rows=[0, 0, 0, 1, 1])
    np.testing.assert_allclose(scaled_by(scaling, asked), slow_scale(scaling, asked), rtol=1e-9)
    # One unknown tag is as good as another.
    renamed = Pairs(asked.rows, np.array([4, 5, 0, 8, 7]), asked.scores, asked.hits, 2)
    np.testing.assert_allclose(scaled_by(scaling, renamed), scaled_by(scaling, asked), rtol=1e-12)


@every_kind
@pytest.mark.parametrize(
    "case", ["no token has a hit", "the likeliest always hits", "the least likely always hits", "one token"]
)
def test_one_sided_data_give_finite_scores_that_fit_it(kind, case):
    pairs, _ = drawn(200, 4, seed=72)
    if case == "no token has a hit":
        pairs = Pairs(pairs.rows, pairs.tags, pairs.scores, np.zeros(len(pairs), bool), 200)
    elif case == "one token":
        pairs = pairs.take(pairs.rows == 0)
    else:
        flipped = pairs if case.startswith("the least") else Pairs(pairs.rows, pairs.tags, 1 - pairs.scores, pairs.hits, 200)
        pairs = Pairs(pairs.rows, pairs.tags, pairs.scores, other_hits(flipped, np.ones(len(pairs), bool)).hits, 200)
    scaling = kind().fit(pairs, 4)
    scaled = scaled_by(scaling, pairs)
    for learned_values in (scaling.factor_, scaling.biases_, scaling.weights_, scaled):
        assert np.isfinite(learned_values).all()
    assert ((scaled >= 0) & (scaled <= 1)).all()
    assert log_loss_of(scaled, pairs) < log_loss_of(pairs.scores, pairs)


def peak_of(action) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_tokens_with_hundreds_of_equal_tags_take_little_memory(monkeypatch):
    """600 tags of each bear on 601 outcomes: without a limit of 16 that are 360,600 pairs of entries a token, here 9,616."""
    n_tokens, n_tags = 12, 600
    rows, tags = np.divmod(np.arange(n_tokens * n_tags), n_tags)
    scores = np.random.default_rng(73).dirichlet(np.full(n_tags, 50.0), n_tokens).ravel()
    pairs = Pairs(rows, tags, scores, tags == 7 * rows, n_tokens)
    scaling = MatrixScaling()
    assert peak_of(lambda: scaling.fit(pairs, n_tags)) < 60e6
    whole = peak_of(lambda: scaled_by(scaling, pairs))
    scaled = scaled_by(scaling, pairs)
    assert log_loss_of(scaled, pairs) < log_loss_of(scores, pairs)
    monkeypatch.setattr(entries, "_CELLS", 2 * n_tags)
    assert peak_of(lambda: scaled_by(scaling, pairs)) < whole / 4
    np.testing.assert_array_equal(scaled_by(scaling, pairs), scaled)


@ridged
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", [1.0]])
def test_settings_out_of_range_are_refused(kind, value):
    with pytest.raises(CalibError, match=r"\[C001\] ridge must be a number above 0, but"):
        kind(value)


@ridged
@pytest.mark.parametrize("value", [1, 1e-9, np.float32(2), np.int64(3)])
def test_numbers_of_other_kinds_are_taken(kind, value):
    assert kind(ridge=value).settings()["ridge"] == float(value)
    assert type(kind(ridge=value).settings()["ridge"]) is float


@every_kind
def test_bad_input_is_refused(kind):
    none = np.zeros(1, np.intp)
    for bad in ([1.5], [-0.1], [float("nan")], [[0.5]]):
        with pytest.raises(CalibError, match=r"\[C001\] scores must be"):
            learned(kind, 3, seed=0).scale(none, none, np.array(bad))


@pytest.mark.parametrize("short", ["rows", "tags", "is_input"])
def test_arrays_of_unequal_length_are_refused(short):
    arrays = {"rows": np.zeros(3, np.intp), "tags": np.arange(3), "scores": np.full(3, 0.2), "is_input": np.ones(3, bool)}
    arrays[short] = arrays[short][:2]
    with pytest.raises(CalibError, match=r"\[C002\]"):
        learned(VectorScaling, 3, seed=0).scale(**arrays)
