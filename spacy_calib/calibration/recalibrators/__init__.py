"""Recalibrators: maps from a score to a probability, learned from pairs. One file per method; `recalibrator` has their base."""

from .binning import HistogramBinning, ScalingBinning
from .identity import Identity
from .isotonic import IsotonicRegression
from .logistic import Beta, Platt, Temperature
from .recalibrator import Recalibrator

__all__ = [
    "Beta", "HistogramBinning", "Identity", "IsotonicRegression", "Platt", "Recalibrator", "ScalingBinning", "Temperature",
]  # fmt: skip
