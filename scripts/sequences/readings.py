"""Two readings of the paper's formula of Delta: how far below the best labelling is one with another label at a word?

Of all labellings with another label there the best one counts (`Confidence.v1`, `--way delta`), or only those that agree with the best
labelling at all other words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score

from spacy_calib.sequence.inference.best import best_through
from spacy_calib.sources.base import to_numpy
from spacy_calib.types import Floats, Ints

from .data import Sentences
from .learning import answers, chains_of, choose_settings, train
from .runs import Plan, parts_of


class Readings(NamedTuple):
    """words (int): That were judged. differ (float): The share of them whose gap is another one. best, alone (float): Average precision of
    finding wrong words by the gap, of each reading."""

    words: int
    differ: float
    best: float
    alone: float


def gaps_alone(scores: Floats, transitions: Floats, said: Ints) -> Floats:
    """How much a labelling loses at least where the label of one word alone is changed, of each word."""
    given = np.array(scores, dtype=np.float64)
    given[1:] += transitions[said[:-1]]
    given[:-1] += transitions[:, said[1:]].T
    return gap_of(given, said)


def gap_of(given: Floats, said: Ints) -> Floats:
    """How far the highest score of another label lies below that of the label that was said, of each row."""
    rows, others = np.arange(len(said)), np.array(given, dtype=np.float64)
    others[rows, said] = -np.inf
    return np.asarray(given[rows, said] - others.max(axis=1))


def compare_readings(data: Sentences, plan: Plan, quarter: int) -> Readings:
    """Of a quarter of the sentences, by CW of the others, as `run` has it."""
    training, judged = parts_of(len(data), plan.quarters, quarter, plan.seed + 1)
    learner = train(data, training, "cw", plan.rounds, plan.seed, choose_settings(data, training, "cw", plan.seed, plan.tuning))
    said = answers(data, learner, judged)
    own = np.concatenate(said)
    chains = chains_of(data, learner, judged)
    through = chains.unpacked(to_numpy(best_through(chains)))  # the best labelling with each label at each word
    best = np.concatenate([gap_of(one, of_words) for one, of_words in zip(through, said, strict=True)])
    transitions = learner.transitions(learner.mean)
    alone = np.concatenate([
        gaps_alone(learner.scores(learner.mean, data.rows[i]), transitions, one)
        for i, one in zip(judged.tolist(), said, strict=True)
    ])  # fmt: skip
    wrong = own != data.gold_of(judged)
    return Readings(
        len(own),
        float(np.mean(~np.isclose(best, alone))),
        float(average_precision_score(wrong, -best)),
        float(average_precision_score(wrong, -alone)),
    )
