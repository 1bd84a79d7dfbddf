"""Forecasts of whole units beside the product of the tokens' scores: the table of an event."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.metrics import paired_difference
from spacy_calib.metrics.calibration_errors import calibration_error
from spacy_calib.metrics.noise_floors import noise_floor
from spacy_calib.plugins.events.event_table import Forecasts

EVENT = {"name": "calib_event", "event": "all right", "called": ["sentence", "sentences"], "rivals": ["raw", "calibrated"]}


def test_by_hand():
    halves = np.array([0.5, 0.5])
    forecasts = Forecasts(EVENT, halves, halves, np.array([1.0, 0.0]), np.array([True, False]), np.array([7, 7]))
    table = forecasts.table(n_bins=1)
    assert {key: table[key] for key in EVENT} == EVENT
    assert (table["units"], table["right"]) == (2, 0.5)
    losses = {row["name"]: (row["loss"], row["calibration"], row["sharpness"]) for row in table["rows"]}
    assert losses == {"raw": (0.25, 0.0, 0.0), "product": (0.25, 0.0, 0.0), "forecast": (0.0, 0.0, 0.25)}
    assert (table["change"]["estimate"], table["change"]["low"]) == (-0.25, None)


def test_the_figures_are_those_of_the_units():
    rng = np.random.default_rng(0)
    scores = rng.random((3, 90)).round(1)  # equal ones are many
    hits, documents = rng.random(90) < scores[2], np.repeat(np.arange(30), 3)
    table = Forecasts(EVENT, *scores, hits, documents).table(4, 3)
    for row, forecasts in zip(table["rows"], scores, strict=True):
        floor = noise_floor(forecasts, 4, seed=3)
        assert row["loss"] == pytest.approx(np.mean((forecasts - hits) ** 2), abs=1e-12)
        assert row["smce"] == pytest.approx(calibration_error(forecasts, hits, 4), abs=1e-12)
        assert (row["floor"], row["floor95"]) == pytest.approx((floor.mean, floor.q95), abs=1e-12)
    losses = ((forecasts - hits) ** 2 for forecasts in (scores[2], scores[1]))
    assert table["change"] == pytest.approx(paired_difference(*losses, documents, seed=3).to_dict(), abs=1e-12)


def test_no_units():
    none = np.zeros(0)
    table = Forecasts(EVENT, none, none, none, none.astype(bool), none.astype(int)).table()
    assert table == {**EVENT, "units": 0, "right": None, "rows": [], "change": None}
