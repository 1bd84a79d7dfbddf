import doctest

import pytest

from spacy_calib.metrics import by_document, calibration_errors, noise_floors, proper, smooth_error


@pytest.mark.parametrize("module", [by_document, calibration_errors, noise_floors, proper, smooth_error])
def test_examples_run(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted
    assert not outcome.failed
