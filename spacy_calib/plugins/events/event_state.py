"""What an event pipe learned and reports of its fit, and its saved form. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...metrics.by_document import mean_interval
from ...metrics.proper import brier, squared_losses
from ...pairs.documents import DOCUMENT
from ...schema import InvalidState, Serializable, anything, list_of, maybe, number, record, saved_field, text, tuple_of, whole
from ...types import Floats, Ints
from .forecasters.base import Forecaster
from .forecasts import Evidence, Trial, fit_units, split_loss
from .messages import calib_error

_LOSS = number(0.0, 1.0)


@dataclass(frozen=True)
class EventInfo(Serializable):
    """event (str), called (tuple): Of the event. layer (str): Annotation of the labels. units, right, documents (int): Counts
    of the fit data. chosen (str): The forecaster, "" if none beat the product. product, loss (float): Mean squared loss of the
    product of token scores, and of cross-validated forecasts; calibration, sharpness (float): Its parts.
    """

    event: str = saved_field(text)
    called: tuple[str, str] = saved_field(tuple_of(text, 2, 2))
    layer: str = saved_field(text)
    units: int = saved_field(whole())
    right: int = saved_field(whole())
    documents: int = saved_field(whole())
    unit: str = saved_field(text, DOCUMENT)
    chosen: str = saved_field(text, "")
    product: float = saved_field(_LOSS, 0.0)
    loss: float = saved_field(_LOSS, 0.0)
    calibration: float = saved_field(_LOSS, 0.0)
    sharpness: float = saved_field(_LOSS, 0.0)
    trials: list[Trial] = saved_field(list_of(Trial.read), list)


_STATE = record({"forecaster": maybe(anything), "info": maybe(EventInfo.read)})


@dataclass(frozen=True, eq=False)
class EventState:
    """The learned state. forecaster (Forecaster | None): None if the product of token scores, or the event's estimate, serves."""

    forecaster: Forecaster | None = None
    info: EventInfo | None = None

    def forecast(self, units: Evidence) -> Floats:
        """The probability of yes for each unit."""
        if self.forecaster is None or not len(units):
            return units.own
        return np.clip(self.forecaster.predict(units.features), 0.0, 1.0)

    def state(self) -> dict[str, Any]:
        """Plain data and arrays."""
        return {"forecaster": self.forecaster and self.forecaster.state(), "info": self.info and self.info.state()}

    @classmethod
    def read(cls, data: Any, load: Callable[[dict[str, Any]], Any], width: int) -> EventState:
        """Build it from a checked state. load (Callable): Rebuilds a part. width (int): Features of a unit. RAISES Misfit."""
        fields = _STATE(data, "state")
        if fields["forecaster"] is None:
            if fields["info"] is not None and fields["info"].chosen:
                raise InvalidState("state", "consistent: the forecaster that was chosen is there")
            return cls(None, fields["info"])
        if fields["info"] is None:
            raise InvalidState("state", "consistent: what is said of the forecaster is there")
        forecaster = load(fields["forecaster"])
        if not isinstance(forecaster, Forecaster) or not forecaster.fitted or forecaster.width != width:
            raise InvalidState("state.forecaster", f"a forecaster from {width} features")
        return cls(forecaster, fields["info"])


@dataclass(frozen=True, eq=False)
class GatheredUnits:
    """n units with gold. hits: Whether the answer is yes. documents (Ints): Of each. unit (str): What a document is."""

    units: Evidence
    hits: NDArray[np.bool_]
    documents: Ints
    unit: str


def learn(
    event: str,
    called: tuple[str, str],
    layer: str,
    gathered_units: GatheredUnits,
    prototypes: tuple[Forecaster, ...],
    strict: bool = False,
) -> EventState:
    """Fit the best prototype, or none if no better. strict: Its 95 % interval by document excludes 0. RAISES C382: no gold."""
    if not len(gathered_units.hits):
        raise calib_error("C382", several=called[1])
    best, trials = fit_units(gathered_units.units.features, gathered_units.hits, gathered_units.documents, prototypes)
    product = brier(gathered_units.units.own, gathered_units.hits)
    assert product is not None
    loss_difference = squared_losses(np.clip(best.held_out, 0.0, 1.0), gathered_units.hits) - squared_losses(
        gathered_units.units.own, gathered_units.hits
    )
    interval = mean_interval(loss_difference, gathered_units.documents) if strict else None
    high = None if interval is None else interval.high
    worth = len(prototypes) == 1 or (high is not None and high < 0 if strict else bool(loss_difference.mean() < 0))
    parts = split_loss(np.clip(best.held_out if worth else gathered_units.units.own, 0.0, 1.0), gathered_units.hits)
    assert parts is not None
    chosen_name = min(trials, key=lambda trial: trial.loss).name if worth else ""
    counts = (len(gathered_units.hits), int(gathered_units.hits.sum()), len(np.unique(gathered_units.documents)))
    info = EventInfo(
        event,
        called,
        layer,
        *counts,
        gathered_units.unit,
        chosen_name,
        product,
        parts.loss,
        parts.calibration,
        parts.sharpness,
        trials,
    )
    return EventState(best.forecaster if worth else None, info)
