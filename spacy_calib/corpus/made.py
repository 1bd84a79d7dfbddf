"""Sequences whose items are made when they are read: a million rows need no memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

Item = TypeVar("Item")


class MadeOnDemand(Sequence[Item], Generic[Item]):
    """n items, each made anew whenever it is read.

    n (int): How many. make (Callable): Place in the sequence, from 0 -> item.
    """

    def __init__(self, n: int, make: Callable[[int], Item]):
        self._places = range(n)
        self._make = make

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Item: ...

    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...

    def __getitem__(self, place: Any) -> Any:
        held = self._places[place]
        return [self._make(one) for one in held] if isinstance(place, slice) else self._make(held)


def for_json(value: Any) -> list[Any]:
    """The `default` of a JSON encoder: a list with items made as it is written. RAISES TypeError: no MadeOnDemand."""
    if not isinstance(value, MadeOnDemand):
        raise TypeError(f"{type(value).__name__} is nothing that JSON knows")
    return _AsList(value)


class _AsList(list[Any]):
    """A sequence that the json module takes for a list."""

    def __init__(self, items: Sequence[Any]):
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Any:
        return iter(self._items)
