"""How deep plain data is nested: functions that call themselves fail on what is deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DEEPEST = 100


def parts(data: Any) -> Iterator[tuple[Any, int]]:
    """Yield the data and all that it holds, keys too, each with its depth, without recursion."""
    to_see = [(data, 0)]
    while to_see:
        value, depth = to_see.pop()
        yield value, depth
        if isinstance(value, dict):
            to_see += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            to_see += [(part, depth + 1) for part in value]
