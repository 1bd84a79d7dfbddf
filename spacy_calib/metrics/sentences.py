"""Figures that warn, and their sentences in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..pairs.build import JudgedPairs, top_pairs

# Scores lean (too sure, too modest) where the gaps, once opposite ones cancel, are at least this share of all gaps.
ONE_WAY = 0.5
# So many predictions without a single hit are worth a word.
MANY = 20
# Where such labels' scores promise so many hits in all, scores that look true on the whole are not called so.
PROMISED = 3.0
_NAMED = 8


def never_right(view: JudgedPairs, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Labels predicted MANY times or more and never right: "label", "predicted", and "promised" hits; most frequent first."""
    top, n = top_pairs(view.pairs), len(labels)
    top = top[(view.pairs.tags[top] >= 0) & (view.pairs.tags[top] < n)]
    tags = view.pairs.tags[top]
    n_predicted, right, expected_hits = (
        np.bincount(tags, weights, n) for weights in (None, view.pairs.hits[top], view.calibrated[top])
    )
    tags_never_right = np.flatnonzero((n_predicted >= MANY) & (right == 0)).tolist()
    tags_never_right.sort(key=lambda tag: (-n_predicted[tag], labels[tag]))
    return [
        {"label": labels[tag], "predicted": int(n_predicted[tag]), "promised": float(expected_hits[tag])}
        for tag in tags_never_right
    ]


def warning_of(rows: Sequence[dict[str, Any]]) -> str | None:
    """Return a sentence that warns of the labels never right, or None."""
    if not rows:
        return None
    listing = ", ".join(f"{row['label']} ({row['predicted']:,} times)" for row in rows[:_NAMED])
    rest_note = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    expected_hits = sum(row["promised"] for row in rows)
    note = f", though by the scores {expected_hits:,.0f} of these should be" if expected_hits >= PROMISED else ""
    return f"Predicted and never right: {listing}{rest_note}{note}. Do the model and the gold use the same labels?"


def leaning_in_words(excess: float, off: float) -> str:
    """Describe whether scores are too high or too low. excess: Mean score minus share right. off: Mean distance."""
    if abs(excess) < ONE_WAY * off:
        return "some too high and some too low"
    return f"mostly too {'high' if excess > 0 else 'low'}"


def worse_of(change: dict[str, dict[str, Any]]) -> str | None:
    """Return a sentence if calibrated scores have a higher log loss than raw ones. change: `table.changes`."""
    value, low, high = (change["nll"][key] for key in ("value", "low", "high"))
    if value is None or value <= 0:
        return None
    interval = "" if low is None else f" (95 % interval {low:+.4f} to {high:+.4f})"
    if low is not None and low > 0:
        return f"Calibrated scores are WORSE than raw ones on this data: log loss {value:+.4f}{interval}."
    chance = "; that may be chance" if low is not None else ""
    return f"Calibrated scores are no better than raw ones on this data: log loss {value:+.4f}{interval}{chance}."


def with_article(noun: str) -> str:
    """Return the noun after "a" or "an"."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
