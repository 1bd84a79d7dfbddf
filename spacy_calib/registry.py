"""Creates the registries of the package, which entry points in setup.cfg fill, and lists what stands in them."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

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


def prototypes(name: str) -> dict[str, Any]:
    """Registered name -> what its function makes without arguments. Functions that need arguments are left out.

    name (str): Of the registry: "calib_recalibrators".
    """
    functions = getattr(registry, name).get_all()
    return {key: function() for key, function in sorted(functions.items()) if _needs_nothing(function)}


def classes(name: str) -> dict[str, type]:
    """Registered name -> the class of what its function makes, as its annotation says; functions that say none are left out.

    name (str): Of the registry: "calib_sources".
    """
    functions = getattr(registry, name).get_all()
    made = {key: _returned(function) for key, function in sorted(functions.items())}
    return {key: one for key, one in made.items() if isinstance(one, type)}


def _needs_nothing(function: Any) -> bool:
    needed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    given = inspect.signature(function).parameters.values()
    return all(one.default is not inspect.Parameter.empty or one.kind not in needed for one in given)


def _returned(function: Any) -> Any:
    return function if isinstance(function, type) else get_type_hints(function).get("return")


__all__ = ["classes", "prototypes", "registry"]
