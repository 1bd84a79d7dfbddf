from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.sequence.inference.chains import Potentials
from spacy_calib.sequence.losses import LOSSES, Question, get_loss, likelihood
from tests.sequence.inference.chains import enumerate_labellings, probabilities, small_chains


def gold_masks(made, seed: int):
    """One right label, all but one, or all, at random."""
    rng, width = np.random.default_rng(seed), made.potentials.n_labels
    masks = []
    for scores in made.scores:
        kind, label = rng.integers(0, 3, len(scores)), rng.integers(0, width, len(scores))
        own = np.eye(width, dtype=bool)[label]
        rest = ~own if width > 1 else own
        masks.append(np.where((kind == 0)[:, None], own, np.where((kind == 1)[:, None], rest, True)))
    return masks


def loss_of(loss, made, masks, scores=None, **potentials):
    changed = Potentials(**{**vars(made.potentials), **potentials})
    return loss(Question.of(made.scores if scores is None else scores, changed, masks))


@settings(max_examples=40)
@given(made=small_chains(forbid=False), seed=st.integers(0, 1000))
def test_likelihood_is_that_of_the_right_labellings(made, seed):
    masks = gold_masks(made, seed)
    wanted = 0.0
    for scores, mask in zip(made.scores, masks, strict=True):
        chances = probabilities(scores, made.potentials)
        wanted -= np.log(sum(p for labels, p in chances.items() if mask[np.arange(len(mask)), labels].all()))
    assert loss_of(likelihood, made, masks).loss == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("name", ["likelihood", "perceptron", "hinge"])
@settings(max_examples=25)
@given(made=small_chains(forbid=False), seed=st.integers(0, 1000))
def test_gradients_are_finite_differences(name, made, seed):
    loss, masks, step = LOSSES[name], gold_masks(made, seed), 1e-6
    found = loss_of(loss, made, masks)
    rng = np.random.default_rng(seed)
    for part in ("transitions", "starts", "ends"):
        way = rng.normal(size=getattr(made.potentials, part).shape)
        sides = [loss_of(loss, made, masks, **{part: getattr(made.potentials, part) + s * step * way}).loss for s in (1, -1)]
        assert (sides[0] - sides[1]) / (2 * step) == pytest.approx((getattr(found.potentials, part) * way).sum(), abs=1e-4)
    ways = [rng.normal(size=one.shape) for one in made.scores]
    sides = [
        loss_of(loss, made, masks, [a + s * step * b for a, b in zip(made.scores, ways, strict=True)]).loss for s in (1, -1)
    ]
    slope = sum((gradient * way).sum() for gradient, way in zip(found.scores, ways, strict=True))
    assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(slope, abs=1e-4)


@settings(max_examples=25)
@given(made=small_chains(forbid=False), seed=st.integers(0, 1000))
def test_hinge_is_the_greatest_violation(made, seed):
    rng, width = np.random.default_rng(seed), made.potentials.n_labels
    gold = [rng.integers(0, width, len(scores)) for scores in made.scores]
    wanted = 0.0
    for scores, own in zip(made.scores, gold, strict=True):
        every = enumerate_labellings(scores, made.potentials)
        wanted += max(total + np.sum(np.array(labels) != own) for labels, total in every.items()) - every[tuple(own.tolist())]
    found = loss_of(LOSSES["hinge"], made, [np.eye(width, dtype=bool)[own] for own in gold])
    assert found.loss == pytest.approx(wanted, abs=1e-8)


def test_passive_aggressive_goes_just_far_enough():
    # Label 0 is right and scores 0, label 1 scores 1: the hinge loses 1 + 1, the two differ in two scores of labels; of starts and ends
    # the features are those same labels, so a step of 2 / 2 on the scores alone closes the gap of 2.
    scores, masks = [np.array([[0.0, 1.0]])], [np.array([[True, False]])]
    found = LOSSES["passive_aggressive"](Question.of(scores, Potentials.none(2), masks))
    assert found.loss == pytest.approx(2)
    moved = scores[0] - found.scores[0]
    assert moved[0, 0] - moved[0, 1] == pytest.approx(1)


def test_smoothing_moves_the_target_of_gold_labels_only():
    scores, potentials = [np.zeros((2, 3))], Potentials.none(3)
    masks = [np.array([[True, False, False], [True, True, True]])]
    found = likelihood(Question.of(scores, potentials, masks, smoothing=0.1))
    assert found.scores[0][0] == pytest.approx([1 / 3 - 0.9, 1 / 3 - 0.05, 1 / 3 - 0.05])
    assert found.scores[0][1] == pytest.approx([0, 0, 0])


def test_unknown_loss():
    with pytest.raises(CalibError, match="likelihood, perceptron"):
        get_loss("mse")
