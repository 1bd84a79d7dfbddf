"""A map of labels as text for `--map`: "PERSON=PER,GPE=LOC", or the content of a file where a label has a sign that commas, equals or a shell would take."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

# Labels that need no quoting, in a map as in a shell.
_PLAIN = re.compile(r"[\w.:+*/@%^-]*")
# One pair: a label is a comma or an equals sign alone, or has neither.
_PAIRS = tuple(
    re.compile(rf"\s*({label})=({other})(?:,(?=.)|$)", re.DOTALL)
    for other in ("[^,=]*", "[,=]")
    for label in ("[^,=]+", "[,=]")
)


def map_to_paste(pairs: Mapping[str, str]) -> str:
    """Write a map so that it can be given back as it is; "" for an empty one."""
    if all(_PLAIN.fullmatch(label) for pair in pairs.items() for label in pair):
        return ",".join(f"{label}={other}" for label, other in pairs.items())
    return f"map.json, a file with {json.dumps(dict(pairs), ensure_ascii=False)}"


def split_pairs(text: str) -> list[tuple[str, str]] | None:
    """Split a map into its pairs; None if it is none. Of several ways the first counts in which every pair has a label."""
    waiting: list[tuple[int, list[tuple[str, str]]]] = [(0, [])]
    while waiting:
        place, pairs = waiting.pop()
        if place == len(text):
            return pairs
        following = (pattern.match(text, place) for pattern in reversed(_PAIRS))
        waiting += [(pair.end(), [*pairs, (pair[1], pair[2])]) for pair in following if pair]
    return None
