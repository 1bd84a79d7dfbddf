"""Data of other people that is to be written again as JSON: whether it can be."""

from __future__ import annotations

import math
from typing import Any

DEEPEST = 100


def fault_of(data: Any) -> str | None:
    """What JSON or UTF-8 cannot hold of it, as the end of a sentence; None where all is well. Asked without recursion, however deep it is."""
    to_see = [(data, 0)]
    while to_see:
        held, depth = to_see.pop()
        if depth > DEEPEST:
            return f"is nested more than {DEEPEST} deep"
        if isinstance(held, dict):
            to_see += [(part, depth + 1) for pair in held.items() for part in pair]
        elif isinstance(held, list):
            to_see += [(part, depth + 1) for part in held]
        elif isinstance(held, float) and not math.isfinite(held):
            return "holds a number that is not finite"
        elif isinstance(held, str) and any("\ud800" <= character <= "\udfff" for character in held):
            return "holds half of a surrogate pair"
    return None
