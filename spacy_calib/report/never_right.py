"""Labels that are predicted again and again and never right: most often the model and the gold name things differently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..pairs.build import top_pairs
from ..statistics.tables import JudgedCounts
from ..types import Floats, Ints, Pairs

# So many predictions without a single hit are worth a word.
MANY = 20
# Where the scores of such labels promise so many hits in all, scores that look true on the whole are not to be called so.
PROMISED = 3.0
_NAMED = 8


def never_right(pairs: Pairs, calibrated: Floats, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The labels that were the highest-scored ones MANY times or more, and right not once; the one predicted most often first.

    labels (Sequence[str]): The tags, as columns of the pairs.
    RETURNS (list): "label", "predicted" (how often), "promised" (how many of these should be right by their calibrated scores).
    """
    top = top_pairs(pairs)
    return _never_right(pairs.tags[top], np.ones(len(top)), pairs.hits[top].astype(np.float64), calibrated[top], labels)


def never_right_of_counts(counts: JudgedCounts, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The same of pairs that were counted."""
    top = np.flatnonzero(counts.keys[2])
    n = counts.pairs[top].astype(np.float64)
    return _never_right(
        counts.tags[top].astype(np.intp), n, counts.hits[top].astype(np.float64), counts.keys[1][top].astype(np.float64), labels
    )


def _never_right(tags: Ints, counts: Floats, hits: Floats, calibrated: Floats, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Of the highest-scored labels: how often each was predicted (counts) with this score, and was right."""
    n = len(labels)
    own = np.flatnonzero((tags >= 0) & (tags < n))
    tags, counts = tags[own], counts[own]
    predicted, right = np.bincount(tags, counts, n), np.bincount(tags, hits[own], n)
    promised = np.bincount(tags, calibrated[own] * counts, n)
    found = np.flatnonzero((predicted >= MANY) & (right == 0)).tolist()
    found.sort(key=lambda tag: (-predicted[tag], labels[tag]))
    return [{"label": labels[tag], "predicted": int(predicted[tag]), "promised": float(promised[tag])} for tag in found]


def warning_of(found: Sequence[dict[str, Any]]) -> str | None:
    """What to say of them; None where there are none."""
    if not found:
        return None
    named = ", ".join(f"{one['label']} ({one['predicted']:,} times)" for one in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    promised = sum(one["promised"] for one in found)
    said = f", though by the scores {promised:,.0f} of these should be" if promised >= PROMISED else ""
    return f"Predicted and never right: {named}{more}{said}. Do the model and the gold use the same labels?"
