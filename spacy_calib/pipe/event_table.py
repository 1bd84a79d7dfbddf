"""How good the forecasts of an event pipe are, on gold: the row that `calib evaluate` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.training import Example

from ..events.parts import split_loss
from ..metrics.calibration_error import calibration_error
from ..metrics.noise_floor import noise_floor
from ..metrics.proper import squared_losses
from ..metrics.resampling import resample_mean
from ..types import Floats
from .event import EventPipe


def judge_event(pipe: EventPipe, examples: Sequence[Example], n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
    """Forecasts beside the product of the tokens' scores, raw and calibrated, as plain data.

    examples: Their predicted Docs have been through the pipeline.
    RETURNS (dict): "event", "called", "rivals" (what the forecasts stand beside, in words), "units", "right" (their share), "rows" (of each forecast: name, squared loss, its parts calibration and
        sharpness, SMCE, floor and floor95), and "change": the loss of the forecasts less that of the calibrated product, with its interval by document.
    """
    found, _ = pipe.gather(examples)
    forecasts = {"raw": found.units.raw, "product": found.units.own, "forecast": pipe.learned.forecast(found.units)}
    table = {
        "name": pipe.name, "event": pipe.event.what, "called": list(pipe.event.called), "rivals": list(pipe.event.rivals), "units": len(found.hits), "right": None, "rows": [],
        "change": None,
    }  # fmt: skip
    if not len(found.hits):
        return table
    losses = [squared_losses(forecasts[name], found.hits) for name in ("forecast", "product")]
    change = resample_mean(losses[0] - losses[1], found.documents, seed=seed)
    rows = [_row(name, scores, found.hits, n_bins, seed) for name, scores in forecasts.items()]
    return {**table, "right": float(found.hits.mean()), "rows": rows, "change": change and change.interval().to_dict()}


def _row(name: str, scores: Floats, hits: Any, n_bins: int, seed: int) -> dict[str, Any]:
    clipped = np.clip(scores, 0.0, 1.0)
    parts, floor = split_loss(clipped, hits), noise_floor(clipped, n_bins, seed=seed)
    assert parts is not None
    assert floor is not None
    of_parts = {"loss": parts.loss, "calibration": parts.calibration, "sharpness": parts.sharpness}
    return {
        "name": name,
        **of_parts,
        "smce": calibration_error(clipped, hits, n_bins),
        "floor": floor.mean,
        "floor95": floor.q95,
    }
