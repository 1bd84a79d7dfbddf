"""A reader of answers in JSON: paths to texts and to their types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from .messages import calib_error
from .response import Answer

_STEP = re.compile(r"\.?([^.\[\]]+)|\[\]")
# The pairs of an object, as a name may stand in it twice.
_Object = tuple


class JsonFields:
    """Reads fields of JSON, whatever stands around it: `text` and `type` are paths such as people[].name.

    A path names keys, with [] for each element of a list and * for any key. Without `type` the type is the key that * stands for, or
    else the first key of the path. RAISES C648: no such path.
    """

    def __init__(self, text: str, type: str = ""):
        self.text, self.type = _steps(text), _steps(type) if type else []
        differ = (i for i, steps in enumerate(zip(self.text, self.type, strict=False)) if steps[0] != steps[1])
        self.n_shared = next(differ, min(len(self.text), len(self.type)))

    def __call__(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (text, type) of each field; "" for a type that is missing. RAISES ValueError: there is no JSON."""
        parts = [part for part in answer.json if '"' in part or part == "[]" or part == "{}"]  # prose has brackets, too
        if not parts:
            raise ValueError("there is no whole JSON in it")
        load = partial(json.loads, strict=False, object_pairs_hook=_Object, parse_int=str, parse_float=str)
        trees = map(load, parts)
        pairs: list[tuple[Any, str]] = []
        for _, node in (item for tree in trees for item in _values(tree, self.text[: self.n_shared])):
            label = next((str(value) for _, value in _values(node, self.type[self.n_shared :])), "")
            found = _values(node, self.text[self.n_shared :])
            pairs += [(text, label if self.type else key) for key, text in found if isinstance(text, str)]
        return pairs


def _values(node: Any, steps: Sequence[str], key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (the key that * stands for or the first, value) of what a path leads to."""
    if not steps:
        yield key, node
    elif steps[0] == "[]" and isinstance(node, list):
        for item in node:
            yield from _values(item, steps[1:], key)
    elif steps[0] != "[]" and isinstance(node, _Object):
        for name, value in node:
            if steps[0] in ("*", name):
                yield from _values(value, steps[1:], key if key and steps[0] != "*" else name)


def _steps(path: str) -> list[str]:
    """RAISES C648: no path."""
    matches = list(_STEP.finditer(path)) if isinstance(path, str) else []
    if not matches or "".join(match[0] for match in matches) != path:
        raise calib_error("C648", given=repr(path))
    return [match[1] or "[]" for match in matches]
