"""Labels of a component in the words of another label scheme, that of the gold. Knows names, never Docs.

Several labels may have one counterpart; their probabilities add up then.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import brief, calib_error
from ..types import OUTSIDE, Ints

LabelMap = Mapping[str, str]


def read_map(given: str) -> dict[str, str]:
    """Label of the component -> gold label: "PERSON=PER,GPE=LOC", or a file: .json (an object) or .tsv (two columns).

    A label without counterpart has "" there (DATE=). RAISES C162: neither of them.
    """
    path = Path(given)
    if path.suffix in (".json", ".tsv"):
        try:
            text = path.read_text(encoding="utf-8-sig")
            pairs = (
                _pairs_of(json.loads(text)) if path.suffix == ".json" else list(csv.reader(text.splitlines(), delimiter="\t"))
            )
        except (OSError, ValueError, RecursionError) as error:
            raise calib_error("C162", given=path, why=f"the file cannot be read: {brief(error, 160)}") from None
        return check_map(pairs, path)
    return check_map([part.split("=") for part in given.split(",")], given)


def check_map(pairs: Iterable[Sequence[Any]], given: object) -> dict[str, str]:
    """RAISES C162: not pairs of labels, or a label twice."""
    table: dict[str, str] = {}
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(label, str) for label in pair) or not pair[0].strip():
            raise calib_error("C162", given=given, why=f"{brief('='.join(map(str, pair)))!r} is not one label for another")
        label, other = (text.strip() for text in pair)
        if label in table:
            raise calib_error("C162", given=given, why=f"{brief(repr(label))} is there twice")
        table[label] = other
    if not table:
        raise calib_error("C162", given=given, why="it is empty")
    return table


def _pairs_of(table: Any) -> list[tuple[Any, Any]]:
    if not isinstance(table, dict):
        raise ValueError("no object")
    return list(table.items())


def map_label(table: LabelMap, label: str, dropped: str = "", prefixed: bool = False) -> str:
    """The counterpart of a label; one that the map does not name is its own.

    dropped (str): What stands for a label without counterpart: "O" for entities. prefixed (bool): Whether a prefix (B-, I-, L-, U-) stays.
    """
    prefix, name = (label[:2], label[2:]) if prefixed and label[1:2] == "-" else ("", label)
    other = table.get(name, name)
    return prefix + other if other not in ("", OUTSIDE) else other or dropped


def merge_labels(labels: Sequence[str], mapped: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """(the distinct mapped labels, in the order in which they come; the column of each label among them, -1 for "")."""
    names = tuple(dict.fromkeys(filter(None, mapped)))
    column = {name: i for i, name in enumerate(names)} | {"": -1}
    return names, np.array([column[name] for name in mapped], dtype=np.intp)
