"""Maps from a score to a probability, learned from pairs. One file per method; all share the contract in `base`."""

from .base import Recalibrator
from .histogram import HistogramBinning
from .identity import Identity
from .isotonic import IsotonicRegression
from .logistic import Beta, Platt, Temperature
from .scaling_binning import ScalingBinning

__all__ = [
    "Beta",
    "HistogramBinning",
    "Identity",
    "IsotonicRegression",
    "Platt",
    "Recalibrator",
    "ScalingBinning",
    "Temperature",
]
