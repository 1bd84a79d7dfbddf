"""catalogue's look-ups, answered from tables: imported by what runs the tests, and by the processes that it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import catalogue

# catalogue goes through all installed entry points whenever a name is looked up: a table by group finds the same ones in a tenth of the time.
_POINTS = catalogue.AVAILABLE_ENTRY_POINTS
if type(_POINTS) is not dict:  # as a process that a test starts has it from alone/sitecustomize.py
    catalogue.AVAILABLE_ENTRY_POINTS = {group: list(_POINTS.select(group=group)) for group in _POINTS.groups}


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
