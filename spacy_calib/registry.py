"""Adds the registries of the package to `spacy.registry`."""

from __future__ import annotations

from typing import Any

from spacy import util

from .calibration.registered import REGISTRIES

registry: Any = util.registry

for _name, _namespace in REGISTRIES.items():
    if not hasattr(registry, _name):
        setattr(registry, _name, _namespace)

__all__ = ["registry"]
