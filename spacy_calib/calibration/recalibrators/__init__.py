"""Recalibrators: maps from a score to a probability, learned from pairs. One file per method; `base` has their contract."""

from .base import Recalibrator
from .binning import HistogramBinning, ScalingBinning
from .identity import Identity
from .isotonic import IsotonicRegression
from .logistic import Beta, Platt, Temperature

__all__ = [
    "Beta", "HistogramBinning", "Identity", "IsotonicRegression", "Platt", "Recalibrator", "ScalingBinning", "Temperature",
]  # fmt: skip
