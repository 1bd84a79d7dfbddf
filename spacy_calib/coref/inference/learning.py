"""The fit: weights that let mentions choose any antecedent in their gold cluster (Durrett & Klein 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...calibration.conditional_logit import choice_loss
from ...errors import calib_error
from ...pairs.documents import contiguous_folds
from ...types import Floats, Ints
from .antecedents import Antecedents, Candidates

# Cross-validation takes the one with the likeliest held-out documents.
PENALTIES = (0.3, 1.0, 3.0, 10.0)
_FOLDS = 5
_STEPS = 60


@dataclass(frozen=True, eq=False)
class Choices:
    """What the mentions of a document may choose. features (csr_matrix): Shape (n_options, n_features).

    candidates (Candidates): The options are NEW and these, mention after mention. right (NDArray[bool]): Whether an option is
    right: a candidate of the same gold cluster, or NEW if there is none.
    """

    features: Any
    candidates: Candidates
    right: NDArray[np.bool_]

    def chances(self, weights: Floats) -> Antecedents:
        return Antecedents.from_scores(self.features @ weights, self.candidates)


def right_options(candidates: Candidates, clusters: Ints) -> NDArray[np.bool_]:
    """`Choices.right`. clusters (Ints): The gold cluster of each mention."""
    links = clusters[candidates.earlier] == clusters[candidates.mentions]
    n_right = np.bincount(candidates.mentions, weights=links, minlength=len(candidates))
    right = np.zeros(len(links) + len(candidates), dtype=bool)
    is_new = np.zeros(len(right), dtype=bool)
    is_new[candidates.options[:-1]] = True
    right[is_new] = n_right == 0
    right[~is_new] = links
    return right


@dataclass(frozen=True, eq=False)
class _Stacked:
    """The options of several documents. starts (Ints): Where those of each mention begin, and the end of the last."""

    features: Any
    starts: Ints
    right: NDArray[np.bool_]

    @classmethod
    def of(cls, documents: Sequence[Choices]) -> _Stacked:
        from scipy.sparse import vstack

        lengths = np.concatenate([np.diff(one.candidates.options) for one in documents])
        right = np.concatenate([one.right for one in documents])
        return cls(vstack([one.features for one in documents], format="csr"), np.concatenate([[0], np.cumsum(lengths)]), right)

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """(minus the log likelihood of the right options, its slope)."""
        return choice_loss(self.features, self.starts, self.right, weights)


def known_features(documents: Sequence[Choices], least: int) -> NDArray[np.bool_]:
    """Which features so many documents (or all) have, shape (n_features,); the first, which all options have, does."""
    counts = np.zeros(documents[0].features.shape[1], dtype=np.intp)
    for one in documents:
        counts[np.unique(one.features.indices)] += 1
    counts[0] = len(documents)
    return counts >= min(least, len(documents))


def fit_weights(documents: Sequence[Choices], penalty: float, least: int = 1) -> Floats:
    """Weights that minimize minus the log likelihood plus penalty / 2 times their squares, by L-BFGS from 0.

    least (int): The weights of features that fewer of the documents have stay 0.
    """
    from scipy.optimize import minimize

    stacked, known = _Stacked.of(documents), known_features(documents, least)

    def objective(weights: Floats) -> tuple[float, Floats]:
        loss, slope = stacked.loss(weights)
        return loss + 0.5 * penalty * float(weights @ weights), np.where(known, slope, 0.0) + penalty * weights

    start = np.zeros(stacked.features.shape[1])
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Learned:
    """weights (Floats): Of the features. penalty (float): The chosen one. held_out (list[Antecedents]): Of each document, by
    weights that did not see it; [] for a single document. losses (dict): Penalty -> mean loss of a held-out mention."""

    weights: Floats
    penalty: float
    held_out: list[Antecedents]
    losses: dict[float, float]


def learn(
    documents: Sequence[Choices], penalties: Sequence[float] = PENALTIES, n_folds: int = _FOLDS, least: int = 1
) -> Learned:
    """Fit with the penalty that cross-validation over whole documents chooses.

    penalties (Sequence[float]): To choose from; a single one is cross-validated too. least (int): As in `fit_weights`, counted
    over the documents to learn from. RAISES C356: nothing to learn from. C001: a penalty is not positive.
    """
    if not documents or not any(one.right.any() for one in documents):
        raise calib_error("C356")
    if not penalties or not all(penalty > 0 for penalty in penalties):
        raise calib_error("C001", name="penalty", wanted="greater than 0", given=list(penalties))
    if len(documents) == 1:
        return Learned(fit_weights(documents, penalties[-1]), penalties[-1], [], {})
    folds = contiguous_folds(np.arange(len(documents)), min(n_folds, len(documents)))
    n_mentions = sum(len(one.candidates) for one in documents)
    losses: dict[float, float] = {}
    best: list[Antecedents] = []
    for penalty in penalties:
        held_out: dict[int, Antecedents] = {}
        total = 0.0
        for fold in range(int(folds.max()) + 1):
            inside = np.flatnonzero(folds == fold).tolist()
            weights = fit_weights([documents[i] for i in np.flatnonzero(folds != fold).tolist()], penalty, least)
            total += _Stacked.of([documents[i] for i in inside]).loss(weights)[0]
            held_out.update({i: documents[i].chances(weights) for i in inside})
        losses[penalty] = total / n_mentions
        if losses[penalty] == min(losses.values()):
            best = [held_out[i] for i in range(len(documents))]
    chosen = min(losses, key=losses.__getitem__)
    return Learned(fit_weights(documents, chosen, least), chosen, best, losses)
