"""What can be told of the answer of a structured model and of each of its positions (Kuleshov and Liang 2015, Table 1). Knows arrays; `best_answers` makes them of chains.

An answer is a sequence of labels; n answers of N positions in all follow one another. A model may hand in more: how far the second-best
answer is, marginals, the chance of each label beside the rest of the answer, scores of a classifier that sees one position at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_calib.sequence.inference.best import k_best
from spacy_calib.sequence.inference.chains import Chains
from spacy_calib.sequence.inference.sums import Sums
from spacy_calib.sources.base import to_numpy
from spacy_calib.types import Floats, Ints

# The logarithm of how much likelier the best answer is than the second is cut here: beyond it a float tells nothing apart, and where there is
# one answer only it is infinite.
FARTHEST_GAP = 40.0

Answer = tuple[int, ...]
_OF_ANSWERS, _OF_POSITIONS = ("log_chances", "gaps"), ("marginals", "conditionals", "alone")


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
    log_chances (Floats | None): log P(answer), shape (n,).
    gaps (Floats | None): log P(best answer) - log P(second best) of each answer, shape (n,).
    marginals (Floats | None): P(label at position), shape (N, K).
    conditionals (Floats | None): P(label at position | the rest of the answer), shape (N, K).
    alone (Floats | None): Scores of a classifier that sees each position by itself, shape (N, K).

    RAISES ValueError: lengths that do not add up to the positions, something else of another length, or a length below 1.
    """

    labels: Ints
    lengths: Ints
    n_labels: int
    log_chances: Floats | None = None
    gaps: Floats | None = None
    marginals: Floats | None = None
    conditionals: Floats | None = None
    alone: Floats | None = None

    def __post_init__(self) -> None:
        if len(self.lengths) and int(self.lengths.min()) < 1:
            raise ValueError(f"answer {int(np.argmin(self.lengths)) + 1} has no positions")
        sizes = {"sum of lengths": int(self.lengths.sum())}
        sizes |= {name: len(held) for name in _OF_POSITIONS if (held := getattr(self, name)) is not None}
        for name, size in sizes.items():
            if size != len(self.labels):
                raise ValueError(f"{len(self.labels)} positions, but {name} of {size}")
        for name in _OF_ANSWERS:
            held = getattr(self, name)
            if held is not None and len(held) != len(self.lengths):
                raise ValueError(f"{len(self.lengths)} answers, but {name} of {len(held)}")

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
        return [tuple(part.tolist()) for part in np.split(self.labels, self.firsts[1:])] if len(self) else []

    def take(self, index: Ints) -> Answers:
        """Some of the answers, in this order."""
        lengths = self.lengths[index]
        starts = np.cumsum(lengths) - lengths
        places = np.repeat(self.firsts[index] - starts, lengths) + np.arange(lengths.sum())
        own = {name: None if (held := getattr(self, name)) is None else held[places] for name in _OF_POSITIONS}
        own |= {name: None if (held := getattr(self, name)) is None else held[index] for name in _OF_ANSWERS}
        return Answers(self.labels[places], lengths, self.n_labels, **own)


def answer_features(answers: Answers, known: set[Answer] | None = None) -> dict[str, Floats]:
    """Of the question whether a whole answer is right, by name, shape (n,) each; those that the model said nothing for are left out.

    known (set | None): Answers that are admissible: words of a list.
    RETURNS (dict): length, known, chance (its logarithm), gap, least_margin (of the marginals, over its positions), least_alone (of the classifier's scores).
    """
    found = {"length": answers.lengths.astype(np.float64)}
    if known is not None:
        found["known"] = np.array([one in known for one in answers.each()], dtype=np.float64)
    if answers.log_chances is not None:
        found["chance"] = np.maximum(answers.log_chances, -FARTHEST_GAP)
    if answers.gaps is not None:
        found["gap"] = np.minimum(answers.gaps, FARTHEST_GAP)
    for name, scores in (("least_margin", answers.marginals), ("least_alone", answers.alone)):
        if scores is not None:
            found[name] = _least(margins(scores), answers)
    return found


def position_features(answers: Answers) -> dict[str, Floats]:
    """Of the question whether the label of a position is right, by name, shape (N,) each.

    RETURNS (dict): share (of the answer's positions that have the same label), neighbours (the same of the positions beside it),
        label_0, label_1 ... (whether it is this one), pseudomargin (of the conditionals), margin (of the marginals), agrees (whether the
        likeliest label by the marginals is that of the answer), alone (margin of the classifier's scores).
    """
    found = {"share": same_in_answer(answers), "neighbours": same_beside(answers)}
    found |= {f"label_{k}": (answers.labels == k).astype(np.float64) for k in range(answers.n_labels)}
    for name, scores in (("pseudomargin", answers.conditionals), ("margin", answers.marginals), ("alone", answers.alone)):
        if scores is not None:
            found[name] = margins(scores)
    if answers.marginals is not None:
        found["agrees"] = (answers.marginals.argmax(axis=1) == answers.labels).astype(np.float64)
    return found


def same_in_answer(answers: Answers) -> Floats:
    """The share of its answer's positions that have the label of each position, itself among them."""
    codes = answers.of_position * answers.n_labels + answers.labels
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return counts[place.reshape(-1)] / answers.lengths[answers.of_position]


def same_beside(answers: Answers) -> Floats:
    """How many of the positions beside each (one or two) have its label, as a share of the answer's positions."""
    same = np.zeros(len(answers.labels))
    equal = (answers.labels[1:] == answers.labels[:-1]) & (answers.of_position[1:] == answers.of_position[:-1])
    same[1:] += equal
    same[:-1] += equal
    return same / answers.lengths[answers.of_position]


def columns(features: Mapping[str, Floats], names: Sequence[str]) -> Floats:
    """Some of the features side by side, shape (n, k). names: A name that ends in "_" stands for all that begin so.

    RAISES ValueError: there is no feature of this name.
    """
    wanted = [found for name in names for found in _named(features, name)]
    return np.stack([features[name] for name in wanted], axis=1)


def _named(features: Mapping[str, Floats], name: str) -> list[str]:
    found = [one for one in features if one == name or (name.endswith("_") and one.startswith(name))]
    if not found:
        raise ValueError(f"no feature {name}; there are: {', '.join(features)}")
    return found


def _least(values: Floats, answers: Answers) -> NDArray[np.float64]:
    return np.minimum.reduceat(values, answers.firsts) if len(answers) else np.zeros(0)


def best_answers(sums: Sums, alone: Floats | None = None) -> Answers:
    """The best labelling of each chain with its probability, the gap to the second best, marginals, and P(label | the rest of the labelling).

    alone (Floats | None): Scores of a classifier that sees each position by itself, shape (N, K), for positions of the chains one after another.
    """
    chains = sums.chains
    best = k_best(chains, 2)
    gaps = [float(one.scores[0] - one.scores[1]) if len(one.scores) > 1 else np.inf for one in best]
    labels = [one.labels[0] for one in best]
    flat = chains.xp.concatenate([chains.xp.zeros(0, dtype="i"), *labels])
    return Answers(
        to_numpy(flat).astype(np.intp),
        chains.packing.lengths,
        chains.n_labels,
        to_numpy(chains.scores_of(labels) - sums.log_z),
        np.array(gaps, dtype=np.float64),
        to_numpy(sums.marginals[chains.xp.asarray(chains.packing.packed)]),
        to_numpy(conditionals(chains, flat)),
        alone,
    )


def conditionals(chains: Chains, labels: Any) -> Any:
    """P(label at position | the labels of all other positions), for positions of the chains one after another, shape (N, K).

    labels (array): Columns, shape (N,), likewise.
    """
    xp, packing = chains.xp, chains.packing
    packed = labels[xp.asarray(packing.flat)]
    before, after = map(xp.asarray, packing.followed)
    scores = chains.scores.copy()
    scores[after] += chains.transitions[packed[before]]
    scores[before] += chains.transitions[:, packed[after]].T
    chance = xp.exp(scores - scores.max(axis=1, keepdims=True, initial=-xp.inf))
    return (chance / chance.sum(axis=1, keepdims=True))[xp.asarray(packing.packed)]
