"""What `spacy calib fit` prints of a fit, and `spacy calib info` again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...pairs.documents import TOKEN
from ..shared.gold import unknown_sentence
from ..shared.screen import msg, number, print_table
from .context import context_line
from .promises import warn_of_promises

if TYPE_CHECKING:
    from ...calibration.sufficiency import HeldOut
    from ...pipe.component import Calibrator
    from ...pipe.fit_info import FitInfo, FitRow


def show_fit(calib: Calibrator, output: Path) -> None:
    """Print what was fitted, and the errors on the fit data."""
    info = calib.fit_info
    several = words_of_spans(info)[1]
    msg.good(
        f"Calibrated {info.component or 'the source'} on {info.tokens:,} {info.row_unit}s ({info.pairs:,} pairs): {output}"
    )
    why = " (no --train-data was given)" if info.counted_on == "the fit data" else ""
    msg.info(f"Tag frequencies were counted on {info.counted_on}{why}")
    if calib.source.says:
        msg.info(f"Scores: {calib.source.says}")
    if info.unknown is not None:
        msg.warn(unknown_sentence(info.unknown, info.component or "the source", info.row_unit))
    if info.sampled is not None:
        msg.info(f"A sample was looked at: {sampled_line(info.sampled)}")
    warn_of_promises(info)
    warn_of_held_out(info.held_out, info.row_unit, sampled=info.sampled is not None)
    if info.selection:
        say_what_was_chosen(info.selection)
    if info.context:
        msg.info(f"Context {context_line(info.context)}")
        if info.spans is not None:
            msg.info(f"Context of {several} {context_line(info.spans.context)}")
    print_fit_tables(info)


def sampled_line(sampled: Mapping[str, Any]) -> str:
    """What was looked at document by document, and what all pairs were counted for."""
    tables = ", ".join(sampled["tables"])
    rest = f"; {tables} of all pairs" if tables else "; nothing of all pairs"
    return f"{sampled['documents']:,} documents one by one ({sampled['pairs']:,} pairs){rest}"


def words_of_spans(info: FitInfo) -> tuple[str, str]:
    """What the spans of a fitted pipe are called, one and several."""
    from ...doc.annotations import get_annotation

    return get_annotation(info.layer).span_words


def warn_of_held_out(held: HeldOut | None, unit: str = TOKEN, *, sampled: bool = False) -> None:
    """Say where calibrated scores are not clearly better than raw ones. unit (str): What has labels. sampled (bool): Of all, a sample was judged."""
    if held is not None and held.verdict == "unclear":
        msg.warn(
            f"On held-out parts of these {held.tokens:,} {unit}s calibrated scores are not clearly better than raw ones: log loss "
            f"{number(held.calibrated)}, raw {number(held.raw)} (standard error of the difference {number(held.error)}); "
            f"{'a larger sample (`calib collect --sample`)' if sampled else 'more data'} would help, or the raw scores are true already"
        )


def say_what_was_chosen(selection: Mapping[str, Any]) -> None:
    """Print which candidate was chosen among how many, or why none could be chosen."""
    if selection.get("too_few"):
        msg.warn(
            f"Too little data to choose a method ({selection['too_few']}); taken was the smallest safe one: {selection['chosen']}"
        )
        return
    n = len(selection["trials"]) + selection.get("dropped", 0)
    msg.info(f"Chosen among {n}: {selection['chosen']} (`spacy calib info` shows the table)")


def print_fit_tables(info: FitInfo) -> None:
    """Print the errors on the fit data, and where spans are scored theirs too."""
    where = "the FIT data" if info.sampled is None else "the sample of the FIT data"
    print_fit_table(info.table, f"SMCE (all) and GMCE (groups) on {where}: too good to be true")
    spans = info.spans
    if spans is not None:
        one, several = words_of_spans(info)
        msg.text(f"{spans.spans:,} predicted {several}, {spans.right:,} right (event: {spans.event})")
        if spans.fallback:
            msg.warn(f"{one.capitalize()} scores are passed through as they are: {spans.fallback}")
        print_fit_table(spans.table, f"The same for whole {several}")


def print_fit_table(table: list[FitRow], title: str) -> None:
    """Print one table under a title."""
    rows = [
        (
            row.group,
            f"{row.tags:,}",
            number(None if row.share is None else 100 * row.share, 1),
            f"{row.pairs:,}",
            number(row.raw),
            number(row.calibrated),
            row.fallback or "own",
        )
        for row in table
    ]
    msg.divider(title)
    header = ("Group", "Tags", "% gold", "Pairs", "Raw", "Calibrated", "Map")
    print_table(rows, header, ("l", "r", "r", "r", "r", "r", "l"))
