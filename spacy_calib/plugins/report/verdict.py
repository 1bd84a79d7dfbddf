"""Figures -> one sentence in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...metrics.calibration_errors import table_of
from ...metrics.judged_view import JudgedView
from ...metrics.sentences import ONE_WAY, PROMISED, warn_of_higher_loss, warn_of_never_right, with_article
from ...pairs.bins import make_binner
from ...types import Floats

# What the component that sets an annotation is called.
NOUNS = {
    "tag": "tagger", "pos": "tagger", "morph": "morphologizer", "lemma": "lemmatizer", "sent": "sentence splitter",
    "ner": "recognizer", "biluo": "recognizer", "head": "parser", "arc": "parser", "cats": "text categorizer", "cats:multi": "text categorizer",
    "link": "entity linker",
}  # fmt: skip
HEADINGS = {
    "seen": "No test: judged on the fit data",
    "calibrated": "Calibrated",
    "close": "Nearly calibrated",
    "uneven": "Calibrated on the whole only",
    "close-uneven": "Nearly calibrated on the whole only",
    "sure": "Too sure of itself",
    "modest": "Too modest",
    "off": "Still off",
    "unclear": "Too little data",
}
# An error up to here is small for any use that we know, though more than chance.
SMALL = 0.02
# Where chance alone may show more than this, an error within chance says little.
VAGUE = 0.05
# A mean error of the groups this many times what chance would show is not excused by frequent calibrated labels.
UNEVEN = 2.0
# "When it says 90 %": the scores looked at, and how many are needed.
SAID, AROUND, ENOUGH = 0.9, 0.05, 50


def noun_of(annotation: str) -> str:
    """Return the name of the component that sets this annotation."""
    return NOUNS.get(
        annotation,
        "span categorizer" if annotation.startswith("spans") else "span finder" if annotation.startswith("found") else "model",
    )


def right_at(scores: Floats, hits: Any) -> int | None:
    """Return how often, in percent, a pair scored 90 % is right, by pairs scored 85 to 95 %; None for few."""
    is_near = np.abs(scores - SAID) <= AROUND
    if is_near.sum() < ENOUGH:
        return None
    return round(100 * float(np.clip(SAID + np.mean(hits[is_near]) - np.mean(scores[is_near]), 0.0, 1.0)))


def leaning_of(scores: Floats, hits: Any, n_bins: int) -> str:
    """Return "sure" if scores are farther from one half than the truth, "modest" if nearer, "off" for both."""
    table = table_of(scores, hits, make_binner(n_bins))
    share = table.counts / table.counts.sum()
    gaps = share * (table.mean_score - table.mean_hit) * np.where(table.mean_score >= 0.5, 1.0, -1.0)
    total, one_way = np.abs(gaps).sum(), gaps.sum()
    if total == 0 or abs(one_way) < ONE_WAY * total:
        return "off"
    return "sure" if one_way > 0 else "modest"


@dataclass(frozen=True)
class Evidence:
    """The figures that decide a status.

    error (float): The calibrated error. floor95 (float): The 95 % noise floor, for independent pairs. low, high (float | None):
    Interval of the true error by document. few (bool): Fewer pairs than a verdict needs. said (int | None): Of `right_at`.
    leaning (str): Of `leaning_of`. uneven (bool): Frequent labels hide some that are seldom or never right. seen (bool): The
    fit saw the data.
    """

    error: float
    floor95: float
    low: float | None = None
    high: float | None = None
    few: bool = False
    said: int | None = None
    leaning: str = "off"
    uneven: bool = False
    seen: bool = False


def beyond_chance(error: float, floor95: float, low: float | None) -> tuple[bool, bool]:
    """Return whether an error is more than chance: (by the noise floor, by the interval, which knows of documents, or else it)."""
    by_floor = error > floor95
    return by_floor, by_floor if low is None else low > 0


def status_of(evidence: Evidence) -> str:
    """Return one of HEADINGS.

    Floor and interval agree that the error is chance: calibrated; that it is more: nearly calibrated if small, else the
    leaning. They disagree: nearly calibrated. Few pairs, or much chance: unclear.
    """
    if evidence.seen:
        return "seen"
    votes = beyond_chance(evidence.error, evidence.floor95, evidence.low)
    if evidence.few or (not all(votes) and max(evidence.floor95, evidence.high or 0.0) > VAGUE):
        return "unclear"
    if not any(votes):
        return "uneven" if evidence.uneven else "calibrated"
    is_near = evidence.said is None or abs(evidence.said - 100 * SAID) <= 100 * VAGUE
    if is_near and (not all(votes) or evidence.error <= SMALL):
        return "close-uneven" if evidence.uneven else "close"
    return evidence.leaning if all(votes) else "unclear"


def is_uneven(mean: dict[str, Any]) -> bool:
    """Return whether the mean error of the groups is much more than chance. mean (dict): Its row."""
    error, low = mean["calibrated"], mean["true_low"]
    return error is not None and error > max(SMALL, UNEVEN * mean["floor95"]) and (low is None or low > 0)


def verdict(
    view: JudgedView,
    table: dict[str, Any],
    noun: str,
    seen: dict[str, Any] | None = None,
    never: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Summarize the figures.

    table (dict): Of `metrics.table.calibration_table`. noun (str): Name of the component. seen (dict | None): Of
    `pairs.seen_texts.TrainTestOverlap`. never (Sequence): Of `metrics.sentences.never_right`. RETURNS (dict): "status" (a key of HEADINGS),
    "heading", "sentence", "more" and "warnings" (lists of sentences).
    """
    rows = table["errors"]
    overall = rows[0]
    percent_right = right_at(view.calibrated, view.pairs.hits)
    evidence = Evidence(
        overall["calibrated"],
        overall["floor95"],
        overall["true_low"],
        overall["true_high"],
        few=len(view.pairs) < view.min_tag_pairs,
        said=percent_right,
        leaning=leaning_of(view.calibrated, view.pairs.hits, view.n_bins),
        uneven=is_uneven(rows[-1]) or sum(row["promised"] for row in never) >= PROMISED,
        seen=bool(seen and seen["many"]),
    )
    status = status_of(evidence)
    says = f"is 90 % sure of {with_article(view.span_words[0])}" if view.kind == "entities" else "says 90 %"
    opening = _opening(status, noun, percent_right, says)
    worse = warn_of_higher_loss(table["change"])
    return {
        "status": status,
        "heading": HEADINGS[status],
        "sentence": f"{opening}{_figures(status, view, evidence)}.",
        "more": [_raw_sentence(view, overall, evidence.error), *([worse] if worse else []), *_of_groups(rows[1:-1])],
        "warnings": [sentence for sentence in (warn_of_never_right(never),) if sentence],
    }


def _opening(status: str, noun: str, percent_right: int | None, says: str) -> str:
    if status in ("seen", "unclear"):
        return "There is too little data for a verdict" if status == "unclear" else "No verdict: the fit has seen this data"
    if status in ("calibrated", "close", "uneven", "close-uneven"):
        plain = f"the scores of this {noun} {'can nearly' if status.startswith('close') else 'can'} be taken at their word"
        opening = plain if percent_right is None else f"when this {noun} {says}, it is right {percent_right} % of the time"
        opening += ", though not of each label by itself" if status.endswith("uneven") else ""
    else:
        so = {
            "sure": "is still too sure of itself",
            "modest": "is too modest",
            "off": "is too sure in places and too modest in others",
        }
        opening = f"this {noun} {so[status]}" + (
            "" if percent_right is None else f": when it {says}, it is right {percent_right} % of the time"
        )
    return opening[0].upper() + opening[1:]


def _figures(status: str, view: JudgedView, evidence: Evidence) -> str:
    """Return a clause with one figure for the opening; the others stand in the table beside it."""
    error, floor95 = evidence.error, evidence.floor95
    votes = beyond_chance(error, floor95, evidence.low)
    if status == "unclear":
        count = len(np.unique(view.documents))
        note = "; that is more, but of so few scores" if votes[0] and evidence.few else ""
        if votes[0] and not evidence.few:
            note = f"; that is more, but documents differ too much to tell (95 % interval {evidence.low:.3f} to {evidence.high:.3f})"
        return (
            f": {len(view.pairs):,} scores from {count:,} document{'s' if count != 1 else ''} are off by {error:.3f} on average, "
            f"where chance alone would show up to {floor95:.3f}{note}"
        )
    chance = ("no more than chance would show", "which may be chance", "more than chance would show")[sum(votes)]
    if evidence.said is None and status != "seen":
        return f": on average its scores are off by {error:.3f}, {chance}"
    if status in ("seen", "sure", "modest", "off"):
        return ""
    if any(votes):
        return f"; on the whole its scores are off by little, {'but by ' if all(votes) else ''}{chance}"
    return f"; on the whole its scores are off by {chance}"


def _raw_sentence(view: JudgedView, overall: dict[str, Any], error: float) -> str:
    """Compare with raw scores: what a score of 90 % was worth, and the error before and after."""
    percent_right = right_at(view.pairs.scores, view.pairs.hits)
    clause = "" if percent_right is None else f"what it scored 90 % was right {percent_right} % of the time, and "
    better = "" if error <= overall["raw"] else " Calibration made it worse on this data."
    return (
        f"Before calibration {clause}scores were off by {overall['raw']:.3f} on average; now they are by {error:.3f}.{better}"
    )


def _of_groups(rows: list[dict[str, Any]]) -> list[str]:
    """Report the groups, if several have pairs."""
    rows_with_pairs = [row for row in rows if row["calibrated"] is not None]
    off_groups = [row for row in rows_with_pairs if all(beyond_chance(row["calibrated"], row["floor95"], row["true_low"]))]
    if len(rows_with_pairs) < 2:
        return []
    if not off_groups:
        return [f"None of the {len(rows_with_pairs)} groups with pairs is surely off by itself."]
    worst = max(off_groups, key=lambda row: row["calibrated"] - row["floor95"])
    all_groups = "Both" if len(rows_with_pairs) == 2 else f"All {len(rows_with_pairs)}"
    subject = all_groups if len(off_groups) == len(rows_with_pairs) else f"{len(off_groups)} of the {len(rows_with_pairs)}"
    return [
        f"{subject} groups with pairs, each judged by itself, are off by more than chance; "
        f"farthest off is group {worst['group']} with {worst['calibrated']:.3f} (chance: {worst['floor95']:.3f})."
    ]
