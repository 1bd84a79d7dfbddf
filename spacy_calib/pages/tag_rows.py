"""Judged pairs -> a row for each tag; which scores are farthest from the truth, and which labels are never right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics.calibration_error import calibration_error, debiased_calibration_error
from ..metrics.noise_floor import noise_floor
from ..pairs.build import JudgedPairs, top_pairs
from ..types import Ints
from .judged import JudgedView, in_context

if TYPE_CHECKING:
    from ..corpus.scored import ScoredCorpus

MAX_WORST = 6
MAX_EXAMPLES = 3
# A mean gap below this share of the error is no direction: the tag is too sure in places and too modest in others.
ONE_SIDED = 0.25


def tag_rows(corpus: ScoredCorpus, judged: JudgedView) -> list[dict[str, Any]]:
    """A row for each tag that has pairs, gold or predictions in the data; the one with most pairs first.

    RETURNS (list): "tag", "column", "group", "counted" (frequency that the groups were made from), "gold" (here),
        "pairs", "mean_raw", "mean_calibrated", "right" (share of hits), "raw", "calibrated" (calibration error, where
        pairs are enough), "precision" (how often the tag is right where predicted); None for what is not known.
    """
    gold, predicted, precision = _carried(corpus, judged)
    own = judged.tag_slices()
    present = [tag for tag in range(len(judged.labels)) if tag in own or gold[tag] or predicted[tag]]
    present.sort(key=lambda tag: (-len(own.get(tag, ())), judged.labels[tag]))
    known = judged.kind != "entities" and judged.named
    return [
        {
            "tag": judged.labels[tag],
            "column": tag,
            "group": judged.group_name(tag),
            "counted": int(judged.groups.counts[tag]) if tag < len(judged.groups.counts) else None,
            "gold": int(gold[tag]) if known else None,
            **_scores_of(judged, own.get(tag)),
            "precision": float(precision[tag]) if known and predicted[tag] else None,
        }
        for tag in present
    ]


def _carried(corpus: ScoredCorpus, judged: JudgedView) -> tuple[Ints, Ints, Any]:
    """(gold tokens, tokens predicted so, share of these that is right) of each tag; zeros for entities."""
    n = len(judged.labels)
    if judged.kind == "entities" or not judged.named:
        return np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp), np.zeros(n)
    gold = np.bincount(corpus.gold[corpus.gold >= 0], minlength=n)[:n]
    known = (corpus.right >= 0) & (corpus.labels >= 0)
    predicted = np.bincount(corpus.labels[known], minlength=n)[:n]
    right = np.bincount(corpus.labels[known], corpus.right[known], minlength=n)[:n]
    return gold, predicted, right / np.maximum(predicted, 1)


def _scores_of(judged: JudgedView, own: Ints | None) -> dict[str, Any]:
    if own is None:
        return dict.fromkeys(("mean_raw", "mean_calibrated", "right", "raw", "calibrated"), None) | {"pairs": 0}
    raw, new, hits = judged.pairs.scores[own], judged.calibrated[own], judged.pairs.hits[own]
    enough = len(own) >= judged.enough
    return {
        "pairs": len(own),
        "mean_raw": float(raw.mean()),
        "mean_calibrated": float(new.mean()),
        "right": float(hits.mean()),
        "raw": calibration_error(raw, hits, judged.n_bins) if enough else None,
        "calibrated": calibration_error(new, hits, judged.n_bins) if enough else None,
    }


def worst_tags(corpus: ScoredCorpus, judged: JudgedView) -> dict[str, Any]:
    """The tags whose calibrated error is farthest beyond chance.

    RETURNS (dict): "enough" (pairs that a tag needs to be judged), "judged" (tags that have so many), "beyond" (those
        beyond chance), "tags": the worst of them, each with "tag", "pairs", "error", "floor95" (what exactly true
        scores would show in 19 of 20 cases), "mean", "right", "leaning" ("sure", "modest", "both"), "examples".
    """
    own = {tag: part for tag, part in judged.tag_slices().items() if len(part) >= judged.enough}
    excess = {
        tag: debiased_calibration_error(judged.calibrated[part], judged.pairs.hits[part], judged.n_bins) or 0.0
        for tag, part in own.items()
    }
    order = sorted((tag for tag in excess if excess[tag] > 0), key=lambda tag: (-excess[tag], tag))
    rows = [row for row in (_worst_row(judged, tag, own[tag]) for tag in order) if row["error"] > row["floor95"]]
    found = [{**row, "examples": _examples(corpus, judged, own[row["column"]], row["leaning"])} for row in rows[:MAX_WORST]]
    return {"enough": judged.enough, "judged": len(own), "beyond": len(rows), "tags": found}


def _worst_row(judged: JudgedView, tag: int, own: Ints) -> dict[str, Any]:
    new, hits = judged.calibrated[own], judged.pairs.hits[own]
    error = calibration_error(new, hits, judged.n_bins)
    floor = noise_floor(new, judged.n_bins, seed=judged.seed)
    assert error is not None
    assert floor is not None
    gap = float(new.mean() - hits.mean())
    leaning = "both" if abs(gap) < ONE_SIDED * error else "sure" if gap > 0 else "modest"
    return {
        "tag": judged.labels[tag],
        "column": tag,
        "pairs": len(own),
        "error": error,
        "floor95": floor.q95,
        "mean": float(new.mean()),
        "right": float(hits.mean()),
        "leaning": leaning,
    }


def _examples(corpus: ScoredCorpus, judged: JudgedView, own: Ints, leaning: str) -> list[dict[str, Any]]:
    """Where the tag was given a high score and is wrong; of a modest one, where it is right in spite of a low score."""
    wanted = own[judged.pairs.hits[own] == (leaning == "modest")]
    sign = 1.0 if leaning == "modest" else -1.0
    order = wanted[np.argsort(sign * judged.calibrated[wanted], kind="stable")]
    examples: list[dict[str, Any]] = []
    for pair in order.tolist():
        example = in_context(corpus, judged, pair)
        if all((one["before"], one["text"]) != (example["before"], example["text"]) for one in examples):
            examples.append(example)
        if len(examples) == MAX_EXAMPLES:
            break
    return examples


# So many predictions without a single hit are worth a word.
MANY = 20
# Where such labels' scores promise so many hits in all, scores that look true on the whole are not called so.
PROMISED = 3.0
_NAMED = 8


def never_right(judged: JudgedPairs, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The labels predicted MANY times or more and right not once; the one predicted most often first.

    labels (Sequence[str]): The tags, as columns of the pairs.
    RETURNS (list): "label", "predicted" (how often), "promised" (hits that the calibrated scores expected).
    """
    top, n = top_pairs(judged.pairs), len(labels)
    top = top[(judged.pairs.tags[top] >= 0) & (judged.pairs.tags[top] < n)]
    tags = judged.pairs.tags[top]
    predicted, right, promised = (np.bincount(tags, held, n) for held in (None, judged.pairs.hits[top], judged.calibrated[top]))
    found = np.flatnonzero((predicted >= MANY) & (right == 0)).tolist()
    found.sort(key=lambda tag: (-predicted[tag], labels[tag]))
    return [{"label": labels[tag], "predicted": int(predicted[tag]), "promised": float(promised[tag])} for tag in found]


def warning_of(found: Sequence[dict[str, Any]]) -> str | None:
    """A sentence that warns of the labels never right; None where there are none."""
    if not found:
        return None
    named = ", ".join(f"{one['label']} ({one['predicted']:,} times)" for one in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    promised = sum(one["promised"] for one in found)
    said = f", though by the scores {promised:,.0f} of these should be" if promised >= PROMISED else ""
    return f"Predicted and never right: {named}{more}{said}. Do the model and the gold use the same labels?"
