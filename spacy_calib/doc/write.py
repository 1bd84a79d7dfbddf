"""Calibrated marginals of a batch of Docs -> one block per Doc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ..calibration.scaling.entries import number_codes
from ..calibration.tokens import Calibrated, CalibratedEntries
from ..types import Floats, Ints, Spans
from .blocks import BLOCK_VERSION, Block


@dataclass(frozen=True, eq=False)
class CalibratedSpans:
    """The spans of Docs that follow one another.

    spans (Spans): In their tokens. labels (tuple): Of the spans' columns. raw, calibrated (Floats): One per span.
    accept (NDArray[int8]): 1 or 0 whether the span reaches its cut-off, -1 without cut-offs. event (str): Whose probability it is.
    """

    spans: Spans
    labels: tuple[str, ...]
    raw: Floats
    calibrated: Floats
    accept: NDArray[np.int8]
    event: str


@dataclass(frozen=True, eq=False)
class CarriedLabels:
    """Tokens that carry a label whose raw score is below the threshold, with that label and its scores.

    rows (Ints), labels (list[str]), raw (Floats), calibrated (CalibratedEntries): One per token.
    """

    rows: Ints
    labels: list[str]
    raw: Floats
    calibrated: CalibratedEntries


@dataclass(frozen=True, eq=False)
class CalibratedBatch:
    """What the pipe predicted for Docs that follow one another.

    calibrated (Calibrated): The entries above the threshold, of all their tokens. extra (CarriedLabels): Labels below it.
    layer (str): Which annotation the labels are of. labels (tuple): Label of each column.
    carried (NDArray[uint64]): Hash of the label that each token carries, 0 for none.
    spans (CalibratedSpans | None): None for a source of token labels alone.
    """

    calibrated: Calibrated
    extra: CarriedLabels
    layer: str
    labels: tuple[str, ...]
    carried: NDArray[np.uint64]
    spans: CalibratedSpans | None = None


def _label_codes(batch: CalibratedBatch) -> tuple[Ints, np.ndarray]:
    """A code for the label of each entry, and the label of each code."""
    marginals = batch.calibrated.marginals
    if marginals.names is None:
        return marginals.tags, np.array([*batch.labels, None], dtype=object)[:-1]
    distinct = list(dict.fromkeys(marginals.names))
    code_of = {name: code for code, name in enumerate(distinct)}
    return np.array([code_of[name] for name in marginals.names], dtype=np.intp), np.array([*distinct, None], dtype=object)[:-1]


def _labels_of_docs(batch: CalibratedBatch, bounds: Ints) -> tuple[list[list[str]], NDArray[np.uint32]]:
    """(the labels that each Doc mentions, so that a block names its own few ones only; of each entry its place among those of its Doc).

    bounds (Ints): First entry of each Doc, and the end of the last.
    """
    codes, label_of_code = _label_codes(batch)
    n_docs, n_labels = len(bounds) - 1, len(label_of_code)
    cells = np.repeat(np.arange(n_docs) * n_labels, np.diff(bounds)) + codes
    mentioned, place = number_codes(cells, n_docs * n_labels)
    firsts = np.searchsorted(mentioned, np.arange(n_docs + 1) * n_labels)
    names = label_of_code[mentioned % max(1, n_labels)].tolist()
    own = [names[first:end] for first, end in zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)]
    return own, (place - np.repeat(firsts[:-1], np.diff(bounds))).astype(np.uint32)


def build_blocks(docs: Sequence[Doc], batch: CalibratedBatch) -> list[Block]:
    """One block for each Doc, in order. All sums are done once for the whole batch; only the slicing is done per Doc."""
    calibrated, extra = batch.calibrated, batch.extra
    marginals = calibrated.marginals
    token_ends = np.cumsum([len(doc) for doc in docs])
    token_starts = token_ends - np.array([len(doc) for doc in docs])
    indptr = marginals.indptr
    entry_bounds = indptr[np.append(token_starts, token_ends[-1])]

    own_labels, own_codes = _labels_of_docs(batch, entry_bounds)
    extra_bounds = np.searchsorted(extra.rows, np.append(token_starts, token_ends[-1]))
    blocks = []
    for i, doc in enumerate(docs):
        place = doc.to_array(["IDX", "ORTH"]).astype(np.uint64).reshape(-1, 2)
        begin, end = entry_bounds[i], entry_bounds[i + 1]
        block: Block = {
            "version": BLOCK_VERSION,
            "layer": batch.layer,
            "start": place[:, 0].astype(np.uint32),
            "orth": place[:, 1].copy(),
            "carried": batch.carried[token_starts[i] : token_ends[i]].astype(np.uint32),
            "indptr": (indptr[token_starts[i] : token_ends[i] + 1] - begin).astype(np.uint32),
            "tag": own_codes[begin:end].copy(),
            "tags": own_labels[i],
            "raw": marginals.scores[begin:end].copy(),
            "calibrated": calibrated.scores[begin:end].copy(),
            **_bounds(calibrated.low, calibrated.high, begin, end),
        }
        if marginals.names is not None:
            block["column"] = marginals.tags[begin:end].astype(np.uint32)
        if calibrated.in_set is not None and calibrated.out_of_reach is not None:
            block["in_set"] = calibrated.in_set[begin:end].copy()
            block["out_of_reach"] = calibrated.out_of_reach[token_starts[i] : token_ends[i]].copy()
        first, last = extra_bounds[i], extra_bounds[i + 1]
        if last > first:
            block["extra"] = {
                "row": (extra.rows[first:last] - token_starts[i]).astype(np.uint32),
                "tags": list(extra.labels[first:last]),
                "raw": extra.raw[first:last].copy(),
                "calibrated": extra.calibrated.scores[first:last].copy(),
                **_bounds(extra.calibrated.low, extra.calibrated.high, first, last),
            }
        if batch.spans is not None:
            block["spans"] = _span_part(doc, batch.spans, int(token_starts[i]), int(token_ends[i]), place[:, 0])
        blocks.append(block)
    return blocks


def _bounds(low: Floats | None, high: Floats | None, begin: int, end: int) -> Block:
    """The intervals of some entries, {} where there are none."""
    return {} if low is None or high is None else {"low": low[begin:end].copy(), "high": high[begin:end].copy()}


def _span_part(doc: Doc, held: CalibratedSpans, start: int, end: int, starts: Any) -> Block:
    """The spans of one Doc, by their characters.

    start, end (int): Its tokens in the batch. starts: First character of each of its tokens.
    """
    own = np.flatnonzero((held.spans.starts >= start) & (held.spans.starts < end))
    first = held.spans.starts[own] - start
    last = held.spans.ends[own] - 1 - start
    text = doc.text if len(own) else ""
    begins = starts[first].astype(np.int64)
    ends = starts[last].astype(np.int64) + np.array([len(doc[i]) for i in last.tolist()], dtype=np.int64)
    return {
        "event": held.event,
        "start": begins.astype(np.uint32),
        "end": ends.astype(np.uint32),
        "text": np.array(
            [get_string_id(text[a:b]) for a, b in zip(begins.tolist(), ends.tolist(), strict=True)], dtype=np.uint64
        ),
        "labels": [held.labels[column] for column in held.spans.labels[own].tolist()],
        "raw": held.raw[own].copy(),
        "calibrated": held.calibrated[own].copy(),
        "accept": held.accept[own].copy(),
        "chosen": held.spans.chosen[own].copy(),
    }
