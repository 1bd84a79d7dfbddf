"""Evaluate forecasts of whole units, compared with the products of their tokens' scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...metrics.by_document import mean_interval
from ...metrics.calibration_errors import calibration_error
from ...metrics.noise_floors import noise_floor
from ...metrics.proper import squared_losses
from ...types import Floats, Ints
from .forecasts import split_loss


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts for n units with gold, and two baselines; arrays of shape (n,).

    about (Mapping): First entries of the table: "name", "event", "called", "rivals". raw, product (Floats): Product of the raw,
    and of the calibrated token scores. forecast (Floats): Forecast P(yes). hits (NDArray[bool]): Whether the answer is yes.
    documents (Ints): Document number of each unit.
    """

    about: Mapping[str, Any]
    raw: Floats
    product: Floats
    forecast: Floats
    hits: NDArray[np.bool_]
    documents: Ints

    def table(self, n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
        """Evaluate the forecasts and the baselines.

        RETURNS (dict): Entries of `about`, "units", "right" (share of yes), "rows" (of each forecast: "name", "loss" (squared),
            its parts "calibration" and "sharpness", "smce", "floor" and "floor95"), and "change": loss of the forecasts minus
            that of the calibrated products, with an interval by document.
        """
        table = {**self.about, "units": len(self.hits), "right": None, "rows": [], "change": None}
        if not len(self.hits):
            return table
        forecast, product = (squared_losses(scores, self.hits) for scores in (self.forecast, self.product))
        change = mean_interval(forecast - product, self.documents, seed=seed)
        rows = [self._make_row(name, getattr(self, name), n_bins, seed) for name in ("raw", "product", "forecast")]
        return {**table, "right": float(self.hits.mean()), "rows": rows, "change": change and change.to_dict()}

    def _make_row(self, name: str, scores: Floats, n_bins: int, seed: int) -> dict[str, Any]:
        parts, floor = split_loss(scores, self.hits), noise_floor(scores, n_bins, seed=seed)
        assert parts is not None
        assert floor is not None
        losses = {"loss": parts.loss, "calibration": parts.calibration, "sharpness": parts.sharpness}
        smce = calibration_error(scores, self.hits, n_bins)
        return {"name": name, **losses, "smce": smce, "floor": floor.mean, "floor95": floor.q95}
