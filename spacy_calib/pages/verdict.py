"""Figures -> one sentence in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..metrics.calibration_error import table_of
from ..pairs.bins import make_binner
from ..types import Floats
from .judged import JudgedView
from .tag_rows import PROMISED, warning_of

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
# Scores lean (too sure, too modest) where the gaps, once opposite ones cancel, are at least this share of all gaps.
ONE_WAY = 0.5


def noun_of(annotation: str) -> str:
    """What the component that sets this annotation is called."""
    return NOUNS.get(
        annotation,
        "span categorizer" if annotation.startswith("spans") else "span finder" if annotation.startswith("found") else "model",
    )


def right_at(scores: Floats, hits: Any) -> int | None:
    """How often, in percent, a pair scored 90 % is right, from the pairs scored 85 to 95 %; None where they are few."""
    near = np.abs(scores - SAID) <= AROUND
    if near.sum() < ENOUGH:
        return None
    return round(100 * float(np.clip(SAID + np.mean(hits[near]) - np.mean(scores[near]), 0.0, 1.0)))


def leaning_of(scores: Floats, hits: Any, n_bins: int) -> str:
    """ "sure" where the scores are farther from one half than the truth is, "modest" where nearer, "off" where both."""
    table = table_of(scores, hits, make_binner(n_bins))
    share = table.counts / table.counts.sum()
    gaps = share * (table.mean_score - table.mean_hit) * np.where(table.mean_score >= 0.5, 1.0, -1.0)
    total, one_way = np.abs(gaps).sum(), gaps.sum()
    if total == 0 or abs(one_way) < ONE_WAY * total:
        return "off"
    return "sure" if one_way > 0 else "modest"


def leaning_in_words(excess: float, off: float) -> str:
    """Whether scores are too high or too low. excess: Mean score less share right. off: How far off on average."""
    if abs(excess) < ONE_WAY * off:
        return "some too high and some too low"
    return f"mostly too {'high' if excess > 0 else 'low'}"


@dataclass(frozen=True)
class Evidence:
    """What a status is decided by.

    error (float): The calibrated error. floor95 (float): What exactly true scores would show in 19 of 20 cases, were
        pairs independent. low, high (float | None): Interval of the true error by document; None where not known.
    few (bool): Fewer pairs than a verdict needs. said (int | None): Of `right_at`. leaning (str): Of `leaning_of`.
    uneven (bool): Frequent labels hide some that are seldom or never right. seen (bool): The fit saw the data.
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
    """Whether an error is more than chance would show: (by the noise floor, by the interval). Only the interval knows that
    pairs of one document are alike; where there is none, the floor speaks for both.
    """
    by_floor = error > floor95
    return by_floor, by_floor if low is None else low > 0


def status_of(found: Evidence) -> str:
    """One of HEADINGS. Floor and interval agree that the error is chance: calibrated; that it is more: nearly calibrated if it
    is small, else what scores lean to. They disagree: nearly calibrated. Few pairs, or much chance: unclear.
    """
    if found.seen:
        return "seen"
    votes = beyond_chance(found.error, found.floor95, found.low)
    if found.few or (not all(votes) and max(found.floor95, found.high or 0.0) > VAGUE):
        return "unclear"
    if not any(votes):
        return "uneven" if found.uneven else "calibrated"
    near = found.said is None or abs(found.said - 100 * SAID) <= 100 * VAGUE
    if near and (not all(votes) or found.error <= SMALL):
        return "close-uneven" if found.uneven else "close"
    return found.leaning if all(votes) else "unclear"


def is_uneven(mean: dict[str, Any]) -> bool:
    """Whether the mean error of the groups is much more than chance would show. mean (dict): Its row."""
    error, low = mean["calibrated"], mean["true_low"]
    return error is not None and error > max(SMALL, UNEVEN * mean["floor95"]) and (low is None or low > 0)


def verdict(
    judged: JudgedView,
    table: dict[str, Any],
    noun: str,
    seen: dict[str, Any] | None = None,
    never: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """What the figures say.

    table (dict): Of `metrics.table.calibration_table`. noun (str): What the component is called. seen (dict | None): Of
        `expect.record.SeenShare`. never (Sequence): Of `pages.tag_rows.never_right`.
    RETURNS (dict): "status" (a key of HEADINGS), "heading", "sentence", "more" and "warnings" (lists of sentences).
    """
    rows = table["errors"]
    overall = rows[0]
    said = right_at(judged.calibrated, judged.pairs.hits)
    found = Evidence(
        overall["calibrated"],
        overall["floor95"],
        overall["true_low"],
        overall["true_high"],
        few=len(judged.pairs) < judged.enough,
        said=said,
        leaning=leaning_of(judged.calibrated, judged.pairs.hits, judged.n_bins),
        uneven=is_uneven(rows[-1]) or sum(one["promised"] for one in never) >= PROMISED,
        seen=bool(seen and seen["many"]),
    )
    status = status_of(found)
    says = f"is 90 % sure of {with_article(judged.called[0])}" if judged.kind == "entities" else "says 90 %"
    opening = _opening(status, noun, said, says)
    worse = worse_of(table["change"])
    return {
        "status": status,
        "heading": HEADINGS[status],
        "sentence": f"{opening}{_figures(status, judged, found)}.",
        "more": [_before(judged, overall, found.error), *([worse] if worse else []), *_of_groups(rows[1:-1])],
        "warnings": [sentence for sentence in (warning_of(never),) if sentence],
    }


def worse_of(change: dict[str, dict[str, Any]]) -> str | None:
    """A sentence where calibrated scores have a higher log loss than raw ones, else None. change: `table.changes`."""
    value, low, high = (change["nll"][key] for key in ("value", "low", "high"))
    if value is None or value <= 0:
        return None
    interval = "" if low is None else f" (95 % interval {low:+.4f} to {high:+.4f})"
    if low is not None and low > 0:
        return f"Calibrated scores are WORSE than raw ones on this data: log loss {value:+.4f}{interval}."
    chance = "; that may be chance" if low is not None else ""
    return f"Calibrated scores are no better than raw ones on this data: log loss {value:+.4f}{interval}{chance}."


def with_article(noun: str) -> str:
    """The noun behind "a" or "an"."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _opening(status: str, noun: str, said: int | None, says: str) -> str:
    if status in ("seen", "unclear"):
        return "There is too little data for a verdict" if status == "unclear" else "No verdict: the fit has seen this data"
    if status in ("calibrated", "close", "uneven", "close-uneven"):
        plain = f"the scores of this {noun} {'can nearly' if status.startswith('close') else 'can'} be taken at their word"
        opening = plain if said is None else f"when this {noun} {says}, it is right {said} % of the time"
        opening += ", though not of each label by itself" if status.endswith("uneven") else ""
    else:
        so = {
            "sure": "is still too sure of itself",
            "modest": "is too modest",
            "off": "is too sure in places and too modest in others",
        }
        opening = f"this {noun} {so[status]}" + ("" if said is None else f": when it {says}, it is right {said} % of the time")
    return opening[0].upper() + opening[1:]


def _figures(status: str, judged: JudgedView, found: Evidence) -> str:
    """What the opening is said by, in a clause that can be passed on: one figure, where the opening has none. Intervals, and
    the other figures, stand in the table beside it.
    """
    error, floor95 = found.error, found.floor95
    votes = beyond_chance(error, floor95, found.low)
    if status == "unclear":
        count = len(np.unique(judged.documents))
        beyond = "; that is more, but of so few scores" if votes[0] and found.few else ""
        return (
            f": {len(judged.pairs):,} scores from {count:,} document{'s' if count != 1 else ''} are off by {error:.3f} on average, "
            f"where chance alone would show up to {floor95:.3f}{beyond}"
        )
    chance = ("no more than chance would show", "which may be chance", "more than chance would show")[sum(votes)]
    if found.said is None and status != "seen":
        return f": on average its scores are off by {error:.3f}, {chance}"
    if status in ("seen", "sure", "modest", "off"):
        return ""
    if any(votes):
        return f"; on the whole its scores are off by little, {'but by ' if all(votes) else ''}{chance}"
    return f"; on the whole its scores are off by {chance}"


def _before(judged: JudgedView, overall: dict[str, Any], error: float) -> str:
    """Like beside like: what a score of 90 % was worth, and the error before and after."""
    said = right_at(judged.pairs.scores, judged.pairs.hits)
    told = "" if said is None else f"what it scored 90 % was right {said} % of the time, and "
    better = "" if error <= overall["raw"] else " Calibration made it worse on this data."
    return f"Before calibration {told}scores were off by {overall['raw']:.3f} on average; now they are by {error:.3f}.{better}"


def _of_groups(rows: list[dict[str, Any]]) -> list[str]:
    """How the groups fare, where there are several with pairs."""
    held = [row for row in rows if row["calibrated"] is not None]
    beyond = [row for row in held if all(beyond_chance(row["calibrated"], row["floor95"], row["true_low"]))]
    if len(held) < 2:
        return []
    if not beyond:
        return [f"None of the {len(held)} groups with pairs is surely off by itself."]
    worst = max(beyond, key=lambda row: row["calibrated"] - row["floor95"])
    every = "Both" if len(held) == 2 else f"All {len(held)}"
    which = every if len(beyond) == len(held) else f"{len(beyond)} of the {len(held)}"
    return [
        f"{which} groups with pairs, each judged by itself, are off by more than chance; "
        f"farthest off is group {worst['group']} with {worst['calibrated']:.3f} (chance: {worst['floor95']:.3f})."
    ]
