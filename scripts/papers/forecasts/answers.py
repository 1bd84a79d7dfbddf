"""What can be told of the answer of a structured model and of each of its positions (Kuleshov and Liang 2015, Table 1). Knows arrays; `best_answers` makes them of chains.

An answer is a sequence of labels; n answers of N positions in all follow one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.chains.best import k_best
from papers.chains.chains import Chains
from papers.chains.sums import ChainSums
from papers.forecasts.forecasters import Forecaster
from papers.forecasts.tuning import SIZES, LossParts, split_loss, tune
from spacy_calib.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows: features (Floats), shape (n, k); hits, (n,); units (Ints), the unit of each row (word, document), (n,)."""

    features: Floats
    hits: NDArray[np.bool_]
    units: Ints

    def __len__(self) -> int:
        return len(self.hits)

    def of_units(self, wanted: Ints) -> Rows:
        """The rows of some units."""
        keep = np.isin(self.units, wanted)
        return Rows(self.features[keep], self.hits[keep], self.units[keep])


@dataclass(frozen=True)
class Point:
    """One draw. units (int): Of the recalibration set. size (int): Chosen by cross-validation on it. parts (LossParts): On the test rows."""

    units: int
    size: int
    parts: LossParts


def size_curve(
    prototype: Forecaster,
    fit: Rows,
    test: Rows,
    n_units: Sequence[int],
    draws: int,
    rng: np.random.Generator,
    sizes: Sequence[int] = SIZES,
) -> list[Point]:
    """Draw recalibration sets of so many units from `fit`, tune a forecaster on each, and judge it on `test`.

    n_units: How many units, for each point of the curve. draws (int): Sets for each. RAISES ValueError: more units are asked for than there are.
    """  # fmt: skip
    known_units = np.unique(fit.units)
    if max(n_units) > len(known_units):
        raise ValueError(f"{max(n_units)} units are asked for, but there are {len(known_units)}")
    features = []
    for n in n_units:
        for _ in range(draws):
            sample = fit.of_units(rng.choice(known_units, n, replace=False))
            forecaster = tune(prototype, sample.features, sample.hits, sample.units, sizes).forecaster
            features.append(
                Point(n, forecaster.size, split_loss(np.clip(forecaster.predict(test.features), 0.0, 1.0), test.hits))
            )
    return features


# The logarithm of how much likelier the best answer is than the second is cut here: beyond it a float tells nothing apart, and where there is
# one answer only it is infinite.
FARTHEST_GAP = 40.0

Answer = tuple[int, ...]


def margins(scores: Floats) -> Floats:
    """How far the highest of each row is above the second, shape (N,); of one column the score itself. scores (Floats): Shape (N, K)."""
    if scores.shape[1] < 2:
        return scores.sum(axis=1)
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    return first - second


@dataclass(frozen=True, eq=False)
class Answers:
    """n answers, and what a model says of them.

    labels (Ints): Column of the label at each position, shape (N,). lengths (Ints): Positions of each answer, at least 1, shape (n,).
    n_labels (int): K.
    log_chances (Floats): log P(answer), shape (n,).
    gaps (Floats): log P(best answer) - log P(second best) of each answer, shape (n,).
    marginals (Floats): P(label at position), shape (N, K).
    conditionals (Floats): P(label at position | the rest of the answer), shape (N, K).
    alone (Floats): Scores of a classifier that sees each position by itself, shape (N, K).
    """

    labels: Ints
    lengths: Ints
    n_labels: int
    log_chances: Floats
    gaps: Floats
    marginals: Floats
    conditionals: Floats
    alone: Floats

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def firsts(self) -> Ints:
        """The first position of each answer."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def of_position(self) -> Ints:
        """The answer that each position belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def each(self) -> list[Answer]:
        """The answers one by one."""
        return [tuple(part.tolist()) for part in np.split(self.labels, self.firsts[1:])]


def answer_features(answers: Answers, dictionary: set[Answer]) -> dict[str, Floats]:
    """Return the features that predict whether a whole answer is right, by name, shape (n,) each.

    RETURNS (dict): length, known (whether it is in the dictionary), gap, least_margin (of the marginals, over its positions), least_alone (of the
        classifier's scores).
    """
    return {
        "length": answers.lengths.astype(np.float64),
        "known": np.array([answer in dictionary for answer in answers.each()], dtype=np.float64),
        "gap": np.minimum(answers.gaps, FARTHEST_GAP),
        "least_margin": np.minimum.reduceat(margins(answers.marginals), answers.firsts),
        "least_alone": np.minimum.reduceat(margins(answers.alone), answers.firsts),
    }


def position_features(answers: Answers) -> dict[str, Floats]:
    """Return the features that predict whether the label of a position is right, by name, shape (n_positions,) each.

    RETURNS (dict): share (of the answer's positions that have the same label), neighbours (the same of the positions beside it),
        label_0, label_1 ... (whether it is this one), pseudomargin (of the conditionals), margin (of the marginals), agrees (whether the
        likeliest label by the marginals is that of the answer), alone (margin of the classifier's scores).
    """
    return {
        "share": same_in_answer(answers),
        "neighbours": same_beside(answers),
        **{f"label_{k}": (answers.labels == k).astype(np.float64) for k in range(answers.n_labels)},
        "pseudomargin": margins(answers.conditionals),
        "margin": margins(answers.marginals),
        "agrees": (answers.marginals.argmax(axis=1) == answers.labels).astype(np.float64),
        "alone": margins(answers.alone),
    }


def same_in_answer(answers: Answers) -> Floats:
    """The share of its answer's positions that have the label of each position, itself among them."""
    codes = answers.of_position * answers.n_labels + answers.labels
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return counts[place.reshape(-1)] / answers.lengths[answers.of_position]


def same_beside(answers: Answers) -> Floats:
    """How many of the positions beside each (one or two) have its label, as a share of the answer's positions."""
    is_same = np.zeros(len(answers.labels))
    equal = (answers.labels[1:] == answers.labels[:-1]) & (answers.of_position[1:] == answers.of_position[:-1])
    is_same[1:] += equal
    is_same[:-1] += equal
    return is_same / answers.lengths[answers.of_position]


def columns(features: Mapping[str, Floats], names: Sequence[str]) -> Floats:
    """Some of the features side by side, shape (n, k). names: A name that ends in "_" stands for all that begin so."""
    units = [
        answer for name in names for answer in features if answer == name or (name.endswith("_") and answer.startswith(name))
    ]
    return np.stack([features[name] for name in units], axis=1)


def best_answers(sums: ChainSums, alone: Floats) -> Answers:
    """The best labelling of each chain with its probability, the gap to the second best, marginals, and P(label | the rest of the labelling).

    alone (Floats): Scores of a classifier that sees each position by itself, shape (N, K), for positions of the chains one after another.
    """
    chains = sums.chains
    best = k_best(chains, 2)
    gaps = [float(answer.scores[0] - answer.scores[1]) if len(answer.scores) > 1 else np.inf for answer in best]
    labels = [answer.labels[0] for answer in best]
    flat = np.concatenate([np.zeros(0, dtype=np.intp), *labels])
    return Answers(
        flat,
        chains.packing.lengths,
        chains.n_labels,
        chains.scores_of(labels) - sums.log_z,
        np.array(gaps, dtype=np.float64),
        sums.marginals[chains.packing.packed_index],
        conditionals(chains, flat),
        alone,
    )


def conditionals(chains: Chains, labels: Any) -> Any:
    """P(label at position | the labels of all other positions), for positions of the chains one after another, shape (N, K).

    labels (array): Columns, shape (N,), likewise.
    """
    packing = chains.packing
    flat_labels = labels[packing.flat_index]
    previous, next_labels = packing.neighbours
    scores = chains.scores.copy()
    scores[next_labels] += chains.transitions[flat_labels[previous]]
    scores[previous] += chains.transitions[:, flat_labels[next_labels]].T
    chance = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    return (chance / chance.sum(axis=1, keepdims=True))[packing.packed_index]
