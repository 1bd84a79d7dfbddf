"""Scaling, maps and normalization as one: against their parts, against a slow reading, and on fresh data."""

import functools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.recalibrators import (
    Beta,
    HistogramBinning,
    Identity,
    IsotonicRegression,
    Platt,
    Recalibrator,
    Temperature,
)
from spacy_calib.calibration.scaling import FLOOR, MatrixScaling, Scaling, TemperatureScaling, VectorScaling
from spacy_calib.calibration.token_fit import CalibrationPlan, FitData, fit_tokens, score_held_out
from spacy_calib.calibration.tokens import TOKENS, CalibratedEntries, TokenCalibration, check_normalize
from spacy_calib.errors import CalibError
from spacy_calib.pairs.documents import folds_of
from spacy_calib.pairs.pairing import pair_up
from spacy_calib.pairs.scores import from_dense
from spacy_calib.pipe import saved
from spacy_calib.schema import InvalidState, record
from spacy_calib.types import Groups, Marginals
from tests.made import N_TAGS, TOKEN_GROUPS, SampledTokens, ScoreTable, fit_data, labels_of_columns, sample_tokens

from .. import strategies  # noqa: F401  (the profile of hypothesis)

# A ridge that is given need not be chosen, which takes long.
SCALINGS: dict[str, Callable[[], Scaling]] = {
    "temperature": TemperatureScaling,
    "vector": partial(VectorScaling, 100.0),
    "matrix": partial(MatrixScaling, 100.0),
}
every_scaling = pytest.mark.parametrize("name", [None, *SCALINGS])
with_and_without_scaling = pytest.mark.parametrize("name", [None, "vector"])


def fit(
    data: FitData,
    name: str | None = None,
    prototype: Recalibrator | None = None,
    offsets: bool = False,
    groups: Groups = TOKEN_GROUPS,
    scaled: tuple[Scaling | None, np.ndarray] | None = None,
    normalize: bool = False,
) -> TokenCalibration:
    """The calibration of these data after a scaling, all fitted as the pipe does it; scaled: What `scale` gives, where it is known."""
    scaling, scores = scaled or scale(data, name)
    plan = CalibrationPlan(groups, groups, prototype or Platt(), scores, offsets, scaling)
    return fit_tokens(data, plan, normalize)


def scale(data: FitData, name: str | None) -> tuple[Scaling | None, np.ndarray]:
    """(a scaling fitted on the data, the scores of their pairs by others that did not see the document)."""
    if name is None:
        return None, data.pairs.scores
    scaling = SCALINGS[name]()
    return scaling, scaling.cross_fit(data.pairs, data.documents, data.n_tags)


@functools.cache
def prepared(n: int, seed: int, name: str | None, threshold: float) -> tuple[FitData, tuple[Scaling | None, np.ndarray]]:
    """(fit data, what `scale` gives), once for all tests."""
    data = fit_data(sample_tokens(n, seed), threshold, min(threshold, FLOOR) if name else threshold)
    return data, scale(data, name)


def fitted_on(n: int = 300, seed: int = 1, name: str | None = None, threshold: float = 0.01, **settings) -> TokenCalibration:
    data, scaled = prepared(n, seed, name, threshold)
    return fit(data, scaled=scaled, **settings)


def by_token(rows: np.ndarray, values: np.ndarray, n_tokens: int) -> np.ndarray:
    return np.bincount(rows, weights=values, minlength=n_tokens)


@pytest.mark.parametrize("normalize", ["", "kept", "other", None, 2, 0.5])
def test_other_ways_to_normalize_are_refused(normalize):
    with pytest.raises(CalibError, match=r"\[C001\] normalize must be true or false"):
        check_normalize(normalize)


def test_kept_pairs_are_those_at_or_above_the_threshold():
    probabilities = np.array([[0.5, 0.25, 0.125, 0.125], [0.75, 0.125, 0.0625, 0.0625]])
    pairs = pair_up(from_dense(probabilities, 0.1), np.array([0, 1]))
    data = FitData(pairs, np.array([0, 1]), pairs.rows, 4, 0.125)
    assert data.pairs.scores[data.kept_indices].tolist() == [0.5, 0.25, 0.125, 0.125, 0.75, 0.125]
    assert replace(data, threshold=0.2).kept_indices.tolist() == [0, 1, 4]


@pytest.mark.parametrize("normalize", [False, True])
def test_unfitted_raw_probabilities_are_passed_through(normalize):
    tokens = sample_tokens(30, 1)
    found = TokenCalibration(normalize=normalize).calibrate(ScoreTable(tokens.probabilities), 0.05)
    expected = from_dense(tokens.probabilities, 0.05)
    assert found.marginals.scores.tolist() == expected.scores.tolist()
    sums = by_token(expected.rows, expected.scores, 30)[expected.rows]
    wanted = expected.scores / sums if normalize else expected.scores
    assert found.scores == pytest.approx(wanted, abs=1e-12)


@every_scaling
@pytest.mark.parametrize("offsets", [False, True])
def test_scaled_then_mapped_then_cut(name, offsets):
    calibration = fitted_on(name=name, offsets=offsets, prototype=IsotonicRegression())
    fresh = sample_tokens(100, 2)
    found = calibration.calibrate(ScoreTable(fresh.probabilities), 0.01)
    every = from_dense(fresh.probabilities, 0.01 if name is None else FLOOR)
    scaled = every.scores if name is None else calibration.scaling.scale(every.rows, every.tags, every.scores)
    kept = every.scores >= 0.01
    assert found.marginals.rows.tolist() == every.rows[kept].tolist()
    assert found.marginals.tags.tolist() == every.tags[kept].tolist()
    assert found.marginals.scores.tolist() == every.scores[kept].tolist()  # raw ones, as the threshold wants them
    assert found.scores.tolist() == calibration.maps.predict(scaled[kept], every.tags[kept]).tolist()
    assert np.any(found.scores != found.marginals.scores)


@every_scaling
def test_maps_are_fitted_on_scores_of_scalings_that_did_not_see_the_document(name):
    data, (_, scaled) = prepared(300, 1, name, 0.01)
    kept = data.pairs.scores >= 0.01
    expected = GroupedRecalibrator(Platt(), TOKEN_GROUPS).fit(replace(data.pairs.take(kept), scores=scaled[kept]))
    fitted = fitted_on(name=name)
    asked = np.linspace(0.0, 1.0, 50)
    for tag in range(N_TAGS):
        tags = np.full(50, tag)
        assert fitted.maps.predict(asked, tags).tolist() == expected.predict(asked, tags).tolist()


@every_scaling
def test_one_token_at_a_time_gives_what_all_at_once_give(name):
    calibration = fitted_on(name=name, normalize=True)
    fresh = sample_tokens(60, 3).probabilities
    whole = calibration.calibrate(ScoreTable(fresh), 0.01)
    bounds = whole.marginals.indptr
    for token in range(60):
        own = slice(bounds[token], bounds[token + 1])
        single = calibration.calibrate(ScoreTable(fresh[token : token + 1]), 0.01)
        assert single.marginals.tags.tolist() == whole.marginals.tags[own].tolist()
        assert single.scores == pytest.approx(whole.scores[own], abs=1e-9)


@every_scaling
def test_tags_permuted_results_permuted(name):
    tokens, fresh = (sample_tokens(200, seed) for seed in (1, 2))
    order = np.random.default_rng(0).permutation(N_TAGS)  # the tag t stands in column order[t] afterwards

    def moved(one: SampledTokens) -> SampledTokens:
        columns = np.argsort(order)
        return SampledTokens(one.probabilities[:, columns], one.truth[:, columns], order[one.gold])

    promises = {"normalize": True}
    lowest = 0.01 if name is None else 1e-4
    one = fit(fit_data(tokens, lowest=lowest), name, **promises)
    other = fit(
        fit_data(moved(tokens), lowest=lowest),
        name,
        groups=Groups(TOKEN_GROUPS.names, TOKEN_GROUPS.of_tag[np.argsort(order)]),
        **promises,
    )
    ours, theirs = (
        one.calibrate(ScoreTable(fresh.probabilities), 0.01),
        other.calibrate(ScoreTable(moved(fresh).probabilities), 0.01),
    )
    place = np.lexsort((order[ours.marginals.tags], ours.marginals.rows))
    assert theirs.marginals.tags.tolist() == order[ours.marginals.tags][place].tolist()
    # A scaling ends its search a little elsewhere.
    assert theirs.scores == pytest.approx(ours.scores[place], abs=5e-3)


def test_names_of_entries_go_with_them():
    """Lemmas: an entry has a name of its own, and a scaling reads entries that the threshold leaves out."""
    probabilities = sample_tokens(20, 1).probabilities

    class Named(ScoreTable):
        def marginals_above(self, threshold):
            found = super().marginals_above(threshold)
            names = [f"lemma {row} {tag}" for row, tag in zip(found.rows, found.tags, strict=True)]
            return Marginals(found.rows, found.tags, found.scores, found.n_tokens, names)

    for calibration in (TokenCalibration(), fitted_on(name="matrix")):
        found = calibration.calibrate(Named(probabilities), 0.05).marginals
        assert 0 < len(found) < 20 * N_TAGS
        assert found.names == [f"lemma {row} {tag}" for row, tag in zip(found.rows, found.tags, strict=True)]


@every_scaling
def test_tags_appended_later_use_what_all_tags_share(name):
    calibration = fitted_on(name=name)
    fresh = sample_tokens(40, 2).probabilities
    wider = np.concatenate([0.7 * fresh, np.full((40, 2), 0.15)], axis=1)
    found = calibration.calibrate(ScoreTable(wider), 0.01)
    later = found.marginals.tags >= N_TAGS
    assert later.sum() == 80
    scaled = np.full(80, 0.15)
    if name is not None:
        every = from_dense(wider, 1e-4)
        scaled = calibration.scaling.scale(every.rows, every.tags, every.scores)[every.tags >= N_TAGS]
    assert found.scores[later].tolist() == calibration.maps.pooled_.predict(scaled).tolist()


def test_nothing_asked_gives_nothing():
    calibration = fitted_on(name="matrix", normalize=True)
    found = calibration.calibrate(ScoreTable(np.zeros((0, N_TAGS))), 0.01)
    assert [len(part) for part in (found.marginals, found.scores)] == [0] * 2
    assert found.below_threshold is None


def scores_below(
    calibration: TokenCalibration, table: ScoreTable, threshold: float, rows: np.ndarray, tags: np.ndarray
) -> CalibratedEntries:
    """The scores of these entries below the threshold, which their tokens carry."""
    columns = np.full(table.n_tokens, -2)
    columns[rows] = tags
    return calibration.calibrate(table, threshold, predicted_labels=labels_of_columns(table, columns)).below_threshold


@every_scaling
@pytest.mark.parametrize("threshold", [0.3, 0.01, 1e-4, 1e-5])
def test_an_entry_below_the_threshold_has_the_score_that_it_has_above_a_lower_one(name, threshold):
    calibration = fitted_on(name=name)
    fresh = sample_tokens(200, 2)
    table = ScoreTable(fresh.probabilities)
    lower = calibration.calibrate(table, 1e-7)
    below = np.flatnonzero(lower.marginals.scores < threshold)
    for one in np.unique(lower.marginals.rows[below], return_index=True)[1]:  # one entry a token, as a token carries one label
        chosen = below[one : one + 1]
        rows, tags = lower.marginals.rows[chosen], lower.marginals.tags[chosen]
        found = scores_below(calibration, table, threshold, rows, tags)
        assert found.scores == pytest.approx(lower.scores[chosen], abs=1e-9)


@every_scaling
def test_many_entries_at_once_give_what_each_gives_alone(name):
    calibration = fitted_on(name=name)
    table = ScoreTable(sample_tokens(50, 2).probabilities)
    rows = np.arange(0, 50, 2)
    tags = np.argmin(table.probabilities[rows], axis=1)
    together = scores_below(calibration, table, 0.2, rows, tags).scores
    alone = [scores_below(calibration, table, 0.2, rows[i : i + 1], tags[i : i + 1]).scores[0] for i in range(25)]
    assert together == pytest.approx(alone, abs=1e-9)


@every_scaling
def test_an_entry_without_any_probability_has_a_score(name):
    calibration = fitted_on(name=name)
    table = ScoreTable(np.array([[1.0, *[0.0] * (N_TAGS - 1)]]))
    found = scores_below(calibration, table, 0.01, np.array([0]), np.array([3]))
    assert 0 <= found.scores[0] < 0.1


@pytest.mark.parametrize("name", SCALINGS)
@pytest.mark.parametrize("threshold", [0.0, 1e-5])
def test_below_the_floor_the_scaling_is_the_same(name, threshold):
    tokens = sample_tokens(200, 1, sharpness=3.0)
    assert np.mean(tokens.probabilities < 1e-4) > 0.1
    one, other = (fit(fit_data(tokens, at, min(at, 1e-4)), name) for at in (threshold, 0.01))
    assert one.scaling.factor_ == pytest.approx(other.scaling.factor_, abs=1e-4)
    assert one.scaling.biases_ == pytest.approx(other.scaling.biases_, abs=1e-3)


@pytest.mark.parametrize("name", SCALINGS)
def test_below_the_floor_maps_are_asked_for_what_they_were_fitted_on(name):
    """One document: there the scaled scores of the fit are those of the scaling itself."""
    tokens = sample_tokens(150, 1, sharpness=3.0)
    data = fit_data(tokens, 0.0, per_document=150)
    seen = []

    class Watching(Identity):
        def _fit(self, scores, hits, weights):
            seen.append(np.repeat(scores, weights.astype(int)))

    calibration = fit(data, name, Watching(), groups=Groups(("1",), np.zeros(N_TAGS, np.intp)))
    asked = calibration.calibrate(ScoreTable(tokens.probabilities), 0.0).scores
    assert np.sort(seen[-1]) == pytest.approx(np.sort(asked), abs=1e-9)


@every_scaling
@pytest.mark.parametrize("prototype", [IsotonicRegression(), Beta(), HistogramBinning(5)])
def test_kept_scores_sum_to_one(name, prototype):
    fresh = sample_tokens(300, 2)
    plain, kept = (
        fitted_on(name=name, prototype=prototype, threshold=0.05, normalize=way).calibrate(
            ScoreTable(fresh.probabilities), 0.05
        )
        for way in (False, True)
    )
    rows = plain.marginals.rows
    sums = by_token(rows, plain.scores, 300)
    assert np.abs(sums - 1).max() > 0.05
    assert by_token(rows, kept.scores, 300) == pytest.approx(np.ones(300))
    # All entries of a token are divided by the same number.
    assert kept.scores * sums[rows] == pytest.approx(plain.scores, abs=1e-12)


def held_out_scores(data: FitData, prototype: Recalibrator) -> np.ndarray:
    """The score of each kept pair by maps of the other four fifths."""
    kept = data.kept_indices
    pairs, folds = data.pairs.take(kept), folds_of(data.documents[kept], 5)
    found = np.empty(len(pairs))
    for fold in range(5):
        inside = folds == fold
        found[inside] = (
            GroupedRecalibrator(prototype, TOKEN_GROUPS)
            .fit(pairs.take(~inside))
            .predict(pairs.scores[inside], pairs.tags[inside])
        )
    return found


def test_held_out_scores_are_of_maps_that_did_not_see_the_document():
    data = fit_data(sample_tokens(400, 1))
    plan = CalibrationPlan(TOKEN_GROUPS, TOKEN_GROUPS, IsotonicRegression(), data.pairs.scores)
    found = score_held_out(data, plan, fit_tokens(data, plan, False))
    assert found.tolist() == held_out_scores(data, IsotonicRegression()).tolist()


def test_held_out_scores_are_those_that_tokens_will_have():
    """Normalized scores, where they are normalized."""
    data = fit_data(sample_tokens(400, 1))
    rows, held_out = data.pairs.rows[data.kept_indices], held_out_scores(data, Platt())
    plan = CalibrationPlan(TOKEN_GROUPS, TOKEN_GROUPS, Platt(), data.pairs.scores)
    found = score_held_out(data, plan, fit_tokens(data, plan, True))
    assert found == pytest.approx(held_out / by_token(rows, held_out, 400)[rows], abs=1e-12)
    assert np.any(found != score_held_out(data, plan, fit_tokens(data, plan, False)))


class ByHeart(Recalibrator):
    """Knows every pair that it was fitted on, and half of nothing about others."""

    registered = "spacy-calib-tests.ByHeart.v1"
    _learned = ("known_",)

    def _fit(self, scores, hits, weights):
        self.known_ = scores[hits]

    def _predict(self, scores):
        return np.where(np.isin(scores, self.known_), 1.0, 0.5 * scores)


@pytest.mark.parametrize("per_document", [10, 2000])
def test_maps_that_know_the_fit_data_by_heart_do_not_spoil_held_out_scores(per_document):
    """On their own data such maps are always right; of a single document stretches are held out."""
    data = fit_data(sample_tokens(2000, 1), per_document=per_document)
    plan = CalibrationPlan(TOKEN_GROUPS, TOKEN_GROUPS, ByHeart(), data.pairs.scores)
    calibration = fit_tokens(data, plan, False)
    kept = data.pairs.take(data.kept_indices)
    assert np.mean(calibration.maps.predict(kept.scores, kept.tags)[kept.hits] == 1.0) == 1.0
    assert np.mean(score_held_out(data, plan, calibration) == 1.0) < 0.05


@every_scaling
def test_two_tokens_in_two_documents(name):
    probabilities = np.array([[0.9, 0.05, 0.05, 0, 0, 0, 0, 0], [0.3, 0.6, 0.1, 0, 0, 0, 0, 0]])
    data = fit_data(SampledTokens(probabilities, probabilities, np.array([0, 2])), lowest=1e-4, per_document=1)
    calibration = fit(data, name, IsotonicRegression(), normalize=True)
    found = calibration.calibrate(ScoreTable(sample_tokens(30, 1).probabilities), 0.01)
    assert np.all((found.scores >= 0) & (found.scores <= 1))


def test_folds_with_too_few_pairs_for_maps_keep_the_raw_scores():
    probabilities = np.array([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2]])
    pairs = pair_up(from_dense(probabilities, 0.01), np.array([0, 1, 0]))
    data = FitData(pairs, np.array([0, 1, 0]), pairs.rows, 2, 0.01)
    groups = Groups(("1",), np.zeros(2, np.intp))
    plan = CalibrationPlan(groups, groups, HistogramBinning(6), pairs.scores)
    calibration = fit_tokens(data, plan, False)
    assert score_held_out(data, plan, calibration).tolist() == pairs.scores.tolist()


@pytest.mark.parametrize("code_of", [("C003", 0), ("C006", 3)])
def test_too_few_pairs_are_refused(code_of):
    code, n = code_of
    pairs = pair_up(from_dense(np.full((n, 1), 0.5), 0.01), np.zeros(n, np.intp))
    with pytest.raises(CalibError, match=code):
        fit(
            FitData(pairs, np.zeros(n, np.intp), pairs.rows, 1, 0.01),
            prototype=HistogramBinning(10),
            groups=Groups(("1",), np.zeros(1)),
        )


def restored(calibration: TokenCalibration) -> TokenCalibration:
    state = saved.read(saved.dump(calibration.state()), dict, name="calib", path="nowhere")
    return TokenCalibration.from_state(
        record(TOKENS)(state, "state"), calibration.normalize, partial(saved.load_part, name="calib")
    )


def same_bits(one: TokenCalibration, other: TokenCalibration) -> None:
    table = ScoreTable(sample_tokens(40, 5).probabilities)
    ours, theirs = (calibration.calibrate(table, 0.01) for calibration in (one, other))
    assert ours.scores.tolist() == theirs.scores.tolist()
    place = (np.arange(40), np.argmin(table.probabilities, axis=1))
    ours, theirs = (scores_below(calibration, table, 0.01, *place) for calibration in (one, other))
    assert ours.scores.tolist() == theirs.scores.tolist()


@every_scaling
def test_a_saved_one_gives_the_same_bits(name):
    calibration = fitted_on(name=name, prototype=Temperature(), offsets=True, normalize=True)
    again = restored(calibration)
    assert again.normalize is True
    same_bits(calibration, again)
    same_bits(calibration, restored(again))


@pytest.mark.parametrize("part", TOKENS)
def test_a_state_that_lacks_a_part_is_refused(part):
    state = fitted_on(prototype=IsotonicRegression()).state()
    del state[part]
    with pytest.raises(InvalidState, match=f"'state.{part}' is not there"):
        record(TOKENS)(state, "state")


def test_an_unfitted_one_is_saved_too():
    again = restored(TokenCalibration(normalize=True))
    assert again.maps is None
    same_bits(TokenCalibration(normalize=True), again)
