"""The registries, which entry points in setup.cfg fill, and what stands in them by its short name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import catalogue

from ..errors import WARNINGS, calib_error

if TYPE_CHECKING:
    from .recalibrators import Recalibrator
    from .scaling import Scaling

# What the registered names of this package begin with.
OURS = "spacy-calib."
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
    "calib_metrics",
    "calib_forecasters",
    "calib_events",
    "calib_keys",
    "calib_asks",
    "calib_readers",
)


@cache
def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of all packages; looking for them takes time."""
    return tuple(entry_points(group=group))


def load_point(point: EntryPoint, thing: str) -> Any:
    """Import what an entry point of any package names. thing (str): What it is, in words. RAISES C105: it cannot be imported."""
    try:
        return point.load()
    except Exception as error:  # whatever the module of another package raises
        raise calib_error("C105", thing=thing, value=point.value, why=f"{type(error).__name__}: {error}") from None


class Registry(catalogue.Registry):
    """A registry that lists what it can: what cannot be imported is left out, with a warning."""

    def get_entry_points(self) -> dict[str, Any]:
        loaded_by_name = {}
        for point in entry_points_of(self.entry_point_namespace):
            try:
                loaded_by_name[point.name] = point.load()
            except Exception as error:  # whatever the module of another package raises
                _warn_once(point.name, self.namespace[-1], repr(error))
        return loaded_by_name

    def get_entry_point(self, name: str, default: Any = None) -> Any:
        """Load a registered thing. RAISES C500: it cannot be imported."""
        try:
            return super().get_entry_point(name, default)
        except Exception as error:
            raise calib_error("C500", given=name, registry=self.namespace[-1], why=repr(error)) from error


# spaCy's registry.create would use thinc's namespace, and with it another entry point group.
REGISTRIES = {name: Registry(("spacy", name), entry_points=True) for name in _NAMES}


@cache
def _warn_once(name: str, registry: str, why: str) -> None:
    """Warn, once, that what is registered by this name cannot be used."""
    warnings.warn(WARNINGS["CW40"].format(given=name, registry=registry, why=why), stacklevel=3)


# id of a function, which need not be hashable -> (it, so that no other gets its id; what it makes, None where it needs arguments).
_MADE: dict[int, tuple[Any, Any]] = {}


def prototypes(name: str) -> dict[str, Any]:
    """Registered name -> what its function makes without arguments, if it needs none; those that fail give a warning.

    Each is made once, as that takes long, and is not to be changed.
    """
    prototypes_by_name = {}
    for key, function in sorted(REGISTRIES[name].get_all().items()):
        try:
            if id(function) not in _MADE:
                _MADE[id(function)] = function, (function() if _needs_nothing(function) else None)
        except Exception as error:  # whatever a registered function raises
            _warn_once(key, name, repr(error))
            continue
        if (prototype := _MADE[id(function)][1]) is not None:
            prototypes_by_name[key] = prototype
    return prototypes_by_name


def _needs_nothing(function: Any) -> bool:
    """Whether a function can be called without arguments."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return all(parameter.default is not inspect.Parameter.empty or parameter.kind not in kinds for parameter in parameters)


def registered_maker(kind: str, name: str) -> Callable[..., Any] | None:
    """The registered function of this name, or None. kind (str): "@calib_scalings". RAISES C500: it is broken."""
    registry = REGISTRIES[kind.removeprefix("@")]
    return registry.get(name) if name in registry else None


def by_short(name: str) -> dict[str, Any]:
    """Short name (else the registered one) -> prototype. name (str): Of the registry. RAISES C185: two have one short name."""
    by_name: dict[str, Any] = {}
    owner: dict[str, str] = {}
    # Those of this package come first.
    entries = sorted(prototypes(name).items(), key=lambda entry: not entry[0].startswith(OURS))
    for key, prototype in entries:
        # A function that presets what another one makes has no claim to the class's short name.
        own_fields = {**vars(type(prototype)), **getattr(prototype, "__dict__", {})}  # an inherited name is another's
        short = (own_fields.get("short", "") if getattr(prototype, "registered", key) == key else "") or key
        if short in by_name:
            raise calib_error("C185", short=short, registry=name, first=owner[short], second=key)
        by_name[short], owner[short] = prototype, key
    return by_name


def fitted_events() -> dict[str, Any]:
    """Short name -> event about whole units that can be fitted: it has `fit(nlp, calib, examples)`. RAISES C185: as `by_short`."""
    events = by_short("calib_events")
    return {name: event for name, event in events.items() if getattr(event, "short", "") == name and hasattr(event, "fit")}


def recalibrators() -> dict[str, Recalibrator]:
    """Short name -> prototype, those with the fewest free numbers first. RAISES C185: two have one short name."""
    return dict(sorted(by_short("calib_recalibrators").items(), key=lambda item: (item[1].n_parameters, item[0])))


def scalings() -> dict[str, Scaling]:
    """Short name -> prototype, those with the fewest numbers first. RAISES C185: two have one short name."""
    return dict(sorted(by_short("calib_scalings").items(), key=lambda item: item[1].growth))
