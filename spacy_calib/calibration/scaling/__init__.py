"""Scalings: they reweigh all tags of a token together, before the threshold cuts tags off. `scaling` has their base class."""

from .entries import FLOOR
from .scaling import MatrixScaling, Scaling, TemperatureScaling, VectorScaling

__all__ = ["FLOOR", "MatrixScaling", "Scaling", "TemperatureScaling", "VectorScaling"]
