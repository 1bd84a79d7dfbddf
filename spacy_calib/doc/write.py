"""Writes calibrated batches on Docs: a block per Doc, and `doc.spans["<attr>_doubtful"]`, the stretches of flagged tokens."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup

from ..annotations import Annotation, Hashes, get_annotation
from ..calibration.tokens import CalibratedEntries
from ..pairs.documents import TOKEN
from ..types import Floats, Ints, Spans
from .store import BLOCK_VERSION, COLUMNS, TEXT, UNIT, Block, BlockData, labels_said


@dataclass(frozen=True, eq=False)
class Flags:
    """Which of n tokens of consecutive Docs are flagged for review.

    values (NDArray[int8]): 1 or 0 for each token, -1 without a score. rows (Ints): The m flagged tokens, ascending.
    types (Sequence[str]): Entity types. kinds (Ints): Most probable type of each flagged token, as an index into types, (m,).
    scores (Floats): P(inside an entity) of each or, if each label has its own cut-off, P(its type), (m,).
    """

    values: NDArray[np.int8]
    rows: Ints
    types: Sequence[str]
    kinds: Ints
    scores: Floats


def doubtful_key(attr: str) -> str:
    """Return the key of the span group of flagged tokens in `doc.spans`."""
    return f"{attr}_doubtful"


def delete_doubtful(doc: Doc, attr: str) -> None:
    """Remove the span group of an earlier run."""
    if doubtful_key(attr) in doc.spans:
        del doc.spans[doubtful_key(attr)]


def write_doubtful(docs: Sequence[Doc], attr: str, annotation: Annotation, flags: Flags) -> None:
    """Write a span group on each Doc: a span per stretch of flagged tokens, with its highest score in `attrs["scores"]`.

    Stretches are cut at the bounds of predicted entities. A stretch that is a predicted entity has its label, any other the
    type of its highest-scoring token. annotation (Annotation): Annotation of the entities.
    """
    bounds = np.cumsum([0, *map(len, docs)])
    firsts = np.searchsorted(flags.rows, bounds)
    for doc, start, first, end in zip(docs, bounds.tolist(), firsts.tolist(), firsts[1:].tolist(), strict=False):
        labels = {(span.start, span.end): span.label_ for span in annotation.spans_on(doc)}
        tokens, scores, kinds = flags.rows[first:end] - start, flags.scores[first:end], flags.kinds[first:end]
        edges = np.array(sorted({edge for key in labels for edge in key}), dtype=np.intp)
        spans, highest = [], []
        for stretch in _stretches(tokens, edges):
            begins, ends = int(tokens[stretch[0]]), int(tokens[stretch[-1]]) + 1
            best = stretch[int(scores[stretch].argmax())]
            label = labels.get((begins, ends), flags.types[kinds[best]])
            spans.append(Span(doc, begins, ends, label=label))
            highest.append(scores[best])
        name = doubtful_key(attr)
        doc.spans[name] = SpanGroup(doc, name=name, attrs={"scores": np.array(highest, dtype=np.float64)}, spans=spans)


def _stretches(tokens: Ints, edges: Ints) -> list[Ints]:
    """Return runs of consecutive tokens, cut at the edges, as indices into tokens. tokens, edges (Ints): Ascending."""
    if not len(tokens):
        return []
    area = np.searchsorted(edges, tokens, side="right")
    cuts = np.flatnonzero((np.diff(tokens) > 1) | (np.diff(area) > 0)) + 1
    return np.split(np.arange(len(tokens)), cuts)


@dataclass(frozen=True, eq=False)
class CalibratedSpans:
    """Scored spans of consecutive Docs.

    spans (Spans): The spans. labels (tuple): Labels of their columns. raw, calibrated (Floats): Probability of each span.
    accept (NDArray[int8]): 1 or 0, whether each reaches its cut-off; -1 without cut-offs. event (str): When a span is right.
    layer (str): Annotation of the token labels that the probability depends on; "" if it is of the span's own label.
    """

    spans: Spans
    labels: tuple[str, ...]
    raw: Floats
    calibrated: Floats
    accept: NDArray[np.int8]
    event: str
    layer: str = ""


@dataclass(eq=False)
class CalibratedBatch:
    """Predictions of the pipe for consecutive Docs.

    calibrated (Calibrated): Entries of all units. annotation (Annotation): Annotation of the labels.
    labels (tuple): Label of each column. label_hashes (NDArray[uint64]): Hash of each unit's predicted label, 0 for none.
    spans (CalibratedSpans | None): None if the source has no spans. flags (Flags | None): None without recall cut-offs.
    accept (NDArray[int8] | None): 1 or 0, whether a document's label reaches its cut-off, -1 without a score; None
        without cut-offs. token_scores (bool): Whether tokens show their scores.
    """

    calibrated: CalibratedEntries
    annotation: Annotation
    labels: tuple[str, ...]
    label_hashes: NDArray[np.uint64]
    spans: CalibratedSpans | None = None
    flags: Flags | None = None
    accept: NDArray[np.int8] | None = None
    token_scores: bool = True


def _coded_labels(batch: CalibratedBatch) -> tuple[Sequence[str], Ints]:
    """Return (distinct labels, index of each entry's label)."""
    marginals = batch.calibrated.marginals
    if marginals.names is None:
        return batch.labels, marginals.tags
    code_of = {name: code for code, name in enumerate(dict.fromkeys(marginals.names))}
    return tuple(code_of), np.array([code_of[name] for name in marginals.names], dtype=np.intp)


def build_blocks(docs: Sequence[Doc], batch: CalibratedBatch) -> list[BlockData]:
    """Build one block per Doc, in order. Sums are computed once per batch and sliced per Doc: numpy calls are slow."""
    annotation, extra = batch.annotation, batch.calibrated.below_threshold
    units_by_doc = [annotation.unit_positions(doc) for doc in docs]
    bounds, indptr = [0, *accumulate(map(len, units_by_doc))], batch.calibrated.marginals.indptr
    columns, (labels, codes) = _batch_columns(batch, np.concatenate(units_by_doc)), _coded_labels(batch)
    extra_bounds = [0] * len(bounds) if extra is None else np.searchsorted(extra.marginals.rows, bounds).tolist()
    parts = zip(docs, units_by_doc, pairwise(bounds), pairwise(indptr[bounds].tolist()), pairwise(extra_bounds), strict=True)
    blocks: list[BlockData] = []
    for doc, doc_units, units, entries, extras in parts:
        block: BlockData = {
            "version": BLOCK_VERSION,
            "layer": annotation.name,
            "indptr": (indptr[units[0] : units[1] + 1] - entries[0]).astype(np.uint32),
            **_named_entries(labels, codes[slice(*entries)]),
        }
        if not batch.token_scores:
            block["token_scores"] = False
        if annotation.partners is not None:
            block["head"] = annotation.partners(doc)
        # Copied, so that a Doc does not keep the arrays of its whole batch alive.
        for name, column in columns.items():
            values = column[slice(*(units if COLUMNS[name].per == UNIT else entries))]
            block[name] = values if len(values) == len(column) else values.copy()
        if extra is not None and extras[0] < extras[1]:
            block["extra"] = _extra_data(extra, batch.labels, *extras, units[0])
        texts: list[int] = []
        if batch.spans is not None:
            block["spans"], texts = span_data(doc, batch.spans, *units, doc_units[:, 0])
        blocks.append(Block(block, doc_units[:, 1].copy(), texts))
    return blocks


def _batch_columns(batch: CalibratedBatch, units: Hashes) -> BlockData:
    """Return name -> column of the blocks for all Docs of the batch. units (Hashes): From `Annotation.unit_positions`."""
    calibrated, marginals = batch.calibrated, batch.calibrated.marginals
    columns = {
        "start": units[:, 0].astype(np.uint32),
        "word": units[:, 1].astype(TEXT if batch.annotation.unit == TOKEN else np.uint32),
        "carried": batch.label_hashes.astype(np.uint32),
        "accept": batch.accept,
        "flag": None if batch.flags is None else batch.flags.values,
        "raw": marginals.scores,
        "calibrated": calibrated.scores,
        "column": None if marginals.names is None else marginals.tags.astype(np.uint32),
    }
    return {name: column for name, column in columns.items() if column is not None}


def _named_entries(labels: Sequence[str], codes: Ints) -> BlockData:
    """Return the labels that some entries use, and the index of each entry's label. codes (Ints): Index into `labels`."""
    is_named = np.zeros(len(labels), dtype=bool)
    is_named[codes] = True
    tags = [labels[code] for code in is_named.nonzero()[0].tolist()]
    return {"tags": tags, "tag": is_named.cumsum(dtype=np.uint32)[codes] - np.uint32(1)}


def _extra_data(entries_below: CalibratedEntries, labels: Sequence[str], first: int, end: int, start: int) -> BlockData:
    """Return the "extra" part of a block: labels below the threshold. start (int): First token of the Doc in the batch."""
    marginals = entries_below.marginals
    columns = {"raw": marginals.scores[first:end].copy(), "calibrated": entries_below.scores[first:end].copy()}
    tags = [labels[tag] for tag in marginals.tags[first:end].tolist()]
    return {"row": (marginals.rows[first:end] - start).astype(np.uint32), "tags": tags, **columns}


def span_data(doc: Doc, spans: CalibratedSpans, start: int, end: int, starts: Any) -> tuple[BlockData, list[int]]:
    """Return the "spans" part of a block, and the hashes of their texts. start, end (int): Tokens of the Doc in the batch. starts: First character of each."""
    index = np.flatnonzero((spans.spans.starts >= start) & (spans.spans.starts < end))
    first = spans.spans.starts[index] - start
    last = spans.spans.ends[index] - 1 - start
    text = doc.text if len(index) else ""
    begins = starts[first].astype(np.int64)
    ends = starts[last].astype(np.int64) + np.array([len(doc[i]) for i in last.tolist()], dtype=np.int64)
    hashes = [get_string_id(text[a:b]) for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    part: BlockData = {
        "event": spans.event,
        "start": begins.astype(np.uint32),
        "end": ends.astype(np.uint32),
        "text": np.array(hashes, dtype=np.uint64).astype(TEXT),
        **(_label_digests(doc, spans.layer, first.tolist(), last.tolist()) if spans.layer else {}),
        "labels": [spans.labels[column] for column in spans.spans.labels[index].tolist()],
        "raw": spans.raw[index].copy(),
        "calibrated": spans.calibrated[index].copy(),
        "accept": spans.accept[index].copy(),
        "chosen": spans.spans.on_doc[index].copy(),
    }
    return part, hashes


def _label_digests(doc: Doc, layer: str, firsts: list[int], lasts: list[int]) -> BlockData:
    """Return digests of the token labels of each span. firsts, lasts: First and last token of each span in the Doc."""
    rows = labels_said(get_annotation(layer), doc)
    digests = [zlib.crc32(rows[first : last + 1].tobytes()) for first, last in zip(firsts, lasts, strict=True)]
    return {"layer": layer, "said": np.array(digests, dtype=np.uint32)}


def span_block(doc: Doc, spans: CalibratedSpans) -> BlockData:
    """Return a block that has spans of a Doc and no token."""
    counts: dict[str, Any] = {name: np.zeros(0, dtype=np.uint32) for name in ("start", "tag")}
    scores: dict[str, Any] = {name: np.zeros(0) for name in ("raw", "calibrated")}
    starts = doc.to_array(["IDX"]).astype(np.uint64, copy=False).reshape(-1)
    part, texts = span_data(doc, spans, 0, len(doc), starts)
    block: BlockData = {
        "version": BLOCK_VERSION,
        "layer": "tag",
        **counts,
        "word": np.zeros(0, dtype=TEXT),
        "indptr": np.zeros(1, dtype=np.uint32),
        "tags": [],
        **scores,
        "spans": part,
    }
    return Block(block, np.zeros(0, dtype=np.uint64), texts)
