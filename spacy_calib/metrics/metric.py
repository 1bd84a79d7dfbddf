"""What a metric is: a function from scores and hits to one number, with names for tables, JSON and the scorer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..errors import calib_error
from ..types import Floats

# Short names of figures that tables and the scorer compute from more than scores and hits.
OWN_FIGURES = ("smce", "gmce", "ece", "gmce_per_group")


class Metric(Protocol):
    """A metric is any function of scores and hits. It may have these attributes, as the metrics of this package do:

    registered (str): Name in the registry. short (str): Key in JSON and in the scorer. title (str): Name in tables.
    """

    def __call__(self, scores: ArrayLike, hits: ArrayLike) -> float | None:
        """Return the figure of n scores and hits; None without pairs. RAISES C001: out of range. C002: lengths differ."""


class MeanLoss(ABC):
    """Base class of metrics that are the mean of a loss per pair, `losses`; reports give them an interval by document."""

    @abstractmethod
    def losses(self, scores: ArrayLike, hits: ArrayLike) -> Floats:
        """Return the loss of each pair, shape (n,). RAISES C001: values out of range. C002: lengths differ."""

    def __call__(self, scores: ArrayLike, hits: ArrayLike) -> float | None:
        """Return the mean loss; None without pairs. RAISES C001: values out of range. C002: lengths differ."""
        return float(np.mean(self.losses(scores, hits))) if np.size(scores) else None


def check_short_names(metrics: Mapping[str, Metric]) -> Mapping[str, Metric]:
    """Return the metrics, by short name. RAISES C190: a short name is that of a figure of tables or the scorer ("ece")."""
    for short, metric in metrics.items():
        if short in OWN_FIGURES:
            raise calib_error("C190", short=short, name=getattr(metric, "registered", type(metric).__name__))
    return metrics


def figure_of(metric: Metric, scores: ArrayLike, hits: ArrayLike) -> float | None:
    """Return the value of a metric for n scores and hits as a Python float; None if it has none, as without pairs."""
    value = metric(scores, hits)
    return None if value is None else float(value)


def title_of(metric: Metric, short: str) -> str:
    """Return the name of a metric in tables: its title, or its short name if it has none."""
    return getattr(metric, "title", "") or short


def losses(metrics: Mapping[str, Metric]) -> dict[str, Callable[[ArrayLike, ArrayLike], Floats]]:
    """Return short name -> loss function ((scores, hits) -> loss of each pair) of metrics that are means; log loss first."""
    losses_by_name = {short: metric.losses for short, metric in metrics.items() if hasattr(metric, "losses")}
    return dict(sorted(losses_by_name.items(), key=lambda item: item[0] != "nll"))
