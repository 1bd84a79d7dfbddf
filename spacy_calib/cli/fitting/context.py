"""What `spacy calib fit` and `spacy calib info` say of a context: whether it is kept, what it looks at, and what it gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shared.screen import msg, number, print_table


def context_line(context: Mapping[str, Any] | None) -> str:
    """Whether scores look at the word and at what surrounds it, and what that gains."""
    if context is None:
        return "none"
    if context["why"]:
        return f"none: {context['why']}"
    found = context["comparison"]
    before, after = found["without"], found["with_context"]
    change = f"{'lowers' if after <= before else 'raises'} the log loss of held-out documents from {number(before)} to {number(after)}"
    if not context["kept"]:
        better = ", and another way loses less" if after <= before else ""
        return f"not kept: it {change}{better} (standard error of the difference {number(found['error'], 5)})"
    asked = " as asked, though" if after > before else ":"
    return f"kept{asked} it {change} (standard error of the difference {number(found['error'], 5)})"


def show_context(context: Mapping[str, Any]) -> None:
    """Print what it looks at."""
    if not context["kept"]:
        return
    msg.divider("What context looks at")
    words = f"{context['endings']:,} endings and {context['forms']:,} forms that the fit data have at least three times"
    looked = ["its score, its rival's and how evenly scores are spread", "the tag beside its rival"]
    looked += [words, "the tags before and behind", "title case and numbers"] if context["words"] and context["endings"] else []
    for one in [*looked, *context["columns"]]:
        msg.text(f"- {one}")
    hidden = "" if context["words"] else " The words are hidden: the statistics came without their key."
    msg.text(
        f"{context['size']:,} numbers, held back by a ridge of {context['ridge']:g}. "
        f"{100 * context['reordered']:.1f} % of the held-out tokens have another likeliest tag by the calibrated scores.{hidden}"
    )


def show_span_context(context: Mapping[str, Any] | None, several: str) -> None:
    """Print what the features of spans weigh. several (str): What these are called."""
    if context is None or not context["weights"]:
        return
    msg.divider(f"What context looks at for {several}" + ("" if context["kept"] else " (not kept)"))
    rows = [(one["what"], _weight(one["weight"])) for one in context["weights"]]
    print_table(rows, ("One standard deviation more of", "Log-odds"), ("l", "r"))


def _weight(value: float) -> str:
    return f"{value:+.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:+.2f}"
