"""The fitted state of an event pipe, its fit from arrays, and its saved form."""

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
from .forecasts import Trial, UnitEvidence, fit_best, split_loss
from .messages import calib_error

_LOSS = number(0.0, 1.0)


@dataclass(frozen=True)
class EventInfo(Serializable):
    """Report of the fit of an event pipe.

    event (str): When the answer is yes. called (tuple): Name of a unit, and plural. layer (str): Annotation of the labels.
    units, right, documents (int): Counts of the fit data. unit (str): What a document is. chosen (str): The forecaster, "" if
    none beat the product of token scores. product (float): Mean squared loss of the product. loss (float): Of the
    cross-validated forecasts, or of the product if none beat it. calibration, sharpness (float): Parts of `loss`. trials
    (list[Trial]): All forecasters that were compared.
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
    """The fitted state. forecaster (Forecaster | None): None if the units' own estimates, without a forecaster, are better."""

    forecaster: Forecaster | None = None
    info: EventInfo | None = None

    def forecast(self, evidence: UnitEvidence) -> Floats:
        """Return P(yes) of each unit, shape (n,)."""
        if self.forecaster is None or not len(evidence):
            return evidence.estimates
        return np.clip(self.forecaster.predict(evidence.features), 0.0, 1.0)

    def state(self) -> dict[str, Any]:
        """Return the state as plain data and arrays, for `read`."""
        return {"forecaster": self.forecaster and self.forecaster.state(), "info": self.info and self.info.state()}

    @classmethod
    def read(cls, data: Any, load: Callable[[dict[str, Any]], Any], width: int) -> EventState:
        """Rebuild from `state()`. load (Callable): Rebuilds a forecaster. width: Features of a unit. RAISES InvalidState."""
        fields = _STATE(data, "state")
        if fields["forecaster"] is None:
            if fields["info"] is not None and fields["info"].chosen:
                raise InvalidState("state", "consistent: the forecaster that was chosen is there")
            return cls(None, fields["info"])
        if fields["info"] is None:
            raise InvalidState("state", "consistent: a forecaster has a report of its fit")
        forecaster = load(fields["forecaster"])
        if not isinstance(forecaster, Forecaster) or not forecaster.fitted or forecaster.width != width:
            raise InvalidState("state.forecaster", f"a forecaster from {width} features")
        return cls(forecaster, fields["info"])


@dataclass(frozen=True, eq=False)
class LabelledUnits:
    """n units with gold. hits (NDArray[bool]): Whether the answer is yes, shape (n,). documents (Ints): Document number, (n,).

    unit (str): What a document is.
    """

    evidence: UnitEvidence
    hits: NDArray[np.bool_]
    documents: Ints
    unit: str


def fit_event(
    condition: str,
    unit_words: tuple[str, str],
    layer: str,
    units: LabelledUnits,
    prototypes: tuple[Forecaster, ...],
    strict: bool = False,
) -> EventState:
    """Fit the best forecaster; none if several are tried and none beats the units' own estimates. RAISES C382: no gold.

    condition (str): When the answer is yes. unit_words (tuple[str, str]): Name of a unit, and plural. layer (str): Annotation
    of the labels. strict (bool): Whether a forecaster must be better by a 95 % interval by document, not only on average.
    """
    if not len(units.hits):
        raise calib_error("C382", several=unit_words[1])
    estimates, hits = units.evidence.estimates, units.hits
    best, trials = fit_best(units.evidence.features, hits, units.documents, prototypes)
    product = brier(estimates, hits)
    assert product is not None
    loss_difference = squared_losses(np.clip(best.held_out, 0.0, 1.0), hits) - squared_losses(estimates, hits)
    interval = mean_interval(loss_difference, units.documents) if strict else None
    high = None if interval is None else interval.high
    is_better = len(prototypes) == 1 or (high is not None and high < 0 if strict else bool(loss_difference.mean() < 0))
    parts = split_loss(np.clip(best.held_out if is_better else estimates, 0.0, 1.0), hits)
    assert parts is not None
    best_name = min(trials, key=lambda trial: trial.loss).name if is_better else ""
    counts = (len(hits), int(hits.sum()), len(np.unique(units.documents)))
    losses = (product, parts.loss, parts.calibration, parts.sharpness)
    info = EventInfo(condition, unit_words, layer, *counts, units.unit, best_name, *losses, trials)
    return EventState(best.forecaster if is_better else None, info)
