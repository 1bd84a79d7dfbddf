"""What an event pipe learned, and what it says of its fit: the schema of its saved form. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..expect.forecasters.base import Forecaster
from ..expect.forecasts import Evidence, Trial, fit_units, split_loss
from ..metrics.proper import brier
from ..pairs.documents import DOCUMENT
from ..schema import Misfit, anything, listed, maybe, number, record, text, whole
from ..types import Floats, Ints

_LOSS = number(0.0, 1.0)
EVENT_INFO = record(
    {
        "event": text, "called": listed(text, 2, 2), "layer": text, "units": whole(), "right": whole(), "documents": whole(), "unit": text,
        "chosen": text, "product": _LOSS, "loss": _LOSS, "calibration": _LOSS, "sharpness": _LOSS,
        "trials": listed(record({"name": text, "loss": _LOSS})),
    }
)  # fmt: skip
# The saved form of EventState.
EVENT_STATE = record({"forecaster": maybe(anything), "info": maybe(EVENT_INFO)})


@dataclass(frozen=True)
class EventInfo:
    """event (str), called (tuple): Of the event. layer (str): Which annotation the labels are of. units, right, documents (int): Of the fit data; unit (str): What a document is.

    chosen (str): The forecaster. product, loss (float): Mean squared loss of the product of the tokens' scores, and of forecasts by those
    that did not see the document; calibration, sharpness (float): Its parts. trials (list[Trial]): What was tried.
    """

    event: str
    called: tuple[str, str]
    layer: str
    units: int
    right: int
    documents: int
    unit: str = DOCUMENT
    chosen: str = ""
    product: float = 0.0
    loss: float = 0.0
    calibration: float = 0.0
    sharpness: float = 0.0
    trials: list[Trial] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain data of the form EVENT_INFO."""
        return {**asdict(self), "called": list(self.called)}

    @classmethod
    def from_dict(cls, held: dict[str, Any]) -> EventInfo:
        """Rebuild from what EVENT_INFO has read."""
        return cls(**{**held, "called": tuple(held["called"]), "trials": [Trial(**one) for one in held["trials"]]})


@dataclass(frozen=True, eq=False)
class EventState:
    """forecaster (Forecaster | None), info (EventInfo | None): None before the fit, where the product of the tokens' scores is the forecast."""

    forecaster: Forecaster | None = None
    info: EventInfo | None = None

    def forecast(self, units: Evidence) -> Floats:
        """The probability of yes for each unit."""
        if self.forecaster is None or not len(units):
            return units.own
        return np.clip(self.forecaster.predict(units.features), 0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data and arrays, of EVENT_STATE."""
        forecaster = None if self.forecaster is None else self.forecaster.state()
        return {"forecaster": forecaster, "info": None if self.info is None else self.info.to_dict()}

    @classmethod
    def from_dict(cls, data: Any, load: Callable[[dict[str, Any]], Any], width: int) -> EventState:
        """width (int): How many features units have. RAISES Misfit: it is not of the form EVENT_STATE, or the forecaster takes other features."""
        held = EVENT_STATE(data, "state")
        if (held["forecaster"] is None) != (held["info"] is None):
            raise Misfit("state", "consistent: the forecaster and what is said of it are both there, or neither")
        if held["forecaster"] is None:
            return cls()
        forecaster = load(held["forecaster"])
        if not isinstance(forecaster, Forecaster) or not forecaster.fitted or forecaster.width != width:
            raise Misfit("state.forecaster", f"a forecaster from {width} features")
        return cls(forecaster, EventInfo.from_dict(held["info"]))


@dataclass(frozen=True, eq=False)
class GatheredUnits:
    """n units with gold. units (Evidence): What is known of them. hits: Whether the answer is yes. documents (Ints): Of each. unit (str): What a document is."""

    units: Evidence
    hits: NDArray[np.bool_]
    documents: Ints
    unit: str


def learn(
    event: str, called: tuple[str, str], layer: str, found: GatheredUnits, prototypes: tuple[Forecaster, ...]
) -> EventState:
    """Fit. RAISES C382: no unit has both scores and gold."""
    if not len(found.hits):
        raise calib_error("C382", several=called[1])
    best, trials = fit_units(found.units.features, found.hits, found.documents, prototypes)
    parts = split_loss(np.clip(best.held_out, 0.0, 1.0), found.hits)
    product = brier(found.units.own, found.hits)
    assert parts is not None
    assert product is not None
    chosen = min(trials, key=lambda trial: trial.loss).name
    counts = (len(found.hits), int(found.hits.sum()), len(np.unique(found.documents)))
    info = EventInfo(
        event, called, layer, *counts, found.unit, chosen, product, parts.loss, parts.calibration, parts.sharpness, trials
    )
    return EventState(best.forecaster, info)
