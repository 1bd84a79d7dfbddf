"""Pairs calibrated by what stands around them: the features, what is learned of them, and how it is saved."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.calibration.recalibrators.logistic import Beta, log_odds, sigmoid
from spacy_calib.metrics.proper import log_loss
from spacy_calib.pipe import saved
from spacy_calib.plugins.coref.inference.calibration import (
    CALIBRATION,
    KINDS,
    LabelledPairs,
    PairCalibration,
    PairGrouping,
    context_columns,
    expected_sizes,
)
from spacy_calib.plugins.coref.inference.pairs import MentionPairs
from spacy_calib.schema import InvalidState

PAIRS = MentionPairs(np.array([1, 2]), np.array([0, 1]), np.array([0.5, 0.25]), 4)


def test_columns_by_hand():
    assert expected_sizes(PAIRS).tolist() == [1.5, 1.75, 1.25, 1.0]  # each mention itself counts
    # The first pair is of kinds 0 and near, the second of kinds 1 and far.
    columns = context_columns(PAIRS, np.array([0, 3]), 2)
    sizes = [np.log(1.5 * 1.75) / 2, np.log(1.75 * 1.25) / 2]
    assert np.allclose(columns[:4], [[1, 0], [0, 1], [0, 1], sizes])
    assert np.allclose(columns[4:], np.array(columns[:4]) * log_odds(PAIRS.probabilities))


def judged(seed: int) -> LabelledPairs:
    """A document of eight mentions; its pairs are the less likely to be right the larger their clusters are expected to be."""
    rng = np.random.default_rng(seed)
    n = 8
    later, earlier = np.tril_indices(n, -1)
    chances = rng.uniform(0.02, 0.9, len(later)) * rng.uniform(0.1, 1.0)
    pairs = MentionPairs(later, earlier, chances, n)
    sizes = expected_sizes(pairs)
    right = rng.random(len(later)) < sigmoid(log_odds(chances) + 2 - 1.5 * np.log(sizes[later] * sizes[earlier]))
    return _Told(PairGrouping(rng.integers(len(KINDS), size=n), np.sort(rng.integers(4, size=n))), pairs, np.arange(n), right)


class _Told(LabelledPairs):
    """Whose hits are given rather than made of clusters."""

    def __init__(self, grouping, pairs, clusters, right):
        super().__init__(grouping, pairs, clusters)
        object.__setattr__(self, "right", right)

    def hits(self, later, earlier):
        full = np.zeros((len(self.clusters), len(self.clusters)), dtype=bool)
        full[self.pairs.later, self.pairs.earlier] = self.right
        return full[later, earlier]


@pytest.fixture(scope="module")
def documents():
    return [judged(seed) for seed in range(40)]


def loss_of(calibration, documents):
    scores = np.concatenate([calibration.predict(one.pairs, one.grouping) for one in documents])
    return log_loss(scores, np.concatenate([one.hits(*one.ends) for one in documents]))


def test_a_context_has_a_lower_loss_than_maps_by_kind(documents):
    others = [judged(seed) for seed in range(100, 140)]
    maps, context = (PairCalibration.fit(documents, Beta(), "x", given) for given in (False, True))
    assert maps.context is None
    assert context.maps is None
    assert loss_of(context, others) < loss_of(maps, others) - 0.01
    assert (context.below_threshold == maps.below_threshold).all()


def test_of_few_documents_maps_are_learned(documents):
    assert PairCalibration.fit(documents[:9], Beta(), "x", True).context is None
    assert PairCalibration.fit(documents[:10], Beta(), "x", True).context is not None


def test_no_pairs_have_no_scores(documents):
    calibration = PairCalibration.fit(documents, Beta(), "x", True)
    nothing = MentionPairs(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0), 1)
    assert calibration.predict(nothing, PairGrouping(np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp))).tolist() == []


def load(part):
    return saved.load_part(part, name="x")


@pytest.mark.parametrize("context", [False, True])
def test_a_calibration_from_its_state_predicts_the_same(documents, context):
    made = PairCalibration.fit(documents, Beta(), "x", context)
    again = PairCalibration.from_state(CALIBRATION(made.state(), "state"), load)
    one = documents[3]
    assert (again.predict(one.pairs, one.grouping) == made.predict(one.pairs, one.grouping)).all()


def test_states_that_do_not_fit_are_refused(documents):
    state = PairCalibration.fit(documents, Beta(), "x", True).state()
    context = state["context"]
    for spoiled in (
        {**state, "context": None},
        {**state, "context": {**context, "weights": context["weights"][1:]}},
        {**state, "rest": state["rest"][1:]},
        {**state, "context": {**context, "slope": -1.0}},
    ):
        with pytest.raises(InvalidState):
            CALIBRATION(spoiled, "state")
