"""Labels that keep their raw scores after a context."""

import numpy as np
import pytest

from spacy_calib.calibration.conventions import Shrinkage
from spacy_calib.calibration.saved import make_part
from spacy_calib.calibration.steps import KEPT, Predictions
from spacy_calib.plugins.pretrained.gate import GatedContext, RestoredRawScores
from spacy_calib.registry import registered_maker

RAW, MOVED = np.array([0.5, 0.8, 0.9]), np.array([0.2, 0.5, 0.6])
TAGS = np.array([0, 1, 0])


def given() -> Predictions:
    return Predictions(np.arange(3), TAGS, RAW, MOVED, np.full(3, KEPT, dtype=np.int8))


def test_labels_get_their_raw_scores_back_and_others_stay():
    assert RestoredRawScores(None, [0]).apply(given()).scores.tolist() == [0.5, 0.5, 0.9]


def test_others_are_shrunk_first():
    # All the way to a line with slope 1 and constant 0: the raw scores.
    to_raw = Shrinkage(1.0, np.array([1.0, 0.0]))
    assert RestoredRawScores(to_raw, [0]).apply(given()).scores == pytest.approx(RAW)
    half = RestoredRawScores(Shrinkage(0.5, np.array([1.0, 0.0])), [0]).apply(given()).scores
    assert half == pytest.approx([0.5, 2 / 3, 0.9])  # log-odds of .8 and .5 are log 4 and 0: log 2 is halfway


def test_a_gated_context_is_rebuilt_from_its_state():
    context = GatedContext(raw=[1])
    again = make_part(context.state(), registered_maker)
    assert (again.raw, again.when, again.functions) == ([1], "always", ())
    assert isinstance(again.shrinkage, RestoredRawScores)
    assert again.state()["settings"]["raw"] == [1]
