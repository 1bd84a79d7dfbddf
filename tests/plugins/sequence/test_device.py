"""Sequence models on a device: the same numbers, and nothing that mixes its arrays with those of numpy."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.pipe.annotating import AnnotatingPipe
from spacy_calib.plugins.sequence.confidence import gaps, k_best_shares
from spacy_calib.plugins.sequence.inference.best import best_through, k_best, viterbi
from spacy_calib.plugins.sequence.inference.chains import Chains, Potentials
from spacy_calib.plugins.sequence.inference.sums import _sum_logarithms, sum_chains
from spacy_calib.plugins.sequence.joints import joint_marginals
from spacy_calib.plugins.sequence.labeller import ChainLabeller
from spacy_calib.plugins.sequence.losses import LOSSES, LossInput
from spacy_calib.plugins.sequence.source import ChainSource
from tests.plugins.sequence import device as stand_in
from tests.plugins.sequence.device import device  # noqa: F401

N_LABELS = 70  # enough for Viterbi to try a few of them first, on the processor


def on_both(xp, forbid=True):
    """The same chains in arrays of numpy and of the device: (scores, potentials) of each."""
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(n, N_LABELS)).astype("f") for n in (3, 1, 4)]
    potentials = Potentials(*(rng.normal(size=shape).astype("f") for shape in ((N_LABELS, N_LABELS), N_LABELS, N_LABELS)))
    if forbid:
        potentials.transitions[rng.random((N_LABELS, N_LABELS)) < 0.2] = -np.inf
    return (scores, potentials), ([xp.asarray(one) for one in scores], potentials.on(xp))


def same(found, wanted):
    held = found.get()
    assert held.shape == wanted.shape
    assert held == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("way", [sum_chains, _sum_logarithms])
def test_sums(device, way):  # noqa: F811
    host, there = (way(Chains.from_scores(*one)) for one in on_both(device))
    same(there.log_z, host.log_z)
    same(there.marginals, host.marginals)
    same(there.expected_transitions, host.expected_transitions)
    for found, wanted in zip(there.sample(7, seed=3), host.sample(7, seed=3), strict=True):
        assert found.shape == wanted.shape
    places, labels, lengths = host.chains.packing.packed_index[:3], np.array([1, 2, 3]), np.array([2, 1])
    same(there.paths(places, labels, lengths), host.paths(places, labels, lengths))
    found, wanted = joint_marginals(there), joint_marginals(host)
    assert (found.tags.tolist(), found.rows.tolist()) == (wanted.tags.tolist(), wanted.rows.tolist())


def test_best(device):  # noqa: F811
    host, there = (Chains.from_scores(*one) for one in on_both(device))
    for found, wanted in zip(viterbi(there), viterbi(host), strict=True):
        assert found.tolist() == wanted.tolist()
    same(best_through(there), best_through(host))
    for found, wanted in zip(k_best(there, 5), k_best(host, 5), strict=True):
        same(found.scores, wanted.scores)
        assert found.labels.tolist() == wanted.labels.tolist()


def test_confidences(device):  # noqa: F811
    host, there = (Chains.from_scores(*one) for one in on_both(device))
    for way in (
        gaps,
        lambda chains: k_best_shares(chains, 5, by_score=False),
        lambda chains: k_best_shares(chains, 5, by_score=True),
    ):
        for found, wanted in zip(way(there), way(host), strict=True):
            assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("whole", [True, False])
def test_losses(device, name, whole):  # noqa: F811
    given, there = on_both(device, forbid=False)
    rng = np.random.default_rng(1)
    masks = [np.eye(N_LABELS, dtype=bool)[rng.integers(0, N_LABELS, len(one))] for one in given[0]]
    if not whole:
        masks[0][0] = True
    wanted, found = (LOSSES[name](LossInput.from_scores(*one, masks, 0.1)) for one in (given, there))
    assert found.loss == pytest.approx(wanted.loss)
    for own, other in zip(found.d_scores, wanted.d_scores, strict=True):
        same(own, other)
    for part in ("transitions", "starts", "ends"):
        same(getattr(found.d_potentials, part), getattr(wanted.d_potentials, part))


class OnDevice(ChainLabeller, AnnotatingPipe):
    """A labeller of entities whose scores and weights stand on a device."""

    def __init__(self, xp, vocab):
        self.xp, self.vocab, self.name = xp, vocab, "there"
        self.cfg = {"labels": ["O", *(f"{letter}-X" for letter in "BILU")], "target": "ents", "by_sentence": False, "overwrite": True,
                    "constraints": None}  # fmt: skip

    def weights(self):
        return Potentials(np.zeros((5, 5)), np.zeros(5), np.zeros(5)).on(self.xp)

    def label_scores(self, docs):
        return [self.xp.asarray(np.random.default_rng(len(doc)).normal(size=(len(doc), 5)).astype("f")) for doc in docs]

    def _state(self):
        return {}

    def _read_state(self, state):
        return state

    def _set_state(self, made):
        pass


def test_a_labeller_and_its_source(device):  # noqa: F811
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=["a"] * n) for n in (4, 0, 7)]
    pipe, host = OnDevice(device, nlp.vocab), OnDevice(np, nlp.vocab)
    pipe.set_annotations(docs, pipe.predict(docs))
    assert [own.tolist() for own in pipe.predict(docs)] == [own.tolist() for own in host.predict(docs)]
    found, wanted = (ChainSource().read(one, docs) for one in (pipe, host))
    assert found.marginals_above(0.0).scores == pytest.approx(wanted.marginals_above(0.0).scores)
    assert found.spans.scores == pytest.approx(wanted.spans.scores)
    assert len(found.spans.scores)


def test_constraints_go_to_the_device_once(device):  # noqa: F811
    pipe = OnDevice(device, spacy.blank("en").vocab)
    pipe.weights = lambda held=pipe.weights(): held  # type: ignore[method-assign]
    first = pipe.potentials().transitions.get()
    stand_in.uploads.clear()
    assert (pipe.potentials().transitions.get() == first).all()
    assert stand_in.uploads == []
    pipe.cfg["constraints"] = [["O", "O"]]
    assert np.isfinite(pipe.potentials().transitions.get()).sum() == 1


def test_the_stand_in_refuses_to_mix():
    there = stand_in.asarray(np.zeros(2))
    for mix in (lambda: there + np.zeros(2), lambda: np.zeros(2) + there, lambda: np.exp(there), lambda: there[np.array([0])],
                lambda: np.asarray(there), lambda: stand_in.module.exp(np.zeros(2))):  # fmt: skip
        with pytest.raises(TypeError):
            mix()
