"""Scalings of the log-probabilities of a token's tags, before the threshold cuts tags off. `base` has their contract."""

from .base import FLOOR, Scaling
from .log_linear import LogLinearScaling, MatrixScaling, TemperatureScaling, VectorScaling

__all__ = ["FLOOR", "LogLinearScaling", "MatrixScaling", "Scaling", "TemperatureScaling", "VectorScaling"]
