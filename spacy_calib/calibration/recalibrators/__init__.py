"""Maps from a score to a probability, learned from pairs. One file per method; all share the contract in `base`."""

from .base import Recalibrator
from .beta import Beta
from .histogram import HistogramBinning
from .identity import Identity
from .isotonic import IsotonicRegression
from .platt import Platt
from .scaling_binning import ScalingBinning
from .temperature import Temperature

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
