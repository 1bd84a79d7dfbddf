"""Scalings of a token's log-probabilities, before the threshold cuts tags off. All share the contract in `base`."""

from .base import FLOOR, Scaling
from .log_linear import LogLinearScaling, MatrixScaling, TemperatureScaling, VectorScaling

__all__ = ["FLOOR", "LogLinearScaling", "MatrixScaling", "Scaling", "TemperatureScaling", "VectorScaling"]
