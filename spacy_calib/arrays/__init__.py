"""Calibration of probabilities from outside of spaCy: a scikit-learn estimator over arrays, and files of scores."""

from .tag_calibrator import TagCalibrator

__all__ = ["TagCalibrator"]
