"""Figures of how true scores are: calibration errors and proper scores of pairs, what chance alone would show, and intervals."""

from .bootstrap import calibration_error_interval, document_bootstrap
from .calibration_error import calibration_error, debiased_calibration_error, ece, gmce, mce, smce
from .noise_floor import mean_gmce_floor, noise_floor
from .proper import accuracy, brier, log_loss
from .resampling import paired_difference
from .smooth_error import smooth_calibration_error

__all__ = [
    "accuracy",
    "brier",
    "calibration_error",
    "calibration_error_interval",
    "debiased_calibration_error",
    "document_bootstrap",
    "ece",
    "gmce",
    "log_loss",
    "mce",
    "mean_gmce_floor",
    "noise_floor",
    "paired_difference",
    "smce",
    "smooth_calibration_error",
]
