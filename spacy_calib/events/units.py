"""What the scores of the tokens of a unit (a sentence, an entity) tell of whether the unit is right, and the forecaster that learns it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.span_features import NAMES, firsts_of, logit, product_of, span_features
from ..errors import calib_error
from ..types import Floats, Ints, Spans
from .choice import Tried, choose, tune
from .forecasters.base import Forecaster
from .forecasters.logistic import Logistic
from .forecasters.neighbours import Neighbours
from .forecasters.trees import Boosting, Tree

# What `unit_features` gives, column by column.
UNIT_FEATURES = (*(name for name in NAMES if "own" not in name), "second least", "doubtful tokens")
# Which of the features of spans they are.
_KEPT = [place for place, name in enumerate(NAMES) if "own" not in name]
# A token is doubtful below this score.
_DOUBTFUL = 0.9
# Sizes that held-out units choose among: of regions, and of how many trees are added up.
_SIZES = (10, 20, 40, 80, 160)
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of n units before their question is answered.

    features (Floats): Shape (n, k): what a forecaster sees. raw, own (Floats): What is said of each without a forecaster, before and after calibration: of
    tokens the product of their scores. RAISES C002: lengths differ.
    """

    features: Floats
    raw: Floats
    own: Floats

    def __post_init__(self) -> None:
        for name in ("features", "raw"):
            if len(getattr(self, name)) != len(self.own):
                raise calib_error(
                    "C002",
                    what="Evidence",
                    first="score",
                    second=name,
                    n_first=len(self.own),
                    n_second=len(getattr(self, name)),
                )

    def __len__(self) -> int:
        return len(self.own)

    def take(self, index: Any) -> Evidence:
        """Of some of the units."""
        return Evidence(self.features[index], self.raw[index], self.own[index])

    @classmethod
    def of_tokens(cls, units: Spans) -> Evidence:
        """units (Spans): With the calibrated score of each token's label, and as their own the product of the raw ones."""
        return cls(unit_features(units), units.own, product_of(units))

    @classmethod
    def joined(cls, parts: Sequence[Evidence], width: int) -> Evidence:
        """Of the units of several Docs, one after the other. width (int): k."""
        none = np.zeros(0)
        features = np.concatenate([np.zeros((0, width)), *(part.features for part in parts)])
        return cls(features, *(np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in ("raw", "own")))


def unit_features(units: Spans) -> Floats:
    """One row per unit, columns as in UNIT_FEATURES: what spans are recalibrated by from the scores of their tokens, the log-odds of the second least score (of a single token
    again the least), and how many tokens are doubtful.

    units (Spans): With the calibrated score of each token's label.
    """
    if not len(units):
        return np.zeros((0, len(UNIT_FEATURES)))
    firsts, lengths = firsts_of(units), units.ends - units.starts
    order = np.lexsort((units.token_scores, np.repeat(np.arange(len(units)), lengths)))
    second = units.token_scores[order][firsts + np.minimum(lengths - 1, 1)]
    doubtful = np.add.reduceat((units.token_scores < _DOUBTFUL).astype(np.float64), firsts)
    return np.column_stack([span_features(units)[:, _KEPT], logit(second), doubtful])


@dataclass(frozen=True)
class Trial:
    """A forecaster that was tried: its name with its size, and the mean squared loss of its forecasts of units whose document it did not see."""

    name: str
    loss: float


def candidates() -> tuple[Forecaster, ...]:
    """What is tried where nothing else is said, the smoothest first."""
    return (*(Logistic(ridge) for ridge in (100.0, 10.0, 1.0)), Boosting(), Tree(), Neighbours())


def fit_units(
    features: Floats, hits: NDArray[np.bool_], documents: Ints, prototypes: Sequence[Forecaster]
) -> tuple[Tried, list[Trial]]:
    """The forecaster of least squared loss on held-out documents, fitted on all units, and all that were tried.

    features (Floats): Shape (n, k). hits: Whether each unit is right. documents (Ints): Of each. RAISES C373: there are no units.
    """
    tried = [tune(one, features, hits, documents, _SIZES, _FOLDS) for one in prototypes]
    return choose(tried), [Trial(described(one.forecaster), one.loss) for one in tried]


def described(forecaster: Forecaster) -> str:
    """In a few words: "tree (min_leaf 40)"."""
    settings = forecaster.settings()
    shown = forecaster.size_name or next(iter(settings))
    return f"{forecaster.short} ({shown} {settings[shown]:g})"
