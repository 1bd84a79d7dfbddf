"""Cut-offs on screens: those of a precision, those of a recall, and what is left to review."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..shared.evidence import show_seen
from ..shared.screen import Column, first_of, in_percent, msg, number, show_rows, whole

# So many labels or groups are named.
KEYS_NAMED = 8


def highest_precisions(result: dict[str, Any]) -> str:
    """Return the highest precision of each key where the target is not reached, and how much is kept; "" if none."""
    noun, lines = _unit_noun(result), []
    for row in result["rows"]:
        if row["highest"] is not None:
            label_prefix = "" if row["key"] == "all" else f"{row['key'] or '(no group)'} "
            precision, n_kept, share = (row["highest"][key] for key in ("precision", "kept", "share"))
            lines.append(
                f"{label_prefix}{in_percent(precision)} %, and keeps {n_kept:,} of {row[noun]:,} ({in_percent(share)} %)"
            )
    return first_of(lines, KEYS_NAMED, "; ")


def show(result: dict[str, Any], apply: Path | None) -> None:
    """Print what was found."""
    attr = result["attr"]
    attributes = []
    if "precision" in result:
        show_precision(result)
        if any(row["cutoff"] is not None for row in result["rows"]):
            attributes.append(f"{'Doc' if result['event'] is None else 'Span'}._.{attr}_accept")
    if "misses" in result:
        show_recall(result["misses"], None if "precision" in result else result["seen"], result["by"], apply)
        attributes += [f"Token._.{attr}_flag", f"doc.spans['{attr}_doubtful']"]
    if "review" in result:
        show_review(result["review"], result["precision"], result["misses"]["recall"], result["confidence"])
    if apply is not None and attributes:
        msg.good(f"The pipeline with these cut-offs ({', '.join(attributes)}): {apply}")


def _unit_noun(result: dict[str, Any]) -> str:
    return "documents" if result["event"] is None else "entities"


def _cutoff(row: dict[str, Any], digits: str) -> str:
    value = row.get("cutoff", "-")
    return value if value == "-" else "not reached" if value is None else format(value, digits)


def _format_range(row: dict[str, Any], scale: float, digits: int) -> str:
    return "-" if row["low"] is None else f"{number(scale * row['low'], digits)} to {number(scale * row['high'], digits)}"


def show_precision(result: dict[str, Any]) -> None:
    """Print the cut-offs for a precision and their guarantee."""
    from ...pairs.documents import by_unit

    target, confidence, noun = f"{100 * result['precision']:g} %", f"{100 * result['confidence']:g} %", _unit_noun(result)
    event = "categories of documents" if result["event"] is None else f"event: {result['event']}"
    msg.divider(f"Cut-offs for a precision of {target} ({event})")
    show_seen(result["seen"])
    columns = (
        Column("For", "key", lambda key: key or "(no group)", "l"),
        Column("Cut-off", "", lambda row: _cutoff(row, ".4f")),
        Column(noun.capitalize(), noun, whole),
        Column("Kept", "kept", whole),
        Column("% kept", "share", in_percent),
        Column("Precision", "precision", number),
        Column("Elsewhere", "", lambda row: _format_range(row, 1, 4)),
    )
    met = [row for row in result["rows"] if row[noun] or row["key"] == "all"]
    show_rows(met or result["rows"], columns)
    if met and (others := [row["key"] or "(no group)" for row in result["rows"] if row not in met]):
        msg.text(f"No {noun} on this gold, and no cut-off: {', '.join(others)}.")
    nowhere = all(row["cutoff"] is None for row in result["rows"])
    if nowhere:
        msg.warn(f"No cut-off reaches {target} with this confidence: ask for less, or give more gold.")
    highest = highest_precisions(result)
    if highest:
        msg.text(
            f"The highest precision that is reached: {highest}. It was found by looking at this gold, so it is no promise; ask for it "
            "on other gold to have one."
        )
    if not nowhere:
        msg.text(
            f"In other texts of the same source the {noun} kept are right at least {target} of the time, with {confidence} confidence "
            f"({by_unit(**result['by'])}): of 100 files of gold like this one, {100 * result['confidence']:g} give a cut-off of which "
            f"that is true. Elsewhere: where the precision of as many {noun} kept from other texts lies, with the same confidence."
        )


_RECALL = (
    Column("For", "key", align="l"),
    Column("Cut-off", "", lambda row: _cutoff(row, ".3g")),
    Column("Tokens", "tokens", whole),
    Column("Found", "found", whole),
    Column("Recall", "recall", number),
    Column("% flagged", "share", in_percent),
    Column("Elsewhere", "", lambda row: _format_range(row, 100, 1)),
    Column("Entities", "entities", whole),
    Column("Touched", "touched", whole),
)


def show_recall(result: dict[str, Any], overlap: dict[str, Any] | None, by: dict[str, Any], apply: Path | None) -> None:
    """Print the cut-offs for a recall and their guarantee. result (dict): "misses" of `threshold`."""
    from ...pairs.documents import by_unit, count_in_words

    target, confidence = f"{100 * result['recall']:g} %", f"{100 * result['confidence']:g} %"
    msg.divider(f"Cut-offs for a recall of {target} (tokens of gold entities)")
    show_seen(overlap)
    show_rows((line for row in result["rows"] for line in (row, {"key": "  predicted only", **row["predicted"]})), _RECALL)
    missing = [row["key"] for row in result["rows"] if row["cutoff"] is None]
    if missing:
        label = "No cut-off" if result["per"] == "all" else f"No cut-off of {', '.join(missing)}"
        consequence = "" if apply is None else f" The pipeline in {apply} flags every token for want of it."
        msg.warn(f"{label} is sure to find {target}: ask for less, or give more gold.{consequence}")
    if len(missing) == len(result["rows"]):
        return
    score, per_label = (
        ("P(inside an entity) = 1 - P(O)", "") if result["per"] == "all" else ("P(label)", " (for each label by itself)")
    )
    msg.text(
        f"Flagged is every token whose {score} reaches the cut-off, also where the recognizer said O. Of the tokens of gold entities "
        f"in other texts of the same source at most {100 * (1 - result['recall']):.3g} % are not flagged, with {confidence} confidence{per_label} "
        f"({by_unit(**by)}): of 100 files of gold like this one, {100 * result['confidence']:g} give cut-offs of which that is true. "
        f"Elsewhere: where the share of flagged tokens in {count_in_words(**by)} of other texts lies, with the same confidence. Predicted "
        "only: the tokens of entities that were found."
    )


_REVIEW = (
    Column("Part", "part", align="l"),
    Column("Tokens", "tokens", whole),
    Column("% of tokens", "share", in_percent),
    Column("What", "what", align="l"),
    Column("Share", "right", number),
)


def show_review(parts: dict[str, Any], precision: float, recall: float, confidence: float) -> None:
    """Print how much is accepted, reviewed and dropped."""
    msg.divider("Accept, look, drop")
    accept, inside_share = parts["accept"], parts["drop"]["inside_share"]
    right = accept["right"] / accept["entities"] if accept["entities"] else None
    descriptions = {
        "accept": ("of the entities are right", right),
        "look": ("of the tokens are in an entity", parts["look"]["inside_share"]),
        "drop": ("of the tokens are in none", None if inside_share is None else 1 - inside_share),
    }
    show_rows(
        ({**parts[name], "part": name, "what": label, "right": share} for name, (label, share) in descriptions.items()), _REVIEW
    )
    joint_confidence = max(0.0, 1 - 2 * (1 - confidence))
    msg.text(
        "Accepted: the tokens of entities at or above their cut-off. Looked at: the flagged tokens of the rest. Dropped unseen: all "
        f"others. The precision of {100 * precision:g} % and the recall of {100 * recall:g} % are each promised by themselves, with "
        f"{100 * confidence:g} % confidence; both hold together with {100 * joint_confidence:g} % at least."
    )
