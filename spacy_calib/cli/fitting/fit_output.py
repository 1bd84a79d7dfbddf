"""What `spacy calib fit` prints of a fit, and `spacy calib info` again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...pairs.documents import LABEL_WORDS, TOKEN
from ..shared.gold import unknown_in_short
from ..shared.screen import Column, msg, number, show_rows, whole
from ..shared.sources import sources_line
from .context import context_line
from .promises import warn_of_promises

if TYPE_CHECKING:
    from ...calibration.sufficiency import HeldOut
    from ...pipe.component import Calibrator
    from ...pipe.fit_info import FitInfo, FitRow


def show_fit(calib: Calibrator, output: Path) -> None:
    """Print what was fitted, and the errors on the fit data."""
    info = calib.fit_info
    verdict = verdict_on(info)
    if verdict:
        msg.good(verdict)
    msg.good(
        f"Calibrated {info.component or 'the source'} on {info.tokens:,} {info.row_unit}s ({info.pairs:,} pairs): {output}"
    )
    why = " (no --train-data was given)" if info.counted_on == "the fit data" else ""
    msg.info(f"{LABEL_WORDS[info.row_unit][0].capitalize()} frequencies were counted on {info.counted_on}{why}")
    if info.sources:
        msg.info(f"Sources: {sources_line(info.sources)}")
    if calib.source.says:
        msg.info(f"Scores: {calib.source.says}")
    if info.unknown is not None:
        msg.warn(unknown_in_short(info.unknown, info.component or "the source", info.row_unit))
    if info.sampled is not None:
        msg.info(f"A sample was looked at: {sampled_line(info.sampled)}")
    warn_of_promises(info)
    warn_of_held_out(info.held_out, info.row_unit, sampled=info.sampled is not None)
    if info.selection:
        say_what_was_chosen(info.selection, LABEL_WORDS[info.row_unit][1])
    if info.context:
        msg.info(f"Context {context_line(info.context)}")
        if info.spans is not None:
            msg.info(f"Context of {words_of_spans(info)[1]} {context_line(info.spans.context)}")
    print_fit_tables(info)


def verdict_on(info: FitInfo) -> str:
    """How far the scores of a component were off, and how far calibrated ones are, in one sentence; "" where that was not judged."""
    from ...doc.annotations import get_annotation

    held, of = info.held_out, f"the likeliest label of each {info.row_unit}"
    if info.spans is not None and info.spans.held_out is not None and get_annotation(info.layer).spans_first:
        held, of = info.spans.held_out, f"predicted {words_of_spans(info)[1]}"
    whose = f"The scores of '{info.component}'" if info.component else "The scores"
    return "" if held is None else verdict_sentence(whose, held, of, "the data" if info.sampled is None else "the sample")


def verdict_sentence(whose: str, held: HeldOut, of: str, data: str = "the data") -> str:
    """whose (str): Begins it. of (str): What was judged. data (str): On parts of what. RETURNS (str): "" of an older fit."""
    from ...pages.verdict import leaning_in_words

    if held.off is None or held.off_raw is None or held.excess is None:
        return ""
    before = f"off by {number(held.off_raw, 3)} on average, {leaning_in_words(held.excess, held.off_raw)}"
    where = f"({of}, on parts of {data} that were held out in turn)"
    if held.verdict == "same":
        return f"{whose} are {before}, and stay as they are {where}"
    return f"{whose} were {before}; calibrated, they are off by {number(held.off, 3)} {where}"


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


def say_what_was_chosen(selection: Mapping[str, Any], labels: str) -> None:
    """Print which candidate was chosen among how many, or why none could be chosen. labels (str): What is grouped."""
    chosen = in_plain_words(selection["chosen"], labels)
    if selection.get("too_few"):
        msg.warn(f"Too little data to choose a method ({selection['too_few']}); taken was {chosen}")
        return
    n = len(selection["trials"]) + selection.get("dropped", 0)
    msg.info(f"Chosen among {n}: {chosen} (`spacy calib info` shows the table)")


def in_plain_words(candidate: str, labels: str) -> str:
    """A candidate of a selection without the abbreviation of its groups: "isotonic for each of 5 groups of tags"."""

    def told(found: re.Match[str]) -> str:
        groups = {"one-vs-rest": f"all {labels} one by one", "TFG-1": f"all {labels} together"}
        return f"{found[2]} for {groups.get(found[1], f'each of {found[1][4:]} groups of {labels}')}"

    return re.sub(r"(TFG-\d+|one-vs-rest) (\S+)", told, candidate)


def print_fit_tables(info: FitInfo) -> None:
    """Print the errors on the fit data, and where spans are scored theirs too."""
    where = "the FIT data" if info.sampled is None else "the sample of the FIT data"
    several = LABEL_WORDS[info.row_unit][1]
    print_fit_table(info.table, f"Errors on {where}: too good to be true", several)
    msg.text(
        f"Raw, calibrated: how far scores are from how often they are right (root mean square), of all {several} together (SMCE) and of each "
        "group of them (GMCE)."
    )
    spans = info.spans
    if spans is not None:
        one, several = words_of_spans(info)
        msg.text(f"{spans.spans:,} predicted {several}, {spans.right:,} right (event: {spans.event})")
        if spans.fallback:
            msg.warn(f"{one.capitalize()} scores are passed through as they are: {spans.fallback}")
        print_fit_table(spans.table, f"The same for whole {several}")


def print_fit_table(table: list[FitRow], title: str, labels: str = "tags") -> None:
    """Print one table under a title. labels (str): What the groups are made of."""
    msg.divider(title)
    columns = (
        Column("Group", "group", align="l"),
        Column(labels.capitalize(), "tags", whole),
        Column("% gold", "share", lambda share: number(100 * share, 1)),
        Column("Pairs", "pairs", whole),
        Column("Raw", "raw", number),
        Column("Calibrated", "calibrated", number),
        Column("Map", "fallback", lambda fallback: fallback or "own", "l"),
    )
    show_rows(({**asdict(row), "fallback": row.fallback or ""} for row in table), columns)
