"""Choosing by cross-validation: folds, the one-standard-error rule, known truth, what may not matter."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spacy_calib.calibration.auto import Selector
from spacy_calib.calibration.candidates import Candidate, ScaledScores, Trial, _compare, _Comparison, choose, select_method
from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.grouping.fixed import one_group_per_tag
from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.calibration.recalibrators import (
    Beta,
    HistogramBinning,
    Identity,
    IsotonicRegression,
    Platt,
    Recalibrator,
    Temperature,
)
from spacy_calib.calibration.recalibrators.logistic import log_odds, sigmoid
from spacy_calib.calibration.scaling import MatrixScaling, Scaling, TemperatureScaling, VectorScaling, fit_cautiously
from spacy_calib.calibration.tag_offsets import TagOffsets
from spacy_calib.calibration.token_fit import TokenData
from spacy_calib.errors import CalibError
from spacy_calib.metrics import log_loss
from spacy_calib.pairs.documents import contiguous_folds
from spacy_calib.types import Groups, Pairs

from ..strategies import make_pairs
from ..tokens import GROUPS, N_TAGS, Tokens, draw_tokens, fit_data
from ..tokens import LABELS as TAGS

LABELS = [f"T{i:02d}" for i in range(12)]
FEW: dict[str, Recalibrator] = {"temperature": Temperature(), "platt": Platt()}
SOME: dict[str, Recalibrator] = {"platt": Platt(), "histogram": HistogramBinning(), "isotonic": IsotonicRegression()}
ALL: dict[str, Recalibrator] = {**FEW, "beta": Beta(), **SOME}
SCALINGS: dict[str, Scaling] = {one.short: one for one in (TemperatureScaling(), VectorScaling(), MatrixScaling())}


def by_number(pairs: Pairs):
    """Groups of the labels by the frequency of the pairs that hit."""
    counts = dict(zip(LABELS, np.bincount(pairs.tags[pairs.hits], minlength=len(LABELS)).tolist(), strict=True))

    def make(number: int | None) -> Groups:
        return one_group_per_tag(LABELS, counts) if number is None else tag_frequency_groups(LABELS, counts, number)

    return make


def drawn(n: int, seed: int, truth, n_documents: int = 60) -> tuple[Pairs, np.ndarray]:
    """(pairs, documents): tag t less frequent the higher t; hits follow truth(log-odds, tags)."""
    rng = np.random.default_rng(seed)
    tags = np.minimum(rng.geometric(0.2, n) - 1, len(LABELS) - 1)
    scores = rng.beta(0.8, 0.8, n)
    hits = rng.random(n) < sigmoid(truth(log_odds(scores), tags))
    return make_pairs(scores, hits, tags=tags), np.sort(rng.integers(0, n_documents, n))


def one_map_for_all(margins, tags):
    return 0.5 * margins


# By tag, and not by frequency: neighbours in frequency are shifted to opposite sides.
SHIFTS = np.where(np.arange(len(LABELS)) % 2, 1.2, -1.2)


def another_shift_for_each_tag(margins, tags):
    return margins + SHIFTS[tags]


def temperature_of_size(n: int) -> Recalibrator:
    """A temperature that says it has so many free numbers."""

    class Sized(Temperature):
        n_parameters = n

    return Sized()


def documents_of(*sizes: int) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


def test_take_keeps_the_units():
    pairs = make_pairs([0.1, 0.2, 0.3], [0, 1, 1], tags=[4, 5, 6], rows=[2, 5, 7], n_units=20)
    some = pairs.take(np.array([0, 2]))
    assert (some.rows.tolist(), some.tags.tolist(), some.scores.tolist(), some.hits.tolist()) == (
        [2, 7],
        [4, 6],
        [0.1, 0.3],
        [False, True],
    )
    assert some.n_units == 20


# What is compared


def test_losses_are_those_of_maps_that_did_not_see_the_fold():
    pairs, documents = drawn(1500, 1, another_shift_for_each_tag)
    make = by_number(pairs)
    found = select_method(pairs, documents, make, FEW, [1, 3], n_folds=4)
    folds = contiguous_folds(documents, 4)
    assert (found.folds, found.pairs, found.documents) == (4, 1500, len(np.unique(documents)))
    assert len(found.trials) == 8
    for trial in found.trials:
        candidate = trial.candidate
        predicted = np.empty(len(pairs))
        for fold in range(4):
            inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            maps = GroupedRecalibrator(
                FEW[candidate.method], make(candidate.n_groups), TagOffsets() if candidate.offsets else None
            ).fit(pairs.take(outside))  # fmt: skip
            predicted[inside] = maps.predict(pairs.scores[inside], pairs.tags[inside])
        assert trial.loss == pytest.approx(log_loss(predicted, pairs.hits), abs=1e-10)
        groups = len(make(candidate.n_groups))
        assert trial.size == FEW[candidate.method].n_parameters * groups + 12 * candidate.offsets


def test_a_held_out_document_has_no_part_in_its_own_maps():
    # As many pairs, and as many hits, as stand outside each fold.
    pairs, documents = drawn(1000, 2, one_map_for_all)
    folds = contiguous_folds(documents, 5)
    seen = []

    class Watching(Temperature):
        def _fit(self, scores, hits, weights):
            seen.append((float(weights.sum()), float(weights[hits].sum())))
            super()._fit(scores, hits, weights)

    select_method(pairs, documents, by_number(pairs), {"watching": Watching()}, [1])
    outside = [folds != fold for fold in range(5)]
    assert set(seen) == {(float(one.sum()), float(pairs.hits[one].sum())) for one in outside}


def test_the_standard_error_is_that_of_a_ratio_over_documents():
    # Documents of 1, 2 and 3 pairs with differences that sum to 0.6, 0 and 0: mean 0.1 a pair; residuals 0.5, -0.2 and -0.3.
    documents = documents_of(1, 2, 3)
    worse = np.array([0.6, 0.0, 0.0, 0.0, 0.0, 0.0])
    candidates = [(Candidate(1, "best", False), 5), (Candidate(1, "worse", False), 2)]
    best, other = _compare(candidates, [np.zeros(6), worse], documents)
    assert (best.candidate.method, best.difference, best.error, best.loss) == ("best", 0, 0, 0)
    assert (other.candidate.method, other.loss, other.size) == ("worse", pytest.approx(0.1), 2)
    assert other.difference == pytest.approx(0.1)
    assert other.error == pytest.approx(np.sqrt(0.25 + 0.04 + 0.09) / 6)


def test_of_equal_candidates_the_smaller_is_chosen():
    """Three names for one map: all losses are equal, and the size decides."""
    pairs, documents = drawn(600, 3, one_map_for_all)
    same = {name: temperature_of_size(n) for name, n in (("big", 9), ("small", 1), ("middle", 4))}
    found = select_method(pairs, documents, by_number(pairs), same, [1], offsets=TagOffsets(float("inf"), float("inf")))
    assert found.chosen == Candidate(1, "small", False)
    assert len({trial.loss for trial in found.trials}) == 1
    assert [trial.size for trial in found.trials] == sorted(trial.size for trial in found.trials)


def test_the_chosen_one_is_the_smallest_within_one_standard_error():
    for seed in range(2):
        pairs, documents = drawn(1500, seed, another_shift_for_each_tag)
        found = select_method(pairs, documents, by_number(pairs), FEW, [1, 2, 5, None])
        assert found.trials[0].difference == found.trials[0].error == 0
        assert [trial.loss for trial in found.trials] == sorted(trial.loss for trial in found.trials)
        assert all(trial.difference >= 0 for trial in found.trials)
        near = [trial for trial in found.trials if trial.difference <= trial.error]
        chosen = next(trial for trial in found.trials if trial.candidate == found.chosen)
        assert chosen in near
        assert chosen.size == min(trial.size for trial in near)
        assert chosen.loss == min(trial.loss for trial in near if trial.size == chosen.size)


def test_of_those_near_the_best_only_those_with_its_scaling_are_taken():
    """A scaling that does best stays, though maps without any come near it with fewer numbers: it changes nothing where data do not ask for it."""

    def trial(scaling: str, difference: float, size: int) -> Trial:
        return Trial(Candidate(1, "platt", False, scaling), 0.2 + difference, difference, 0.05, size)

    best, near, far = trial("matrix", 0.0, 900), trial("matrix", 0.04, 500), trial("matrix", 0.06, 3)
    bare, other = trial("", 0.01, 2), trial("vector", 0.02, 20)
    assert choose([best, bare, other, near, far]) is near.candidate
    assert choose([bare, best, other, near, far]) is bare.candidate


def test_of_many_pairs_few_are_looked_at_for_candidates_far_behind(monkeypatch):
    pairs, documents = drawn(2000, 1, another_shift_for_each_tag)
    whole = select_method(pairs, documents, by_number(pairs), SOME, [1, 3, None])
    monkeypatch.setattr("spacy_calib.calibration.candidates.FIRST_PAIRS", 500)
    raced = select_method(pairs, documents, by_number(pairs), SOME, [1, 3, None])
    assert raced.chosen == whole.chosen
    assert (whole.dropped, raced.dropped + len(raced.trials)) == (0, len(whole.trials))
    assert 0 < len(raced.trials) < len(whole.trials) / 2
    losses = {one.candidate: one.loss for one in whole.trials}
    assert all(one.loss == losses[one.candidate] for one in raced.trials)


def test_of_long_documents_as_many_are_looked_at_as_a_choice_wants(monkeypatch):
    """Of two documents, which hold pairs enough, standard errors say nothing: the best of all candidates was left out."""
    pairs, documents = drawn(4000, 2, another_shift_for_each_tag)
    looked_at: list[int] = []
    folds = _Comparison.folds

    def watched(self, index, most=None):
        looked_at.append(len(np.unique(documents[index])))
        return folds(self, index, most)

    monkeypatch.setattr(_Comparison, "folds", watched)
    monkeypatch.setattr("spacy_calib.calibration.candidates.FIRST_PAIRS", 1)  # less than one document
    assert select_method(pairs, documents, by_number(pairs), FEW, [1, 3]).dropped > 0
    assert (looked_at[0], looked_at[-1]) == (10, 60)


# Known truth


def test_one_map_for_all_tags_wants_a_small_candidate():
    for seed in range(2):
        pairs, documents = drawn(2000, seed, one_map_for_all)
        found = select_method(pairs, documents, by_number(pairs), ALL, [1, 5, None])
        assert found.chosen == Candidate(1, "temperature", False)


def test_calibrated_scores_want_no_map_at_all():
    pairs, documents = drawn(2000, 7, lambda margins, tags: margins)
    found = select_method(pairs, documents, by_number(pairs), {"identity": Identity(), **ALL}, [1, 5])
    assert found.chosen == Candidate(1, "identity", False)


def test_tags_that_differ_want_offsets_or_a_map_each():
    for seed in range(2):
        pairs, documents = drawn(2000, seed, another_shift_for_each_tag)
        # Without one-vs-rest only offsets can tell tags of one group apart.
        found = select_method(pairs, documents, by_number(pairs), ALL, [1, 3])
        assert found.chosen.offsets
        plain = min(trial.loss for trial in found.trials if not trial.candidate.offsets)
        assert min(trial.loss for trial in found.trials) < plain - 0.02
        found = select_method(pairs, documents, by_number(pairs), FEW, [1, 2, 3, None])
        assert found.chosen.offsets or found.chosen.n_groups is None


def test_a_bent_map_wants_more_than_a_line():
    # A step: 0.2 below one half and 0.9 above, which no line through the log-odds follows.
    pairs, documents = drawn(3000, 1, lambda margins, tags: np.where(margins < 0, -1.4, 2.2))
    found = select_method(pairs, documents, by_number(pairs), ALL, [1, 2])
    assert found.chosen.method in ("histogram", "isotonic")
    assert found.chosen.n_groups == 1


def test_what_is_chosen_is_good_on_fresh_pairs():
    for truth in (one_map_for_all, another_shift_for_each_tag):
        pairs, documents = drawn(2000, 5, truth)
        fresh, _ = drawn(10_000, 6, truth)
        chosen = select_method(pairs, documents, by_number(pairs), ALL, [1, None]).chosen

        def loss_of(candidate, pairs=pairs, fresh=fresh):
            maps = GroupedRecalibrator(
                ALL[candidate.method], by_number(pairs)(candidate.n_groups), TagOffsets() if candidate.offsets else None
            ).fit(pairs)  # fmt: skip
            return log_loss(maps.predict(fresh.scores, fresh.tags), fresh.hits)

        every = [Candidate(g, m, p) for g in (1, None) for m in ALL for p in (False, True)]
        assert loss_of(chosen) <= min(map(loss_of, every)) + 0.01
        assert loss_of(chosen) < log_loss(fresh.scores, fresh.hits) - 0.02


# What may not matter


def same_choice(one, other):
    assert other.chosen == one.chosen
    assert (other.folds, other.pairs, other.documents) == (one.folds, one.pairs, one.documents)
    ours, theirs = ({trial.candidate: trial for trial in found.trials} for found in (one, other))
    assert ours.keys() == theirs.keys()
    for candidate, trial in ours.items():
        assert theirs[candidate].loss == pytest.approx(trial.loss, abs=1e-9)
        assert theirs[candidate].error == pytest.approx(trial.error, abs=1e-9)
        assert theirs[candidate].size == trial.size


def test_the_same_again_is_the_same_to_the_last_bit():
    pairs, documents = drawn(600, 1, another_shift_for_each_tag)
    one, other = (select_method(pairs, documents, by_number(pairs), ALL, [1, None]) for _ in range(2))
    assert one == other


def test_the_order_of_pairs_within_a_document_does_not_matter():
    pairs, documents = drawn(600, 2, another_shift_for_each_tag)
    one = select_method(pairs, documents, by_number(pairs), ALL, [1, None])
    order = np.lexsort([np.random.default_rng(0).random(600), documents])
    same_choice(one, select_method(pairs.take(order), documents, by_number(pairs), ALL, [1, None]))


def test_the_numbers_of_documents_do_not_matter():
    pairs, documents = drawn(800, 3, one_map_for_all)
    one = select_method(pairs, documents, by_number(pairs), FEW, [1, 3])
    other = select_method(pairs, documents * 7 + 1000, by_number(pairs), FEW, [1, 3])
    assert one == other


def test_tags_permuted_the_same_choice():
    pairs, documents = drawn(600, 4, another_shift_for_each_tag)
    make = by_number(pairs)
    order = np.random.default_rng(1).permutation(12)
    moved = Pairs(pairs.rows, order[pairs.tags], pairs.scores, pairs.hits, pairs.n_units)

    def make_moved(number):
        groups = make(number)
        of_tag = np.empty(12, np.intp)
        of_tag[order] = groups.of_tag
        return Groups(groups.names, of_tag)

    same_choice(
        select_method(pairs, documents, make, FEW, [1, 3, None]), select_method(moved, documents, make_moved, FEW, [1, 3, None])
    )


def test_equal_group_layouts_are_tried_once():
    pairs, documents = drawn(500, 5, one_map_for_all)
    asked = []

    def make(number):
        asked.append(number)
        return Groups(("a", "b"), np.arange(12) % 2) if number in (2, 3) else Groups(("x",), np.zeros(12, np.intp))

    found = select_method(pairs, documents, make, FEW, [1, 2, 3, 5, None])
    assert asked == [1, 2, 3, 5, None]
    assert {trial.candidate.n_groups for trial in found.trials} == {1, 2}
    assert len(found.trials) == 2 * len(FEW) * 2


def test_layouts_that_differ_in_the_order_of_groups_only_are_equal():
    """TFG with a group for every tag and one-vs-rest number the same groups differently, and used to be fitted twice."""
    pairs, documents = drawn(500, 5, one_map_for_all)

    def make(number):
        return Groups(("a", "b", "c"), np.arange(12) % 3) if number else Groups(("c", "b", "a"), 2 - np.arange(12) % 3)

    assert {trial.candidate.n_groups for trial in select_method(pairs, documents, make, FEW, [3, None]).trials} == {3}

    def make_without(number):  # a tag without a group is not one with a group of its own
        return (
            Groups(("a",), np.where(np.arange(12) == 3, -1, 0))
            if number
            else Groups(("a", "b"), np.where(np.arange(12) == 3, 1, 0))
        )

    assert {trial.candidate.n_groups for trial in select_method(pairs, documents, make_without, FEW, [1, None]).trials} == {
        1,
        None,
    }


# Little data


@pytest.mark.parametrize("n", [0, 10])
def test_fewer_than_two_documents_are_refused(n):
    pairs = make_pairs(np.linspace(0.1, 0.9, n), np.arange(n) % 2)
    with pytest.raises(CalibError, match=rf"\[C007\] .* at least 2 documents with pairs, but {min(n, 1)} was given"):
        select_method(pairs, np.full(n, 3), by_number(pairs), FEW, [1])


def test_two_documents_are_two_folds():
    pairs, _ = drawn(300, 6, one_map_for_all)
    found = select_method(pairs, documents_of(100, 200), by_number(pairs), FEW, [1, None])
    assert (found.folds, found.documents) == (2, 2)


def test_two_documents_longer_than_the_limit_are_compared():
    pairs, _ = drawn(200_100, 6, one_map_for_all)
    found = select_method(pairs, documents_of(100_050, 100_050), by_number(pairs), {"temperature": Temperature()}, [1])
    assert (found.folds, found.documents, found.pairs) == (2, 2, 200_100)


def test_one_very_long_document_leaves_no_empty_fold():
    pairs, _ = drawn(1000, 6, one_map_for_all)
    found = select_method(pairs, documents_of(980, 10, 10), by_number(pairs), FEW, [1])
    assert found.documents == 3
    assert found.folds == len(np.unique(contiguous_folds(documents_of(980, 10, 10), 3))) == 2


def test_maps_that_need_more_pairs_than_there_are_take_no_part():
    pairs, documents = drawn(10, 1, one_map_for_all, n_documents=4)
    found = select_method(pairs, documents, by_number(pairs), ALL, [1])
    assert {trial.candidate.method for trial in found.trials} == {"temperature", "platt", "beta", "isotonic"}


def test_where_no_map_can_be_fitted_it_is_said():
    """Two documents of one pair each: outside each fold stands one pair, and no map is fitted on one. This used to be a ValueError."""
    with pytest.raises(CalibError, match=r"\[C006\] Only 1 pairs were given to fit on, but every method needs 2"):
        select_method(make_pairs([0.2, 0.8], [0, 1]), documents_of(1, 1), by_number(make_pairs([], [])), FEW, [1])


def test_a_fold_without_hits_or_misses_outside_it_is_no_reason_to_fail():
    pairs = make_pairs([0.2, 0.3, 0.6, 0.8, 0.7, 0.9], [0, 0, 0, 1, 1, 1], tags=[0, 1, 2, 0, 1, 3])
    found = select_method(pairs, documents_of(3, 3), by_number(pairs), FEW, [1, None])
    assert all(np.isfinite(trial.loss) for trial in found.trials)


# What is shown


def test_names_and_plain_data():
    assert str(Candidate(5, "beta", True)) == "TFG-5 beta + tag offsets"
    assert str(Candidate(None, "isotonic", False)) == "one-vs-rest isotonic"
    pairs, documents = drawn(400, 8, one_map_for_all)
    trials = [trial.to_dict() for trial in select_method(pairs, documents, by_number(pairs), FEW, [1, None]).trials]
    assert json.loads(json.dumps(trials)) == trials
    assert set(trials[0]) == {"candidate", "scaling", "groups", "method", "pooled", "loss", "difference", "error", "size"}


# After a scaling


def with_scaled(numbers, scaled, prototypes=FEW, n=600):
    """(pairs, what was found): the scalings gave scores of their own."""
    pairs, documents = drawn(n, 1, one_map_for_all)
    given = [ScaledScores(name, change(pairs.scores), size, biased) for name, change, size, biased in scaled]
    return pairs, select_method(pairs, documents, by_number(pairs), prototypes, numbers, n_folds=3, scaled=given)


def test_names_after_a_scaling():
    assert str(Candidate(1, "identity", False, "vector")) == "vector scaling"
    assert str(Candidate(1, "identity", True, "vector")) == "vector scaling, TFG-1 identity + tag offsets"
    assert str(Candidate(3, "beta", True, "temperature")) == "temperature scaling, TFG-3 beta + tag offsets"


def test_few_groups_are_tried_after_a_scaling_and_offsets_beside_no_biases():
    _, found = with_scaled(
        [1, 3, 8, None], [("plain", np.sqrt, 4, False), ("biased", np.square, 9, True)], {"identity": Identity(), **FEW}
    )
    tried: dict[str, set] = {"": set(), "plain": set(), "biased": set()}
    for trial in found.trials:
        candidate = trial.candidate
        tried[candidate.scaling].add(
            (candidate.method, None if candidate.method == "identity" else candidate.n_groups, candidate.offsets)
        )
    maps = {(method, number, pooled) for method in FEW for number in (1, 3) for pooled in (False, True)}
    assert tried["plain"] == maps | {("identity", None, False)}
    assert tried["biased"] == {one for one in maps if not one[2]} | {("identity", None, False)}
    assert {number for _, number, _ in tried[""]} == {1, 3, 8, None}
    assert len(found.trials) == 2 * 4 * 3 + 9 + 5


@pytest.mark.parametrize("numbers", [[None], [12], [8, None]])
def test_where_few_groups_are_not_among_the_numbers_there_is_one(numbers):
    _, found = with_scaled(numbers, [("plain", np.sqrt, 4, False)])
    assert {trial.candidate.n_groups for trial in found.trials if trial.candidate.scaling} == {1}


def test_sizes_and_losses_after_a_scaling():
    pairs, found = with_scaled([1, 3], [("plain", np.sqrt, 40, False)])
    n_tags = len(np.unique(pairs.tags))
    for trial in found.trials:
        candidate = trial.candidate
        size = {"identity": 0, "temperature": 1, "platt": 2}[candidate.method] * (
            candidate.n_groups if candidate.method != "identity" else 0
        )
        assert trial.size == size + (n_tags if candidate.offsets else 0) + (40 if candidate.scaling else 0)
        if candidate.method == "identity":
            assert trial.loss == pytest.approx(log_loss(np.sqrt(pairs.scores), pairs.hits), abs=1e-12)
    # A line through the log-odds of a score finds much the same from the one and the other.
    losses = {
        (t.candidate.scaling, t.candidate.method, t.candidate.n_groups, t.candidate.offsets): t.loss for t in found.trials
    }
    assert losses["plain", "platt", 1, False] == pytest.approx(losses["", "platt", 1, False], abs=0.02)
    assert losses["plain", "platt", 1, False] != losses["", "platt", 1, False]


def test_scores_that_are_the_truth_want_nothing_more():
    pairs, found = with_scaled(
        [1, 3, None], [("right", lambda scores: sigmoid(one_map_for_all(log_odds(scores), 0)), 1, False)], n=3000
    )
    assert found.chosen.scaling == "right"
    assert found.chosen.method == "identity"
    _, found = with_scaled([1, 3, None], [("wrong", lambda scores: np.round(scores), 1, False)], n=3000)
    assert found.chosen.scaling == ""


def test_scaled_scores_are_thinned_with_the_pairs(monkeypatch):
    monkeypatch.setattr("spacy_calib.calibration.candidates.MOST_PAIRS", 300)
    pairs, documents = drawn(1200, 1, one_map_for_all)
    marked = pairs.scores / 2
    found = select_method(pairs, documents, by_number(pairs), FEW, [1], scaled=[ScaledScores("half", marked, 1, True)])
    assert found.pairs <= 300
    kept = np.isin(documents, np.unique(documents)[np.arange(found.documents) * len(np.unique(documents)) // found.documents])
    (trial,) = [one for one in found.trials if one.candidate.scaling == "half" and one.candidate.method == "identity"]
    assert trial.loss == pytest.approx(log_loss(marked[kept], pairs.hits[kept]), abs=1e-12)


# The selector, on tokens


def group_tokens(grouping) -> Groups:
    return grouping(TAGS, dict(zip(TAGS, range(N_TAGS, 0, -1), strict=True)))


def small(**settings) -> Selector:
    given = {
        "n_folds": 4,
        "n_groups": [1, 3],
        "one_vs_rest": False,
        "methods": ["platt"],
        "scalings": ["temperature", "vector"],
        **settings,
    }
    for setting, known in (("methods", ALL), ("scalings", SCALINGS)):
        given[setting] = {name: known[name] for name in given[setting]}
    return Selector(**given)


def trials_by_scaling(table) -> dict[str, float]:
    """Scaling -> the least loss after it."""
    least: dict[str, float] = {}
    for trial in table["trials"]:
        least[trial["scaling"]] = min(trial["loss"], least.get(trial["scaling"], np.inf))
    return least


def test_tags_that_must_be_weighed_beside_one_another_want_a_scaling():
    """The logits are twice as long as they should be: what is right of a tag hangs on what the others have."""
    for seed in range(3):
        data = fit_data(draw_tokens(1200, seed, sharpness=2.0, biases=(0.0,) * N_TAGS), lowest=1e-4)
        chosen = small()(data, group_tokens)
        least = trials_by_scaling(chosen.table)
        assert chosen.scaling is not None
        assert min(least["temperature"], least["vector"]) < least[""] - 0.001
        assert 1.6 < 1 / chosen.scaling.factor_[0] < 2.5


def test_a_tag_that_takes_the_place_of_another_wants_the_whole_matrix():
    """Where the model holds the second tag for likely, the first is right; of its own score that says nothing."""
    data = crossed(1500, 1)
    chosen = small(scalings=["temperature", "matrix"])(data, group_tokens)
    least = trials_by_scaling(chosen.table)
    assert chosen.table["chosen"].startswith("matrix scaling")
    assert least["matrix"] < min(least[""], least["temperature"]) - 0.05


def crossed(n: int, seed: int) -> TokenData:
    rng = np.random.default_rng(seed)
    probabilities = np.full((n, N_TAGS), 0.001)
    sign = rng.random(n) < 0.5
    probabilities[:, 2] = np.where(sign, 0.3, 0.05)
    probabilities[:, :2] = 0.3 + 0.02 * rng.random((n, 2))
    gold = np.where(rng.random(n) < np.where(sign, 0.9, 0.1), 0, 1)
    return fit_data(Tokens(probabilities, probabilities, gold), lowest=1e-4)


def test_tags_that_do_not_bear_on_one_another_want_no_scaling():
    """Each tag is right by a step in its own score, which weighing it beside the other blurs."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        probabilities = np.full((1500, N_TAGS), 0.0)
        probabilities[:, :2] = rng.uniform(0.02, 0.48, (1500, 2))
        right = np.where(probabilities[:, :2] > 0.25, 0.45, 0.03)
        lot = rng.random(1500)
        gold = np.where(lot < right[:, 0], 0, np.where(lot < right.sum(axis=1), 1, -1))
        data = fit_data(Tokens(probabilities, probabilities, gold), lowest=1e-4)
        chosen = small(n_groups=[1], methods=["isotonic"])(data, group_tokens)
        least = trials_by_scaling(chosen.table)
        assert (chosen.scaling, chosen.table["chosen"]) == (None, "TFG-1 isotonic")
        assert least[""] < min(least["temperature"], least["vector"]) - 0.002
        assert chosen.scaled.tolist() == data.pairs.scores.tolist()


def test_what_is_handed_over_is_the_scaling_and_the_scores_that_it_held_out():
    data = fit_data(draw_tokens(600, 1, sharpness=2.0), lowest=1e-4)
    chosen = small(scalings=["temperature"])(data, group_tokens)
    expected = TemperatureScaling()
    scores = expected.cross_fit(data.pairs, data.documents, N_TAGS, 4)
    assert isinstance(chosen.scaling, TemperatureScaling)
    assert chosen.scaling.factor_.tolist() == expected.factor_.tolist()
    assert chosen.scaled.tolist() == scores.tolist()
    assert json.loads(json.dumps(chosen.table)) == chosen.table
    assert (chosen.table["pairs"], chosen.table["folds"]) == (len(data.kept), 4)
    assert not SCALINGS["temperature"].fitted  # prototypes are nobody's


def test_trials_are_of_the_pairs_that_reach_the_threshold():
    tokens = draw_tokens(600, 1)
    data = fit_data(tokens, 0.1, 1e-4)
    chosen = small(scalings=["vector"])(data, group_tokens)
    scaling = VectorScaling()
    scaled = scaling.cross_fit(data.pairs, data.documents, N_TAGS, 4)
    kept = data.pairs.scores >= 0.1
    assert chosen.table["pairs"] == np.count_nonzero(kept)
    (trial,) = [one for one in chosen.table["trials"] if one["candidate"] == "vector scaling"]
    assert trial["loss"] == pytest.approx(log_loss(scaled[kept], data.pairs.hits[kept]), abs=1e-12)
    assert trial["size"] == scaling.size()


@pytest.mark.parametrize(("settings", "scalable"), [({"scalings": []}, True), ({}, False)])
def test_without_scalings_none_is_tried(settings, scalable):
    data = fit_data(draw_tokens(600, 1, sharpness=2.0))
    chosen = small(**settings)(data, group_tokens, scalable)
    assert chosen.scaling is None
    assert set(trials_by_scaling(chosen.table)) == {""}


def test_the_lowest_score_that_is_read():
    assert small().lowest == Scaling.floor
    assert small(scalings=[]).lowest == 1.0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"methods": []}, "methods must be at least one method, but none"),
        ({"n_folds": 1}, "n_folds must be at least 2"),
        ({"n_groups": []}, "n_groups must be at least one number of groups"),
        ({"n_groups": [0]}, "n_groups"),
    ],
)
def test_settings_of_the_selector_out_of_range_are_refused(settings, sentence):
    with pytest.raises(CalibError, match=rf"C001.*{sentence}"):
        small(**settings)


@pytest.mark.parametrize(
    ("n", "per_document", "why"),
    [
        (700, 700, "1 document, and 10 are wanted"),
        (700, 100, "7 documents, and 10 are wanted"),
        (300, 10, "300 tokens, and 500 are wanted"),
    ],
)
def test_with_too_little_data_one_temperature_is_taken(monkeypatch, n, per_document, why):
    if "document" in why:  # too few to say that tags move against one another
        monkeypatch.setattr(VectorScaling, "fit", lambda *_: pytest.fail("fitted"))
    data = fit_data(draw_tokens(n, 1), per_document=per_document)
    chosen = small()(data, group_tokens)
    assert type(chosen.scaling) is TemperatureScaling
    assert chosen.offsets is None
    assert type(chosen.prototype) is Identity
    assert len(group_tokens(chosen.grouping)) == 1
    assert (chosen.table["too_few"], chosen.table["trials"]) == (why, [])


def test_with_too_little_data_of_labels_side_by_side_the_temperature_is_a_map():
    data = fit_data(draw_tokens(300, 1, sharpness=3.0, biases=(0.0,) * N_TAGS))
    chosen = small()(data, group_tokens, scalable=False)
    assert (chosen.scaling, chosen.table["chosen"]) == (None, "TFG-1 temperature")
    assert chosen.scaled.tolist() == data.pairs.scores.tolist()


def test_with_too_little_data_a_temperature_is_taken_unless_it_is_worse_beyond_chance():
    far = small()(fit_data(draw_tokens(300, 1, sharpness=3.0, biases=(0.0,) * N_TAGS), lowest=1e-4), group_tokens)
    assert far.scaling.describe()["temperature"] == pytest.approx(3.0, rel=0.15)
    true = small()(fit_data(draw_tokens(300, 1, sharpness=1.0, biases=(0.0,) * N_TAGS), lowest=1e-4), group_tokens)
    assert (true.scaling, true.table["chosen"]) == (None, "TFG-1 identity")


# Of a head that says T0 nearly always: what only moves all tags alike leaves it so.
STRONG = tuple(3.0 * np.linspace(1, -1, N_TAGS))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_too_little_data_a_strong_bias_is_taken_back_where_held_out_documents_say_so(seed):
    data, fresh = (fit_data(draw_tokens(n, k, 1.0, STRONG), per_document=1, lowest=1e-4) for n, k in ((166, seed), (2000, 99)))
    chosen = small(scalings=["matrix"])(data, group_tokens)
    assert (chosen.table["chosen"], chosen.table["too_few"]) == ("matrix scaling", "166 tokens, and 500 are wanted")
    line = TemperatureScaling().fit(data.pairs, N_TAGS)
    losses = [log_loss(one.scale_pairs(fresh.pairs), fresh.pairs.hits) for one in (chosen.scaling, line)]
    assert losses[0] < 0.9 * losses[1]
    # Those of maps that did not see the document.
    assert log_loss(chosen.scaled[data.kept], data.kept_pairs.hits) > log_loss(
        chosen.scaling.scale_pairs(data.pairs)[data.kept], data.kept_pairs.hits
    )


def test_of_few_pairs_the_scaling_before_the_context_is_halfway_to_a_temperature():
    data = fit_data(draw_tokens(2000, 1, sharpness=2.0), lowest=1e-4)
    made, held_out = fit_cautiously(MatrixScaling(), data.pairs, data.documents, N_TAGS)
    whole, line = MatrixScaling(), TemperatureScaling()
    for one in (whole, line):
        one.cross_fit(data.pairs, data.documents, N_TAGS)
    tokens = data.pairs.rows == data.pairs.rows[0]
    given = data.pairs.rows[tokens], data.pairs.tags[tokens], data.pairs.scores[tokens]
    found, mean = made.scale(*given), np.sqrt(whole.scale(*given) * line.scale(*given))
    assert found / found.sum() == pytest.approx(mean / mean.sum(), abs=1e-9)
    assert log_loss(held_out[data.kept], data.kept_pairs.hits) < log_loss(data.kept_pairs.scores, data.kept_pairs.hits)


def test_what_was_chosen_on_tokens_is_good_on_fresh_ones():
    data, fresh = (fit_data(draw_tokens(n, seed, sharpness=2.0), lowest=1e-4) for n, seed in ((800, 1), (3000, 2)))
    chosen = small()(data, group_tokens)
    maps = GroupedRecalibrator(chosen.prototype, GROUPS, chosen.offsets)
    maps.fit(Pairs(*(getattr(data.pairs.take(data.kept), name) for name in ("rows", "tags")), chosen.scaled[data.kept],
                   data.pairs.hits[data.kept], data.pairs.n_units))  # fmt: skip
    kept = fresh.kept
    scaled = chosen.scaling.scale(fresh.pairs.rows, fresh.pairs.tags, fresh.pairs.scores)[kept]
    calibrated = maps.predict(scaled, fresh.pairs.tags[kept])
    assert log_loss(calibrated, fresh.pairs.hits[kept]) < log_loss(fresh.pairs.scores[kept], fresh.pairs.hits[kept]) - 0.03
