"""Calibration of the probabilities of any classifier, without a spaCy pipeline: a scikit-learn estimator over arrays."""

from .tag_calibrator import TagCalibrator

__all__ = ["TagCalibrator"]
