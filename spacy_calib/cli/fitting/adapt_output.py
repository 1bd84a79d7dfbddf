"""What `spacy calib adapt` prints of an adaptation, and `spacy calib info` again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...pairs.documents import count_in_words
from ..shared.evidence import show_other_weights
from ..shared.screen import first_of, msg, number, print_table
from .fit_output import few_sentence

if TYPE_CHECKING:
    from ...pipe.component import Calibrator

_OFFSETS_SHOWN = 8


def show_adaptation(calib: Calibrator, made: Mapping[str, Any], output: Path) -> None:
    """Print what the last adaptation learned, and how far it can be trusted. made (Mapping): What it says of itself."""
    unit = calib.fit_info.row_unit
    show_other_weights(calib.lookup.weights_changed())
    tell, sentence = what_it_gains(calib, made)
    tell(f"Adapted {calib.source.component or 'the source'} to {how_many(made, unit)}: {output}")
    for part, what in (("tokens", "label"), ("spans", "entity")):
        if made[part] is not None and made[part]["before"] is not None:
            show_part(made[part], what, unit)
    show_trust(made, unit)
    if made["sets_dropped"]:
        msg.warn(
            "The sets of tags are dropped: so few labelled documents cannot say how often they would miss; give more, or fit anew"
        )
    if made["cutoffs_dropped"]:
        msg.warn("The cut-offs are dropped: they belong to the scores before; run `spacy calib threshold` again")
    if sentence:
        tell(sentence)


def what_it_gains(calib: Calibrator, made: Mapping[str, Any]) -> tuple[Callable[[str], Any], str]:
    """(how to print that a pipe was adapted: as a success only where held-out scores lose less than those before; both losses in words)."""
    from ...annotations import get_annotation

    info, annotation = calib.fit_info, get_annotation(calib.fit_info.layer)
    of_spans = made["spans"] is not None and made["spans"]["before"] is not None and annotation.spans_first
    part, unit = (made["spans"], annotation.span_words[0]) if of_spans else (made["tokens"], info.row_unit)
    before, after = part["before"], part["after"]
    if before is None or after is None:
        return msg.info, ""
    losses = f"Held-out log loss of {count_in_words(unit, part['entries'])}: {number(before['log_loss'])} before, {number(after['log_loss'])} adapted"
    if few := few_sentence(unit, part["entries"]):
        return msg.info, f"{losses}. {few}."
    is_better = after["log_loss"] < before["log_loss"]
    advice = "." if is_better else ": it is not better here, so the pipeline as it was may serve as well."
    return msg.good if is_better else msg.info, losses + advice


def how_many(made: Mapping[str, Any], unit: str) -> str:
    """unit (str): What has labels, "token" or "document"."""
    entities = "" if made["spans"] is None else f", {made['spans']['entries']:,} entities"
    return f"{count_in_words(made['unit'], made['docs'])} ({made['tokens']['entries']:,} {unit}s{entities})"


def show_part(part: Mapping[str, Any], what: str, unit: str) -> None:
    """Print what was learned of labels, or of entities. unit (str): What has labels."""
    before, after = part["before"], part["after"]
    who = f"the likeliest label of a {unit}" if what == "label" else "an entity"
    share = 100 * part["right"] / part["entries"]
    msg.divider(f"{unit.capitalize()}s" if what == "label" else "Entities")
    msg.text(f"On these documents {who} had a mean score of {before['expected']:.3f} and was right in {share:.1f} % of cases.")
    msg.text(f"Learned: {line_in_words(part['leading'])}{offsets_in_words(part['offsets'])}.")
    rows = [row_of("Before", before), *([] if after is None else [row_of("After, held out", after)])]
    print_table(rows, ("", "Log loss", "ECE", "Score - true", "95 % interval"), ("l", "r", "r", "r", "r"))


def row_of(name: str, judged: Mapping[str, Any]) -> tuple[str, ...]:
    gap = judged["gap"]
    interval = "-" if gap["low"] is None else f"{gap['low']:+.4f} to {gap['high']:+.4f}"
    return name, number(judged["log_loss"]), number(judged["ece"]), f"{gap['value']:+.4f}", interval


def line_in_words(line: Mapping[str, float]) -> str:
    """What a line makes of a few scores: "0.95 becomes 0.82"."""
    from ...calibration.adaptation.adaptation import Line
    from ...calibration.recalibrators.logistic import log_odds, sigmoid

    if Line(**line) == Line():
        return "nothing that all scores share"
    import numpy as np

    scores = np.array([0.6, 0.9, 0.99])
    moved = sigmoid(Line(**line).adjust(log_odds(scores)))
    each = ", ".join(f"{score:g} becomes {new:.3f}" for score, new in zip(scores, moved, strict=True))
    return f"{each} (log-odds times {line['slope']:.2f}, {line['intercept']:+.2f})"


def offsets_in_words(offsets: Mapping[str, float]) -> str:
    """The greatest ones."""
    if not offsets:
        return ""
    return f"; by label: {first_of([f'{label} {value:+.2f}' for label, value in offsets.items()], _OFFSETS_SHOWN)}"


def show_trust(made: Mapping[str, Any], unit: str) -> None:
    """Print how far scores can be trusted on other documents of this kind. unit (str): What has labels."""
    if made["seen"] is not None and made["seen"]["many"]:
        msg.warn(
            f"{100 * made['seen']['share']:.0f} % of the words are in documents that the pipe was fitted on: there is little new to "
            "learn from them; label texts of the new kind"
        )
    parts = {f"a {unit}": made["tokens"]["after"], "an entity": (made["spans"] or {}).get("after")}
    gaps = [
        f"{what} is off by {after['gap']['low']:+.3f} to {after['gap']['high']:+.3f}"
        for what, after in parts.items()
        if after is not None
    ]
    if not gaps:
        msg.warn(
            "There is one document only. How documents differ is not to be known from one: nothing says how true the scores are on others, "
            "and `calib expect` has no record of this kind; label more"
        )
        return
    msg.text(
        f"Each document was judged by what the others teach ({count_in_words(made['unit'], made['docs'])}). On texts of this kind the mean score of "
        f"{', that of '.join(gaps)}, with 95 % confidence; more documents make that narrower."
    )
    if made["tokens"]["after"] is None:
        msg.warn(
            "Answers about entities say nothing of tokens: `calib expect` has no record of this kind; label whole documents too"
        )


def adaptation_line(made: Mapping[str, Any], unit: str) -> str:
    """One adaptation in one line, for `info`. unit (str): What has labels."""
    parts = [how_many(made, unit)]
    for part, name in (("tokens", f"{unit}s"), ("spans", "entities")):
        if made[part] is not None and made[part]["before"] is not None:
            before, after = made[part]["before"], made[part]["after"]
            held_out = (
                "" if after is None else f", log loss {before['log_loss']:.4f} before, {after['log_loss']:.4f} after (held out)"
            )
            parts.append(f"{name}: {line_in_words(made[part]['leading'])}{held_out}")
    return "; ".join(parts)
