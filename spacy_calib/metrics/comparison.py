"""Compares two scored corpora of the same documents: units that both label, and in which parts of the data one is worse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..pairs.build import JudgedPairs
from ..pairs.scored_corpus import RIGHT, UNKNOWN, ScoredCorpus
from ..types import Floats, Ints, Pairs
from .gaps import stand
from .paired import ComparisonRow, error_row, found_rows, part_row, unit_rows
from .slices import FEWEST_DOCUMENTS, FEWEST_UNITS, RATE, slices_by


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
    """Compare accuracy in each part of the data, first where the other is surely worse, see `metrics.paired.part_row`.

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
