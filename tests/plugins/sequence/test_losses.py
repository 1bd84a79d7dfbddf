from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import SequenceCategoricalCrossentropy

from spacy_calib.errors import CalibError
from spacy_calib.plugins.sequence.inference.chains import Chains, Potentials
from spacy_calib.plugins.sequence.losses import LOSSES, LossInput, get_loss, likelihood
from tests.plugins.sequence.inference.chains import enumerate_labellings, probabilities, small_chains


def gold_masks(made, seed: int, whole: bool = False):
    """One right label, all but one, or all, at random, around a labelling that is allowed; whole: one right label everywhere."""
    rng, width = np.random.default_rng(seed), made.potentials.n_labels
    masks = []
    for scores in made.scores:
        allowed = [labels for labels, total in enumerate_labellings(scores, made.potentials).items() if np.isfinite(total)]
        gold = np.array(allowed[rng.integers(len(allowed))])
        kind, other = rng.integers(0, 3, len(scores)), rng.integers(0, width, len(scores))
        own, rest = np.eye(width, dtype=bool)[gold], ~np.eye(width, dtype=bool)[other]
        rest[np.arange(len(gold)), gold] = True
        masks.append(own if whole else np.where((kind == 0)[:, None], own, np.where((kind == 1)[:, None], rest, True)))
    return masks


def loss_of(loss, made, masks, scores=None, smoothing=0.0, **potentials):
    changed = Potentials(**{**vars(made.potentials), **potentials})
    return loss(LossInput.from_scores(made.scores if scores is None else scores, changed, masks, smoothing))


@pytest.mark.parametrize("whole", [False, True])
@settings(max_examples=40)
@given(made=small_chains(), seed=st.integers(0, 1000))
def test_likelihood_is_that_of_the_right_labellings(whole, made, seed):
    masks = gold_masks(made, seed, whole)
    wanted = 0.0
    for scores, mask in zip(made.scores, masks, strict=True):
        chances = probabilities(scores, made.potentials)
        wanted -= np.log(sum(p for labels, p in chances.items() if mask[np.arange(len(mask)), labels].all()))
    assert loss_of(likelihood, made, masks).loss == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("name", "smoothing"),
    [("likelihood", 0.0), ("likelihood", 0.2), ("perceptron", 0.0), ("hinge", 0.0), ("passive_aggressive", 0.0)],
)
@settings(max_examples=25)
@given(made=small_chains(), seed=st.integers(0, 1000))
def test_gradients_are_finite_differences(name, smoothing, whole, made, seed):
    masks, step = gold_masks(made, seed, whole), 1e-6
    found = loss_of(LOSSES[name], made, masks, smoothing=smoothing)
    loss: Any = likelihood
    if (
        name != "likelihood"
    ):  # each sequence counts by its weight, which is no part of the derivative; that of PA-I is that of the hinge
        weights = step_weights(made, masks) if name == "passive_aggressive" else np.ones(len(masks))
        loss = weighted(LOSSES["hinge" if name == "passive_aggressive" else name], weights)
    rng = np.random.default_rng(seed)
    for part in ("transitions", "starts", "ends"):
        way = rng.normal(size=getattr(made.potentials, part).shape)
        sides = [
            loss_of(loss, made, masks, smoothing=smoothing, **{part: getattr(made.potentials, part) + s * step * way}).loss
            for s in (1, -1)
        ]
        assert (sides[0] - sides[1]) / (2 * step) == pytest.approx((getattr(found.d_potentials, part) * way).sum(), abs=1e-4)
    ways = [rng.normal(size=one.shape) for one in made.scores]
    sides = [
        loss_of(loss, made, masks, [a + s * step * b for a, b in zip(made.scores, ways, strict=True)], smoothing).loss
        for s in (1, -1)
    ]
    slope = sum((gradient * way).sum() for gradient, way in zip(found.d_scores, ways, strict=True))
    assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(slope, abs=1e-4)


def weighted(loss, weights):
    """The sum of the losses of single sequences, each with its weight."""

    def asked_of(asked):
        total = 0.0
        for i, weight in enumerate(weights):
            chains, right = (_only(one, i) for one in (asked.chains, asked.right))
            total += weight * loss(LossInput(chains, right)).loss
        return SimpleNamespace(loss=total)

    return asked_of


def _only(chains, i):
    """One sequence of a batch, with its starts and ends in its scores."""
    return Chains.from_scores(
        [chains.unpack(chains.scores)[i]], Potentials(chains.transitions, *np.zeros((2, chains.n_labels)))
    )


def step_weights(made, masks):
    """The weight of PA-I of each sequence, by enumeration: min(1, loss / squared size of the difference of features)."""
    weights = []
    for scores, mask in zip(made.scores, masks, strict=True):
        every = enumerate_labellings(scores, made.potentials)
        wrong = {labels: int((~mask[np.arange(len(mask)), labels]).sum()) for labels in every}
        right = max((labels for labels in every if not wrong[labels]), key=every.__getitem__)
        rival = max(every, key=lambda labels: every[labels] + wrong[labels])
        counts = Counter(enumerate(rival)) + Counter(itertools.pairwise(map(str, rival)))
        counts.subtract(Counter(enumerate(right)) + Counter(itertools.pairwise(map(str, right))))
        lost = every[rival] - every[right] + wrong[rival]
        weights.append(min(1.0, lost / max(1, sum(n * n for n in counts.values()))))
    return weights


@pytest.mark.parametrize("whole", [False, True])
@settings(max_examples=25)
@given(made=small_chains(), seed=st.integers(0, 1000))
def test_hinge_is_the_greatest_violation(whole, made, seed):
    masks, wanted = gold_masks(made, seed, whole), 0.0
    for scores, mask in zip(made.scores, masks, strict=True):
        every = enumerate_labellings(scores, made.potentials)
        wrong = {labels: int((~mask[np.arange(len(mask)), labels]).sum()) for labels in every}
        right = max(total for labels, total in every.items() if not wrong[labels])
        wanted += max(total + wrong[labels] for labels, total in every.items()) - right
    assert loss_of(LOSSES["hinge"], made, masks).loss == pytest.approx(wanted, abs=1e-8)


def test_passive_aggressive_goes_just_far_enough():
    # Label 0 is right and scores 0, label 1 scores 1: the hinge loses 1 + 1, the two differ in two scores of labels; of starts and ends
    # the features are those same labels, so a step of 2 / 2 on the scores alone closes the gap of 2.
    scores, masks = [np.array([[0.0, 1.0]])], [np.array([[True, False]])]
    found = LOSSES["passive_aggressive"](LossInput.from_scores(scores, Potentials.zeros(2), masks))
    assert found.loss == pytest.approx(2)
    moved = scores[0] - found.d_scores[0]
    assert moved[0, 0] - moved[0, 1] == pytest.approx(1)


def test_smoothing_moves_the_target_of_gold_labels_only():
    scores, potentials = [np.zeros((2, 3))], Potentials.zeros(3)
    masks = [np.array([[True, False, False], [True, True, True]])]
    found = likelihood(LossInput.from_scores(scores, potentials, masks, smoothing=0.1))
    assert found.d_scores[0][0] == pytest.approx([1 / 3 - 0.9, 1 / 3 - 0.05, 1 / 3 - 0.05])
    assert found.d_scores[0][1] == pytest.approx([0, 0, 0])


def test_smoothing_is_that_of_the_tagger():
    # Without transitions each token is a softmax of its own.
    rng, names, gold = np.random.default_rng(0), ["A", "B", "C", "D"], [0, 3, 1]
    scores = rng.normal(size=(3, 4)).astype("f")
    guesses = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    tagger = SequenceCategoricalCrossentropy(names=names, normalize=False, label_smoothing=0.1)
    (wanted,) = tagger.get_grad([guesses], [[names[i] for i in gold]])
    found = likelihood(LossInput.from_scores([scores], Potentials.zeros(4), [np.eye(4, dtype=bool)[gold]], smoothing=0.1))
    assert found.d_scores[0] == pytest.approx(wanted, abs=1e-6)


def test_no_mass_is_smoothed_over_labels_that_a_position_cannot_have():
    potentials = Potentials(np.zeros((3, 3)), np.array([0.0, 0.0, -np.inf]), np.zeros(3))
    asked = LossInput.from_scores([np.zeros((1, 3))], potentials, [np.array([[True, False, False]])], smoothing=0.1)
    found = likelihood(asked)
    assert found.loss == pytest.approx(np.log(2))
    assert found.d_scores[0] == pytest.approx(np.array([[0.5 - 0.9, 0.5 - 0.1, 0.0]]))
    alone = LossInput.from_scores([np.zeros((1, 1))], Potentials.zeros(1), [np.ones((1, 1), dtype=bool)], smoothing=0.1)
    assert likelihood(alone).d_scores[0].tolist() == [[0.0]]


@pytest.mark.parametrize("loss", LOSSES.values())
def test_no_sequences(loss):
    found = loss(LossInput.from_scores([], Potentials.zeros(3), []))
    assert (found.loss, found.d_scores) == (0.0, [])
    assert found.d_potentials.transitions.shape == (3, 3)


@pytest.mark.parametrize("loss", LOSSES.values())
def test_gold_that_is_not_allowed(loss):
    shut = Potentials(np.array([[0.0, -np.inf], [0.0, 0.0]]), np.zeros(2), np.zeros(2))
    masks = [np.eye(2, dtype=bool)[[0]], np.eye(2, dtype=bool)[[0, 1]]]
    with pytest.raises(CalibError, match="Sequence 2 "):
        loss(LossInput.from_scores([np.zeros((1, 2)), np.zeros((2, 2))], shut, masks))


def test_unknown_loss():
    with pytest.raises(CalibError, match="likelihood, perceptron"):
        get_loss("mse")
