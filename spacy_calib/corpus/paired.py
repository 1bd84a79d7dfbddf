"""Two scored corpora of the same documents: the units that both label, what each says of them, and in which parts of the data one is worse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..metrics.gaps import stand
from ..metrics.paired import error_row, found_rows, part_row, unit_rows
from ..pairs.build import JudgedPairs
from ..types import Floats, Ints, Pairs
from .scored import RIGHT, UNKNOWN, ScoredCorpus
from .slices import FEWEST_DOCUMENTS, FEWEST_UNITS, RATE, slices_by


def same_units(model: ScoredCorpus, other: ScoredCorpus) -> tuple[Ints, Ints]:
    """The rows of the units that both have, at the same characters of the same Doc, and that both give a scored label where gold is known."""
    (at, end), (at_other, end_other) = (_places(one) for one in (model, other))
    width = 1 + int(max(end.max(initial=0), end_other.max(initial=0)))
    _, own, others = np.intersect1d(model.docs * width + at, other.docs * width + at_other, True, True)
    same = (end[own] == end_other[others]) & judged(model)[own] & judged(other)[others]
    return own[same], others[same]


def judged(corpus: ScoredCorpus) -> Any:
    """Whether each unit has a scored label and gold, shape (n,)."""
    return (corpus.right != UNKNOWN) & ~np.isnan(corpus.calibrated)


def _places(corpus: ScoredCorpus) -> tuple[Ints, Ints]:
    """(first character in its Doc, the one after the last) of each unit."""
    sizes = np.fromiter(map(len, corpus.words.tolist()), dtype=np.intp, count=len(corpus))
    ends = np.cumsum(sizes + corpus.spaces)
    begins = ends - sizes - corpus.spaces
    begins = begins - begins[corpus.doc_starts[corpus.docs]] if len(corpus) else begins
    return begins, begins + sizes


def labelled(corpus: ScoredCorpus, rows: Ints) -> JudgedPairs:
    """These units, each paired with the label on it."""
    pairs = Pairs(np.arange(len(rows)), corpus.labels[rows], corpus.raw[rows], corpus.right[rows] == RIGHT, len(rows))
    return JudgedPairs(pairs, corpus.calibrated[rows], corpus.documents[rows], corpus.unit)


def all_pairs(corpus: ScoredCorpus, rows: Ints) -> JudgedPairs:
    """All pairs of these units."""
    every = corpus.pairs()
    own = np.flatnonzero(np.isin(every.pairs.rows, rows))
    return JudgedPairs(every.pairs.take(own), every.calibrated[own], every.documents[own], corpus.unit)


def compare_units(model: ScoredCorpus, other: ScoredCorpus, rows: tuple[Ints, Ints], n_bins: int = 10) -> list[dict[str, Any]]:
    """Accuracy and log loss of the labels of the same units, and SMCE of all their pairs; see `metrics.paired.row_of`.

    rows (tuple): Of `same_units`.
    """
    first, second = rows
    found = unit_rows(labelled(model, first), labelled(other, second))
    error = error_row(all_pairs(model, first), all_pairs(other, second), n_bins)
    return found if error is None else [*found, error]


def compare_spans(model: ScoredCorpus, other: ScoredCorpus, gold: Ints, n_bins: int = 10) -> list[dict[str, Any]]:
    """Precision, recall and F of entities, and SMCE of those that each finds; see `metrics.paired.row_of`. gold (Ints): How many each Doc has."""
    of_gold = np.bincount(model.documents_of(np.arange(model.n_docs)), gold, model.n_documents).astype(np.float64)
    error = error_row(model.span_pairs(model.names), other.span_pairs(other.names), n_bins)
    return [*found_rows(_counts(model, of_gold), _counts(other, of_gold)), *([] if error is None else [error])]


def _counts(corpus: ScoredCorpus, gold: Floats) -> Floats:
    """(right, found, in the gold) of each document."""
    known = np.flatnonzero(corpus.spans.right != UNKNOWN)
    documents = corpus.documents_of(corpus.spans.docs[known])
    right = np.bincount(documents, corpus.spans.right[known] == RIGHT, len(gold))
    return np.stack([right, np.bincount(documents, minlength=len(gold)), gold]).astype(np.float64)


def compare_slices(
    model: ScoredCorpus, other: ScoredCorpus, rows: tuple[Ints, Ints], values: Sequence[str | None]
) -> dict[str, Any]:
    """How many units are right by either in each part of the data, first where the other is surely worse, see `metrics.paired.part_row`.

    values (Sequence): Of each Doc, see `slices_by`. RETURNS (dict): "rate", "too_small" and "rows", with "slice", and "surely": what stands of so
        many findings (Benjamini and Hochberg 1995).
    """
    right, right_other = (one.right[own].astype(np.float64) for one, own in zip((model, other), rows, strict=True))
    documents, parts = model.documents[rows[0]], slices_by(values, model.docs[rows[0]], np.arange(len(rows[0])))
    told = [{"slice": name, **part_row(right[own], right_other[own], documents[own])} for name, own in parts]
    kept = [row for row in told if row["n"] >= FEWEST_UNITS and row["documents"] >= FEWEST_DOCUMENTS]
    found = [{**row, "surely": bool(one)} for row, one in zip(kept, stand([row["p"] for row in kept]), strict=True)]
    order = sorted(found, key=lambda row: (not (row["surely"] and row["difference"] < 0), row["difference"]))
    return {"rate": RATE, "too_small": len(told) - len(kept), "rows": order}
