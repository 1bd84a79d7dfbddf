"""Sentences of a report: on labels that are never right, scores that are too high or low, calibration that makes them worse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ONE_WAY = 0.5  # scores are called too high or too low if the mean gap is at least this share of the mean absolute gap
# If the scores of labels that are never right add up to so many hits, scores that look calibrated overall are not called so.
PROMISED = 3.0
_MOST_NAMES = 8  # maximum number of labels that a sentence names


def warn_of_never_right(rows: Sequence[dict[str, Any]]) -> str | None:
    """Return a warning about labels that are predicted but never right; None if there are none.

    rows (Sequence[dict]): For each such label the "label", how often it is "predicted", and "promised": the sum of its scores.
    """
    if not rows:
        return None
    listing = ", ".join(f"{row['label']} ({row['predicted']:,} times)" for row in rows[:_MOST_NAMES])
    ending = f" and {len(rows) - _MOST_NAMES} more" if len(rows) > _MOST_NAMES else ""
    expected_hits = sum(row["promised"] for row in rows)
    note = f", though by the scores {expected_hits:,.0f} of these should be" if expected_hits >= PROMISED else ""
    return f"Predicted and never right: {listing}{ending}{note}. Do the model and the gold use the same labels?"


def leaning_in_words(excess: float, error: float) -> str:
    """Describe whether scores are too high or too low. excess: Mean score - accuracy. error: ECE, the mean absolute gap."""
    if abs(excess) < ONE_WAY * error:  # gaps in both directions cancel out in the mean
        return "some too high and some too low"
    return f"mostly too {'high' if excess > 0 else 'low'}"


def warn_of_higher_loss(change: dict[str, dict[str, Any]]) -> str | None:
    """Return a warning if calibration raises the log loss, else None.

    change (dict): Under "nll", the "value" of calibrated - raw log loss (None if unknown), and its interval "low", "high".
    """
    value, low, high = (change["nll"][key] for key in ("value", "low", "high"))
    if value is None or value <= 0:
        return None
    interval = "" if low is None else f" (95 % interval {low:+.4f} to {high:+.4f})"
    if low is not None and low > 0:
        return f"Calibrated scores are WORSE than raw ones on this data: log loss {value:+.4f}{interval}."
    caveat = "; that may be chance" if low is not None else ""
    return f"Calibrated scores are no better than raw ones on this data: log loss {value:+.4f}{interval}{caveat}."


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
