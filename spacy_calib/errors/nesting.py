"""Nesting of plain data (dicts and lists), measured without recursion, which would fail on data deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 100


def nested_values(data: Any) -> Iterator[tuple[Any, int]]:
    """Yield (value, depth) for the data itself and for all keys, values and items in it."""
    stack = [(data, 0)]
    while stack:
        value, depth = stack.pop()
        yield value, depth
        if isinstance(value, dict):
            stack += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            stack += [(part, depth + 1) for part in value]
