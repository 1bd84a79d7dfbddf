"""Forecasts of yes-or-no questions about whole units: the evidence, the forecaster by cross-validation, its loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...calibration.spans import NAMES, firsts_of, logit, product_of, span_features
from ...metrics.proper import decompose, squared_losses
from ...pairs.bins import check_count, fixed_edges
from ...pairs.documents import cross_fit, folds_of
from ...schema import Serializable, number, saved_field, text
from ...types import Floats, Ints, Spans, check_lengths
from .forecasters.base import Forecaster, Logistic, Neighbours, as_features
from .forecasters.trees import Boosting, Tree

# The columns of `unit_features`.
UNIT_FEATURES = (*(name for name in NAMES if "own" not in name), "second least", "doubtful tokens")
# Which of the features of spans are among them.
_KEPT = [place for place, name in enumerate(NAMES) if "own" not in name]
# A token is doubtful below this score.
_DOUBTFUL = 0.9
# Sizes (of regions, numbers of trees) among which held-out units choose.
_SIZES = (10, 20, 40, 80, 160)
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of n units before their question is answered.

    features (Floats): For a forecaster, shape (n, k). raw, own (Floats): An estimate without a forecaster, before and after
    calibration, such as the product of the token scores. RAISES C002: lengths differ.
    """

    features: Floats
    raw: Floats
    own: Floats

    def __post_init__(self) -> None:
        check_lengths("Evidence", "score", len(self.own), {"features": self.features, "raw": self.raw})

    def __len__(self) -> int:
        return len(self.own)

    def take(self, index: Any) -> Evidence:
        """Select units."""
        return Evidence(self.features[index], self.raw[index], self.own[index])

    @classmethod
    def of_tokens(cls, units: Spans) -> Evidence:
        """units (Spans): With the calibrated score of each token's label, and as own the product of the raw ones."""
        return cls(unit_features(units), units.scores, product_of(units))

    @classmethod
    def joined(cls, parts: Sequence[Evidence], width: int) -> Evidence:
        """Join the evidence of units of several Docs. width (int): k."""
        empty = np.zeros(0)
        features = np.concatenate([np.zeros((0, width)), *(part.features for part in parts)])
        return cls(features, *(np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in ("raw", "own")))


def unit_features(units: Spans) -> Floats:
    """Return a row per unit, columns as in UNIT_FEATURES. units: With calibrated token scores."""
    if not len(units):
        return np.zeros((0, len(UNIT_FEATURES)))
    firsts, lengths = firsts_of(units), units.ends - units.starts
    order = np.lexsort((units.token_scores, np.repeat(np.arange(len(units)), lengths)))
    second = units.token_scores[order][firsts + np.minimum(lengths - 1, 1)]
    doubtful = np.add.reduceat((units.token_scores < _DOUBTFUL).astype(np.float64), firsts)
    return np.column_stack([span_features(units)[:, _KEPT], logit(second), doubtful])


@dataclass(frozen=True)
class Trial(Serializable):
    """A forecaster that was tried. name (str): With its size. loss (float): Mean squared loss on held-out documents."""

    name: str = saved_field(text)
    loss: float = saved_field(number(0.0, 1.0))


def candidates() -> tuple[Forecaster, ...]:
    """Return the default candidates, the smoothest first."""
    return (*(Logistic(ridge) for ridge in (100.0, 10.0, 1.0)), Boosting(), Tree(), Neighbours())


def fit_units(
    features: Floats, hits: NDArray[np.bool_], documents: Ints, prototypes: Sequence[Forecaster]
) -> tuple[Tried, list[Trial]]:
    """Fit the forecaster with the lowest squared loss on held-out documents; also return all trials. RAISES C373: no units."""
    trials = [tune(prototype, features, hits, documents, _SIZES, _FOLDS) for prototype in prototypes]
    return choose(trials), [Trial(described(prototype.forecaster), prototype.loss) for prototype in trials]


def described(forecaster: Forecaster) -> str:
    """Describe a forecaster: "tree (min_leaf 40)"."""
    settings = forecaster.settings()
    setting = forecaster.size_name or next(iter(settings))
    return f"{forecaster.short} ({setting} {settings[setting]:g})"


# Sizes for k in k-NN and the least leaf of a tree (Kuleshov and Liang 2015, section 5.3).
SIZES = tuple(range(5, 501, 5))


@dataclass(frozen=True, eq=False)
class Tried:
    """A forecaster fitted on all rows. held_out (Floats): Cross-validated forecasts. loss (float): Mean."""

    forecaster: Forecaster
    held_out: Floats
    loss: float


def tune(
    prototype: Forecaster,
    features: Floats,
    hits: NDArray[np.bool_],
    units: Ints,
    sizes: Sequence[int] = SIZES,
    n_folds: int = 10,
) -> Tried:
    """Fit with the size of lowest squared loss on held-out units; of equal ones the largest.

    prototype (Forecaster): Without a `size_name` it is fitted as it is. units (Ints): Unit of each row (word, document). sizes:
    At most the rows to learn from. RAISES C372, C373: see `Forecaster.fit`.
    """
    rows, folds = as_features(features), folds_of(units, n_folds)
    fewest = len(rows) - int(np.bincount(folds, minlength=1).max()) if len(rows) else 0
    valid_sizes = [size for size in sizes if size <= fewest] or [min(sizes)]

    def score(train: Ints, test: Ints) -> Floats:
        if prototype.size_name:
            return prototype.predict_sizes(rows[train], hits[train], rows[test], valid_sizes)
        return prototype.clone().fit(rows[train], hits[train]).predict(rows[test])[None]

    if len(np.unique(folds)) < 2:  # nothing can be held out
        forecaster = prototype.clone().fit(rows, hits)
        forecasts = forecaster.predict(rows)
        return Tried(forecaster, forecasts, float(squared_losses(forecasts, hits).mean()))
    held_out = np.clip(cross_fit(folds, score), 0.0, 1.0)
    losses = ((held_out - hits) ** 2).mean(axis=1)
    best = len(losses) - 1 - int(np.argmin(losses[::-1]))
    forecaster = prototype.sized(valid_sizes[best]) if prototype.size_name else prototype.clone()
    return Tried(forecaster.fit(rows, hits), held_out[best], float(losses[best]))


def choose(trials: Sequence[Tried]) -> Tried:
    """Return the trial of lowest held-out loss; of equal ones the first."""
    return min(trials, key=lambda trial: trial.loss)


@dataclass(frozen=True)
class Parts:
    """Parts of the squared loss of n forecasts F of yes-or-no answers y; T is the share of yes in F's bin.

    loss (float): Mean (y - F)^2, but for what bins hide uncertainty - sharpness + calibration. calibration: Mean (T - F)^2.
    sharpness: Variance of T. uncertainty: Variance of y.
    """

    loss: float
    calibration: float
    sharpness: float
    uncertainty: float
    n: int


def split_loss(forecasts: ArrayLike, hits: ArrayLike, n_bins: int = 10) -> Parts | None:
    """Split the loss by equation 3 of Kuleshov and Liang (2015), over bins of equal width. RAISES C001: range. C002: lengths."""
    edges = fixed_edges(check_count("n_bins", n_bins))
    parts = decompose(forecasts, hits, lambda scores: edges)
    if parts is None:
        return None
    calibration = parts.reliability + parts.within_variance
    return Parts(parts.brier, calibration, parts.resolution, parts.uncertainty, parts.n)
