"""Scalings: they reweigh all tags of a token together, before the threshold cuts tags off. `scaling` has their base class."""

from .log_linear import LogLinearScaling, MatrixScaling, TemperatureScaling, VectorScaling
from .scaling import FLOOR, Scaling

__all__ = ["FLOOR", "LogLinearScaling", "MatrixScaling", "Scaling", "TemperatureScaling", "VectorScaling"]
