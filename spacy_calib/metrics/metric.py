"""What a metric is: scores and hits -> one number, with the names by which tables, JSON and the scorer show it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import calib_error
from ..types import Floats

# Figures that tables and the scorer make from more than scores and hits.
OWN_FIGURES = ("smce", "gmce", "ece", "gmce_per_group")


class Metric(ABC):
    """A metric of this package. One of another package need only be callable, and may carry the same attributes.

    registered (str): Name in the registry. short (str): Key in JSON and in the scorer. title (str): Name in tables.
    listed (bool): False where the table of errors has a column of its own for it.
    """

    registered: ClassVar[str]
    short: ClassVar[str]
    title: ClassVar[str]
    listed: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, scores: ArrayLike, hits: ArrayLike) -> float | None:
        """The figure of n scores with their hits; None without pairs. RAISES C001: out of range. C002: lengths differ."""


class MeanLoss(Metric):
    """The mean of a loss that each pair has by itself, so that intervals by document can be drawn."""

    @abstractmethod
    def losses(self, scores: ArrayLike, hits: ArrayLike) -> Floats:
        """The loss of each pair, shape (n,). RAISES C001: values out of range. C002: lengths differ."""

    def __call__(self, scores: ArrayLike, hits: ArrayLike) -> float | None:
        """The mean loss; None without pairs. RAISES C001: values out of range. C002: lengths differ."""
        return float(np.mean(self.losses(scores, hits))) if np.size(scores) else None


def listed(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics with a row, or score, of their own, by short name. RAISES C190: one has the name of another figure."""
    metrics_by_name = {short: metric for short, metric in metrics.items() if getattr(metric, "listed", True)}
    for short in OWN_FIGURES:
        if short in metrics_by_name:
            raise calib_error(
                "C190", short=short, name=getattr(metrics_by_name[short], "registered", type(metrics_by_name[short]).__name__)
            )
    return metrics_by_name


def figure_of(metric: Any, scores: ArrayLike, hits: ArrayLike) -> float | None:
    """What a metric gives, as a number."""
    value = metric(scores, hits)
    return None if value is None else float(value)


def title_of(metric: Any, short: str) -> str:
    """How tables call a metric: by its short name where it has no title."""
    return getattr(metric, "title", "") or short


def losses(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Short name -> function that gives the loss of each pair, of the listed mean losses; log loss comes first."""
    losses_by_name = {short: metric.losses for short, metric in listed(metrics).items() if hasattr(metric, "losses")}
    return dict(sorted(losses_by_name.items(), key=lambda item: item[0] != "nll"))
