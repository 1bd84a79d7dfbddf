"""Print the result of a fit for `spacy calib fit` and `info`: its verdict, context and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...calibration.replacement import fewest_of, is_enough
from ...context.tokens import FURTHER_SCORES
from ...pairs.documents import caveat_of, count_in_words
from ..shared.gold import unknown_sentence
from ..shared.screen import TableColumn, msg, number, print_table, show_rows, whole
from .conventions import show_conventions

if TYPE_CHECKING:
    from ...pipe.component import Calibrator
    from ...pipe.state import FitInfo


def context_line(context: Mapping[str, Any] | None) -> str:
    """Return in words whether a fit uses the context of tokens or spans, and how that changes its log loss.

    context (Mapping | None): "why" (not tried), "kept" (it is used), "comparison" of log losses; None gives "".
    """
    if context is None:
        return ""
    if context["why"]:
        return f"not used: {context['why']}"
    comparison = context["comparison"]
    loss_without, loss_with = comparison["without"], comparison["with_context"]
    is_lower = loss_with <= loss_without
    verb = "lowers" if is_lower else "raises"
    change = f"{verb} the log loss of held-out documents from {number(loss_without)} to {number(loss_with)}"
    standard_error = f"(standard error of the difference {number(comparison['error'], 5)})"
    if context["kept"]:
        used = "used:" if is_lower else "used as requested, though"
        return f"{used} it {change} {standard_error}"
    reason = ", and another method has a lower one" if is_lower else ""
    return f"not used: it {change}{reason} {standard_error}"


def show_context(context: Mapping[str, Any]) -> None:
    """Print the features of the context model of tokens, if it is used. context (Mapping): `fit_info.context`."""
    if not context["kept"]:
        return
    if context["when"] == FURTHER_SCORES:
        msg.text(f"In addition to the score of the top label the fit uses {', '.join(context['columns'])}.")
        return
    msg.divider("Features of the context")
    features = ["the score of the tag, that of its rival, and how evenly scores are spread", "the tag together with its rival"]
    if context["endings"]:  # else the model reads only scores
        words = f"{context['endings']:,} endings and {context['forms']:,} forms that occur at least three times in the fit data"
        features += [words, "the previous and the next tag", "title case and digits"]
    for feature in [*features, *context["columns"]]:
        msg.text(f"- {feature}")
    msg.text(
        f"{context['size']:,} coefficients with an L2 penalty of {context['ridge']:g}. "
        f"{100 * context['reordered']:.1f} % of the held-out tokens have another top tag by the calibrated scores."
    )


def show_span_context(context: Mapping[str, Any] | None, plural: str) -> None:
    """Print the weights of the context features of spans (`fit_info.spans.context`), if any. plural: "entities"."""
    if context is None or not context["weights"]:
        return
    msg.divider(f"Features of the context of {plural}" + ("" if context["kept"] else " (not used)"))
    rows = [(feature["what"], _weight(feature["weight"])) for feature in context["weights"]]
    print_table(rows, ("One standard deviation more of", "Log-odds"), ("l", "r"))


def _weight(value: float) -> str:
    """Format a weight with its sign and two decimals, without a 0 before the point: "+.25"."""
    return f"{value:+.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:+.2f}"


def show_fit(calib: Calibrator, output: Path, gains: bool | None = None) -> None:
    """Print the result of a fit, and its cross-validated errors. output (Path): Folder of the pipeline.

    gains (bool | None): Whether the fit is better than the calibration that it replaces; None if it replaces none.
    """
    from .held_out import held_out_rows, show_held_out

    info = calib.fit_info
    verdict = verdict_on(info)
    print_verdict = msg.good if gains_over_raw(info) and gains is not False else msg.info
    if verdict:
        print_verdict(verdict)
    component = info.component or "the source"
    print_verdict(f"Calibrated {component} on {info.tokens:,} {info.kind.unit}s ({info.pairs:,} pairs): {output}")
    _show_fit_data(info)
    if calib.source.settings_summary:
        msg.info(f"Scores: {calib.source.settings_summary}")
    if info.unknown is not None:
        msg.warn(unknown_sentence(info.unknown, component, info.kind.unit))
    _warn_of_zero_offsets(info)
    _warn_of_no_gain(info)
    _show_choices(info)
    show_spans(info)
    show_held_out(calib, held_out_rows(calib))
    show_conventions(info.conventions)


def _show_fit_data(info: FitInfo) -> None:
    """Warn if the gold of a fit was too little or had no tokens; print on which data the label frequencies were counted."""
    if sentence := too_little_gold(info):
        msg.warn(sentence)
    if not info.tokens and info.spans is not None:
        plural = info.kind.span_words[1]
        msg.warn(
            f"Answers about {plural} have no gold for tokens, whose scores stay raw; whole texts with all {plural} are gold "
            "for both"
        )
    if caveat := caveat_of(info.unit, info.docs):
        msg.info(caveat)
    why = " (no --train-data was given)" if info.counted_on == "the fit data" else ""
    msg.info(f"{info.kind.label_words[0].capitalize()} frequencies were counted on {info.counted_on}{why}")


def _warn_of_zero_offsets(info: FitInfo) -> None:
    """Warn if tag offsets, a correction of each tag's scores, were requested and are all 0, and why."""
    offsets = info.tag_offsets  # strength of each penalty; None if it makes all these offsets 0
    if not offsets or offsets["strength"] is not None or offsets["group_strength"] is not None:
        return
    has_bias = info.scaling is not None and info.scaling["biased"]
    why = "the scaling has a bias for each tag already" if has_bias else "no tag differs from its group by more than chance"
    msg.warn(f"The tag offsets change nothing: all are 0, as {why}; leave out the setting tag_offsets")


def _warn_of_no_gain(info: FitInfo) -> None:
    """Warn if cross-validation does not show that calibrated scores are better than raw ones."""
    losses = info.held_out
    if losses is None or losses.verdict not in ("unclear", "worse"):
        return
    contrast = "worse than" if losses.verdict == "worse" else "not clearly better than"
    msg.warn(
        f"By cross-validation on these {losses.tokens:,} {info.kind.unit}s calibrated scores are {contrast} raw "
        f"ones: log loss {number(losses.calibrated)}, raw {number(losses.raw)} (standard error of the "
        f"difference {number(losses.error)}); more data may help, or the raw scores are well calibrated already"
    )


def _show_choices(info: FitInfo) -> None:
    """Print which method a fit chose by cross-validation, if it did, and whether the context of tokens and of spans is used."""
    if selection := info.selection:
        msg.info(f"Chosen among {len(selection['trials'])}: {selection['chosen']} (`spacy calib info` shows the table)")
    if info.context:
        msg.info(f"Context {context_line(info.context)}")
        if info.spans is not None and info.spans.context:
            msg.info(f"Context of {info.kind.span_words[1]} {context_line(info.spans.context)}")


def is_span_fit(info: FitInfo) -> bool:
    """Whether the verdict on a fit is about its spans, not its tokens: spans are cross-validated, and labels are not arcs."""
    return info.spans is not None and info.spans.held_out is not None and not info.kind.of_arcs


def gains_over_raw(info: FitInfo) -> bool:
    """Whether the cross-validated log loss of a fit is below that of raw scores, on enough gold to show it; else False."""
    losses = info.spans.held_out if info.spans is not None and is_span_fit(info) else info.held_out
    return losses is not None and losses.calibrated < losses.raw and not too_little_gold(info)


def too_little_gold(info: FitInfo) -> str:
    """Return a sentence that the fit had too little gold to show that scores improved; "" if it had enough."""
    unit, n = info.kind.unit, info.tokens
    if info.spans is not None and (is_span_fit(info) or not n):
        unit, n = info.kind.span_words[0], info.spans.spans
    return too_few_sentence(unit, n)


def too_few_sentence(unit: str, n: int) -> str:
    """Return a sentence that n units are too few to show that scores improved; "" if they are enough. unit (str): "token"."""
    if is_enough(unit, n):
        return ""
    amount = count_in_words(unit, n)
    return f"Too little gold to show that scores improved: {amount}, but {fewest_of(unit)} are needed; label more"


def verdict_on(info: FitInfo) -> str:
    """Return a sentence on how far raw and calibrated scores are off by cross-validation; "" without cross-validation."""
    from ...metrics.sentences import leaning_in_words

    losses, units = info.held_out, f"the top label of each {info.kind.unit}"
    if info.spans is not None and is_span_fit(info):
        losses, units = info.spans.held_out, f"predicted {info.kind.span_words[1]}"
    if losses is None:
        return ""
    subject = f"The scores of '{info.component}'" if info.component else "The scores"
    raw_error = f"off by {number(losses.off_raw, 3)} on average, {leaning_in_words(losses.excess, losses.off_raw)}"
    basis = f"({units}, by cross-validation)"
    if losses.verdict == "same":
        return f"{subject} are {raw_error}, and stay as they are {basis}"
    return f"{subject} were {raw_error}; calibrated, they are off by {number(losses.off, 3)} {basis}"


def print_fit_table(info: FitInfo) -> None:
    """Print the cross-validated errors that are saved with a fit, of all labels and of each group, and which map it uses."""
    spans = info.spans if is_span_fit(info) else None
    units = info.kind.span_words[1] if spans is not None else info.kind.label_words[1]
    msg.divider(f"Errors by cross-validation ({units})")
    columns = (
        TableColumn("Group", "group", align="l"),
        TableColumn("Labels", "tags", whole),
        TableColumn("% gold", "share", lambda share: number(100 * share, 1)),
        TableColumn("Pairs", "pairs", whole),
        TableColumn("Raw", "raw", number),
        TableColumn("Calibrated", "calibrated", number),
        TableColumn("Map", "fallback", lambda fallback: fallback or "own", "l"),
    )
    rows = info.table if spans is None else spans.table
    show_rows(({**asdict(row), "fallback": row.fallback or ""} for row in rows), columns)
    show_spans(info)


def show_spans(info: FitInfo) -> None:
    """Print how many predicted spans a fit had, and why their scores stay raw, if they do."""
    if info.spans is None:
        return
    singular, plural = info.kind.span_words
    msg.text(f"{info.spans.spans:,} predicted {plural}, {info.spans.right:,} right (event: {info.spans.event})")
    if info.spans.fallback:
        msg.warn(f"{singular.capitalize()} scores stay raw: {info.spans.fallback}")
