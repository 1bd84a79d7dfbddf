"""Scalings of a token's log-probabilities, before its tags are cut off at the threshold."""

from .log_linear import FLOOR, MatrixScaling, Scaling, TemperatureScaling, VectorScaling

__all__ = ["FLOOR", "MatrixScaling", "Scaling", "TemperatureScaling", "VectorScaling"]
