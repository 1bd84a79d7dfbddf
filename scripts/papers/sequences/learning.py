"""Learners trained on some sentences, what they say of others, and what each way of confidence makes of that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from papers.chains.best import viterbi_one
from papers.chains.chains import Chains, Potentials
from papers.chains.confidence import gaps, k_best_shares, sample_learner
from papers.chains.crfsuite import read_weights, train_crfsuite
from papers.chains.online import OnlineLearner, make_rule
from papers.chains.sums import sum_chains
from sklearn.metrics import average_precision_score

from spacy_calib.types import Floats, Ints

from .data import Sentences

RULES = ("arow", "cw", "pa", "perceptron")
# The settings that are tried: the initial variance is 1, as in the paper.
TRIED = {"arow": ("r", (0.1, 1.0, 10.0, 100.0)), "cw": ("phi", (0.1, 0.3, 1.0, 3.0)), "pa": ("most", (0.01, 0.1, 1.0))}
# Of the draws. The paper's range begins at .01; the smaller phi is, the smaller are the means, and the scale with them.
SCALES = tuple(np.geomspace(1e-4, 1.0, 20).tolist())
# WeightSamples and labellings: what the paper chose.
DRAWS, LABELLINGS = 50, 30
COUNTS = ("hit", "said", "wanted", "wrong", "words")


@dataclass(frozen=True, eq=False)
class Tuning:
    """Settings are chosen by F on held-out sentences of the training part. train, held, rounds (int): Sentences, and passes over them.
    scales (tuple): That are tried. draws (int): K for that."""

    train: int = 1500
    held: int = 1000
    rounds: int = 2
    scales: tuple[float, ...] = SCALES
    draws: int = DRAWS


def train(data: Sentences, sentences: Ints, rule: str, rounds: int, seed: int, settings: Mapping[str, float]) -> OnlineLearner:
    """sentences (Ints): To learn from."""
    made = OnlineLearner(data.n_features, len(data.labels), make_rule(rule, **settings))
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        for i in sentences[rng.permutation(len(sentences))].tolist():
            made.update(data.rows[i], data.gold[i])
    return made


def train_crf(data: Sentences, sentences: Ints, max_iterations: int = 100) -> OnlineLearner:
    """CRFsuite's weights in the form of a learner."""
    made = OnlineLearner(data.n_features, len(data.labels), make_rule("perceptron"))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        train_crfsuite([(data.rows[i], data.gold[i]) for i in sentences.tolist()], model, 1.0, max_iterations)
        made.mu[:] = read_weights(model, data.n_features, len(data.labels))
    return made


def answers(data: Sentences, learner: OnlineLearner, sentences: Ints) -> list[Ints]:
    weights = learner.mean
    transitions = learner.transitions(weights)
    return [viterbi_one(learner.scores(weights, data.rows[i]), transitions) for i in sentences.tolist()]


def counts_of(data: Sentences, said: Sequence[Ints], sentences: Ints) -> Floats:
    """COUNTS of each sentence, shape (n, 5): spans that are right, said and wanted, and words that are wrong and all."""
    found = np.zeros((len(sentences), len(COUNTS)))
    for row, own, i in zip(found, said, sentences.tolist(), strict=True):
        given, wanted = data.spans(own), data.spans(data.gold[i])
        row[:] = len(given & wanted), len(given), len(wanted), (own != data.gold[i]).sum(), len(own)
    return found


def f_of(counts: Floats) -> float:
    """F of the sums of COUNTS."""
    hit, said, wanted = counts.reshape(-1, len(COUNTS)).sum(axis=0)[:3]
    return float(2 * hit / max(1.0, said + wanted))


def choose_settings(data: Sentences, sentences: Ints, rule: str, seed: int, tuning: Tuning) -> dict[str, float]:
    """The setting of a rule with the best F on held-out sentences of those given."""
    if rule not in TRIED:
        return {}
    name, values = TRIED[rule]
    order = np.random.default_rng(seed).permutation(sentences)
    held = order[: min(tuning.held, len(order) // 3)]
    rest = order[len(held) : len(held) + tuning.train]
    found = {}
    for value in values:
        learner = train(data, rest, rule, tuning.rounds, seed, {name: value})
        found[value] = f_of(counts_of(data, answers(data, learner, held), held))
    return {name: max(found, key=found.__getitem__)}


# Confidence


def chains_of(data: Sentences, learner: OnlineLearner, sentences: Ints) -> Chains:
    weights, none = learner.mean, np.zeros(learner.n_labels)
    scores = [learner.scores(weights, data.rows[i]) for i in sentences.tolist()]
    return Chains.from_scores(scores, Potentials(learner.transitions(weights), none, none))


def drawn(
    data: Sentences, learner: OnlineLearner, sentences: Ints, scale: float, learned: bool, seed: int, k: int = DRAWS
) -> list[Floats]:
    """Shares of K draws for each label, sentence after sentence. learned (bool): KD-PC, else KD-Fixed."""
    rows = [data.rows[i] for i in sentences.tolist()]
    return sample_learner(learner, rows, learned, seed).shares(k, scale)


def of_own(given: Iterable[Floats], own: Ints) -> Floats:
    """The number of the label of each word. own (Ints): Its column."""
    return np.concatenate(list(given))[np.arange(len(own)), own]


def choose_scale(
    data: Sentences,
    sentences: Ints,
    rule: str,
    rounds: int,
    seed: int,
    settings: Mapping[str, float],
    tuning: Tuning,
    most: int = 300,
) -> dict[str, dict[float, float]]:
    """Average precision of finding wrong words, by scale, of kd_pc and kd_fixed: on held-out sentences of those given, with a learner
    trained on the others (at most a quarter, of which at most `most` are looked at)."""
    order = np.random.default_rng(seed + 1).permutation(sentences)
    cut = len(order) // 4
    learner = train(data, order[cut:], rule, rounds, seed, settings)
    held = order[: min(cut, most)]
    own = np.concatenate(answers(data, learner, held))
    wrong = own != data.gold_of(held)
    found: dict[str, dict[float, float]] = {}
    for way, learned in (("kd_pc", True), ("kd_fixed", False)):
        if learned and rule in ("pa", "perceptron"):
            continue
        agree = np.zeros((len(tuning.scales), len(own)))
        draws = sample_learner(learner, [data.rows[i] for i in held.tolist()], learned, seed)
        for labels in draws.labels(tuning.draws, tuning.scales):
            agree += labels == own
        found[way] = {
            scale: float(average_precision_score(wrong, 1 - one / tuning.draws))
            for scale, one in zip(tuning.scales, agree, strict=True)
        }
    return found


def confidences(
    data: Sentences, learner: OnlineLearner, sentences: Ints, own: Ints, scales: Mapping[str, float], seed: int
) -> dict[str, Floats]:
    """What each way says of the label of each word. scales: Of the ways that draw."""
    chains = chains_of(data, learner, sentences)
    found = {way: of_own(drawn(data, learner, sentences, scale, way == "kd_pc", seed), own) for way, scale in scales.items()}
    found["delta"] = of_own(gaps(chains), own)
    for way in ("wkbv", "kbv"):
        found[way] = of_own(k_best_shares(chains, LABELLINGS, by_score=way == "wkbv"), own)
    return found


def crf_marginals(data: Sentences, learner: OnlineLearner, sentences: Ints, own: Ints) -> Floats:
    return of_own(sum_chains(chains_of(data, learner, sentences)).by_sequence(), own)
