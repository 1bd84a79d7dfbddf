"""What a fit refuses by its held-out figures."""

from __future__ import annotations

import pytest

from spacy_calib.calibration.sufficiency import HeldOut
from spacy_calib.cli.fitting.fit_pipe import check_held_out
from spacy_calib.errors import CalibError


def test_of_a_sample_that_is_judged_worse_a_larger_one_is_asked_for():
    held = HeldOut(raw=0.2, calibrated=0.4, error=0.01, tokens=500)
    with pytest.raises(CalibError, match="nothing was written; collect a larger sample"):
        check_held_out(held, "spacy-calib.Isotonic.v1", sampled=True)
    with pytest.raises(CalibError, match="nothing was written; give more data"):
        check_held_out(held, "spacy-calib.Isotonic.v1")
