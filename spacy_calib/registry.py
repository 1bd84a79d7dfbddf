"""Puts the registries of the package into spaCy's."""

from __future__ import annotations

from typing import Any

from spacy import util

from .calibration.registered import REGISTRIES

registry: Any = util.registry

for _name, _held in REGISTRIES.items():
    if not hasattr(registry, _name):
        setattr(registry, _name, _held)

__all__ = ["registry"]
