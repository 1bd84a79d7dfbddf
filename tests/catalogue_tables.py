"""What is looked up at each load of a pipeline, answered from tables: imported by what runs the tests, and by the processes that it starts."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import catalogue
import confection
import spacy

# catalogue goes through all installed entry points whenever a name is looked up: a table by group finds the same ones in a tenth of the time.
_POINTS = catalogue.AVAILABLE_ENTRY_POINTS
# Who looks for a component imports those of all packages, and these import transformers, for five seconds.
_SLOW = ("presidio_analyzer", "spacy_curated_transformers", "spacy_huggingface_pipelines", "spacy_transformers")
_SLOW_POINTS: dict[str, list[Any]] = {}
if type(_POINTS) is not dict:  # as a process that a test starts has it from alone/sitecustomize.py
    catalogue.AVAILABLE_ENTRY_POINTS = {}
    for _group in _POINTS.groups:
        _quick: list[Any] = []
        for _point in _POINTS.select(group=_group):
            slow = _point.value.replace(":", ".").partition(".")[0] in _SLOW
            (_SLOW_POINTS.setdefault(_group, []) if slow else _quick).append(_point)
        catalogue.AVAILABLE_ENTRY_POINTS[_group] = _quick


class _Counted(dict):
    """catalogue's table of everything registered, which counts its changes."""

    changes = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        self.changes += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self.changes += 1
        super().__delitem__(key)

    def clear(self) -> None:
        self.changes += 1
        super().clear()

    def pop(self, *given: Any) -> Any:
        self.changes += 1
        return super().pop(*given)

    def update(self, *given: Any, **named: Any) -> None:
        self.changes += 1
        super().update(*given, **named)


def _remembered(find: Callable[[catalogue.Registry], dict[str, Any]]) -> Callable[[catalogue.Registry], dict[str, Any]]:
    """The function, asked once for each registry until something is registered: it goes through the whole table, and srsly asks it for every
    piece of msgpack that it reads or writes, some fifty times as a pipeline is loaded.
    """
    found: dict[Any, tuple[int, dict[str, Any]]] = {}

    def remembered(registry: catalogue.Registry) -> dict[str, Any]:
        table = catalogue.REGISTRY
        key = (tuple(registry.namespace), registry.entry_points)
        if key not in found or found[key][0] != table.changes:
            names = find(registry)  # entry points that it loads may register more
            found[key] = (table.changes, names)
        return dict(found[key][1])

    return remembered


catalogue.REGISTRY = _Counted(catalogue.REGISTRY)
catalogue.Registry.get_all = _remembered(catalogue.Registry.get_all)


def find_transformers() -> None:
    """From now on the components of transformers are found as well."""
    for group, points in _SLOW_POINTS.items():
        catalogue.AVAILABLE_ENTRY_POINTS[group] += points
    _SLOW_POINTS.clear()
    catalogue.REGISTRY.changes += 1
    spacy.blank("xx")  # which imports them


def _parsed_once(parse: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which reads a text once: a pipeline's config is read three times at each load."""

    @functools.lru_cache(200)
    def packed(text: str, interpolate: bool) -> bytes:
        return pickle.dumps(parse(text, interpolate=interpolate))

    def parsed(text: str, *, interpolate: bool = True, overrides: dict[str, Any] | None = None) -> Any:
        return (
            parse(text, interpolate=interpolate, overrides=overrides) if overrides else pickle.loads(packed(text, interpolate))
        )

    return parsed


if hasattr(confection, "_config"):  # and not an old one, which asks pydantic
    confection._config.parse_config = _parsed_once(confection._config.parse_config)
    # What a function takes is read from its signature, at each call.
    Schema = confection._registry.Schema
    Schema.from_function = functools.cache(Schema.from_function)
