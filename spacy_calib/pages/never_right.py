"""Labels that are predicted again and again and never right: most often the model and the gold name things differently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..statistics.tables import JudgedCounts

# So many predictions without a single hit are worth a word.
MANY = 20
# Where the scores of such labels promise so many hits in all, scores that look true on the whole are not to be called so.
PROMISED = 3.0
_NAMED = 8


def never_right(counts: JudgedCounts, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The labels that were the highest-scored ones MANY times or more, and right not once; the one predicted most often first.

    labels (Sequence[str]): The tags, as columns of the pairs.
    RETURNS (list): "label", "predicted" (how often), "promised" (how many of these should be right by their calibrated scores).
    """
    n = len(labels)
    top = (counts.keys[2] > 0) & (counts.tags < n)
    tags, pairs, hits = counts.tags[top], counts.pairs[top], counts.hits[top]
    predicted, right = (np.bincount(tags, held, n) for held in (pairs, hits))
    promised = np.bincount(tags, counts.keys[1][top].astype(np.float64) * pairs, n)
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
