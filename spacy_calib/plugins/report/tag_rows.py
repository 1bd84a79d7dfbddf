"""Tables of tags for the report: a row for each tag, and the worst calibrated tags with examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...metrics.calibration_errors import calibration_error, debiased_calibration_error
from ...metrics.judged_view import JudgedView
from ...metrics.noise_floors import noise_floor
from ...types import Floats, Ints
from .passages import describe_pair

if TYPE_CHECKING:
    from ...pairs.scored_corpus import ScoredCorpus

MAX_WORST, MAX_EXAMPLES = 6, 3
ONE_SIDED = 0.25  # with a mean gap below this share of the error, a tag is overconfident in places and underconfident in others


def tag_rows(corpus: ScoredCorpus, view: JudgedView) -> list[dict[str, Any]]:
    """Return a row for each tag with pairs in the view, or with gold or predictions in the corpus; most pairs come first.

    RETURNS (list[dict]): "tag", "column" (index), "group", "counted" (frequency that decided the group), "gold" (frequency in
    this data), "pairs", "mean_raw", "mean_calibrated", "right" (share of hits), "raw", "calibrated" (calibration errors, if
    there are enough pairs), "precision"; None if unknown.
    """
    gold, n_predicted, precision = _gold_predicted_precision(corpus, view)
    slices = view.tag_slices()
    present = [tag for tag in range(len(view.labels)) if tag in slices or gold[tag] or n_predicted[tag]]
    present.sort(key=lambda tag: (-len(slices.get(tag, ())), view.labels[tag]))
    has_label_counts = view.kind != "entities" and view.has_label_columns  # not if a tag is an edit tree of a lemmatizer
    return [
        {
            "tag": view.labels[tag],
            "column": tag,
            "group": view.group_name(tag),
            "counted": int(view.groups.counts[tag]) if tag < len(view.groups.counts) else None,  # None: added after the fit
            "gold": int(gold[tag]) if has_label_counts else None,
            **_summarize_scores(view, slices.get(tag)),
            "precision": float(precision[tag]) if has_label_counts and n_predicted[tag] else None,
        }
        for tag in present
    ]


def _gold_predicted_precision(corpus: ScoredCorpus, view: JudgedView) -> tuple[Ints, Ints, Floats]:
    """Return (gold tokens, predicted tokens with gold, precision) of each tag of the view, (n_tags,) each; zeros if unknown."""
    n = len(view.labels)
    if view.kind == "entities" or not view.has_label_columns:  # columns that are edit trees are no labels
        return np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp), np.zeros(n)
    # The names of the corpus begin with the labels of the view; names after these n have no row.
    gold = np.bincount(corpus.gold[corpus.gold >= 0], minlength=n)[:n]
    has_gold = (corpus.right >= 0) & (corpus.labels >= 0)
    n_predicted = np.bincount(corpus.labels[has_gold], minlength=n)[:n]
    right = np.bincount(corpus.labels[has_gold], corpus.right[has_gold], minlength=n)[:n]
    return gold, n_predicted, right / np.maximum(n_predicted, 1)


def _summarize_scores(view: JudgedView, index: Ints | None) -> dict[str, Any]:
    """Return means and calibration errors of the view's pairs at `index` (None: no pairs); errors are None for few pairs."""
    if index is None:
        return dict.fromkeys(("mean_raw", "mean_calibrated", "right", "raw", "calibrated"), None) | {"pairs": 0}
    raw, calibrated, hits = view.pairs.scores[index], view.calibrated[index], view.pairs.hits[index]
    is_large = len(index) >= view.min_tag_pairs
    return {
        "pairs": len(index),
        "mean_raw": float(raw.mean()),
        "mean_calibrated": float(calibrated.mean()),
        "right": float(hits.mean()),
        "raw": calibration_error(raw, hits, view.n_bins) if is_large else None,
        "calibrated": calibration_error(calibrated, hits, view.n_bins) if is_large else None,
    }


def worst_tags(corpus: ScoredCorpus, view: JudgedView) -> dict[str, Any]:
    """Return the tags of a view whose calibrated error exceeds the noise floor, the largest debiased error first.

    RETURNS (dict): "enough" (minimum of pairs of a tag), "judged" (number of tags that have it), "beyond" (number of tags above
    the 95 % noise floor), "tags": the worst of these, each with "tag", "column", "pairs", "error", "floor95", "mean" (score),
    "right", "leaning" ("sure": overconfident, "modest": underconfident, or "both"), "examples" (from `corpus`).
    """
    slices = {tag: index for tag, index in view.tag_slices().items() if len(index) >= view.min_tag_pairs}
    debiased_errors = {
        tag: debiased_calibration_error(view.calibrated[index], view.pairs.hits[index], view.n_bins) or 0.0
        for tag, index in slices.items()
    }
    order = sorted((tag for tag, error in debiased_errors.items() if error > 0), key=lambda tag: (-debiased_errors[tag], tag))
    rows = [_worst_row(view, tag, slices[tag]) for tag in order]
    rows = [row for row in rows if row["error"] > row["floor95"]]
    worst = [{**row, "examples": _examples(corpus, view, slices[row["column"]], row["leaning"])} for row in rows[:MAX_WORST]]
    return {"enough": view.min_tag_pairs, "judged": len(slices), "beyond": len(rows), "tags": worst}


def _worst_row(view: JudgedView, tag: int, index: Ints) -> dict[str, Any]:
    """Return a tag's row in `worst_tags`, without examples. tag (int): Its number. index (Ints): Of its pairs in the view."""
    calibrated, hits = view.calibrated[index], view.pairs.hits[index]
    error = calibration_error(calibrated, hits, view.n_bins)
    floor = noise_floor(calibrated, view.n_bins, seed=view.seed)
    assert error is not None
    assert floor is not None
    gap = float(calibrated.mean() - hits.mean())
    is_one_sided = abs(gap) >= ONE_SIDED * error
    leaning = ("sure" if gap > 0 else "modest") if is_one_sided else "both"
    return {
        "tag": view.labels[tag], "column": tag, "pairs": len(index), "error": error, "floor95": floor.q95,
        "mean": float(calibrated.mean()), "right": float(hits.mean()), "leaning": leaning,
    }  # fmt: skip


def _examples(corpus: ScoredCorpus, view: JudgedView, index: Ints, leaning: str) -> list[dict[str, Any]]:
    """Return examples of a tag by its pairs (index): wrong ones scored high; if leaning is "modest", right ones scored low."""
    shows_right = leaning == "modest"
    candidates = index[view.pairs.hits[index] == shows_right]
    scores = view.calibrated[candidates]
    order = candidates[np.argsort(scores if shows_right else -scores, kind="stable")]
    examples: list[dict[str, Any]] = []
    for pair in order.tolist():
        example = describe_pair(corpus, view, pair)
        if all((earlier["before"], earlier["text"]) != (example["before"], example["text"]) for earlier in examples):
            examples.append(example)
        if len(examples) == MAX_EXAMPLES:
            break
    return examples
