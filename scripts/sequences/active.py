"""Active learning (Mejer & Crammer 2010, section 6): which sentences to label next, simulated with gold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spacy_calib.sequence.inference.best import k_best, viterbi
from spacy_calib.sequence.online.learner import OnlineLearner
from spacy_calib.types import Floats, Ints

from .data import Sentences
from .learning import answers, chains_of, counts_of, drawn, f_of, of_own, train

WAYS = ("random", "min_margin", "min_conf_margin", "kd_fixed", "kd_pc")


@dataclass(frozen=True)
class Setting:
    """pool, judged (int): Sentences to choose from, and of the test. start, most (int): Labelled at first and at last. looked_at, taken (int): Of
    so many random ones so many are taken. rounds (int): Passes over what is labelled, from the beginning each time. every (int): Rounds between
    two tests. scale_pc, scale_fixed (float): Of the draws. phi (float): Of CW. draws (int): K. seeds (int): Repetitions."""

    pool: int = 7000
    judged: int = 2000
    start: int = 50
    most: int = 600
    looked_at: int = 1000
    taken: int = 10
    rounds: int = 3
    every: int = 5
    scale_pc: float = 0.03
    scale_fixed: float = 0.03
    phi: float = 1.0
    draws: int = 20
    seeds: int = 2


def simulate_all(data: Sentences, setting: Setting, seed: int) -> dict[str, Any]:
    """For each way (words labelled, F), shape (tests, 2), as "curve_WAY"."""
    order = np.random.default_rng(seed).permutation(len(data))
    judged = order[: min(setting.judged, len(order) // 3)]
    pool = order[len(judged) :][: setting.pool]
    return {f"curve_{way}": simulate(data, pool, judged, way, setting, seed) for way in WAYS}


def simulate(data: Sentences, pool: Ints, judged: Ints, way: str, setting: Setting, seed: int) -> Floats:
    """(words labelled, F on the judged sentences) at the start and after every few rounds, shape (tests, 2)."""
    rng = np.random.default_rng(seed)
    labelled, rest = pool[: setting.start], pool[setting.start :]
    curve, number = [], 0
    while True:
        learner = train(data, labelled, "cw", setting.rounds, seed, {"phi": setting.phi})
        if number % setting.every == 0:
            words = sum(len(data.gold[i]) for i in labelled.tolist())
            curve.append((words, f_of(counts_of(data, answers(data, learner, judged), judged))))
        if len(labelled) >= setting.most or len(rest) < setting.taken:
            return np.array(curve)
        looked_at = rng.choice(rest, min(setting.looked_at, len(rest)), replace=False)
        lengths = np.array([len(data.gold[i]) for i in looked_at.tolist()])
        # The least sure first; of equally sure ones the shortest.
        chosen = looked_at[np.lexsort((lengths, sureness(data, learner, looked_at, way, setting, seed + number)))][
            : setting.taken
        ]
        labelled, rest = np.concatenate([labelled, chosen]), np.setdiff1d(rest, chosen)
        number += 1


def sureness(data: Sentences, learner: OnlineLearner, sentences: Ints, way: str, setting: Setting, seed: int) -> Floats:
    """A number for each sentence, lower where it is more worth a label: of draws that of its least sure word."""
    if way == "random":
        return np.random.default_rng(seed).random(len(sentences))
    lengths = np.array([len(data.gold[i]) for i in sentences.tolist()])
    chains = chains_of(data, learner, sentences)
    if way in ("kd_pc", "kd_fixed"):
        scale = setting.scale_pc if way == "kd_pc" else setting.scale_fixed
        own = np.concatenate(viterbi(chains))
        sure = of_own(drawn(data, learner, sentences, scale, way == "kd_pc", seed, setting.draws), own)
        return np.minimum.reduceat(sure, np.cumsum(lengths) - lengths)
    found = np.empty(len(sentences))
    for place, (best, i) in enumerate(zip(k_best(chains, 2), sentences.tolist(), strict=True)):
        margin = best.scores[0] - best.scores[1]
        if way == "min_margin":
            found[place] = margin / lengths[place]
        else:
            difference = learner.difference(data.rows[i], *best.labels)
            found[place] = margin / np.sqrt((learner.sigma[difference.at] * difference.by**2).sum())
    return found
