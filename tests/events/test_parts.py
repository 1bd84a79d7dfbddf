"""The example of section 2 of the paper, and what the parts add up to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from spacy_calib.errors import CalibError
from spacy_calib.events.parts import split_loss

from ..strategies import scored_hits

# x is 0, 1 or 2 equally often; y = x for 0 and 1, and of x = 2 a coin is tossed: six rows, two for each x.
HITS = [0, 0, 1, 1, 0, 1]


@pytest.mark.parametrize(
    ("forecasts", "calibration", "sharpness"),
    [
        ((0.0, 1.0, 0.5), 0.0, 0.167),
        ((0.5, 0.5, 0.5), 0.0, 0.0),
        ((0.2, 0.8, 0.4), 0.03, 0.167),
        ((0.0, 0.75, 0.75), 0.0, 0.125),
    ],
)
def test_the_example_of_the_paper(forecasts, calibration, sharpness):
    found = split_loss(np.repeat(forecasts, 2), HITS)
    assert found.calibration == pytest.approx(calibration, abs=5e-4)
    assert found.sharpness == pytest.approx(sharpness, abs=5e-4)
    assert found.loss == pytest.approx(found.uncertainty - found.sharpness + found.calibration)


@given(scored_hits())
def test_the_loss_is_the_mean_squared_difference(data):
    scores, hits = data
    found = split_loss(scores, hits)
    if not len(scores):
        assert found is None
    else:
        assert found.loss == pytest.approx(np.mean((scores - hits) ** 2), abs=1e-9)
        assert found.uncertainty >= found.sharpness - 1e-9
        assert found.calibration >= 0


def test_no_bins():
    with pytest.raises(CalibError, match="C001"):
        split_loss([0.5], [1], n_bins=0)
