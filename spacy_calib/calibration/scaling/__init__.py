"""Scalings of the log-probabilities of a token's tags, before the threshold cuts tags off. `scaling` has their contract."""

from .log_linear import LogLinearScaling, MatrixScaling, TemperatureScaling, VectorScaling
from .scaling import FLOOR, Scaling

__all__ = ["FLOOR", "LogLinearScaling", "MatrixScaling", "Scaling", "TemperatureScaling", "VectorScaling"]
