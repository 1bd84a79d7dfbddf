"""The tables of `spacy calib evaluate` on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ...pairs.documents import LABEL_WORDS, by_unit, caveat_of
from ..fitting.conventions import show_conventions
from ..shared.evidence import show_other_weights, show_seen
from ..shared.score_readers import show_event_table
from ..shared.screen import Column, msg, number, show_rows, whole
from ..shared.writing import print_exact
from .outputs import Section


def show_table(name: str, table: dict[str, Any], sections: Sequence[Section] = ()) -> None:
    """Print one pipe's tables. sections (Sequence): What was added to them."""
    from ...annotations import unit_of

    unit = unit_of(table["layer"])
    unfitted = table.get("unfitted")
    msg.divider(f"{name if unfitted is None else 'Raw scores'} ({table['component'] or 'Doc'})")
    entities, raw_only = table.get("entities"), unfitted is not None
    if not table["pairs"]:
        msg.warn(f"Nothing to judge: no {unit} has both gold and a score.")
        if not (entities and entities["pairs"]):
            return
        show_other_weights(table["weights_changed"])
        show_seen(table["seen"])
    else:
        _show_units(table, unit)
        _show_sections(sorted((one for one in sections if one.unit != "entities"), key=_is_last), f"{unit}s")
    if entities is not None:
        msg.divider(f"{name}: whole {entities['called'][1]} (event: {entities['event']})")
        _show_entities(entities, [section for section in sections if section.unit == "entities"], raw_only)
    show_conventions(table.get("conventions"))
    for event in table.get("events", ()):
        show_event_table(event)
    by = table["by"] if entities is None or table["by"]["n"] else entities["by"]  # answers about entities say nothing of tokens
    _show_legend(unit, by_unit(**by), raw_only)
    if caveat := caveat_of(**table["by"]):
        msg.text(f"{caveat}.")
    if unfitted is not None:
        msg.text("This command makes them true, from gold that the pipeline was not trained on, and other than this:")
        print_exact([f"{unfitted['fit']}\n"], json=False)


def _show_entities(entities: dict[str, Any], sections: Sequence[Section], raw_only: bool) -> None:
    """raw_only (bool): Whether there are no calibrated scores."""
    one, several = entities["called"]
    if not entities["pairs"]:
        msg.warn(f"Nothing to judge: no {one} was predicted where there is gold.")
        return
    share = number(None if entities["accuracy"] is None else 100 * entities["accuracy"], 2)
    msg.text(f"{entities['pairs']:,} predicted {several}, {share} % right, {entities['bins']} bins")
    _show_errors(entities, "ECE", "tags", raw_only)
    _show_sections((section for section in sections if not _is_last(section)), several)
    _show_accepted(entities["accepted"], several)
    _show_flagged(entities["flagged"])
    _show_sections(filter(_is_last, sections), several)


def _show_units(table: dict[str, Any], unit: str) -> None:
    """unit (str): What has labels."""
    unfitted = table.get("unfitted")
    if unfitted is not None:
        msg.info(unfitted["verdict"])
    show_other_weights(table["weights_changed"])
    show_seen(table["seen"])
    counts = table.get("without_map", {})
    if counts:
        labels = ", ".join(f"{label} {n:,}" for label, n in counts.items())
        msg.info(f"{sum(counts.values()):,} predictions are left out, as their labels have no map: {labels}")
    share = number(None if table["accuracy"] is None else 100 * table["accuracy"], 2)
    msg.text(f"{table['tokens']:,} {unit}s, {table['pairs']:,} pairs, {table['accuracy_is']} {share} %, {table['bins']} bins")
    _show_errors(table, "ECE (top label)", LABEL_WORDS[unit][1], unfitted is not None)


def _is_last(section: Section) -> bool:
    """Whether a section is about another pipeline: those about this one come first."""
    return section.key == "against"


def _show_sections(sections: Iterable[Section], units: str) -> None:
    """units (str): What has the labels: "tokens"."""
    for section in sections:
        if section.show is not None:
            section.show(section.rows, units)


def _show_legend(unit: str, by: str, raw_only: bool) -> None:
    """unit (str): What has labels. by (str): What the intervals resample."""
    what, several = LABEL_WORDS[unit]
    msg.text(
        f"A pair is one {unit} and one {what} with a score above the threshold, and whether that is the gold {what}; of entities, each one found."
    )
    columns = "Raw" if raw_only else "Raw, calibrated"
    msg.text(
        f"{columns}: how far scores are from how often they are right (root mean square), of all {several} together (SMCE), of each group of "
        "them, and the mean of the groups (GMCE)."
    )
    msg.text("An error near the floor cannot be improved: exactly true scores would show it too. Lower is better.")
    if not raw_only:
        msg.text(
            f"The 95 % interval is that of the calibrated error that endless data would show, {by}. Chance adds to the error that was measured; "
            "the debiased error is without it, and the interval lies around that one."
        )


def _show_accepted(accepted: dict[str, Any] | None, several: str) -> None:
    if accepted is not None:
        share = number(None if accepted["share"] is None else 100 * accepted["share"], 1)
        msg.text(
            f"{accepted['kept']:,} {several} ({share} %) reach their cut-off; precision {number(accepted['precision'])}, "
            f"wanted {number(accepted['wanted'])}"
        )


def _show_flagged(rows: list[dict[str, Any]] | None) -> None:
    for row in rows or ():
        share = number(None if row["share"] is None else 100 * row["share"], 1)
        msg.text(
            f"{row['flagged']:,} tokens ({share} %) are flagged{'' if row['key'] == 'all' else ' for ' + row['key']}; recall "
            f"{number(row['recall'])} of {row['tokens']:,} tokens of gold entities, wanted {number(row['wanted'])}"
        )


def _show_errors(table: dict[str, Any], ece: str, labels: str, raw_only: bool) -> None:
    """ece (str), labels (str): How these are called. raw_only (bool): Whether there are no calibrated scores."""
    from ...metrics.metric import title_of
    from ...metrics.sentences import warn_of_higher_loss, warn_of_never_right
    from ...pipe.registered import metrics

    show_rows(table["errors"], _error_columns(labels.capitalize(), raw_only))
    names = {"ece": ece, **{short: title_of(metric, short) for short, metric in metrics().items()}}
    scores = [
        {"name": names[key], **row, **(table["change"].get(key) or {"value": None, "low": None})}
        for key, row in table["scores"].items()
    ]
    show_rows(scores, _SCORES[:2] if raw_only else _SCORES)
    warnings = (warn_of_never_right(table["never_right"]), warn_of_higher_loss(table["change"]))
    for warning in filter(None, warnings):
        msg.warn(warning)


def _error_columns(labels: str, raw_only: bool) -> list[Column]:
    """labels (str): What the groups are made of. raw_only (bool): Whether there are no calibrated scores."""
    calibrated = [
        Column("Calibrated", "calibrated", number),
        Column("Debiased", "debiased", number),
        Column("95 % interval", "", lambda row: _between(row["true_low"], row["true_high"], number)),
    ]
    return [
        Column("Group", "group", lambda group: {"all": "all (SMCE)", "mean": "mean (GMCE)"}.get(group, group), "l"),
        Column(labels, "tags", whole),
        Column("Pairs", "pairs", whole),
        Column("Raw", "raw", number),
        *([] if raw_only else calibrated),
        Column("Floor", "floor", number),
        Column("Floor 95 %", "floor95", number),
    ]


def _signed(value: float) -> str:
    return f"{value:+.4f}"


def _between(low: float | None, high: Any, show: Callable[[Any], str]) -> str:
    return "-" if low is None else f"{show(low)} to {show(high)}"


_SCORES = (
    Column("Score", "name", align="l"),
    Column("Raw", "raw", number),
    Column("Calibrated", "calibrated", number),
    Column("Change", "value", _signed),
    Column("95 % interval", "", lambda row: _between(row["low"], row.get("high"), _signed)),
)

_three = partial(number, digits=3)
_COLUMNS = (
    Column("", "off", lambda off: "OFF" if off else "", align="l"),
    Column("Slice", "slice", align="l"),
    Column("Documents", "documents", whole),
    Column("Labels", "n", whole),
    Column("Mean score", "score", _three),
    Column("Right", "right", _three),
    Column("Gap", "", lambda row: f"{row['gap']:+.3f}"),
    Column("95 % interval", "", lambda row: "-" if row["low"] is None else f"{row['low']:+.3f} to {row['high']:+.3f}"),
    Column("Error", "calibrated", _three),
    Column("Floor 95 %", "floor95", _three),
)


def show_slices(table: Mapping[str, Any], units: str) -> None:
    """Print how true scores are in each slice. units (str): What has the labels: "tokens"."""
    rows, small = table["rows"], table["too_small"]
    if rows:
        msg.text(f"Where scores are off, by {table['by']} (of the {units} with their likeliest label):")
        show_rows(rows, _COLUMNS)
        off = sum(row["off"] for row in rows)
        msg.text(
            f"{_of(off, len(rows))} surely off; of those that are called so, {100 * table['rate']:g} % at most are so by chance, on average. "
            "A gap above 0: scores are too high."
        )
    if small:
        from ...metrics.slices import FEWEST_DOCUMENTS, FEWEST_UNITS

        what = f"with fewer than {FEWEST_UNITS} {units} or {FEWEST_DOCUMENTS} documents"
        msg.text(f"{small:,} {'more' if rows else 'slices'} {what} {'is' if small == 1 and rows else 'are'} not judged.")


def _of(off: int, n: int) -> str:
    return f"{off or 'None'} of {n:,} slice{'s' if n > 1 else ''} {'is' if off < 2 else 'are'}"
