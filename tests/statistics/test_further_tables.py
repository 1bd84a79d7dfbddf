"""Forecasts of whole units, counted: the figures of the units themselves, from any shards."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.metrics.calibration_error import calibration_error
from spacy_calib.metrics.noise_floor import noise_floor
from spacy_calib.metrics.resampling import paired_difference
from spacy_calib.statistics.further_tables import EventCounts, event_table

from .test_tables import merged_in_a_tree

EVENT = {"name": "calib_event", "event": "all right", "called": ["sentence", "sentences"], "rivals": ["raw", "calibrated"]}


def units(n: int = 90, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.random((3, n)).round(1)  # equal ones are many
    names = dict(zip(EventCounts.KEYS, scores, strict=True))
    return {**names, "hits": rng.random(n) < scores[2], "blocks": np.repeat(np.arange(n // 3), 3).astype(np.uint64)}


def test_by_hand():
    counts = EventCounts.of([0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [True, False], np.array([7, 7], np.uint64))
    table = event_table(counts, EVENT, n_bins=1)
    assert {key: table[key] for key in EVENT} == EVENT
    assert (table["units"], table["right"]) == (2, 0.5)
    losses = {row["name"]: (row["loss"], row["calibration"], row["sharpness"]) for row in table["rows"]}
    assert losses == {"raw": (0.25, 0.0, 0.0), "product": (0.25, 0.0, 0.0), "forecast": (0.0, 0.0, 0.25)}
    assert (table["change"]["estimate"], table["change"]["low"]) == (-0.25, None)


def test_the_figures_are_those_of_the_units_and_of_any_shards():
    given = units()
    counts = EventCounts.of(**given)
    table = event_table(counts, EVENT, 4, 3)
    hits, scores = given["hits"], [given[name] for name in EventCounts.KEYS]
    for row, own in zip(table["rows"], scores, strict=True):
        floor = noise_floor(own, 4, seed=3)
        assert row["loss"] == pytest.approx(np.mean((own - hits) ** 2), abs=1e-12)
        assert row["smce"] == pytest.approx(calibration_error(own, hits, 4), abs=1e-12)
        assert (row["floor"], row["floor95"]) == pytest.approx((floor.mean, floor.q95), abs=1e-12)
    losses = ((own - hits) ** 2 for own in (scores[2], scores[1]))
    change = paired_difference(*losses, given["blocks"], seed=3)
    assert table["change"] == pytest.approx(change.to_dict(), abs=1e-12)
    for n in (2, 7):
        parts = [EventCounts.of(**{key: held[i::n] for key, held in given.items()}) for i in range(n)]
        assert event_table(merged_in_a_tree(parts, np.random.default_rng(n)), EVENT, 4, 3) == table


def test_no_units():
    none = EventCounts.of([], [], [], [], np.zeros(0, np.uint64))
    assert event_table(none, EVENT) == {**EVENT, "units": 0, "right": None, "rows": [], "change": None}
