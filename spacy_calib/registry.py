"""Creates the registries of the package; nothing else. Entry points in setup.cfg fill them."""

from __future__ import annotations

from typing import Any

import catalogue
from spacy import util

registry: Any = util.registry

# registry.create would use thinc's namespace, and with it another entry point group.
_NAMES = (
    "calib_sources",
    "calib_groupings",
    "calib_scalings",
    "calib_recalibrators",
    "calib_poolings",
    "calib_selections",
    "calib_sets",
    "calib_metrics",
)
for _name in _NAMES:
    if not hasattr(registry, _name):
        setattr(registry, _name, catalogue.create("spacy", _name, entry_points=True))

__all__ = ["registry"]
