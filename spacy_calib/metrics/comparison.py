"""Two pipelines on the same gold: figures of the units that both label, other less model, and where one of them is worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import numpy as np

from ..pairs.build import JudgedPairs
from ..pairs.documents import document_codes
from ..pairs.scored_corpus import RIGHT, UNKNOWN, ScoredCorpus
from ..types import Floats, Ints, Pairs
from .by_document import Interval, Resampled, resample_error, resample_means, resample_sums
from .gaps import errors_of, gap_of, p_values, stand, totals_of
from .proper import log_losses
from .slices import FEWEST_DOCUMENTS, FEWEST_UNITS, RATE, slices_by

# Of these, more is better.
RISING = frozenset({"accuracy", "precision", "recall", "f"})
N_SAMPLES = 1000


class ComparisonRow(TypedDict):
    """A figure of two pipelines.

    difference: Other less model, with "low" and "high" of its 95 % interval (None in a single document). better: "model", "other", or
    None where the interval contains 0.
    """

    figure: str
    model: float
    other: float
    difference: float
    low: float | None
    high: float | None
    better: str | None


def unit_rows(model: JudgedPairs, other: JudgedPairs, seed: int = 0) -> list[ComparisonRow]:
    """Accuracy and log loss of n units that both label: one pair each, of the label and whether it is right.

    The intervals are those of means. RETURNS (list): See `row_of`; none without units.
    """
    values = [(side.pairs.hits.astype(np.float64), log_losses(side.calibrated, side.pairs.hits)) for side in (model, other)]
    differences = resample_means([b - a for a, b in zip(*values, strict=True)], model.documents, seed=seed)
    return [
        row_of(name, float(a.mean()), float(b.mean()), difference.interval())
        for name, a, b, difference in zip(("accuracy", "log_loss"), *values, differences, strict=False)
    ]


def error_row(model: JudgedPairs, other: JudgedPairs, n_bins: int = 10, seed: int = 0) -> ComparisonRow | None:
    """The calibration error (SMCE) of each side, as a row of `row_of`; None where one has no pairs."""
    among = np.union1d(model.documents, other.documents)
    a, b = (
        resample_error(side.calibrated, side.pairs.hits, side.documents, n_bins, seed=seed, among=among)
        for side in (model, other)
    )
    return None if a is None or b is None else row_of("smce", a.estimate, b.estimate, b.difference(a))


def found_rows(model: Floats, other: Floats, seed: int = 0) -> list[ComparisonRow]:
    """Precision, recall and F of what is found, such as entities; the intervals are the percentiles of resamples.

    model, other (Floats): In each document, how many are right, found, and in the gold: shape (3, documents).
    RETURNS (list): See `row_of`; none where either finds nothing, or there is nothing to find.
    """
    if not (model.sum(axis=1)[1:].all() and other.sum(axis=1)[1:].all()):
        return []
    rows, sums = [], np.split(resample_sums(np.concatenate([model, other]), N_SAMPLES, seed), 2)
    figures: dict[str, Callable[[Any], Any]] = {
        "precision": lambda sums: sums[0] / np.maximum(sums[1], 1),
        "recall": lambda sums: sums[0] / np.maximum(sums[2], 1),
        "f": lambda sums: 2 * sums[0] / np.maximum(sums[1] + sums[2], 1),
    }
    for name, figure in figures.items():
        a, b = (float(figure(side.sum(axis=1))) for side in (model, other))
        difference = Resampled(b - a, figure(sums[1]) - figure(sums[0]), model.shape[1])
        rows.append(row_of(name, a, b, difference.interval()))
    return rows


def row_of(figure: str, model: float, other: float, interval: Interval) -> ComparisonRow:
    """Make a row of a comparison."""
    low, high, better = interval.low, interval.high, None
    if low is not None and high is not None and not low <= 0 <= high:
        better = "other" if (low > 0) == (figure in RISING) else "model"
    return ComparisonRow(figure=figure, model=model, other=other, difference=other - model, low=low, high=high, better=better)


def part_row(right: Floats, right_other: Floats, documents: Ints) -> dict[str, Any]:
    """Compare how many units of a part of the data are right under either pipeline, n each.

    The test is that of `gap_of`, whose error is never taken for smaller than that of as many independent units that
    differ. RETURNS (dict): "n", "documents", "model", "other", "difference", "low", "high" and "p".
    """
    gap = gap_of(right_other, right > 0, documents)
    codes, n = document_codes(documents, len(right))
    changes = right_other - right
    totals = totals_of(changes, changes**2, codes)
    error, freedom = errors_of(totals)
    p = 1.0 if gap is None or not changes.any() else float(p_values(totals[0] / error, freedom)[0])
    figures = {} if gap is None else gap.to_dict()
    names = {"model": "right", "other": "score", "difference": "gap", "low": "low", "high": "high"}
    return {"n": len(right), "documents": n, **{name: figures.get(key) for name, key in names.items()}, "p": p}


def same_units(model: ScoredCorpus, other_corpus: ScoredCorpus) -> tuple[Ints, Ints]:
    """Return the rows of units at the same characters of the same Doc, with a scored label in both and gold."""
    (start, end), (other_start, end_other) = (_places(corpus) for corpus in (model, other_corpus))
    width = 1 + int(max(end.max(initial=0), end_other.max(initial=0)))
    _, model_rows, other_rows = np.intersect1d(model.docs * width + start, other_corpus.docs * width + other_start, True, True)
    is_same = (end[model_rows] == end_other[other_rows]) & judged(model)[model_rows] & judged(other_corpus)[other_rows]
    return model_rows[is_same], other_rows[is_same]


def judged(corpus: ScoredCorpus) -> Any:
    """Return whether each unit has a scored label and gold."""
    return (corpus.right != UNKNOWN) & ~np.isnan(corpus.calibrated)


def _places(corpus: ScoredCorpus) -> tuple[Ints, Ints]:
    """Return (first character in its Doc, the one after the last) of each unit."""
    sizes = np.fromiter(map(len, corpus.words.tolist()), dtype=np.intp, count=len(corpus))
    ends = np.cumsum(sizes + corpus.spaces)
    begins = ends - sizes - corpus.spaces
    begins = begins - begins[corpus.doc_starts[corpus.docs]] if len(corpus) else begins
    return begins, begins + sizes


def labelled(corpus: ScoredCorpus, rows: Ints) -> JudgedPairs:
    """Pair these units with their predicted labels."""
    pairs = Pairs(np.arange(len(rows)), corpus.labels[rows], corpus.raw[rows], corpus.right[rows] == RIGHT, len(rows))
    return JudgedPairs(pairs, corpus.calibrated[rows], corpus.documents[rows], corpus.unit)


def all_pairs(corpus: ScoredCorpus, rows: Ints) -> JudgedPairs:
    """Return all pairs of these units."""
    corpus_pairs = corpus.pairs()
    indices = np.flatnonzero(np.isin(corpus_pairs.pairs.rows, rows))
    return JudgedPairs(
        corpus_pairs.pairs.take(indices), corpus_pairs.calibrated[indices], corpus_pairs.documents[indices], corpus.unit
    )


def compare_units(
    model: ScoredCorpus, other_corpus: ScoredCorpus, rows: tuple[Ints, Ints], n_bins: int = 10
) -> list[ComparisonRow]:
    """Compare accuracy, log loss and SMCE of the same units, see `ComparisonRow`. rows (tuple): From `same_units`."""
    first, second = rows
    unit_results = unit_rows(labelled(model, first), labelled(other_corpus, second))
    error = error_row(all_pairs(model, first), all_pairs(other_corpus, second), n_bins)
    return unit_results if error is None else [*unit_results, error]


def compare_spans(model: ScoredCorpus, other_corpus: ScoredCorpus, gold: Ints, n_bins: int = 10) -> list[ComparisonRow]:
    """Compare precision, recall, F and SMCE of entities, see `ComparisonRow`. gold (Ints): Entities of each Doc."""
    of_gold = np.bincount(model.documents_of(np.arange(model.n_docs)), gold, model.n_documents).astype(np.float64)
    error = error_row(model.span_pairs(model.names), other_corpus.span_pairs(other_corpus.names), n_bins)
    return [*found_rows(_counts(model, of_gold), _counts(other_corpus, of_gold)), *([] if error is None else [error])]


def _counts(corpus: ScoredCorpus, gold: Floats) -> Floats:
    """Return (right, found, in the gold) of each document."""
    with_gold = np.flatnonzero(corpus.spans.right != UNKNOWN)
    documents = corpus.documents_of(corpus.spans.docs[with_gold])
    right = np.bincount(documents, corpus.spans.right[with_gold] == RIGHT, len(gold))
    return np.stack([right, np.bincount(documents, minlength=len(gold)), gold]).astype(np.float64)


def compare_slices(
    model: ScoredCorpus, other_corpus: ScoredCorpus, rows: tuple[Ints, Ints], values: Sequence[str | None]
) -> dict[str, Any]:
    """Compare accuracy in each part of the data, first where the other is surely worse, see `part_row`.

    values (Sequence): Of each Doc, see `slices_by`. RETURNS: "rate", "too_small", "rows" with "surely" (Benjamini and Hochberg
    1995).
    """
    right, right_other = (
        corpus.right[index].astype(np.float64) for corpus, index in zip((model, other_corpus), rows, strict=True)
    )
    documents, parts = model.documents[rows[0]], slices_by(values, model.docs[rows[0]], np.arange(len(rows[0])))
    slice_rows = [{"slice": name, **part_row(right[index], right_other[index], documents[index])} for name, index in parts]
    large_slices = [row for row in slice_rows if row["n"] >= FEWEST_UNITS and row["documents"] >= FEWEST_DOCUMENTS]
    tested_rows = [
        {**row, "surely": bool(corpus)}
        for row, corpus in zip(large_slices, stand([row["p"] for row in large_slices]), strict=True)
    ]
    order = sorted(tested_rows, key=lambda row: (not (row["surely"] and row["difference"] < 0), row["difference"]))
    return {"rate": RATE, "too_small": len(slice_rows) - len(large_slices), "rows": order}
