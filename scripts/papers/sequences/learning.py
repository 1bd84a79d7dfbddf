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
    learner = OnlineLearner(data.n_features, len(data.labels), make_rule(rule, **settings))
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        for i in sentences[rng.permutation(len(sentences))].tolist():
            learner.update(data.rows[i], data.gold[i])
    return learner


def train_crf(data: Sentences, sentences: Ints, max_iterations: int = 100) -> OnlineLearner:
    """CRFsuite's weights in the form of a learner."""
    learner = OnlineLearner(data.n_features, len(data.labels), make_rule("perceptron"))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        train_crfsuite([(data.rows[i], data.gold[i]) for i in sentences.tolist()], model, 1.0, max_iterations)
        learner.mu[:] = read_weights(model, data.n_features, len(data.labels))
    return learner


def answers(data: Sentences, learner: OnlineLearner, sentences: Ints) -> list[Ints]:
    weights = learner.mean
    transitions = learner.transitions(weights)
    return [viterbi_one(learner.scores(weights, data.rows[i]), transitions) for i in sentences.tolist()]


def counts_of(data: Sentences, predicted_labels: Sequence[Ints], sentences: Ints) -> Floats:
    """COUNTS of each sentence, shape (n, 5): spans that are right, said and wanted, and words that are wrong and all."""
    counts = np.zeros((len(sentences), len(COUNTS)))
    for row, row_labels, i in zip(counts, predicted_labels, sentences.tolist(), strict=True):
        predicted_spans, gold_spans = data.spans(row_labels), data.spans(data.gold[i])
        row[:] = (
            len(predicted_spans & gold_spans),
            len(predicted_spans),
            len(gold_spans),
            (row_labels != data.gold[i]).sum(),
            len(row_labels),
        )
    return counts


def f_measure(sums: Floats) -> Floats:
    """sums: COUNTS, shape (..., 5)."""
    return 2 * sums[..., 0] / np.maximum(1, sums[..., 1] + sums[..., 2])


def choose_settings(data: Sentences, sentences: Ints, rule: str, seed: int, tuning: Tuning) -> dict[str, float]:
    """The setting of a rule with the best F on held-out sentences of those given."""
    if rule not in TRIED:
        return {}
    name, values = TRIED[rule]
    order = np.random.default_rng(seed).permutation(sentences)
    held_out = order[: min(tuning.held, len(order) // 3)]
    rest = order[len(held_out) : len(held_out) + tuning.train]
    scores = {}
    for value in values:
        learner = train(data, rest, rule, tuning.rounds, seed, {name: value})
        scores[value] = float(f_measure(counts_of(data, answers(data, learner, held_out), held_out).sum(axis=0)))
    return {name: max(scores, key=scores.__getitem__)}


# Confidence


def chains_of(data: Sentences, learner: OnlineLearner, sentences: Ints) -> Chains:
    weights, zeros = learner.mean, np.zeros(learner.n_labels)
    scores = [learner.scores(weights, data.rows[i]) for i in sentences.tolist()]
    return Chains.from_scores(scores, Potentials(learner.transitions(weights), zeros, zeros))


def draw_agreement(
    data: Sentences, learner: OnlineLearner, sentences: Ints, scale: float, is_learned: bool, seed: int, k: int = DRAWS
) -> list[Floats]:
    """Shares of K draws for each label, sentence after sentence. is_learned (bool): KD-PC, else KD-Fixed."""
    rows = [data.rows[i] for i in sentences.tolist()]
    return sample_learner(learner, rows, is_learned, seed).shares(k, scale)


def of_own(predicted_spans: Iterable[Floats], row_labels: Ints) -> Floats:
    """The number of the label of each word. row_labels (Ints): Its column."""
    return np.concatenate(list(predicted_spans))[np.arange(len(row_labels)), row_labels]


def choose_scale(
    data: Sentences,
    sentences: Ints,
    rule: str,
    rounds: int,
    seed: int,
    settings: Mapping[str, float],
    tuning: Tuning,
    n_most: int = 300,
) -> dict[str, dict[float, float]]:
    """Average precision of finding wrong words, by scale, of kd_pc and kd_fixed: on held-out sentences of those given, with a learner
    trained on the others (at most a quarter, of which at most `n_most` are looked at)."""
    order = np.random.default_rng(seed + 1).permutation(sentences)
    cut = len(order) // 4
    learner = train(data, order[cut:], rule, rounds, seed, settings)
    held_out = order[: min(cut, n_most)]
    row_labels = np.concatenate(answers(data, learner, held_out))
    wrong = row_labels != data.gold_of(held_out)
    counts: dict[str, dict[float, float]] = {}
    for way, is_learned in (("kd_pc", True), ("kd_fixed", False)):
        if is_learned and rule in ("pa", "perceptron"):
            continue
        agree = np.zeros((len(tuning.scales), len(row_labels)))
        draws = sample_learner(learner, [data.rows[i] for i in held_out.tolist()], is_learned, seed)
        for labels in draws.labels(tuning.draws, tuning.scales):
            agree += labels == row_labels
        counts[way] = {
            scale: float(average_precision_score(wrong, 1 - agreement / tuning.draws))
            for scale, agreement in zip(tuning.scales, agree, strict=True)
        }
    return counts


def confidences(
    data: Sentences, learner: OnlineLearner, sentences: Ints, row_labels: Ints, scales: Mapping[str, float], seed: int
) -> dict[str, Floats]:
    """What each way says of the label of each word. scales: Of the ways that draw."""
    chains = chains_of(data, learner, sentences)
    counts = {
        way: of_own(draw_agreement(data, learner, sentences, scale, way == "kd_pc", seed), row_labels)
        for way, scale in scales.items()
    }
    counts["delta"] = of_own(gaps(chains), row_labels)
    for way in ("wkbv", "kbv"):
        counts[way] = of_own(k_best_shares(chains, LABELLINGS, by_score=way == "wkbv"), row_labels)
    return counts


def crf_marginals(data: Sentences, learner: OnlineLearner, sentences: Ints, row_labels: Ints) -> Floats:
    return of_own(sum_chains(chains_of(data, learner, sentences)).by_sequence(), row_labels)
