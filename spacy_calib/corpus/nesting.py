"""How deep plain data is nested: functions that call themselves fail on what is deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DEEPEST = 100


def parts(data: Any) -> Iterator[tuple[Any, int]]:
    """The data and all that it holds, keys too, each with its depth. (A loop rather than a recursion.)"""
    to_see = [(data, 0)]
    while to_see:
        held, depth = to_see.pop()
        yield held, depth
        if isinstance(held, dict):
            to_see += [(part, depth + 1) for pair in held.items() for part in pair]
        elif isinstance(held, list):
            to_see += [(part, depth + 1) for part in held]
