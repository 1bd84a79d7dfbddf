"""Calibration errors and proper scores of pairs, with noise floors and intervals."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .by_document import (
        Interval,
        ResampledError,
        error_interval,
        mean_interval,
        paired_difference,
        resample_error,
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
    from .metric import Metric
    from .noise_floors import noise_floor
    from .proper import accuracy, brier, log_loss, log_losses, squared_losses
    from .smooth_error import smooth_calibration_error

# Where the names below are looked for. A pipeline that only scores imports none of these modules.
_MODULES = ("calibration_errors", "proper", "noise_floors", "by_document", "smooth_error", "metric")
__all__ = [
    "Interval", "Metric", "ResampledError", "accuracy", "brier", "calibration_error", "calibration_error_interval",
    "debiased_calibration_error", "ece", "error_interval", "gmce", "log_loss", "log_losses", "mce", "mean_interval",
    "noise_floor", "paired_difference", "resample_error", "smce", "smooth_calibration_error", "squared_losses",
]  # fmt: skip


if not TYPE_CHECKING:  # a type checker would take any name

    def __getattr__(name):
        for module_name in _MODULES if name in __all__ else ():
            if hasattr(module := import_module(f".{module_name}", __name__), name):
                return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
