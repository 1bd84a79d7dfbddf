"""Figures -> one sentence in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..binning import make_binner
from ..metrics.calibration_error import table_of
from ..types import Floats
from .judged import Judged

# What the component of a layer is called.
NOUNS = {
    "tag": "tagger", "pos": "tagger", "morph": "morphologizer", "lemma": "lemmatizer", "sent": "sentence splitter",
    "ner": "recognizer", "biluo": "recognizer",
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
# A mean error of the groups this many times what chance would show is not made good by frequent labels that are calibrated.
UNEVEN = 2.0
# "When it says 90 %": the scores looked at, and how many are needed.
SAID, AROUND, ENOUGH = 0.9, 0.05, 50
# A share this much of all gaps points one way, or the scores have no direction.
ONE_WAY = 0.5


def noun_of(layer: str) -> str:
    """What the component that sets this layer is called."""
    return NOUNS.get(layer, "span categorizer" if layer.startswith("spans") else "model")


def right_at(scores: Floats, hits: Any) -> int | None:
    """How often, in percent, a pair scored 90 % is right, from the pairs scored 85 to 95 %; None where they are few."""
    near = np.abs(scores - SAID) <= AROUND
    if near.sum() < ENOUGH:
        return None
    return round(100 * float(np.clip(SAID + np.mean(hits[near]) - np.mean(scores[near]), 0.0, 1.0)))


def leaning_of(scores: Floats, hits: Any, n_bins: int) -> str:
    """ "sure" where the scores stray from one half more than the truth does, "modest" where they stray less, "off" where they do both."""
    table = table_of(scores, hits, make_binner(n_bins))
    share = table.counts / table.counts.sum()
    gaps = share * (table.mean_score - table.mean_hit) * np.where(table.mean_score >= 0.5, 1.0, -1.0)
    total, one_way = np.abs(gaps).sum(), gaps.sum()
    if total == 0 or abs(one_way) < ONE_WAY * total:
        return "off"
    return "sure" if one_way > 0 else "modest"


def status_of(judged: Judged, error: float, floor95: float, mean: dict[str, Any], seen: bool) -> str:
    """One of HEADINGS. mean (dict): The row of the mean of the groups. seen (bool): Whether the fit saw the data."""
    if seen:
        return "seen"
    few = len(judged.pairs) < judged.enough
    if few or (error <= floor95 and floor95 > VAGUE):
        return "unclear"
    uneven = mean["calibrated"] is not None and mean["calibrated"] > max(SMALL, UNEVEN * mean["floor95"])
    if error <= floor95:
        return "uneven" if uneven else "calibrated"
    said = right_at(judged.calibrated, judged.pairs.hits)
    if error <= SMALL and (said is None or abs(said - 100 * SAID) <= 100 * VAGUE):
        return "close-uneven" if uneven else "close"
    return leaning_of(judged.calibrated, judged.pairs.hits, judged.n_bins)


def verdict(judged: Judged, rows: list[dict[str, Any]], noun: str, seen: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the figures say.

    rows (list): "errors" of `report.tables.calibration_table`. noun (str): What the component is called. seen (dict | None): See
        `seen.SeenShare`.
    RETURNS (dict): "status" (a key of HEADINGS), "heading", "sentence", "more": further sentences.
    """
    overall = rows[0]
    error, floor95 = overall["calibrated"], overall["floor95"]
    status = status_of(judged, error, floor95, rows[-1], bool(seen and seen["many"]))
    said = right_at(judged.calibrated, judged.pairs.hits)
    says = "is 90 % sure of an entity" if judged.unit == "entities" else "says 90 %"
    opening = _opening(status, noun, said, says)
    return {
        "status": status,
        "heading": HEADINGS[status],
        "sentence": f"{opening}: {_figures(status, judged, error, floor95)}.",
        "more": [_before(judged, overall, error), *_of_groups(rows[1:-1])],
    }


def _opening(status: str, noun: str, said: int | None, says: str) -> str:
    if status in ("seen", "unclear"):
        return "There is too little data for a verdict" if status == "unclear" else "No verdict: the fit has seen this data"
    rate = f"when this {noun} {says}, it is right {said} % of the time"
    if status in ("calibrated", "close", "uneven", "close-uneven"):
        plain = f"the scores of this {noun} {'can nearly' if status.startswith('close') else 'can'} be taken at their word"
        opening = (plain if said is None else rate) + (", all together" if status.endswith("uneven") else "")
    else:
        so = {
            "sure": "is still too sure of itself",
            "modest": "is too modest",
            "off": "is too sure in places and too modest in others",
        }
        opening = f"this {noun} {so[status]}" + ("" if said is None else f"; when it {says}, it is right {said} % of the time")
    return opening[0].upper() + opening[1:]


def _figures(status: str, judged: Judged, error: float, floor95: float) -> str:
    if status == "unclear":
        count = len(np.unique(judged.documents))
        beyond = "; that is more, but of so few scores" if error > floor95 else ""
        return (
            f"{len(judged.pairs):,} scores from {count:,} document{'s' if count != 1 else ''} show a calibrated error of {error:.3f}, "
            f"where chance alone would show up to {floor95:.3f}{beyond}"
        )
    compared = "within what chance would show" if error <= floor95 else "more than chance would show"
    return f"calibrated error {error:.3f}, {compared} ({floor95:.3f})"


def _before(judged: Judged, overall: dict[str, Any], error: float) -> str:
    said = right_at(judged.pairs.scores, judged.pairs.hits)
    told = "" if said is None else f", and what it scored 90 % was right {said} % of the time"
    better = "" if error <= overall["raw"] else " Calibration made it worse on this data."
    return f"Before calibration the error was {overall['raw']:.3f}{told}.{better}"


def _of_groups(rows: list[dict[str, Any]]) -> list[str]:
    """How the groups fare, where there are several with pairs."""
    held = [row for row in rows if row["calibrated"] is not None]
    beyond = [row for row in held if row["calibrated"] > row["floor95"]]
    if len(held) < 2:
        return []
    if not beyond:
        return [f"Each of the {len(held)} groups with pairs by itself is within chance too."]
    worst = max(beyond, key=lambda row: row["calibrated"] - row["floor95"])
    every = "Both" if len(held) == 2 else f"All {len(held)}"
    which = every if len(beyond) == len(held) else f"{len(beyond)} of the {len(held)}"
    return [
        f"{which} groups with pairs, each judged by itself, are off by more than chance; "
        f"farthest off is group {worst['group']} with {worst['calibrated']:.3f} (chance: {worst['floor95']:.3f})."
    ]
