"""Creates the registries of the package, which entry points in setup.cfg fill, and lists what stands in them."""

from __future__ import annotations

import inspect
from typing import Any

import catalogue
from spacy import util

registry: Any = util.registry

# registry.create would use thinc's namespace, and with it another entry point group.
_NAMES = (
    "calib_sources",
    "calib_scores",
    "calib_groupings",
    "calib_scalings",
    "calib_recalibrators",
    "calib_poolings",
    "calib_selections",
    "calib_sets",
    "calib_contexts",
    "calib_features",
    "calib_metrics",
    "calib_forecasters",
    "calib_events",
)
for _name in _NAMES:
    if not hasattr(registry, _name):
        setattr(registry, _name, catalogue.create("spacy", _name, entry_points=True))


def prototypes(name: str) -> dict[str, Any]:
    """Registered name -> what its function makes without arguments. Functions that need arguments are left out.

    name (str): Of the registry: "calib_recalibrators".
    """
    functions = getattr(registry, name).get_all()
    return {key: function() for key, function in sorted(functions.items()) if needs_nothing(function)}


def needs_nothing(function: Any) -> bool:
    """Whether a function can be called without arguments."""
    needed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    given = inspect.signature(function).parameters.values()
    return all(one.default is not inspect.Parameter.empty or one.kind not in needed for one in given)


__all__ = ["needs_nothing", "prototypes", "registry"]
