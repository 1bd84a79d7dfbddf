"""What is registered as a metric: scores and hits -> one number, with the names by which tables, JSON and the scorer show it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import calib_error
from ..types import Floats, as_hits, as_weights

# A metric without weights is asked about repeated pairs: up to so many of them, and any number of which hardly any are equal.
MOST_REPEATED = 2_000_000
_HARDLY_ANY = 2
# What tables and the scorer make from more than the scores and hits of all pairs.
OWN_FIGURES = ("smce", "gmce", "ece", "gmce_per_group")


class Metric(ABC):
    """A metric of this package; those registered elsewhere need to be callable alone, and may carry the same attributes.

    registered (str): Name in the registry. short (str): Key of the JSON and of the scorer. title (str): How tables call it.
    listed (bool): False for one that the table of errors shows in a column of its own, group by group. weighted (bool): Whether it takes
        weights, one for each pair, as a third argument.
    """

    registered: ClassVar[str]
    short: ClassVar[str]
    title: ClassVar[str]
    listed: ClassVar[bool] = True
    weighted: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, scores: ArrayLike, hits: ArrayLike) -> float | None:
        """The figure of n scores with their hits; None without pairs.

        RAISES C001: values out of range. C002: lengths differ.
        """


class MeanLoss(Metric):
    """The mean of a loss that each pair has by itself, so that intervals by document can be drawn."""

    weighted: ClassVar[bool] = True

    @abstractmethod
    def losses(self, scores: ArrayLike, hits: ArrayLike) -> Floats:
        """The loss of each pair, shape (n,). RAISES C001: values out of range. C002: lengths differ."""

    def __call__(self, scores: ArrayLike, hits: ArrayLike, weights: ArrayLike | None = None) -> float | None:
        """The mean loss; None without pairs. RAISES C001, C002: see `losses`."""
        return mean_loss(self.losses(scores, hits), weights) if np.size(scores) else None


def mean_loss(losses: Floats, weights: ArrayLike | None = None) -> float:
    """The mean of n losses, n > 0. weights (ArrayLike | None): One each, above 0."""
    mass = as_weights(weights, len(losses))
    return float(np.mean(losses)) if mass is None else float((mass * losses).sum() / mass.sum())


def listed(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Those that have a row, or a score, of their own, in their order. metrics (Mapping): Short name -> metric.

    RAISES C190: one has the name of a figure that is not a metric.
    """
    found = {short: metric for short, metric in metrics.items() if getattr(metric, "listed", True)}
    for short in OWN_FIGURES:
        if short in found:
            raise calib_error("C190", short=short, name=getattr(found[short], "registered", type(found[short]).__name__))
    return found


def figure_of(metric: Any, scores: ArrayLike, hits: ArrayLike, weights: ArrayLike | None = None) -> float | None:
    """What a metric gives, as a plain number. weights (ArrayLike | None): Whole numbers; see `why_not_weighted` for where it is None with them."""
    if weights is None:
        value = metric(scores, hits)
    elif hasattr(metric, "losses"):
        value = mean_loss(np.asarray(metric.losses(scores, hits)), weights) if np.size(scores) else None
    elif getattr(metric, "weighted", False):
        value = metric(scores, hits, weights)
    elif why_not_weighted(metric, weights):
        value = None
    else:
        times = np.asarray(weights).astype(np.intp)
        value = metric(np.repeat(scores, times), np.repeat(as_hits(hits, len(times)), times))
    return None if value is None else float(value)


def why_not_weighted(metric: Any, weights: ArrayLike | None) -> str:
    """Why a metric cannot be had of pairs with these weights; "" where it can."""
    if weights is None or getattr(metric, "weighted", False) or hasattr(metric, "losses"):
        return ""
    n = int(np.sum(weights))
    if n <= max(MOST_REPEATED, _HARDLY_ANY * np.size(weights)):
        return ""
    return f"it takes no weights, and {n:,} pairs are too many to repeat (more than {MOST_REPEATED:,})"


def title_of(metric: Any, short: str) -> str:
    """How tables call a metric: by its short name where it has no title."""
    return getattr(metric, "title", "") or short


def losses(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Short name -> function that gives the loss of each pair, of those listed that are means; log loss, which ranks methods, first."""
    found = {short: metric.losses for short, metric in listed(metrics).items() if hasattr(metric, "losses")}
    return dict(sorted(found.items(), key=lambda named: named[0] != "nll"))
