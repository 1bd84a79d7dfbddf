"""The verdict of the report page on a pipe: how well it is calibrated, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...metrics.calibration_errors import table_of
from ...metrics.judged_view import JudgedView
from ...metrics.sentences import ONE_WAY, PROMISED, warn_of_higher_loss, warn_of_never_right
from ...pairs.bins import make_binner
from ...pairs.documents import count_in_words
from ...types import Floats

# Annotation -> word for the component that sets it.
NOUNS = {
    "tag": "tagger", "pos": "tagger", "morph": "morphologizer", "lemma": "lemmatizer", "sent": "sentence splitter",
    "ner": "recognizer", "biluo": "recognizer", "head": "parser", "arc": "parser", "cats": "text categorizer",
    "cats:multi": "text categorizer", "link": "entity linker",
}  # fmt: skip
HEADINGS = {
    "seen": "No test: evaluated on the fit data",
    "calibrated": "Calibrated",
    "close": "Nearly calibrated",
    "uneven": "Calibrated on average only",
    "close-uneven": "Nearly calibrated on average only",
    "sure": "Overconfident",
    "modest": "Underconfident",
    "off": "Miscalibrated",
    "unclear": "Too little data",
}
SMALL = 0.02  # an error above the noise floor, but up to this size, is small for any use that we know
VAGUE = 0.05  # with a higher noise floor, an error below the floor shows little
UNEVEN = 2.0  # a mean error of the groups of more than this many times its noise floor makes the calibration uneven
# The share right of pairs scored 90 %: the score, the width of the bin on either side, and the minimum number of pairs.
REFERENCE_SCORE, BIN_WIDTH, MIN_PAIRS = 0.9, 0.05, 50


def noun_of(annotation: str) -> str:
    """Return the word for the component that sets an annotation."""
    return NOUNS.get(annotation, "span categorizer" if annotation.startswith("spans") else "model")


def right_at(scores: Floats, hits: Any) -> int | None:
    """Return the percentage right (hits) of pairs scored 90 %, estimated from 85 to 95 %; None for less than MIN_PAIRS."""
    is_near = np.abs(scores - REFERENCE_SCORE) <= BIN_WIDTH
    if is_near.sum() < MIN_PAIRS:
        return None
    # The mean of these scores may differ from 90 %, so the share of hits is moved by the difference.
    return round(100 * float(np.clip(REFERENCE_SCORE + np.mean(hits[is_near]) - np.mean(scores[is_near]), 0.0, 1.0)))


def leaning_of(scores: Floats, hits: Any, n_bins: int) -> str:
    """Return "sure" for overconfident scores, "modest" for underconfident ones, "off" for both. hits: Whether each is right."""
    table = table_of(scores, hits, make_binner(n_bins))
    share = table.counts / table.counts.sum()
    # Overconfident scores are too far from .5: too high above it, too low below it.
    gaps = share * (table.mean_score - table.mean_hit) * np.where(table.mean_score >= 0.5, 1.0, -1.0)
    total, net = np.abs(gaps).sum(), gaps.sum()
    if total == 0 or abs(net) < ONE_WAY * total:  # gaps of both kinds, which mostly cancel out
        return "off"
    return "sure" if net > 0 else "modest"


@dataclass(frozen=True)
class VerdictFigures:
    """The figures that decide a status.

    error (float): Calibration error after calibration. floor95 (float): Its 95 % noise floor, for independent pairs. low, high
    (float | None): Interval of the true error by document. has_few (bool): Fewer pairs than a verdict needs. percent_right (int
    | None): Percentage right of pairs scored 90 %. leaning (str): "sure", "modest" or "off" (`leaning_of`). is_uneven (bool):
    Rare labels are miscalibrated. was_fitted (bool): The fit saw the data.
    """

    error: float
    floor95: float
    low: float | None = None
    high: float | None = None
    has_few: bool = False
    percent_right: int | None = None
    leaning: str = "off"
    is_uneven: bool = False
    was_fitted: bool = False


def exceeds_noise(error: float, floor95: float, low: float | None) -> tuple[bool, bool]:
    """Return two tests of whether an error is more than noise: it is above `floor95`; `low` is above 0 (None: as the first)."""
    is_above_floor = error > floor95
    return is_above_floor, is_above_floor if low is None else low > 0


def status_of(evidence: VerdictFigures) -> str:
    """Return the status, a key of HEADINGS: the first of these that applies. Two tests for more than noise: `exceeds_noise`.

    "seen": The fit saw the data. "unclear": There are few pairs; or the noise floor or the interval reaches beyond VAGUE, and
    not both tests show more than noise. "calibrated": No test shows it. "close": One test shows it, or the error is small; and
    pairs scored 90 % are right 85 to 95 % of the time, or are few. The `leaning`: Both tests show it. "unclear": All else. If
    rare labels are miscalibrated, "calibrated" and "close" become "uneven" and "close-uneven".
    """
    if evidence.was_fitted:
        return "seen"
    above_noise = exceeds_noise(evidence.error, evidence.floor95, evidence.low)  # by the noise floor, by the interval
    if evidence.has_few or (not all(above_noise) and max(evidence.floor95, evidence.high or 0.0) > VAGUE):
        return "unclear"
    if not any(above_noise):
        return "uneven" if evidence.is_uneven else "calibrated"
    is_near = evidence.percent_right is None or abs(evidence.percent_right - 100 * REFERENCE_SCORE) <= 100 * VAGUE
    if is_near and (not all(above_noise) or evidence.error <= SMALL):
        return "close-uneven" if evidence.is_uneven else "close"
    return evidence.leaning if all(above_noise) else "unclear"


def is_uneven(mean: dict[str, Any]) -> bool:
    """Return whether the mean error of the groups is much more than noise. mean (dict): Their row in the table of errors."""
    error, low = mean["calibrated"], mean["true_low"]
    return error is not None and error > max(SMALL, UNEVEN * mean["floor95"]) and (low is None or low > 0)


def verdict(
    view: JudgedView,
    table: dict[str, Any],
    noun: str,
    overlap: dict[str, Any] | None = None,
    never: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Summarize the evaluation of a view in sentences.

    table (dict): From `metrics.table.calibration_table`. noun (str): Word for the component. overlap (dict | None): Overlap
    with the fit data, `pairs.seen_texts.TrainTestOverlap`. never (Sequence): Labels that are never right, by
    `judged_view.never_right`. RETURNS (dict): "status" of HEADINGS, "heading", "sentence", and lists "more", "warnings".
    """
    overall, *group_rows, mean_of_groups = table["errors"]
    percent_right = right_at(view.calibrated, view.pairs.hits)
    evidence = VerdictFigures(
        overall["calibrated"], overall["floor95"], overall["true_low"], overall["true_high"],
        has_few=len(view.pairs) < view.min_tag_pairs, percent_right=percent_right,
        leaning=leaning_of(view.calibrated, view.pairs.hits, view.n_bins),
        # Labels that are never right are miscalibrated if at least PROMISED of their predictions should be, by their scores.
        is_uneven=is_uneven(mean_of_groups) or sum(row["promised"] for row in never) >= PROMISED,
        was_fitted=bool(overlap and overlap["many"]),
    )  # fmt: skip
    status = status_of(evidence)
    units = view.span_words[1] if view.kind == "entities" else "labels"
    opening = _opening(status, noun, percent_right, units)
    worse = warn_of_higher_loss(table["change"])
    return {
        "status": status,
        "heading": HEADINGS[status],
        "sentence": f"{opening}{_error_clause(status, view, evidence)}.",
        "more": [_raw_sentence(view, overall, evidence.error), *([worse] if worse else []), *_group_sentences(group_rows)],
        "warnings": [sentence for sentence in (warn_of_never_right(never),) if sentence],
    }


def _opening(status: str, noun: str, percent_right: int | None, units: str) -> str:
    """Return a status's first words. noun: Word for the component. percent_right: By `right_at`. units: Word for labels."""
    if status in ("seen", "unclear"):
        return "There is too little data for a verdict" if status == "unclear" else "No verdict: the fit used this data"
    at_90 = "" if percent_right is None else f"{units} that this {noun} scores 90 % are right {percent_right} % of the time"
    if status in ("calibrated", "close", "uneven", "close-uneven"):
        calibrated = "nearly calibrated" if status.startswith("close") else "calibrated"
        opening = at_90 or f"this {noun} is {calibrated}"
        opening += ", though not for each label by itself" if status.endswith("uneven") else ""
    else:
        leanings = {
            "sure": "overconfident", "modest": "underconfident", "off": "overconfident in places and underconfident in others",
        }  # fmt: skip
        opening = f"this {noun} is {leanings[status]}" + (f": {at_90}" if at_90 else "")
    return opening[0].upper() + opening[1:]


def _error_clause(status: str, view: JudgedView, evidence: VerdictFigures) -> str:
    """Return the clause on the size of the error (`evidence`) that follows `_opening` of a status of HEADINGS, or ""."""
    error, floor95 = evidence.error, evidence.floor95
    above_noise = exceeds_noise(error, floor95, evidence.low)  # by the noise floor, by the interval
    if status == "unclear":
        count = len(np.unique(view.documents))
        note = ""
        if above_noise[0] and evidence.has_few:
            note = "; that is more, but of so few scores"
        elif above_noise[0]:  # but not by the interval, which is known then
            interval = f"{evidence.low:.3f} to {evidence.high:.3f}"
            note = f"; that is more, but documents differ too much to tell (95 % interval {interval})"
        return (
            f": {len(view.pairs):,} scores from {count_in_words('document', count)} are off by {error:.3f} on "
            f"average, where chance alone would show up to {floor95:.3f}{note}"
        )
    clauses = ("no more than chance would show", "which may be chance", "more than chance would show")
    clause = clauses[sum(above_noise)]  # by how many of the two tests show more than noise
    if evidence.percent_right is None and status != "seen":  # the opening has no figure; that of "seen" needs none
        return f": on average its scores are off by {error:.3f}, {clause}"
    if status in ("seen", "sure", "modest", "off"):  # the opening says enough
        return ""
    if any(above_noise):  # the status is "close" or "close-uneven"
        return f"; on average its scores are off by little, {'but by ' if all(above_noise) else ''}{clause}"
    return f"; on average its scores are off by {clause}"


def _raw_sentence(view: JudgedView, overall: dict[str, Any], error: float) -> str:
    """Return a sentence on the raw scores: how many scored 90 % were right, and the error before and after (`error`)."""
    percent_right = right_at(view.pairs.scores, view.pairs.hits)
    clause = "" if percent_right is None else f"{percent_right} % of those scored 90 % were right, and "
    worse = "" if error <= overall["raw"] else " Calibration made it worse on this data."
    return (
        f"Before calibration, {clause}scores were off by {overall['raw']:.3f} on average; now they are by {error:.3f}.{worse}"
    )


def _group_sentences(rows: list[dict[str, Any]]) -> list[str]:
    """Return [a sentence on how many groups are miscalibrated]; [] if fewer than two have pairs."""
    rows_with_pairs = [row for row in rows if row["calibrated"] is not None]
    off_groups = [row for row in rows_with_pairs if all(exceeds_noise(row["calibrated"], row["floor95"], row["true_low"]))]
    if len(rows_with_pairs) < 2:
        return []
    if not off_groups:
        return [f"None of the {len(rows_with_pairs)} groups with pairs is surely off by itself."]
    worst = max(off_groups, key=lambda row: row["calibrated"] - row["floor95"])
    all_groups = "Both" if len(rows_with_pairs) == 2 else f"All {len(rows_with_pairs)}"
    subject = all_groups if len(off_groups) == len(rows_with_pairs) else f"{len(off_groups)} of the {len(rows_with_pairs)}"
    return [
        f"{subject} groups with pairs, each evaluated by itself, {'is' if len(off_groups) == 1 else 'are'} off by more than "
        f"chance; farthest off is group {worst['group']} with {worst['calibrated']:.3f} (chance: {worst['floor95']:.3f})."
    ]
