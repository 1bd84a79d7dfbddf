"""Two pipelines on the same gold: differences of figures on the units that both label, and slices where one is worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import numpy as np

from ..pairs.build import JudgedPairs
from ..pairs.documents import document_codes
from ..pairs.scored_corpus import RIGHT, UNKNOWN, ScoredCorpus, has_scored_gold
from ..types import Floats, Ints
from .by_document import Interval, ResampledFigure, resample_error, resample_means
from .error_sums import resample_sums
from .gaps import errors_of, find_discoveries, gap_of, p_values, totals_of
from .proper import log_losses
from .slices import FEWEST_DOCUMENTS, FEWEST_UNITS, RATE, slices_by

# Figures of which higher is better.
RISING = frozenset({"accuracy", "precision", "recall", "f"})
N_SAMPLES = 1000


class ComparisonRow(TypedDict):
    """A figure of two pipelines.

    difference: other - model; low, high: its 95 % interval (None for a single document). better: "model", "other", or None
    if the interval contains 0.
    """

    figure: str
    model: float
    other: float
    difference: float
    low: float | None
    high: float | None
    better: str | None


def unit_rows(model: JudgedPairs, other_model: JudgedPairs, seed: int = 0) -> list[ComparisonRow]:
    """Compare accuracy and log loss of n units that both label; [] without units.

    model, other_model (JudgedPairs): The predicted label of each unit and whether it is right.
    """
    sides = (model, other_model)
    values = [(side.pairs.hits.astype(np.float64), log_losses(side.calibrated, side.pairs.hits)) for side in sides]
    differences = resample_means([b - a for a, b in zip(*values, strict=True)], model.documents, seed=seed)
    return [
        make_row(name, float(a.mean()), float(b.mean()), difference.interval())
        for name, a, b, difference in zip(("accuracy", "log_loss"), *values, differences, strict=False)
    ]


def error_row(model: JudgedPairs, other_model: JudgedPairs, n_bins: int = 10, seed: int = 0) -> ComparisonRow | None:
    """Compare the calibration errors (SMCE); None if either side has no pairs."""
    among = np.union1d(model.documents, other_model.documents)
    a, b = (
        resample_error(side.calibrated, side.pairs.hits, side.documents, n_bins, seed=seed, among=among)
        for side in (model, other_model)
    )
    return None if a is None or b is None else make_row("smce", a.estimate, b.estimate, b.difference(a))


def span_rows(model: Floats, other_model: Floats, seed: int = 0) -> list[ComparisonRow]:
    """Compare precision, recall and F of spans such as entities; the intervals are percentiles of resamples.

    model, other_model (Floats): Number of spans in each document that are right, predicted, and gold: shape (3, documents).
    RETURNS (list): [] if either predicts none, or there are no gold spans.
    """
    if not (model.sum(axis=1)[1:].all() and other_model.sum(axis=1)[1:].all()):
        return []
    rows, sums = [], np.split(resample_sums(np.concatenate([model, other_model]), N_SAMPLES, seed), 2)
    figures: dict[str, Callable[[Any], Any]] = {
        "precision": lambda sums: sums[0] / np.maximum(sums[1], 1),
        "recall": lambda sums: sums[0] / np.maximum(sums[2], 1),
        "f": lambda sums: 2 * sums[0] / np.maximum(sums[1] + sums[2], 1),
    }
    for name, figure in figures.items():
        a, b = (float(figure(side.sum(axis=1))) for side in (model, other_model))
        difference = ResampledFigure(b - a, figure(sums[1]) - figure(sums[0]), model.shape[1])
        rows.append(make_row(name, a, b, difference.interval()))
    return rows


def make_row(figure: str, a: float, b: float, interval: Interval) -> ComparisonRow:
    """Make a row. a, b (float): Figures of the model and of the other one. interval (Interval): Interval of b - a."""
    low, high, better = interval.low, interval.high, None
    if low is not None and high is not None and not low <= 0 <= high:
        better = "other" if (low > 0) == (figure in RISING) else "model"
    return ComparisonRow(figure=figure, model=a, other=b, difference=b - a, low=low, high=high, better=better)


def part_row(right: Floats, right_other: Floats, documents: Ints) -> dict[str, Any]:
    """Compare the accuracies of two pipelines on n units of a part of the data.

    The p value is of the t test of `gap_of` over documents. The variance of the difference in right units is at least the
    number of units on which the two differ, as if these were independent; else few documents could show too small an error.

    right, right_other (Floats): 1 if the unit is right under a pipeline, else 0. documents (Ints): Document of each unit.
    RETURNS (dict): "n", "documents", "model", "other", "difference", "low", "high" and "p".
    """
    gap = gap_of(right_other, right > 0, documents)
    codes, n = document_codes(documents, len(right))
    changes = right_other - right
    totals = totals_of(changes, changes**2, codes)
    error, degrees_of_freedom = errors_of(totals)
    p = 1.0 if gap is None or not changes.any() else float(p_values(totals[0] / error, degrees_of_freedom)[0])
    figures = {} if gap is None else gap.to_dict()
    names = {"model": "right", "other": "score", "difference": "gap", "low": "low", "high": "high"}
    return {"n": len(right), "documents": n, **{name: figures.get(key) for name, key in names.items()}, "p": p}


def same_units(model: ScoredCorpus, other_corpus: ScoredCorpus) -> tuple[Ints, Ints]:
    """Return the units at the same characters, with gold and a scored label in both: (rows of the one corpus, of the other)."""
    (start, end), (other_start, end_other) = (_character_offsets(corpus) for corpus in (model, other_corpus))
    width = 1 + int(max(end.max(initial=0), end_other.max(initial=0)))
    _, model_rows, other_rows = np.intersect1d(model.docs * width + start, other_corpus.docs * width + other_start, True, True)
    has_gold = has_scored_gold(model)[model_rows] & has_scored_gold(other_corpus)[other_rows]
    is_same = (end[model_rows] == end_other[other_rows]) & has_gold
    return model_rows[is_same], other_rows[is_same]


def _character_offsets(corpus: ScoredCorpus) -> tuple[Ints, Ints]:
    """Return (first character in its Doc, the one after the last) of each unit."""
    sizes = np.fromiter(map(len, corpus.words.tolist()), dtype=np.intp, count=len(corpus))
    ends = np.cumsum(sizes + corpus.spaces)
    begins = ends - sizes - corpus.spaces
    begins = begins - begins[corpus.doc_starts[corpus.docs]] if len(corpus) else begins
    return begins, begins + sizes


def all_pairs(corpus: ScoredCorpus, rows: Ints) -> JudgedPairs:
    """Return all (token, tag) pairs of these units."""
    corpus_pairs = corpus.pairs()
    indices = np.flatnonzero(np.isin(corpus_pairs.pairs.rows, rows))
    return JudgedPairs(
        corpus_pairs.pairs.take(indices), corpus_pairs.calibrated[indices], corpus_pairs.documents[indices], corpus.unit
    )


def compare_units(
    model: ScoredCorpus, other_corpus: ScoredCorpus, rows: tuple[Ints, Ints], n_bins: int = 10
) -> list[ComparisonRow]:
    """Compare accuracy, log loss and SMCE of the same units. rows (tuple): From `same_units`."""
    first, second = rows
    comparison = unit_rows(model.predicted_pairs(first), other_corpus.predicted_pairs(second))
    error = error_row(all_pairs(model, first), all_pairs(other_corpus, second), n_bins)
    return comparison if error is None else [*comparison, error]


def compare_spans(model: ScoredCorpus, other_corpus: ScoredCorpus, gold: Ints, n_bins: int = 10) -> list[ComparisonRow]:
    """Compare precision, recall, F and SMCE of entities. gold (Ints): Number of gold entities of each Doc."""
    gold_counts = np.bincount(model.documents_of(np.arange(model.n_docs)), gold, model.n_documents).astype(np.float64)
    error = error_row(model.span_pairs(model.names), other_corpus.span_pairs(other_corpus.names), n_bins)
    first, second = (_span_counts(corpus, gold_counts) for corpus in (model, other_corpus))
    return [*span_rows(first, second), *([] if error is None else [error])]


def _span_counts(corpus: ScoredCorpus, gold: Floats) -> Floats:
    """Return the numbers of right, predicted and gold spans of each document, shape (3, documents)."""
    with_gold = np.flatnonzero(corpus.spans.right != UNKNOWN)
    documents = corpus.documents_of(corpus.spans.docs[with_gold])
    right = np.bincount(documents, corpus.spans.right[with_gold] == RIGHT, len(gold))
    return np.stack([right, np.bincount(documents, minlength=len(gold)), gold]).astype(np.float64)


def compare_slices(
    model: ScoredCorpus, other_corpus: ScoredCorpus, rows: tuple[Ints, Ints], values: Sequence[str | None]
) -> dict[str, Any]:
    """Compare accuracy in each part of the data; parts where the other pipeline is significantly worse come first.

    values (Sequence): The part of each Doc, or None. RETURNS (dict): "rate", the false discovery rate; "too_small", number of
    parts left out; "rows" of `part_row` with "slice" and "surely", whether the difference is significant.
    """
    right, right_other = (
        corpus.right[index].astype(np.float64) for corpus, index in zip((model, other_corpus), rows, strict=True)
    )
    documents, parts = model.documents[rows[0]], slices_by(values, model.docs[rows[0]], np.arange(len(rows[0])))
    slice_rows = [{"slice": name, **part_row(right[index], right_other[index], documents[index])} for name, index in parts]
    large_slices = [row for row in slice_rows if row["n"] >= FEWEST_UNITS and row["documents"] >= FEWEST_DOCUMENTS]
    is_discovery = find_discoveries([row["p"] for row in large_slices]).tolist()
    tested_rows = [{**row, "surely": surely} for row, surely in zip(large_slices, is_discovery, strict=True)]
    order = sorted(tested_rows, key=lambda row: (not (row["surely"] and row["difference"] < 0), row["difference"]))
    return {"rate": RATE, "too_small": len(slice_rows) - len(large_slices), "rows": order}
