"""Labels in the words of another scheme, and gold labels that a component does not know. Knows names, never Docs.

Several labels may have one counterpart; their probabilities add up then.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import brief, calib_error
from ..types import OUTSIDE, Ints

LabelMap = Mapping[str, str]
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


def read_map(given: str) -> dict[str, str]:
    """Label of the component -> gold label, of "PERSON=PER,GPE=LOC" or a file: .json (an object) or .tsv (two columns).

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
    return check_map(split_pairs(given) or [part.split("=") for part in given.split(",")], given)


def check_map(pairs: Iterable[Sequence[Any]], given: object) -> dict[str, str]:
    """The pairs as a dict. RAISES C162: not pairs of labels, or a label twice."""
    table: dict[str, str] = {}
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(label, str) for label in pair) or not pair[0].strip():
            raise calib_error("C162", given=given, why=f"{brief('='.join(map(str, pair)))!r} is not one label for another")
        label, counterpart = (text.strip() for text in pair)
        if label in table:
            raise calib_error("C162", given=given, why=f"{brief(repr(label))} is there twice")
        table[label] = counterpart
    if not table:
        raise calib_error("C162", given=given, why="it is empty")
    return table


def _pairs_of(table: Any) -> list[tuple[Any, Any]]:
    if not isinstance(table, dict):
        raise ValueError("no object")
    return list(table.items())


def map_label(table: LabelMap, label: str, dropped: str = "", prefixed: bool = False) -> str:
    """The counterpart of a label, by default itself. dropped: For none ("O" for entities). prefixed: Keeps B-, I-, L-, U-."""
    prefix, name = (label[:2], label[2:]) if prefixed and label[1:2] == "-" else ("", label)
    other = table.get(name, name)
    return prefix + other if other not in ("", OUTSIDE) else other or dropped


def merge_labels(labels: Sequence[str], mapped: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """(the distinct mapped labels, in the order in which they come; the column of each label among them, -1 for "")."""
    names = tuple(dict.fromkeys(filter(None, mapped)))
    column = {name: i for i, name in enumerate(names)} | {"": -1}
    return names, np.array([column[name] for name in mapped], dtype=np.intp)


_NAMED = 8


@dataclass(frozen=True)
class UnknownGold:
    """n (int): Tokens (or spans, if only these have gold) whose label the component does not know. share (float): Of those with gold other than "O".
    labels (Sequence[str]): Those that it knows. pairs (Sequence[tuple]): (its likeliest label, gold label, tokens).
    counterparts (Mapping): Each of its labels that the gold has not -> the gold label that it most often stands for. unit (str): What n counts, "" for what has labels.
    """

    n: int
    share: float
    labels: Sequence[str]
    pairs: Sequence[tuple[str, str, int]]
    counterparts: Mapping[str, str]
    unit: str = ""

    @classmethod
    def of(cls, found: Mapping[tuple[str, str], int], n: int, gold: Mapping[str, int], labels: Sequence[str]) -> UnknownGold:
        """found (Mapping): (likeliest label, gold label) -> tokens. gold (Mapping): Gold label -> its frequency."""
        n_labelled = sum(count for label, count in gold.items() if label != OUTSIDE)
        confusions = [
            (predicted_label, gold_label, count) for (predicted_label, gold_label), count in Counter(found).most_common()
        ]
        counterparts: dict[str, str] = {}
        for predicted_label, gold_label, _ in confusions:
            if predicted_label not in ("", OUTSIDE) and predicted_label not in gold:
                counterparts.setdefault(predicted_label, gold_label)
        known_labels = set(labels)
        pairs = [pair for pair in confusions if pair[1] not in known_labels]
        return cls(n, min(1.0, n / n_labelled) if n_labelled else 0.0, list(labels), pairs, counterparts)

    def words(self) -> dict[str, Any]:
        """What sentences about it name.

        "unknown": the unknown gold labels, the most frequent first. "map": to the gold label that each label most often stands
        for, to be given back: "PERSON=PER,GPE=LOC,DATE=".
        """
        counts: Counter[str] = Counter()
        for _, gold_label, n in self.pairs:
            counts[gold_label] += n
        pairs = ", ".join(
            f"{predicted_label or 'nothing'} for {gold_label} ({n:,})" for predicted_label, gold_label, n in self.pairs[:_NAMED]
        )
        label_map = {
            predicted_label: "" if gold_label == OUTSIDE else gold_label
            for predicted_label, gold_label in self.counterparts.items()
        }
        return {
            "n": f"{self.n:,}",
            "share": f"{100 * self.share:.1f}",
            "unknown": shorter([label for label, _ in counts.most_common()]) or "not named",
            "known": shorter(self.labels),
            "pairs": pairs or "-",
            "map": map_to_paste(label_map) or "LABEL=GOLD",
            **({"unit": self.unit} if self.unit else {}),
        }


def shorter(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
