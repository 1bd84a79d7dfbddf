"""What `spacy calib fit` and `spacy calib info` say of a context: whether it is kept, and what each feature weighs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shared.screen import msg, number, print_table


def context_line(context: Mapping[str, Any] | None) -> str:
    """Whether scores look at the rest of the document, and what that gains."""
    if context is None:
        return "none"
    if context["why"]:
        return f"none: {context['why']}"
    found = context["comparison"]
    before, after = found["without"], found["with_context"]
    change = f"{'lowers' if after < before else 'raises'} the log loss of held-out documents from {number(before)} to {number(after)}"
    if after > before and context["kept"] and context["when"] == "no_worse":
        change = f"makes no clear difference: the log loss of held-out documents is {number(before)} without it and {number(after)} with it"
    said = "kept" if context["kept"] else "not kept"
    asked = " as asked, though" if after > before and context["kept"] and context["when"] == "always" else ":"
    return f"{said}{asked} it {change} (standard error of the difference {number(found['error'], 5)})"


def show_context(context: Mapping[str, Any]) -> None:
    """Print what the features weigh."""
    if not context["weights"]:
        return
    msg.divider("What context looks at" + ("" if context["kept"] else " (not kept)"))
    rows = [(one["what"], _weight(one["leading"]), _weight(one["others"])) for one in context["weights"]]
    print_table(rows, ("One standard deviation more of", "Likeliest tag", "Other tags"), ("l", "r", "r"))
    msg.text(
        f"The numbers are added to the log-odds that the tag is right: with a number above 0 it is likelier right than its score says. "
        f"{context['forms']:,} forms were counted on {context['counted_on']}."
    )
    strongest = max(context["weights"], key=lambda one: abs(one["leading"]))
    msg.text(f"Most telling: {in_words(strongest)}.")


def show_span_context(context: Mapping[str, Any] | None, several: str) -> None:
    """The same for spans. several (str): What these are called."""
    if context is None or not context["weights"]:
        return
    msg.divider(f"What context looks at for {several}" + ("" if context["kept"] else " (not kept)"))
    rows = [(one["what"], _weight(one["weight"])) for one in context["weights"]]
    print_table(rows, ("One standard deviation more of", "Log-odds"), ("l", "r"))


def in_words(one: Mapping[str, Any]) -> str:
    """A feature's weight as a sentence."""
    likelier = "likelier" if one["leading"] > 0 else "less likely"
    return f"{one['what']}: {_weight(one['leading'])} for one standard deviation more, the likeliest tag is {likelier} right"


def _weight(value: float) -> str:
    return f"{value:+.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:+.2f}"
