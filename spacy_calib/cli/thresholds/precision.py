"""Cut-offs above which entities, or the categories of documents, are right as often as asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..shared.screen import msg, number, print_table
from ..shared.seen import show_seen

if TYPE_CHECKING:
    from ...calibration.cutoffs import Cutoffs
    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator


def find_precision(
    pipe: Calibrator, corpus: ScoredCorpus, precision: float, confidence: float, per: str
) -> tuple[Cutoffs, dict[str, Any]]:
    """(the cut-offs, what is said of them: "event", what `Cutoffs.to_dict` gives, and "rows": for each key what it keeps). Without entities they
    are of documents, and there is no event.
    """
    from ...calibration.cutoffs import Cutoffs, keys_of
    from ...calibration.thresholds import Threshold, find_thresholds

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
    rows = []
    for key, one in every.items():
        kept = {"kept": one.kept, "share": one.share, "precision": one.precision, "low": one.low, "high": one.high}
        rows.append({"key": key, "cutoff": one.cutoff, "entities" if entities else "documents": one.spans, **kept})
    return cutoffs, {"event": pipe.fit_info.span_event if entities else None, **cutoffs.to_dict(), "rows": rows}


def show_precision(result: dict[str, Any], apply: Path | None) -> None:
    """Print the cut-offs and what is promised of them."""
    from ...pairs.documents import by_unit

    percent, sure = f"{100 * result['precision']:g} %", f"{100 * result['confidence']:g} %"
    what = "documents" if result["event"] is None else "entities"
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
        applied = "" if apply is None else f" The pipeline in {apply} accepts nothing."
        msg.warn(f"No cut-off reaches {percent} with this confidence: ask for less, or give more gold.{applied}")
        return
    msg.text(
        f"In texts of the same source ({by_unit(**result['by'])}) the {what} kept are right at least {percent} of the time. Of all data sets on which this "
        f"command may be run, that claim is true for {sure}, and so is the interval under Elsewhere: where the precision of as many "
        f"{what} kept from others lies."
    )
