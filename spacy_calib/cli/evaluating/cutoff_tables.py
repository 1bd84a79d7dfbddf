"""Print the cut-offs of `spacy calib threshold`: for a precision, for a recall, and the tokens left for review."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..shared.screen import TableColumn, in_percent, interval, msg, number, show_rows, show_seen, whole


def show_cutoffs(result: dict[str, Any], apply: Path | None) -> None:
    """Print the result of `threshold` for one pipe. apply (Path | None): Folder of the pipeline with cut-offs."""
    attr = result["attr"]
    attributes = []
    if "verdict" in result:  # of --check
        show_check(result)
    elif "precision" in result:
        show_precision(result)
        if any(row["cutoff"] is not None for row in result["rows"]):
            attributes.append(f"{'Doc' if result['event'] is None else 'Span'}._.{attr}_accept")
    if "misses" in result:
        overlap = None if "precision" in result else result["seen"]  # None: `show_precision` has shown it
        show_recall(result["misses"], overlap, result["by"], apply)
        attributes += [f"Token._.{attr}_flag", f"doc.spans['{attr}_doubtful']"]
    if "review" in result:
        show_review(result["review"], result["precision"], result["misses"]["recall"], result["confidence"])
    if apply is not None and attributes:
        msg.good(f"The pipeline with these cut-offs ({', '.join(attributes)}): {apply}")


def _format_cutoff(row: dict[str, Any], digits: str) -> str:
    """Format the cut-off of a row by `digits`, such as ".4f"; "not reached" for None, a dash for a row without the key."""
    if "cutoff" not in row:
        return "-"
    return "not reached" if row["cutoff"] is None else format(row["cutoff"], digits)


def show_precision(result: dict[str, Any]) -> None:
    """Print the cut-offs for a precision, and what they guarantee. result (dict): Result of `threshold` for one pipe."""
    targets = [f"{key} {100 * precision:g} %" for key, precision in (result["targets"] or {}).items()]
    target = ", ".join(targets) or f"{100 * result['precision']:g} %"
    noun = "documents" if result["event"] is None else "entities"
    event = "categories of documents" if result["event"] is None else f"event: {result['event']}"
    msg.divider(f"Cut-offs for a precision of {target} ({event})")
    show_seen(result["seen"])
    columns = (
        TableColumn("For", "key", lambda key: key or "(no group)", "l"),
        TableColumn("Cut-off", "", lambda row: _format_cutoff(row, ".4f")),
        TableColumn(noun.capitalize(), noun, whole),
        TableColumn("Kept", "kept", whole),
        TableColumn("% kept", "share", in_percent),
        TableColumn("Precision", "precision", number),
        TableColumn("Elsewhere", "", lambda row: interval(row, number)),  # as a share, with 4 decimals
    )
    rows = [row for row in result["rows"] if row[noun] or row["key"] == "all"]  # labels or groups with gold; "all" stays
    show_rows(rows or result["rows"], columns)
    keys_without_gold = [row["key"] or "(no group)" for row in result["rows"] if row not in rows]
    if rows and keys_without_gold:
        msg.text(f"No {noun} in this gold, and no cut-off: {', '.join(keys_without_gold)}.")
    is_reached = any(row["cutoff"] is not None for row in result["rows"])
    if not is_reached:
        msg.warn(f"No cut-off reaches {target} with this confidence: ask for less, or give more gold.")
    show_answers(result)
    if is_reached and "answers" not in result:  # with "answers" (to a sample), `show_answers` has printed the promise
        _explain_precision(result, target, noun)


def _explain_precision(result: dict[str, Any], target: str, noun: str) -> None:
    """Print what the cut-offs of a result guarantee elsewhere. target: Precision in words. noun: "entities" or "documents"."""
    from ...pairs.documents import by_unit

    confidence = f"{100 * result['confidence']:g}"
    msg.text(
        f"At least {target} of the accepted {noun} are right in other texts of the same source, with {confidence} % "
        f"confidence ({by_unit(**result['by'])}): this holds for {confidence} of 100 cut-offs found on "
        f"gold like this. Elsewhere: interval of the precision that as many {noun} accepted in other texts will show, "
        f"with the same confidence; by chance it may be below {target}."
    )


def show_answers(result: dict[str, Any]) -> None:
    """Print how many answers in a result are disputed, skipped, changed, doubled or missing, and what they promise."""
    if cases := [f"{n:,} {case}" for case, n in result.get("answers", {}).items() if n]:
        msg.text(
            f"Answers: {', '.join(cases)}. Entities about which people disagree, which they skip, or whose words or label they "
            "change count as wrong, the last of doubled answers counts, and unanswered ones are left out."
        )
    if result.get("promise"):
        msg.text(result["promise"])


def show_check(result: dict[str, Any]) -> None:
    """Print whether the cut-offs still reach their promised precision on new answers. result (dict): Of `threshold --check`."""
    msg.divider(f"Does the promise hold? {result['verdict']}")
    for row in result["rows"]:
        counts = f"{row['right']:,} of {row['answers']:,} answers are right"
        msg.text(f"{row['key']}: {counts}, at least {100 * row['wanted']:g} % were promised: {row['verdict']}")
    show_answers(result)


_RECALL = (
    TableColumn("For", "key", align="l"),
    TableColumn("Cut-off", "", lambda row: _format_cutoff(row, ".3g")),
    TableColumn("Tokens", "tokens", whole),
    TableColumn("Found", "found", whole),
    TableColumn("Recall", "recall", number),
    TableColumn("% flagged", "share", in_percent),
    TableColumn("Elsewhere", "", lambda row: interval(row, in_percent)),
    TableColumn("Entities", "entities", whole),
    TableColumn("Touched", "touched", whole),
)


def show_recall(result: dict[str, Any], overlap: dict[str, Any] | None, by: dict[str, Any], apply: Path | None) -> None:
    """Print cut-offs for a recall and their guarantee. result (dict): "misses" in the result of `threshold`.

    overlap (dict | None): How much of the gold is in the fit data. by (dict): What the gold has independent samples of ("unit",
    such as "document"), and how many ("n"). apply (Path | None): Folder of the pipeline that was written with the cut-offs.
    """
    from ...pairs.documents import by_unit, count_in_words

    target, confidence = f"{100 * result['recall']:g} %", f"{100 * result['confidence']:g} %"
    msg.divider(f"Cut-offs for a recall of {target} (tokens of gold entities)")
    show_seen(overlap)
    line_pairs = [(row, {"key": "  predicted only", **row["predicted"]}) for row in result["rows"]]
    show_rows([line for pair in line_pairs for line in pair], _RECALL)  # each row, then that of predicted entities
    missing = [row["key"] for row in result["rows"] if row["cutoff"] is None]
    if missing:
        label = "No cut-off" if result["per"] == "all" else f"No cut-off of {', '.join(missing)}"
        consequence = "" if apply is None else f" The pipeline in {apply} flags every token without it."
        msg.warn(f"{label} reaches {target} with this confidence: ask for less, or give more gold.{consequence}")
    if len(missing) == len(result["rows"]):  # no cut-off to explain
        return
    score, per_label = "P(inside an entity) = 1 - P(O)", ""
    if result["per"] != "all":
        score, per_label = "P(label)", " (for each label separately)"
    msg.text(
        f"Every token whose {score} reaches the cut-off is flagged, even if the recognizer predicts O. At most "
        f"{100 * (1 - result['recall']):.3g} % of the tokens of gold entities in other texts of the same source are not "
        f"flagged, with {confidence} confidence{per_label} ({by_unit(**by)}): this holds for {100 * result['confidence']:g} "
        "of 100 cut-offs found on gold like this. Elsewhere: interval of the share of flagged tokens in "
        f"{count_in_words(**by)} of other texts, with the same confidence. Predicted only: the tokens of predicted entities."
    )


_REVIEW = (
    TableColumn("Part", "part", align="l"),
    TableColumn("Tokens", "tokens", whole),
    TableColumn("% of tokens", "share", in_percent),
    TableColumn("What", "what", align="l"),
    TableColumn("Share", "right", number),
)


def show_review(parts: dict[str, Any], precision: float, recall: float, confidence: float) -> None:
    """Print how many tokens to accept, review or drop (`parts_for_review`), and the precision and recall that are promised."""
    msg.divider("Accept, look, drop")
    accept, inside_share = parts["accept"], parts["drop"]["inside_share"]
    right_share = accept["right"] / accept["entities"] if accept["entities"] else None
    shares = (
        ("accept", "of the entities are right", right_share),
        ("look", "of the tokens are in an entity", parts["look"]["inside_share"]),
        ("drop", "of the tokens are in none", None if inside_share is None else 1 - inside_share),
    )
    show_rows([{**parts[part], "part": part, "what": what, "right": share} for part, what, share in shares], _REVIEW)
    joint_confidence = max(0.0, 1 - 2 * (1 - confidence))  # Bonferroni: both guarantees hold
    msg.text(
        "Accept: the tokens of entities at or above their cut-off. Look: the other flagged tokens. Drop: all others, without "
        f"review. The precision of {100 * precision:g} % and the recall of {100 * recall:g} % hold with {100 * confidence:g} "
        f"% confidence each, and together with at least {100 * joint_confidence:g} %."
    )
