"""What `spacy calib fit` prints of a fit, its context and its promises, and `spacy calib info` again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...calibration.replacement import fewest_of, is_enough
from ...calibration.sufficiency import tokens_for_sets
from ...context.tokens import FURTHER
from ...pairs.documents import LABEL_WORDS, caveat_of, counted
from ..shared.evidence import unknown_sentence
from ..shared.screen import Column, first_of, msg, number, print_table, show_rows, whole
from .conventions import show_conventions

if TYPE_CHECKING:
    from ...calibration.fit_summaries import HeldOut
    from ...pipe.component import Calibrator
    from ...pipe.fit_info import FitInfo, FitRow


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
    if context["when"] == FURTHER:
        msg.text(f"Beside the score of the likeliest label the fit looks at {', '.join(context['columns'])}.")
        return
    msg.divider("What context looks at")
    words = f"{context['endings']:,} endings and {context['forms']:,} forms that the fit data have at least three times"
    looked = ["its score, its rival's and how evenly scores are spread", "the tag beside its rival"]
    looked += [words, "the tags before and behind", "title case and numbers"] if context["endings"] else []
    for one in [*looked, *context["columns"]]:
        msg.text(f"- {one}")
    msg.text(
        f"{context['size']:,} numbers, held back by a ridge of {context['ridge']:g}. "
        f"{100 * context['reordered']:.1f} % of the held-out tokens have another likeliest tag by the calibrated scores."
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


_TAGS_NAMED = 8


def warn_of_sets(sets: Mapping[str, Any], rows: str) -> None:
    """Say for which tags, or for how many tokens, the sets promise nothing, and how many would be empty. rows (str): What has sets."""
    worth = tokens_for_sets(sets["alpha"])[1]
    if sets["tokens"] < worth:
        msg.warn(
            f"The sets are made of {sets['tokens']:,} {rows}: what they miss may be far from {100 * sets['alpha']:g} %, for which {worth:,} "
            "at least are wanted; give more data or a larger --components.calib.sets.alpha"
        )
    share = f"{number(100 * sets['out_of_reach'], 1)} % of the fit {rows}"
    tags = sets["unreached"]
    if tags:
        others = sets["tags"] - len(tags)
        held = f"; it holds for each of the other {others}" if others else ", so that there are no sets"
        msg.warn(
            f"The sets can promise nothing for {len(tags)} tags ({share}), seen too seldom or scored too low: {name_tags(tags)}{held}"
        )
    elif sets["out_of_reach"]:
        msg.warn(
            f"The sets can promise nothing for {share}, which have none: "
            f"there are too few {rows}, or the right tag is below the threshold too often; give more data or a larger --components.calib.sets.alpha"
        )
    if sets["empty"]:
        what = (
            "these hold the likeliest label alone (--components.calib.sets.nonempty false leaves them empty)"
            if sets["nonempty"]
            else "these are empty (without --components.calib.sets.nonempty false they hold the likeliest label)"
        )
        msg.warn(
            f"Sets that may miss {100 * sets['alpha']:g} % need no label at all in {number(100 * sets['empty'], 1)} % of the fit {rows}: "
            f"{what}; a smaller --components.calib.sets.alpha, below the share of wrong labels, has none of these"
        )


def warn_of_offsets(scaling: Mapping[str, Any] | None) -> None:
    """Say that tag offsets were asked for and are all 0."""
    biased = scaling is not None and scaling["biased"]
    why = "the scaling has a bias for each tag already" if biased else "no tag differs from its group by more than chance"
    msg.warn(f"The tag offsets change nothing: all are 0, as {why}; leave out the setting pooling")


def name_tags(tags: list[str]) -> str:
    """The first few tags, and how many more there are."""
    return first_of(tags, _TAGS_NAMED)


def show_fit(calib: Calibrator, output: Path, gains: bool | None = None) -> None:
    """Print what was fitted, and the errors on the fit data.

    gains (bool | None): Whether it is better than the calibration that was there; None compares it with raw scores.
    """
    info = calib.fit_info
    verdict = verdict_on(info)
    tell = msg.good if gains_over_raw(info) and gains is not False else msg.info
    if verdict:
        tell(verdict)
    tell(f"Calibrated {info.component or 'the source'} on {info.tokens:,} {info.row_unit}s ({info.pairs:,} pairs): {output}")
    if few := few_in_words(info):
        msg.warn(few)
    if not info.tokens and info.spans is not None:
        several = words_of_spans(info)[1]
        msg.warn(
            f"Answers about {several} say nothing of tokens, whose scores stay as they were; whole texts with all {several} teach both"
        )
    if caveat := caveat_of(info.unit, info.docs):
        msg.info(caveat)
    why = " (no --train-data was given)" if info.counted_on == "the fit data" else ""
    msg.info(f"{LABEL_WORDS[info.row_unit][0].capitalize()} frequencies were counted on {info.counted_on}{why}")
    if calib.source.settings_summary:
        msg.info(f"Scores: {calib.source.settings_summary}")
    if info.unknown is not None:
        msg.warn(unknown_sentence(info.unknown, info.component or "the source", info.row_unit))
    if info.sets:
        warn_of_sets(info.sets, f"{info.row_unit}s")
    if info.pooling and info.pooling["strength"] is info.pooling["group_strength"] is None:
        warn_of_offsets(info.scaling)
    if info.held_out is not None and info.held_out.verdict == "unclear":
        msg.warn(
            f"On held-out parts of these {info.held_out.tokens:,} {info.row_unit}s calibrated scores are not clearly better than raw ones: log loss "
            f"{number(info.held_out.calibrated)}, raw {number(info.held_out.raw)} (standard error of the difference {number(info.held_out.error)}); "
            f"more data would help, or the raw scores are true already"
        )
    if info.selection:
        msg.info(
            f"Chosen among {len(info.selection['trials'])}: {info.selection['chosen']} (`spacy calib info` shows the table)"
        )
    if info.context:
        msg.info(f"Context {context_line(info.context)}")
        if info.spans is not None:
            msg.info(f"Context of {words_of_spans(info)[1]} {context_line(info.spans.context)}")
    print_fit_tables(info)
    show_conventions(info.conventions)


def shows_spans(info: FitInfo) -> bool:
    """Whether a fit is judged by its spans."""
    from ...annotations import get_annotation

    return info.spans is not None and info.spans.held_out is not None and get_annotation(info.layer).spans_first


def gains_over_raw(info: FitInfo) -> bool:
    """Whether held-out scores lose less than raw ones, on enough labels to say so."""
    held = info.spans.held_out if info.spans is not None and shows_spans(info) else info.held_out
    return held is not None and held.calibrated < held.raw and not few_in_words(info)


def few_in_words(info: FitInfo) -> str:
    """Say that there is too little gold to show that scores got better; "" where there is enough."""
    unit, n = info.row_unit, info.tokens
    if info.spans is not None and (shows_spans(info) or not n):
        unit, n = words_of_spans(info)[0], info.spans.spans
    return few_sentence(unit, n)


def few_sentence(unit: str, n: int) -> str:
    """unit (str): Of what has gold; n (int): How many."""
    if is_enough(unit, n):
        return ""
    return f"Too little gold to show that scores got better: {counted(unit, n)}, and {fewest_of(unit)} are wanted; label more"


def verdict_on(info: FitInfo) -> str:
    """How far the scores of a component were off, and how far calibrated ones are, in one sentence; "" where that was not judged."""
    held, of = info.held_out, f"the likeliest label of each {info.row_unit}"
    if info.spans is not None and shows_spans(info):
        held, of = info.spans.held_out, f"predicted {words_of_spans(info)[1]}"
    whose = f"The scores of '{info.component}'" if info.component else "The scores"
    return "" if held is None else verdict_sentence(whose, held, of)


def verdict_sentence(whose: str, held: HeldOut, of: str) -> str:
    """whose (str): Begins it. of (str): What was judged."""
    from ...metrics.sentences import leaning_in_words

    before = f"off by {number(held.off_raw, 3)} on average, {leaning_in_words(held.excess, held.off_raw)}"
    where = f"({of}, on parts of the data that were held out in turn)"
    if held.verdict == "same":
        return f"{whose} are {before}, and stay as they are {where}"
    return f"{whose} were {before}; calibrated, they are off by {number(held.off, 3)} {where}"


def words_of_spans(info: FitInfo) -> tuple[str, str]:
    """What the spans of a fitted pipe are called, one and several."""
    from ...annotations import get_annotation

    return get_annotation(info.layer).span_words


def print_fit_tables(info: FitInfo) -> None:
    """Print the errors on the fit data, and where spans are scored theirs too."""
    several = LABEL_WORDS[info.row_unit][1]
    print_fit_table(info.table, "Errors on the FIT data: too good to be true", several)
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
