"""Forecasts of yes-or-no questions about whole units (sentences, entities): the evidence, the forecaster and its size
by cross-validation over documents, and the parts of its squared loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..calibration.spans import NAMES, firsts_of, logit, product_of, span_features
from ..metrics.proper import decompose, squared_losses
from ..pairs.bins import check_count, fixed_edges
from ..pairs.documents import cross_fit, folds_of
from ..schema import Saved, kept, number, text
from ..types import Floats, Ints, Spans, check_lengths
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

    features (Floats): For a forecaster, shape (n, k). raw, own (Floats): An estimate without a forecaster, before and
    after calibration: for tokens the product of their scores. RAISES C002: lengths differ.
    """

    features: Floats
    raw: Floats
    own: Floats

    def __post_init__(self) -> None:
        check_lengths("Evidence", "score", len(self.own), {"features": self.features, "raw": self.raw})

    def __len__(self) -> int:
        return len(self.own)

    def take(self, index: Any) -> Evidence:
        """The evidence of some of the units."""
        return Evidence(self.features[index], self.raw[index], self.own[index])

    @classmethod
    def of_tokens(cls, units: Spans) -> Evidence:
        """units (Spans): With the calibrated score of each token's label, and as own the product of the raw ones."""
        return cls(unit_features(units), units.own, product_of(units))

    @classmethod
    def joined(cls, parts: Sequence[Evidence], width: int) -> Evidence:
        """The evidence of units of several Docs, one after the other. width (int): k."""
        none = np.zeros(0)
        features = np.concatenate([np.zeros((0, width)), *(part.features for part in parts)])
        return cls(features, *(np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in ("raw", "own")))


def unit_features(units: Spans) -> Floats:
    """One row per unit, columns as in UNIT_FEATURES: the features of spans from token scores, the log-odds of the
    second least score (or only one), and the number of doubtful tokens. units: With calibrated token scores.
    """
    if not len(units):
        return np.zeros((0, len(UNIT_FEATURES)))
    firsts, lengths = firsts_of(units), units.ends - units.starts
    order = np.lexsort((units.token_scores, np.repeat(np.arange(len(units)), lengths)))
    second = units.token_scores[order][firsts + np.minimum(lengths - 1, 1)]
    doubtful = np.add.reduceat((units.token_scores < _DOUBTFUL).astype(np.float64), firsts)
    return np.column_stack([span_features(units)[:, _KEPT], logit(second), doubtful])


@dataclass(frozen=True)
class Trial(Saved):
    """A forecaster that was tried. name (str): With its size. loss (float): Mean squared loss on held-out documents."""

    name: str = kept(text)
    loss: float = kept(number(0.0, 1.0))


def candidates() -> tuple[Forecaster, ...]:
    """What is tried by default, the smoothest first."""
    return (*(Logistic(ridge) for ridge in (100.0, 10.0, 1.0)), Boosting(), Tree(), Neighbours())


def fit_units(
    features: Floats, hits: NDArray[np.bool_], documents: Ints, prototypes: Sequence[Forecaster]
) -> tuple[Tried, list[Trial]]:
    """The forecaster of least squared loss on held-out documents, fitted on all units, and all that were tried.

    features (Floats): (n, k). hits: Whether each unit is a yes. documents (Ints): Its document. RAISES C373: no units.
    """
    tried = [tune(one, features, hits, documents, _SIZES, _FOLDS) for one in prototypes]
    return choose(tried), [Trial(described(one.forecaster), one.loss) for one in tried]


def described(forecaster: Forecaster) -> str:
    """A forecaster in a few words: "tree (min_leaf 40)"."""
    settings = forecaster.settings()
    shown = forecaster.size_name or next(iter(settings))
    return f"{forecaster.short} ({shown} {settings[shown]:g})"


# Sizes for k in k-NN and the least leaf of a tree (Kuleshov and Liang 2015, section 5.3).
SIZES = tuple(range(5, 501, 5))


@dataclass(frozen=True, eq=False)
class Tried:
    """A forecaster fitted on all rows. held_out (Floats): Each row forecast without its unit. loss (float): Mean."""

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
    """The forecaster with the size of least squared loss on held-out units; of equal ones the largest, and smoothest.

    prototype (Forecaster): Without a `size_name` it is fitted as it is. features (Floats): (n, k). hits: (n,). units
    (Ints): Unit of each row (word, document). sizes: Those above the number of rows to learn from are left out.
    RAISES C372, C373: see `Forecaster.fit`.
    """
    given, folds = as_features(features), folds_of(units, n_folds)
    fewest = len(given) - int(np.bincount(folds, minlength=1).max()) if len(given) else 0
    kept = [size for size in sizes if size <= fewest] or [min(sizes)]

    def score(outside: Ints, inside: Ints) -> Floats:
        if prototype.size_name:
            return prototype.predict_sizes(given[outside], hits[outside], given[inside], kept)
        return prototype.clone().fit(given[outside], hits[outside]).predict(given[inside])[None]

    if len(np.unique(folds)) < 2:  # nothing can be held out
        made = prototype.clone().fit(given, hits)
        forecasts = made.predict(given)
        return Tried(made, forecasts, float(squared_losses(forecasts, hits).mean()))
    found = np.clip(cross_fit(folds, score), 0.0, 1.0)
    losses = ((found - hits) ** 2).mean(axis=1)
    best = len(losses) - 1 - int(np.argmin(losses[::-1]))
    made = prototype.sized(kept[best]) if prototype.size_name else prototype.clone()
    return Tried(made.fit(given, hits), found[best], float(losses[best]))


def choose(tried: Sequence[Tried]) -> Tried:
    """The one of least held-out loss; of equal ones the first."""
    return min(tried, key=lambda one: one.loss)


@dataclass(frozen=True)
class Parts:
    """Parts of the squared loss of n forecasts F of yes-or-no answers y; T is the share of yes in F's bin. But for what
    bins hide, loss = uncertainty - sharpness + calibration.

    loss (float): Mean (y - F)^2. calibration: Mean (T - F)^2. sharpness: Variance of T. uncertainty: Variance of y.
    """

    loss: float
    calibration: float
    sharpness: float
    uncertainty: float
    n: int


def split_loss(forecasts: ArrayLike, hits: ArrayLike, n_bins: int = 10) -> Parts | None:
    """The loss by equation 3 of Kuleshov and Liang (2015), over bins of equal width: [0, .1), [.1, .2) and so on.

    forecasts: n probabilities. hits: n booleans. RETURNS (Parts): None for n = 0.
    RAISES C001: values out of range. C002: lengths differ.
    """
    edges = fixed_edges(check_count("n_bins", n_bins))
    found = decompose(forecasts, hits, lambda scores: edges)
    if found is None:
        return None
    calibration = found.reliability + found.within_variance
    return Parts(found.brier, calibration, found.resolution, found.uncertainty, found.n)
