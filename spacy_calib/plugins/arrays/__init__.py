"""Calibration of probabilities from outside of spaCy: a scikit-learn estimator over arrays."""

from .tag_calibrator import TagCalibrator

__all__ = ["TagCalibrator"]
