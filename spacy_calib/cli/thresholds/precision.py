"""Cut-offs above which entities, or the categories of documents, are right as often as asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import calib_error
from ..shared.screen import first_of, msg, number, print_table
from ..shared.seen import show_seen

if TYPE_CHECKING:
    from ...calibration.cutoffs import Cutoffs
    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator

_KEYS_NAMED = 8


def find_precision(
    pipe: Calibrator, corpus: ScoredCorpus, precision: float, confidence: float, per: str
) -> tuple[Cutoffs, dict[str, Any]]:
    """(the cut-offs, what is said of them: "event", what `Cutoffs.to_dict` gives, and "rows": for each key what it keeps, and the "highest"
    precision that can be had where that is not reached). Without entities they are of documents, and there is no event.
    """
    from ...calibration.cutoffs import Cutoffs, keys_of
    from ...calibration.thresholds import Threshold, find_thresholds, highest_reached

    entities = pipe.spans.groups is not None
    groups = pipe.spans.groups or pipe.groups
    assert groups is not None
    labels = pipe.lookup.span_labels() if entities else pipe.lookup.labels()
    judged = corpus.span_pairs(labels) if entities else corpus.carried_pairs()
    keys = keys_of(per, judged.pairs.tags, labels, groups)
    found = find_thresholds(judged.calibrated, judged.pairs.hits, judged.documents, keys, precision, confidence)
    wanted = {"all": ["all"], "label": list(labels), "group": list(groups.names)}[per]
    every = {key: found.get(key, Threshold(None, 0)) for key in dict.fromkeys([*wanted, *found])}
    cutoffs = Cutoffs(precision, confidence, per, {key: one.cutoff for key, one in every.items()})
    rows, of_key = [], np.array(keys, dtype=object)
    for key, one in every.items():
        kept = {"kept": one.kept, "share": one.share, "precision": one.precision, "low": one.low, "high": one.high}
        highest = None
        if one.cutoff is None:
            own = np.flatnonzero(of_key == key)
            other = highest_reached(
                judged.calibrated[own], judged.pairs.hits[own], judged.documents[own], precision, confidence
            )
            highest = other and {"precision": other[0], "kept": other[1].kept, "share": other[1].share}
        rows.append({"key": key, "cutoff": one.cutoff, _what(entities): one.spans, **kept, "highest": highest})
    return cutoffs, {"event": pipe.fit_info.span_event if entities else None, **cutoffs.state(), "rows": rows}


def _what(entities: bool) -> str:
    return "entities" if entities else "documents"


def highest_in_words(result: dict[str, Any]) -> str:
    """What can be reached where the precision cannot, and what it keeps; "" where it is reached, or nothing is."""
    what = _what(result["event"] is not None)
    told = []
    for row in result["rows"]:
        if row["highest"] is not None:
            of = "" if row["key"] == "all" else f"{row['key'] or '(no group)'} "
            highest, kept = row["highest"], row["highest"]["kept"]
            told.append(
                f"{of}{100 * highest['precision']:.1f} %, and keeps {kept:,} of {row[what]:,} ({100 * highest['share']:.1f} %)"
            )
    return first_of(told, _KEYS_NAMED, "; ")


def check_accepts(result: dict[str, Any], apply: Path) -> None:
    """RAISES C530: no cut-off reaches the precision, so that the pipeline that is to be written would accept nothing."""
    if all(row["cutoff"] is None for row in result["rows"]):
        highest = highest_in_words(result)
        reached = f" (the highest that is reached: {highest})" if highest else ""
        raise calib_error("C530", precision=f"{100 * result['precision']:g}", path=apply, reached=reached)


def show_precision(result: dict[str, Any]) -> None:
    """Print the cut-offs and what is promised of them."""
    from ...pairs.documents import by_unit

    percent, sure = f"{100 * result['precision']:g} %", f"{100 * result['confidence']:g} %"
    what = _what(result["event"] is not None)
    judged = "categories of documents" if result["event"] is None else f"event: {result['event']}"
    msg.divider(f"Cut-offs for a precision of {percent} ({judged})")
    show_seen(result["seen"])
    rows = [
        (
            row["key"] or "(no group)",
            "not reached" if row["cutoff"] is None else number(row["cutoff"]),
            f"{row[what]:,}",
            f"{row['kept']:,}",
            number(None if row["share"] is None else 100 * row["share"], 1),
            number(row["precision"]),
            "-" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}",
        )
        for row in result["rows"]
    ]
    header = ("For", "Cut-off", what.capitalize(), "Kept", "% kept", "Precision", "Elsewhere")
    print_table(rows, header, ("l", *"rrrrrr"))
    if all(row["cutoff"] is None for row in result["rows"]):
        msg.warn(f"No cut-off reaches {percent} with this confidence: ask for less, or give more gold.")
    missed = highest_in_words(result)
    if missed:
        msg.text(
            f"The highest precision that is reached: {missed}. It was found by looking at this gold; ask for it on other gold to be promised it."
        )
    if all(row["cutoff"] is None for row in result["rows"]):
        return
    msg.text(
        f"In texts of the same source ({by_unit(**result['by'])}) the {what} kept are right at least {percent} of the time. Of all data sets on which this "
        f"command may be run, that claim is true for {sure}, and so is the interval under Elsewhere: where the precision of as many "
        f"{what} kept from others lies."
    )
