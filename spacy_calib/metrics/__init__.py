"""How true scores are: calibration errors, proper scores, their intervals, and what chance alone would show."""

from .by_document import (
    Interval,
    ResampledError,
    document_bootstrap,
    error_interval,
    mean_interval,
    paired_difference,
    resample_error,
    resample_mean,
)
from .calibration_errors import (
    calibration_error,
    calibration_error_interval,
    debiased_calibration_error,
    ece,
    gmce,
    mce,
    smce,
)
from .noise_floors import mean_gmce_floor, noise_floor
from .proper import accuracy, brier, log_loss, log_losses, squared_losses
from .smooth_error import smooth_calibration_error

__all__ = [
    "Interval",
    "ResampledError",
    "accuracy",
    "brier",
    "calibration_error",
    "calibration_error_interval",
    "debiased_calibration_error",
    "document_bootstrap",
    "ece",
    "error_interval",
    "gmce",
    "log_loss",
    "log_losses",
    "mce",
    "mean_gmce_floor",
    "mean_interval",
    "noise_floor",
    "paired_difference",
    "resample_error",
    "resample_mean",
    "smce",
    "smooth_calibration_error",
    "squared_losses",
]
