"""Read (text, type) pairs from the JSON in an answer, by a path to the texts and a path to their types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from .messages import calib_error
from .response import Answer

_STEP = re.compile(r"\.?([^.\[\]]+)|\[\]")
_Object = tuple  # a JSON object is read as a tuple of (key, value) pairs, as a key may occur twice; a JSON list is a list


class JsonFields:
    """A callable that reads fields (text and type) from the JSON in an answer, and ignores the prose around the JSON.

    text, type (str): Paths such as people[].name: keys, with [] for each element of a list and * for any key. Without `type`
    the type of a text is the key that the last * matches, or else the path's first key. RAISES C648: something that is no path.
    """

    def __init__(self, text: str, type: str = ""):
        self.text, self.type = _parse_path(text), _parse_path(type) if type else []
        differences = (i for i, (step, type_step) in enumerate(zip(self.text, self.type, strict=False)) if step != type_step)
        # Number of first steps that both paths share: a text gets the type below the same node.
        self.n_shared = next(differences, min(len(self.text), len(self.type)))

    def __call__(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (text, type) of each field; "" for a missing type. RAISES ValueError: the answer has no complete JSON."""
        json_texts = [part for part in answer.json if '"' in part or part in ("[]", "{}")]  # brackets of prose have no quotes
        if not json_texts:
            raise ValueError("there is no whole JSON in it")
        # Numbers stay texts as they are written, so that they are found in the answer again.
        load = partial(json.loads, strict=False, object_pairs_hook=_Object, parse_int=str, parse_float=str)
        shared_path = self.text[: self.n_shared]  # [] without a path to the type
        text_path, type_path = self.text[self.n_shared :], self.type[self.n_shared :]
        pairs: list[tuple[Any, str]] = []
        for tree in map(load, json_texts):
            for _, node in _find_values(tree, shared_path):
                label = next((str(value) for _, value in _find_values(node, type_path)), "")
                # Without a path to the type, the type is the key on the path to the text.
                texts = ((key, text) for key, text in _find_values(node, text_path) if isinstance(text, str))
                pairs += [(text, label if self.type else key) for key, text in texts]
        return pairs


def _find_values(node: Any, steps: Sequence[str], key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (key, value) for each value at a path below a node; the key is that of the last *, or else of the first step.

    node (Any): A value of parsed JSON. steps (Sequence[str]): The rest of the path. key (str): The key so far, "" for none.
    """
    if not steps:
        yield key, node
    elif steps[0] == "[]" and isinstance(node, list):
        for item in node:
            yield from _find_values(item, steps[1:], key)
    elif steps[0] != "[]" and isinstance(node, _Object):
        for name, value in node:
            if steps[0] in ("*", name):
                key_so_far = name if steps[0] == "*" or not key else key  # the first key, until a * matches
                yield from _find_values(value, steps[1:], key_so_far)


def _parse_path(path: str) -> list[str]:
    """Split a path, such as people[].name, into steps: keys, *, and "[]" for each list. RAISES C648: it is no path."""
    matches = list(_STEP.finditer(path)) if isinstance(path, str) else []
    if not matches or "".join(match[0] for match in matches) != path:
        raise calib_error("C648", given=repr(path))
    return [match[1] or "[]" for match in matches]
