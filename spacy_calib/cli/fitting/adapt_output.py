"""Print or describe an adaptation for `spacy calib adapt`, `fit` and `info`. Its dict is one of `fit_info.adaptations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calibration.adaptation.adaptation import Line
from ...calibration.solvers import log_odds, sigmoid
from ...pairs.documents import count_in_words
from ..shared.screen import first_of, interval, msg, number, print_table, show_other_weights
from .fit_output import too_few_sentence

if TYPE_CHECKING:
    from ...pipe.component import Calibrator

_OFFSETS_SHOWN = 8


def show_adaptation(calib: Calibrator, adaptation: Mapping[str, Any], output: Path) -> None:
    """Print what an adaptation (one of `fit_info.adaptations`) learned, and errors before and after. output: Written folder."""
    unit = calib.fit_info.kind.unit
    show_other_weights(calib.lookup.weights_changed())
    print_verdict, loss_sentence = compare_losses(calib, adaptation)
    print_verdict(f"Adapted {calib.source.component or 'the source'} to {count_units(adaptation, unit)}: {output}")
    for key, kind in (("tokens", "label"), ("spans", "entity")):
        if adaptation[key] is not None and adaptation[key]["before"] is not None:  # else there is no gold for these
            show_part(adaptation[key], kind, unit)
    show_trust(adaptation, unit)
    if any((calib.spans.cutoffs, calib.tokens.label_cutoffs, calib.tokens.recall_cutoffs)):
        msg.text("The cut-offs stay, as a score means the same; `spacy calib threshold` can make a promise for these texts.")
    if loss_sentence:
        print_verdict(loss_sentence)


def compare_losses(calib: Calibrator, adaptation: Mapping[str, Any]) -> tuple[Callable[[str], Any], str]:
    """Return (function to print the verdict with, sentence on the log losses before and after an adaptation).

    The function is `msg.good` if the loss is lower and there is enough gold, else `msg.info`. The losses are of spans, such as
    entities, if these have gold and are not arcs; else of labels. A single document has no held-out losses: the sentence is "".
    """
    kind, spans = calib.fit_info.kind, adaptation["spans"]
    part, unit = adaptation["tokens"], kind.unit
    if spans is not None and spans["before"] is not None and not kind.of_arcs:
        part, unit = spans, kind.span_words[0]
    if part["before"] is None or part["after"] is None:
        return msg.info, ""
    old_loss, new_loss = part["before"]["log_loss"], part["after"]["log_loss"]
    amount = count_in_words(unit, part["entries"])
    losses = f"Held-out log loss of {amount}: {number(old_loss)} before, {number(new_loss)} adapted"
    if sentence := too_few_sentence(unit, part["entries"]):
        return msg.info, f"{losses}. {sentence}."
    is_better = new_loss < old_loss
    advice = "." if is_better else ": no gain here, so you may keep the pipeline as it was."
    return msg.good if is_better else msg.info, losses + advice


def count_units(adaptation: Mapping[str, Any], unit: str) -> str:
    """Return what an adaptation read: "8 documents (2,000 tokens, 90 entities)". unit: "token" or "document"."""
    entities = "" if adaptation["spans"] is None else f", {adaptation['spans']['entries']:,} entities"
    return f"{count_in_words(adaptation['unit'], adaptation['docs'])} ({adaptation['tokens']['entries']:,} {unit}s{entities})"


def show_part(part: Mapping[str, Any], kind: str, unit: str) -> None:
    """Print one part of an adaptation: "tokens" (kind: "label") or "spans" (kind: "entity"). unit: "token" or "document"."""
    old_scores, new_scores = part["before"], part["after"]
    subject = f"the top label of a {unit}" if kind == "label" else "an entity"
    expected, share = old_scores["expected"], 100 * part["right"] / part["entries"]
    msg.divider(f"{unit.capitalize()}s" if kind == "label" else "Entities")
    msg.text(f"On these documents {subject} had a mean score of {expected:.3f} and was right in {share:.1f} % of cases.")
    offsets = [f"{label} {offset:+.2f}" for label, offset in part["offsets"].items()]  # in log-odds, largest first
    by_label = f"; by label: {first_of(offsets, _OFFSETS_SHOWN)}" if offsets else ""
    msg.text(f"Learned: {line_in_words(part['leading'])}{by_label}.")
    rows = [table_row("Before", old_scores), *([] if new_scores is None else [table_row("After, held out", new_scores)])]
    print_table(rows, ("", "Log loss", "ECE", "Score - right", "95 % interval"), ("l", "r", "r", "r", "r"))


def table_row(name: str, scores: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row: name, "log_loss", "ece" and "gap" (mean score - share of right ones) with its interval."""
    gap = scores["gap"]
    return name, number(scores["log_loss"]), number(scores["ece"]), f"{gap['value']:+.4f}", interval(gap, "{:+.4f}".format)


def line_in_words(line: Mapping[str, float]) -> str:
    """Describe a line in log-odds, {"slope", "intercept"}, by its effect on a few scores: "0.9 becomes 0.820"."""
    if Line(**line) == Line():
        return "no common change of all scores"
    scores = np.array([0.6, 0.9, 0.99])
    adjusted_scores = sigmoid(Line(**line).adjust(log_odds(scores)))
    examples = ", ".join(f"{score:g} becomes {adjusted:.3f}" for score, adjusted in zip(scores, adjusted_scores, strict=True))
    return f"{examples} (log-odds times {line['slope']:.2f}, {line['intercept']:+.2f})"


def show_trust(adaptation: Mapping[str, Any], unit: str) -> None:
    """Print how far mean scores after an adaptation may be off on other texts of its domain. unit: "token" or "document"."""
    tokens, spans = adaptation["tokens"], adaptation["spans"]
    if adaptation["seen"] is not None and adaptation["seen"]["many"]:
        msg.warn(
            f"{100 * adaptation['seen']['share']:.0f} % of the words are in documents that the pipe was fitted on, so there "
            "is little new to learn; label texts of the new domain"
        )
    # Cross-validated figures after the adaptation; None for a single document, or without gold.
    figures_of = {f"a {unit}": tokens["after"], "an entity": None if spans is None else spans["after"]}
    gaps = [
        f"{subject} is off by {figures['gap']['low']:+.3f} to {figures['gap']['high']:+.3f}"
        for subject, figures in figures_of.items()
        if figures is not None
    ]
    if not gaps:
        msg.warn(
            "A single document cannot show how documents differ, so the calibration on others is unknown, and `calib expect` "
            "has no record of this domain; label more documents"
        )
        return
    msg.text(
        f"Cross-validation over {count_in_words(adaptation['unit'], adaptation['docs'])}: on other texts of this domain the "
        f"mean score of {', that of '.join(gaps)}, with 95 % confidence; more documents make the interval narrower."
    )
    if tokens["after"] is None:
        msg.warn(
            "Answers about entities have no gold for tokens, so `calib expect` has no record of this domain; label whole "
            "documents too"
        )


def adaptation_line(adaptation: Mapping[str, Any], unit: str) -> str:
    """Describe an adaptation in one line, for `info`: its data, lines and log losses. unit (str): "token" or "document"."""
    parts = [count_units(adaptation, unit)]
    for key, name in (("tokens", f"{unit}s"), ("spans", "entities")):
        part = adaptation[key]
        if part is not None and part["before"] is not None:
            losses = ""
            if part["after"] is not None:
                losses = f", log loss {part['before']['log_loss']:.4f} before, {part['after']['log_loss']:.4f} after (held out)"
            parts.append(f"{name}: {line_in_words(part['leading'])}{losses}")
    return "; ".join(parts)
