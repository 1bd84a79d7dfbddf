"""Calibrated probabilities for every token of any trained spaCy pipeline."""

from . import registry as _registry  # noqa: F401  (creates the registries)
from .about import __version__
from .attributes import DocCalib, register
from .errors import CalibError
from .render import render

__all__ = ["CalibError", "DocCalib", "__version__", "register", "render"]
