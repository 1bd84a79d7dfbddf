"""How good forecasts of whole units are: each beside the product of the tokens' scores."""

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
    """Forecasts of n units, the products of their tokens' scores (raw and calibrated), and whether each unit is right.

    about (Mapping): What the table begins with: "name", "event", "called", "rivals".
    """

    about: Mapping[str, Any]
    raw: Floats
    product: Floats
    forecast: Floats
    hits: NDArray[np.bool_]
    documents: Ints

    def table(self, n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
        """Return the table as plain data.

        RETURNS (dict): What `about` has, "units", "right" (their share), "rows" (for each forecast: name, squared loss, its parts
            calibration and sharpness, SMCE, floor and floor95), and "change": the loss of the forecasts minus that of the
            calibrated product, with its interval by document.
        """
        table = {**self.about, "units": len(self.hits), "right": None, "rows": [], "change": None}
        if not len(self.hits):
            return table
        forecast, product = (squared_losses(scores, self.hits) for scores in (self.forecast, self.product))
        change = mean_interval(forecast - product, self.documents, seed=seed)
        rows = [self._row(name, getattr(self, name), n_bins, seed) for name in ("raw", "product", "forecast")]
        return {**table, "right": float(self.hits.mean()), "rows": rows, "change": change and change.to_dict()}

    def _row(self, name: str, scores: Floats, n_bins: int, seed: int) -> dict[str, Any]:
        parts, floor = split_loss(scores, self.hits), noise_floor(scores, n_bins, seed=seed)
        assert parts is not None
        assert floor is not None
        of_parts = {"loss": parts.loss, "calibration": parts.calibration, "sharpness": parts.sharpness}
        smce = calibration_error(scores, self.hits, n_bins)
        return {"name": name, **of_parts, "smce": smce, "floor": floor.mean, "floor95": floor.q95}
