"""Maps from the labels of a component to those of the gold, and gold labels that a component does not know. No Docs are needed.

A label's *counterpart* is the gold label that it is mapped to. Several labels may have one; their probabilities are then added.
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
_MOST_NAMES = 8  # maximum number of labels that a message names
_PLAIN = re.compile(r"[\w.:+*/@%^-]*")  # labels that need no quotes, in a map and in a shell


def map_to_paste(pairs: Mapping[str, str]) -> str:
    """Return label -> gold label as text for `--map`, such as "PERSON=PER"; if labels need quotes, describe a file to write."""
    if all(_PLAIN.fullmatch(label) for pair in pairs.items() for label in pair):
        return ",".join(f"{label}={gold_label}" for label, gold_label in pairs.items())
    return f"map.json, a file with {json.dumps(dict(pairs), ensure_ascii=False)}"


def read_map(text_or_path: str | Mapping[str, str]) -> dict[str, str]:
    """Read a label map from text, "PERSON=PER,GPE=LOC", or a path to .json (an object) or .tsv (two columns); check a Mapping.

    RETURNS (dict): Component's label -> gold label, "" for none (DATE=). RAISES C162: unreadable, empty, or no pairs of labels.
    """
    if isinstance(text_or_path, Mapping):
        return check_map(list(text_or_path.items()), "of the call")
    path = Path(text_or_path)
    if path.suffix in (".json", ".tsv"):
        try:
            text = path.read_text(encoding="utf-8-sig")
            is_json = path.suffix == ".json"
            pairs = _pairs_of(json.loads(text)) if is_json else list(csv.reader(text.splitlines(), delimiter="\t"))
        except (OSError, ValueError, RecursionError) as error:
            raise calib_error("C162", given=path, why=f"the file cannot be read: {brief(error, 160)}") from None
        return check_map(pairs, path)
    return check_map([part.split("=") for part in text_or_path.split(",")], text_or_path)


def check_map(pairs: Iterable[Sequence[Any]], origin: object) -> dict[str, str]:
    """Return pairs (label, gold label) as a dict. origin: Named in errors. RAISES C162: no pairs of labels, or one twice."""
    table: dict[str, str] = {}
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(label, str) for label in pair) or not pair[0].strip():
            raise calib_error("C162", given=origin, why=f"{brief('='.join(map(str, pair)))!r} is not one label for another")
        label, counterpart = (text.strip() for text in pair)
        if label in table:
            raise calib_error("C162", given=origin, why=f"{brief(repr(label))} is there twice")
        table[label] = counterpart
    if not table:
        raise calib_error("C162", given=origin, why="it is empty")
    return table


def _pairs_of(table: Any) -> list[tuple[Any, Any]]:
    """Return the items of a label map (`table`) that was read from JSON. RAISES ValueError: it is no JSON object."""
    if not isinstance(table, dict):
        raise ValueError("no object")
    return list(table.items())


def split_prefix(label: str) -> tuple[str, str]:
    """Split a BILUO tag: return ("B-", "PERSON") for "B-PERSON", and ("", "O") for "O"."""
    return (label[:2], label[2:]) if label[1:2] == "-" else ("", label)


def map_label(table: LabelMap, label: str, fallback: str = "", has_prefix: bool = False) -> str:
    """Return the gold label that a map (`table`) gives for a label; the label itself if the map does not contain it.

    fallback (str): Returned if the map gives "", for instance "O" for entities. has_prefix (bool): Whether labels have a prefix
        (B-, I-, L- or U-), which stays unless the map gives "" or "O".
    """
    prefix, name = split_prefix(label) if has_prefix else ("", label)
    counterpart = table.get(name, name)
    if counterpart in ("", OUTSIDE):
        return counterpart or fallback  # without a prefix
    return prefix + counterpart


def merge_labels(counterparts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return (the distinct gold labels in counterparts, by first occurrence; index of each counterpart in these, -1 for "")."""
    names = tuple(dict.fromkeys(filter(None, counterparts)))
    index_of = {name: i for i, name in enumerate(names)} | {"": -1}
    return names, np.array([index_of[name] for name in counterparts], dtype=np.intp)


@dataclass(frozen=True)
class UnknownGold:
    """Gold labels that a component does not know.

    n (int): Number of tokens with such a label (of spans, if only these have gold). share (float): n as a share of the tokens
    with gold other than "O". labels (Sequence[str]): Labels of the component. pairs (Sequence[tuple]): (predicted label,
    unknown gold label, number of tokens). counterparts (Mapping): Label of the component that the gold lacks -> the gold label
    that it may stand for. unit (str): What n counts, such as "entity"; "" for the unit that the component labels.
    """

    n: int
    share: float
    labels: Sequence[str]
    pairs: Sequence[tuple[str, str, int]]
    counterparts: Mapping[str, str]
    unit: str = ""

    @classmethod
    def from_confusions(
        cls, confusion_counts: Mapping[tuple[str, str], int], n: int, gold: Mapping[str, int], labels: Sequence[str]
    ) -> UnknownGold:
        """Build from numbers of tokens by predicted and gold label.

        confusion_counts: (predicted label, gold label) -> number of tokens. n: Number of tokens with an unknown gold label.
        gold: Gold label -> number of tokens. labels: The labels of the component.
        """
        n_labelled = sum(count for label, count in gold.items() if label != OUTSIDE)
        confusions = [(*labels_of_both, count) for labels_of_both, count in Counter(confusion_counts).most_common()]
        counterparts: dict[str, str] = {}
        # Most frequent confusions come first, so that each label that the gold lacks gets its most frequent gold label.
        for label, gold_label, _ in confusions:
            if label not in ("", OUTSIDE) and label not in gold:
                counterparts.setdefault(label, gold_label)
        known_labels = set(labels)
        pairs = [pair for pair in confusions if pair[1] not in known_labels]
        return cls(n, min(1.0, n / n_labelled) if n_labelled else 0.0, list(labels), pairs, counterparts)

    def message_fields(self) -> dict[str, Any]:
        """Return texts for messages: "n", "share" (in %), "unknown" and "known" labels, "pairs", "map" (for --map), "unit"."""
        counts: Counter[str] = Counter()
        for _, gold_label, n in self.pairs:
            counts[gold_label] += n
        first_pairs = self.pairs[:_MOST_NAMES]
        pairs = ", ".join(f"{label or 'nothing'} for {gold_label} ({n:,})" for label, gold_label, n in first_pairs)
        label_map = {label: "" if gold_label == OUTSIDE else gold_label for label, gold_label in self.counterparts.items()}
        return {
            "n": f"{self.n:,}",
            "share": f"{100 * self.share:.1f}",
            "unknown": shorten_list([label for label, _ in counts.most_common()]) or "not named",
            "known": shorten_list(self.labels),
            "pairs": pairs or "-",
            "map": map_to_paste(label_map) or "LABEL=GOLD",
            **({"unit": self.unit} if self.unit else {}),
        }


def shorten_list(names: Sequence[str]) -> str:
    """Return the first names as text, and how many more there are: "A, B and 3 more"."""
    ending = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + ending
