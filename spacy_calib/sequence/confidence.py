"""Confidence without probabilities: how much a labeller's answer moves (Mejer & Crammer 2010, section 5).

Each way gives every label of every token a number in [0, 1]; that of the predicted label is its confidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pairs.keyed import STEP, splitmix64
from ..sources.base import to_numpy
from ..types import Floats, Ints
from .inference.best import best_through, k_best
from .inference.chains import Chains


def shares_of(labellings: Any, weights: Any, n_labels: int) -> Floats:
    """The share of some labellings of one sequence that give each token each label, shape (length, K).

    labellings (array): Columns, shape (k, length). weights: Of each, shape (k,); where all are 0 they count alike.
    """
    given = to_numpy(labellings)
    counted = np.asarray(weights, dtype=np.float64)
    counted = counted if counted.sum() > 0 else np.ones(len(given))
    shares = np.zeros((given.shape[1], n_labels))
    np.add.at(shares, (np.arange(given.shape[1])[None], given), counted[:, None])
    return shares / counted.sum()


def k_best_shares(chains: Chains, k: int, weighted: bool) -> list[Floats]:
    """KBV: the share of the k best labellings that agree; WKBV: each with the weight max(0, its score).

    RAISES C001: k is not at least 1. C323: a sequence has no labelling that is allowed.
    """
    found = k_best(chains, k)
    return [
        shares_of(one.labels, np.maximum(0.0, to_numpy(one.scores)) if weighted else np.ones(len(one.scores)), chains.n_labels)
        for one in found
    ]


def gaps(chains: Chains) -> list[Floats]:
    """Delta: by how much the best labelling beats the best one without the predicted label, through the logistic
    function: at least a half. Other labels share the rest by the exponentials of their best labellings' scores.
    """
    through = to_numpy(best_through(chains))
    if chains.n_labels == 1:
        return chains.unpacked(np.ones_like(through))
    best = through.argmax(axis=1)
    rows = np.arange(len(through))
    with np.errstate(invalid="ignore"):
        below = through - through[rows, best][:, None]
    below[rows, best] = -np.inf
    highest = below.max(axis=1, initial=-np.inf)
    rest = np.exp(below - np.where(np.isfinite(highest), highest, 0.0)[:, None])
    rest /= np.maximum(rest.sum(axis=1, keepdims=True), 1e-300)
    own = 1 / (1 + np.exp(highest))
    found = rest * (1 - own)[:, None]
    found[rows, best] = own
    return chains.unpacked(found)


def normals(codes: Ints, draw: int, seed: int) -> Floats:
    """Independent standard normal numbers, one for each code, draw and seed, whatever others are asked for, so that a
    token's confidence does not depend on its batch (a counter-based generator: splitmix64, then normal quantiles)."""
    from scipy.special import ndtri

    with np.errstate(over="ignore"):
        mixed = codes.astype(np.uint64) * STEP
        mixed += np.uint64(seed) * np.uint64(0xD1B54A32D192ED03) + np.uint64(draw + 1) * np.uint64(0x8CB92BA72F3D8DD7)
    return ndtri(((splitmix64(mixed) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)
