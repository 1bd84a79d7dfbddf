"""What an event pipe learned, and what it says of its fit: the schema of its saved form. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..expect.forecasters.base import Forecaster
from ..expect.forecasts import Evidence, Trial, fit_units, split_loss
from ..metrics.by_document import mean_interval
from ..metrics.proper import brier, squared_losses
from ..pairs.documents import DOCUMENT
from ..schema import Misfit, Saved, anything, kept, listed, maybe, number, record, several, text, whole
from ..types import Floats, Ints

_LOSS = number(0.0, 1.0)


@dataclass(frozen=True)
class EventInfo(Saved):
    """event (str), called (tuple): Of the event. layer (str): Which annotation the labels are of. units, right, documents (int): Of the fit data; unit (str): What a document is.

    chosen (str): The forecaster, "" where none was better than the product. product, loss (float): Mean squared loss of the product of the tokens' scores, and of forecasts by those
    that did not see the document; calibration, sharpness (float): Its parts. trials (list[Trial]): What was tried.
    """

    event: str = kept(text)
    called: tuple[str, str] = kept(several(text, 2, 2))
    layer: str = kept(text)
    units: int = kept(whole())
    right: int = kept(whole())
    documents: int = kept(whole())
    unit: str = kept(text, DOCUMENT)
    chosen: str = kept(text, "")
    product: float = kept(_LOSS, 0.0)
    loss: float = kept(_LOSS, 0.0)
    calibration: float = kept(_LOSS, 0.0)
    sharpness: float = kept(_LOSS, 0.0)
    trials: list[Trial] = kept(listed(Trial.read), list)


_STATE = record({"forecaster": maybe(anything), "info": maybe(EventInfo.read)})


@dataclass(frozen=True, eq=False)
class EventState:
    """forecaster (Forecaster | None), info (EventInfo | None): None before the fit, and the forecaster where none is better on held-out documents
    than the product of the tokens' scores, or what else the event estimates without one: then this is the forecast.
    """

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
        """load (Callable): Rebuilds a part by its registered name. width (int): How many features units have.

        RAISES Misfit: not of the form declared, or the forecaster takes other features.
        """
        held = _STATE(data, "state")
        if held["forecaster"] is None:
            if held["info"] is not None and held["info"].chosen:
                raise Misfit("state", "consistent: the forecaster that was chosen is there")
            return cls(None, held["info"])
        if held["info"] is None:
            raise Misfit("state", "consistent: what is said of the forecaster is there")
        forecaster = load(held["forecaster"])
        if not isinstance(forecaster, Forecaster) or not forecaster.fitted or forecaster.width != width:
            raise Misfit("state.forecaster", f"a forecaster from {width} features")
        return cls(forecaster, held["info"])


@dataclass(frozen=True, eq=False)
class GatheredUnits:
    """n units with gold. units (Evidence): What is known of them. hits: Whether the answer is yes. documents (Ints): Of each. unit (str): What a document is."""

    units: Evidence
    hits: NDArray[np.bool_]
    documents: Ints
    unit: str


def learn(
    event: str,
    called: tuple[str, str],
    layer: str,
    found: GatheredUnits,
    prototypes: tuple[Forecaster, ...],
    sure: bool = False,
) -> EventState:
    """Fit the best of the prototypes; of several none, where it is no better than the units' own estimates. sure (bool): Where it is not surely
    better, by the 95 % interval over documents. RAISES C382: no unit has both scores and gold."""
    if not len(found.hits):
        raise calib_error("C382", several=called[1])
    best, trials = fit_units(found.units.features, found.hits, found.documents, prototypes)
    product = brier(found.units.own, found.hits)
    assert product is not None
    less = squared_losses(np.clip(best.held_out, 0.0, 1.0), found.hits) - squared_losses(found.units.own, found.hits)
    interval = mean_interval(less, found.documents) if sure else None
    high = None if interval is None else interval.high
    worth = len(prototypes) == 1 or (high is not None and high < 0 if sure else bool(less.mean() < 0))
    parts = split_loss(np.clip(best.held_out if worth else found.units.own, 0.0, 1.0), found.hits)
    assert parts is not None
    chosen = min(trials, key=lambda trial: trial.loss).name if worth else ""
    counts = (len(found.hits), int(found.hits.sum()), len(np.unique(found.documents)))
    info = EventInfo(
        event, called, layer, *counts, found.unit, chosen, product, parts.loss, parts.calibration, parts.sharpness, trials
    )
    return EventState(best.forecaster if worth else None, info)
