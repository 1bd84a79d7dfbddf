"""Cut-offs below which no more entities are missed than asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import calib_error
from ..shared.screen import msg, number, print_table
from ..shared.seen import show_seen

if TYPE_CHECKING:
    from ...calibration.cutoffs import RecallCutoffs
    from ...corpus.missed import EntityTokens


def find_recall(
    tokens: EntityTokens, recall: float, confidence: float, per: str, data: Path
) -> tuple[RecallCutoffs, dict[str, Any]]:
    """(the cut-offs, what is said of them: what `RecallCutoffs.to_dict` gives, "scored" tokens, and "rows": see `corpus.missed.rows_of`).

    RAISES C309: no gold entity has a score.
    """
    from ...corpus.missed import rows_of

    if not tokens.wanted("all", "all").any():
        raise calib_error("C309", data=data)
    cutoffs = tokens.find(recall, confidence, per)
    return cutoffs, {**cutoffs.state(), "scored": int(tokens.scored.sum()), "rows": rows_of(tokens, cutoffs)}


def show_recall(result: dict[str, Any], seen: dict[str, Any] | None, by: dict[str, Any], apply: Path | None) -> None:
    """Print the cut-offs and what is promised of them. result (dict): Of `find_recall`. by (dict): "unit" and "n" of the documents."""
    from ...pairs.documents import by_unit, counted

    percent, sure = f"{100 * result['recall']:g} %", f"{100 * result['confidence']:g} %"
    msg.divider(f"Cut-offs for a recall of {percent} (tokens of gold entities)")
    show_seen(seen)
    rows = []
    for row in result["rows"]:
        cutoff = "not reached" if row["cutoff"] is None else f"{row['cutoff']:.3g}"
        rows.append(_line(row["key"], cutoff, row))
        rows.append(_line("  predicted only", "-", row["predicted"]))
    header = ("For", "Cut-off", "Tokens", "Found", "Recall", "% flagged", "Elsewhere", "Entities", "Touched")
    print_table(rows, header, ("l", *"rrrrrrrr"))
    missing = [row["key"] for row in result["rows"] if row["cutoff"] is None]
    if missing:
        what = "No cut-off" if result["per"] == "all" else f"No cut-off of {', '.join(missing)}"
        applied = "" if apply is None else f" The pipeline in {apply} flags every token for want of it."
        msg.warn(f"{what} is sure to find {percent}: ask for less, or give more gold.{applied}")
    if len(missing) == len(result["rows"]):
        return
    score = "P(inside an entity) = 1 - P(O)" if result["per"] == "all" else "P(label)"
    escaped = f"{100 * (1 - result['recall']):.3g} %"
    msg.text(
        f"Flagged is every token whose {score} reaches the cut-off, also where the recognizer said O. Among as many tokens of gold entities "
        f"in other texts of the same source ({by_unit(**by)}) at most {escaped} are not flagged. Of all data sets on which this command "
        f"may be run, that claim is true for {sure}{'' if result['per'] == 'all' else ' (for each label by itself)'}, and so is the interval under "
        f"Elsewhere: where the share of flagged tokens of {counted(**by)} of others lies. Predicted only: the tokens of entities that were found."
    )


def _line(name: str, cutoff: str, row: dict[str, Any]) -> tuple[str, ...]:
    return (
        name,
        cutoff,
        f"{row['tokens']:,}",
        f"{row['found']:,}",
        number(row["recall"]),
        number(None if row["share"] is None else 100 * row["share"], 1),
        "-" if row["low"] is None else f"{100 * row['low']:.1f} to {100 * row['high']:.1f}",
        f"{row['entities']:,}",
        f"{row['touched']:,}",
    )
