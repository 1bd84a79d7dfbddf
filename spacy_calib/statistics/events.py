"""Forecasts of yes-or-no questions about whole units, in a table that adds up, and how good they are: a row of `calib evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..expect.forecasts import split_loss
from ..metrics.calibration_error import calibration_error
from ..metrics.noise_floor import noise_floor
from ..metrics.proper import squared_losses
from ..metrics.resampling import resample_mean
from ..schema import listed, record, text
from ..types import Floats
from .tables import BlockCounts

# What is to be known of an event: the name of its pipe, the question, what units are called (one, several), and what the forecasts stand beside, in words.
EVENT = record({"name": text, "event": text, "called": listed(text, 2, 2), "rivals": listed(text, 2, 2)})


@dataclass(frozen=True, eq=False)
class EventCounts(BlockCounts):
    """Units with gold: what an event pipe says of each, beside what follows from the scores of its tokens, and how many hit (the answer is yes)."""

    KEYS: ClassVar[tuple[str, ...]] = ("raw", "product", "forecast")

    @classmethod
    def of(cls, raw: ArrayLike, product: ArrayLike, forecast: ArrayLike, hits: ArrayLike, blocks: ArrayLike) -> EventCounts:
        """The table of n units. raw, product: The product of the tokens' scores, before and after calibration, or what stands in its place.

        blocks: The digest of each unit's document, unsigned 64 bits. RAISES C001: values out of range. C002: lengths differ.
        """
        return cls._counted(np.zeros(np.size(raw), dtype=np.uint8), [raw, product, forecast], hits, blocks)


def event_table(counts: EventCounts, event: Mapping[str, Any], n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
    """Forecasts beside the product of the tokens' scores, raw and calibrated, as plain data.

    event (Mapping): Of the form EVENT.
    RETURNS (dict): event, and "units", "right" (their share), "rows" (of each forecast: name, squared loss, its parts calibration and
        sharpness, SMCE, floor and floor95), and "change": the loss of the forecasts less that of the calibrated product, with its interval by document.
    """
    table = {**event, "units": counts.total, "right": None, "rows": [], "change": None}
    if not len(counts):
        return table
    rows, hits, weights = counts.by_hit()
    forecasts = {name: key[rows].astype(np.float64) for name, key in zip(EventCounts.KEYS, counts.keys, strict=True)}
    forecast, product = (squared_losses(forecasts[name], hits) for name in ("forecast", "product"))
    change = resample_mean(forecast - product, counts.blocks[rows], seed=seed, weights=weights)
    return {
        **table,
        "right": counts.total_hits / counts.total,
        "rows": [_row(name, scores, hits, weights, n_bins, seed) for name, scores in forecasts.items()],
        "change": change and change.interval().to_dict(),
    }


def _row(name: str, scores: Floats, hits: Any, weights: Floats, n_bins: int, seed: int) -> dict[str, Any]:
    parts, floor = split_loss(scores, hits, weights=weights), noise_floor(scores, n_bins, seed=seed, weights=weights)
    assert parts is not None
    assert floor is not None
    of_parts = {"loss": parts.loss, "calibration": parts.calibration, "sharpness": parts.sharpness}
    smce = calibration_error(scores, hits, n_bins, weights=weights)
    return {"name": name, **of_parts, "smce": smce, "floor": floor.mean, "floor95": floor.q95}
