import numpy as np

from spacy_calib.calibration.recalibrators import Identity


def test_gives_every_score_back_fitted_or_not():
    scores = np.array([0.0, 0.3, 1.0])
    np.testing.assert_array_equal(Identity().predict(scores), scores)
    np.testing.assert_array_equal(Identity().fit([0.9, 0.8], [0, 0]).predict(scores), scores)


def test_needs_no_pairs():
    assert Identity().min_pairs == 0
