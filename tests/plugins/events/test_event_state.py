"""What an event pipe learned: a forecaster, or none where the units' own estimates are as good."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.plugins.events.event_state import EventState, LabelledUnits, fit_event
from spacy_calib.plugins.events.forecasters.base import Logistic, NearestNeighbours
from spacy_calib.plugins.events.forecasts import UnitEvidence
from spacy_calib.schema import InvalidState

PROTOTYPES = (Logistic(1.0), NearestNeighbours(20))


def units(useful: bool, n: int = 400) -> LabelledUnits:
    """Estimates that are true where the features are noise, and useless ones where the features tell them."""
    rng = np.random.default_rng(0)
    chance = rng.choice([0.1, 0.9], n)
    own = np.full(n, 0.5) if useful else chance
    features = np.column_stack([chance if useful else rng.random(n), rng.random(n)])
    return LabelledUnits(UnitEvidence(features, own, own), rng.random(n) < chance, np.arange(n) // 4, "document")


def told(useful: bool, prototypes=PROTOTYPES) -> EventState:
    return fit_event("right", ("unit", "units"), "", units(useful), prototypes)


def test_no_forecaster_where_the_estimates_are_as_good():
    found, given = told(useful=False), units(useful=False).evidence
    assert found.forecaster is None
    assert found.info is not None
    assert (found.info.chosen, found.info.loss) == ("", pytest.approx(found.info.product))
    assert min(trial.loss for trial in found.info.trials) > found.info.product
    assert found.forecast(given).tolist() == given.estimates.tolist()
    read = EventState.read(found.state(), dict, 2)
    assert (read.forecaster, read.info) == (None, found.info)


def test_a_forecaster_where_it_is_better_or_the_only_one_that_was_asked_for():
    better = told(useful=True)
    assert better.info is not None
    assert better.info.loss < better.info.product
    assert better.info.chosen.startswith(better.forecaster.short)
    asked = told(useful=False, prototypes=PROTOTYPES[:1])
    assert isinstance(asked.forecaster, Logistic)
    assert asked.info.loss > asked.info.product


def test_where_it_has_to_be_surely_better():
    assert fit_event("right", ("unit", "units"), "", units(useful=True), PROTOTYPES, strict=True).forecaster is not None
    # Two long documents in which the feature tells the answer, and eight short ones in which it tells the opposite.
    documents = np.repeat(np.arange(10), [100] * 2 + [5] * 8)
    feature = np.tile([0.0, 1.0], 120)
    hits = (feature > 0) == (documents < 2)
    own = np.full(240, 0.5)
    mixed = LabelledUnits(UnitEvidence(feature[:, None], own, own), hits, documents, "document")
    plain, sure = (fit_event("right", ("unit", "units"), "", mixed, PROTOTYPES, sure) for sure in (False, True))
    assert plain.info.loss < plain.info.product == sure.info.product == 0.25
    assert (plain.forecaster is None, sure.forecaster) == (False, None)


def test_states_that_do_not_agree():
    found = told(useful=True)
    with pytest.raises(InvalidState, match="the forecaster that was chosen is there"):
        EventState.read({**found.state(), "forecaster": None}, dict, 2)
    with pytest.raises(InvalidState, match="a forecaster has a report of its fit"):
        EventState.read({**found.state(), "info": None}, dict, 2)
