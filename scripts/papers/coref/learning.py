"""The fit of weights that let mentions choose any antecedent in their gold cluster (Durrett & Klein 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_calib.calibration.conditional_logit import choice_loss
from spacy_calib.pairs.documents import folds_of
from spacy_calib.types import Floats, Ints

from .antecedents import Antecedents, Candidates

# Cross-validation takes the one with the lowest loss on held-out documents.
PENALTIES = (0.3, 1.0, 3.0, 10.0)
_FOLDS = 5
_STEPS = 60


@dataclass(frozen=True, eq=False)
class Choices:
    """A document's options, NEW and candidates: features (n_options, n_features), and whether each is right."""

    features: Any
    candidates: Candidates
    right: NDArray[np.bool_]

    def antecedents(self, weights: Floats) -> Antecedents:
        return Antecedents.from_scores(self.features @ weights, self.candidates)


def right_options(candidates: Candidates, clusters: Ints) -> NDArray[np.bool_]:
    """Return which options are right: candidates in the mention's gold cluster, or else NEW. clusters: Gold cluster of each mention."""
    links = clusters[candidates.earlier] == clusters[candidates.mentions]
    n_right = np.bincount(candidates.mentions, weights=links, minlength=len(candidates))
    right = np.zeros(len(links) + len(candidates), dtype=bool)
    is_new = np.zeros(len(right), dtype=bool)
    is_new[candidates.options[:-1]] = True
    right[is_new] = n_right == 0
    right[~is_new] = links
    return right


@dataclass(frozen=True, eq=False)
class _StackedChoices:
    """The options of several documents. starts (Ints): First option of each mention, and the end."""

    features: Any
    starts: Ints
    right: NDArray[np.bool_]

    @classmethod
    def from_documents(cls, documents: Sequence[Choices]) -> _StackedChoices:
        """Stack the choices of several documents."""
        from scipy.sparse import vstack

        lengths = np.concatenate([np.diff(choices.candidates.options) for choices in documents])
        right = np.concatenate([choices.right for choices in documents])
        return cls(
            vstack([choices.features for choices in documents], format="csr"), np.concatenate([[0], np.cumsum(lengths)]), right
        )

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """Return (the negative log likelihood of the right options, its gradient)."""
        return choice_loss(self.features, self.starts, self.right, weights)


def known_features(documents: Sequence[Choices], minimum: int) -> NDArray[np.bool_]:
    """Return a mask of the features that occur in at least `minimum` documents (in all, if there are fewer) and of the constant, the first."""
    counts = np.zeros(documents[0].features.shape[1], dtype=np.intp)
    for choices in documents:
        counts[np.unique(choices.features.indices)] += 1
    counts[0] = len(documents)
    return counts >= min(minimum, len(documents))


def fit_weights(documents: Sequence[Choices], penalty: float, minimum: int = 1) -> Floats:
    """Minimize the penalized negative log likelihood by L-BFGS. minimum (int): Rarer features (by document) keep weight 0."""
    from scipy.optimize import minimize

    data, is_known = _StackedChoices.from_documents(documents), known_features(documents, minimum)

    def objective(weights: Floats) -> tuple[float, Floats]:
        loss, slope = data.loss(weights)
        return loss + 0.5 * penalty * float(weights @ weights), np.where(is_known, slope, 0.0) + penalty * weights

    start = np.zeros(data.features.shape[1])
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class FittedWeights:
    """The fitted weights. held_out (list[Antecedents]): From cross-validation, or []. losses (dict): Penalty -> mean loss."""

    weights: Floats
    penalty: float
    held_out: list[Antecedents]
    losses: dict[float, float]


def learn(
    documents: Sequence[Choices], penalties: Sequence[float] = PENALTIES, n_folds: int = _FOLDS, minimum: int = 1
) -> FittedWeights:
    """Fit with the penalty that cross-validation over documents chooses."""
    folds = folds_of(np.arange(len(documents)), min(n_folds, len(documents)))
    n_mentions = sum(len(choices.candidates) for choices in documents)
    losses: dict[float, float] = {}
    best: list[Antecedents] = []
    for penalty in penalties:
        held_out: dict[int, Antecedents] = {}
        total = 0.0
        for fold in range(int(folds.max()) + 1):
            test = np.flatnonzero(folds == fold).tolist()
            weights = fit_weights([documents[i] for i in np.flatnonzero(folds != fold).tolist()], penalty, minimum)
            total += _StackedChoices.from_documents([documents[i] for i in test]).loss(weights)[0]
            held_out.update({i: documents[i].antecedents(weights) for i in test})
        losses[penalty] = total / n_mentions
        if losses[penalty] == min(losses.values()):
            best = [held_out[i] for i in range(len(documents))]
    best_penalty = min(losses, key=losses.__getitem__)
    return FittedWeights(fit_weights(documents, best_penalty, minimum), best_penalty, best, losses)
