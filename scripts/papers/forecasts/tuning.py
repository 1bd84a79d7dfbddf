"""Features of units, the choice of a forecaster by cross-validation, and the parts of its loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_calib.calibration.spans import NAMES, firsts_of, logit, product_of, span_features
from spacy_calib.metrics.proper import decompose, squared_losses
from spacy_calib.pairs.bins import check_count, fixed_edges
from spacy_calib.pairs.documents import cross_fit, folds_of
from spacy_calib.schema import Serializable, number, saved_field, text
from spacy_calib.types import Floats, Ints, Spans, check_lengths

from .forecasters import Forecaster, Logistic, NearestNeighbours, as_features
from .trees import Boosting, DecisionTree

# The columns of `unit_features`.
UNIT_FEATURES = (*(name for name in NAMES if "own" not in name), "second least", "doubtful tokens")
# Columns of `span_features` that are among them: all but those of a span's own score, which units do not have.
_SPAN_COLUMNS = [column for column, name in enumerate(NAMES) if "own" not in name]
# Tokens with a lower score count as doubtful.
_DOUBTFUL = 0.9
# Sizes (of leaves or neighbourhoods, or numbers of trees) among which cross-validation chooses.
_SIZES = (10, 20, 40, 80, 160)
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class UnitEvidence:
    """Features of n units, and estimates of P(yes) without a forecaster, such as the product of the token scores.

    features (Floats): For a forecaster, shape (n, k). raw_estimates, estimates (Floats): Before and after calibration, (n,).
    RAISES C002: lengths differ.
    """

    features: Floats
    raw_estimates: Floats
    estimates: Floats

    def __post_init__(self) -> None:
        lengths = {"features": self.features, "raw": self.raw_estimates}
        check_lengths("UnitEvidence", "score", len(self.estimates), lengths)

    def __len__(self) -> int:
        return len(self.estimates)

    def take(self, index: Any) -> UnitEvidence:
        return UnitEvidence(self.features[index], self.raw_estimates[index], self.estimates[index])

    @classmethod
    def from_tokens(cls, units: Spans) -> UnitEvidence:
        """Compute evidence from token scores. units (Spans): Calibrated `token_scores`; `scores` are products of raw ones."""
        return cls(unit_features(units), units.scores, product_of(units))

    @classmethod
    def concatenate(cls, parts: Sequence[UnitEvidence], width: int) -> UnitEvidence:
        """Concatenate the evidence of several Docs. width (int): Number of features, k."""
        features = np.concatenate([np.zeros((0, width)), *(part.features for part in parts)])
        columns = [part.raw_estimates for part in parts], [part.estimates for part in parts]
        return cls(features, *(np.concatenate([np.zeros(0), *column]) for column in columns))


def unit_features(units: Spans) -> Floats:
    """Return the features of each unit, columns as in UNIT_FEATURES. units (Spans): With calibrated token scores."""
    if not len(units):
        return np.zeros((0, len(UNIT_FEATURES)))
    firsts, lengths = firsts_of(units), units.ends - units.starts
    order = np.lexsort((units.token_scores, np.repeat(np.arange(len(units)), lengths)))
    second = units.token_scores[order][firsts + np.minimum(lengths - 1, 1)]
    doubtful = np.add.reduceat((units.token_scores < _DOUBTFUL).astype(np.float64), firsts)
    return np.column_stack([span_features(units)[:, _SPAN_COLUMNS], logit(second), doubtful])


@dataclass(frozen=True)
class Trial(Serializable):
    """A forecaster that was compared. name (str): With its size. loss (float): Mean squared loss on held-out documents."""

    name: str = saved_field(text)
    loss: float = saved_field(number(0.0, 1.0))


def default_forecasters() -> tuple[Forecaster, ...]:
    """Return the forecasters that are compared by default, the smoothest first."""
    return (*(Logistic(ridge) for ridge in (100.0, 10.0, 1.0)), Boosting(), DecisionTree(), NearestNeighbours())


def fit_best(
    features: Floats, hits: NDArray[np.bool_], documents: Ints, prototypes: Sequence[Forecaster]
) -> tuple[TunedForecaster, list[Trial]]:
    """Fit the forecaster with the lowest squared loss on held-out documents; also return all trials. RAISES C373: no units."""
    candidates = [tune(prototype, features, hits, documents, _SIZES, _FOLDS) for prototype in prototypes]
    return choose_best(candidates), [Trial(describe(candidate.forecaster), candidate.loss) for candidate in candidates]


def describe(forecaster: Forecaster) -> str:
    """Return a forecaster's name with its size or first setting, such as "tree (min_leaf 40)"."""
    settings = forecaster.settings()
    setting = forecaster.size_name or next(iter(settings))
    return f"{forecaster.short} ({setting} {settings[setting]:g})"


# Sizes to try for k in k-NN and the minimum leaf of a tree (Kuleshov and Liang 2015, section 5.3).
SIZES = tuple(range(5, 501, 5))


@dataclass(frozen=True, eq=False)
class TunedForecaster:
    """A forecaster fitted on all rows. held_out (Floats): Cross-validated forecasts, (n,). loss (float): Mean squared loss."""

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
) -> TunedForecaster:
    """Fit a forecaster with the size of lowest cross-validated squared loss; of equal losses the largest size.

    prototype (Forecaster): Fitted as it is if it has no `size_name`. units (Ints): What folds do not split (word, document) of
    each row, shape (n,). sizes (Sequence[int]): Those above the number of training rows are left out. RAISES C372: features are
    no finite numbers. C373: no rows.
    """
    rows, folds = as_features(features), folds_of(units, n_folds)
    n_train = len(rows) - int(np.bincount(folds, minlength=1).max()) if len(rows) else 0
    valid_sizes = [size for size in sizes if size <= n_train] or [min(sizes)]

    def score(train: Ints, test: Ints) -> Floats:
        if prototype.size_name:
            return prototype.predict_sizes(rows[train], hits[train], rows[test], valid_sizes)
        return prototype.clone().fit(rows[train], hits[train]).predict(rows[test])[None]

    if len(np.unique(folds)) < 2:  # nothing can be held out
        forecaster = prototype.clone().fit(rows, hits)
        forecasts = forecaster.predict(rows)
        return TunedForecaster(forecaster, forecasts, float(squared_losses(forecasts, hits).mean()))
    held_out = np.clip(cross_fit(folds, score), 0.0, 1.0)
    losses = ((held_out - hits) ** 2).mean(axis=1)
    best = len(losses) - 1 - int(np.argmin(losses[::-1]))
    forecaster = prototype.with_size(valid_sizes[best]) if prototype.size_name else prototype.clone()
    return TunedForecaster(forecaster.fit(rows, hits), held_out[best], float(losses[best]))


def choose_best(candidates: Sequence[TunedForecaster]) -> TunedForecaster:
    """Return the candidate with the lowest held-out loss, the first of equal ones."""
    return min(candidates, key=lambda candidate: candidate.loss)


@dataclass(frozen=True)
class LossParts:
    """Parts of the squared loss of n forecasts F of yes-or-no answers y; T is the share of yes in F's bin.

    loss (float): Mean (y - F)^2, about uncertainty - sharpness + calibration: bins hide a little. calibration (float): Mean
    (T - F)^2. sharpness (float): Variance of T. uncertainty (float): Variance of y.
    """

    loss: float
    calibration: float
    sharpness: float
    uncertainty: float
    n: int


def split_loss(forecasts: ArrayLike, hits: ArrayLike, n_bins: int = 10) -> LossParts | None:
    """Split the squared loss over bins of equal width (Kuleshov and Liang 2015, equation 3); None without forecasts.

    RAISES C001: forecasts or n_bins out of range. C002: lengths differ.
    """
    edges = fixed_edges(check_count("n_bins", n_bins))
    parts = decompose(forecasts, hits, lambda scores: edges)
    if parts is None:
        return None
    calibration = parts.reliability + parts.within_variance
    return LossParts(parts.brier, calibration, parts.resolution, parts.uncertainty, parts.n)
