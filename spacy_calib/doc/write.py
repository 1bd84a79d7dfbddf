"""Calibrated marginals of a batch of Docs -> one block per Doc, and `doc.spans["<attr>_doubtful"]`: stretches of flagged tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup

from ..annotations import Annotation, Hashes, get_annotation
from ..calibration.tokens import Calibrated
from ..types import Floats, Ints, Spans
from .block import COLUMNS, UNIT
from .blocks import BLOCK_VERSION, WORD_DIGEST, HashedBlock, Stored, said_digest, said_of, unit_digests, word_digests


@dataclass(frozen=True, eq=False)
class Flags:
    """Which tokens of Docs that follow one another are flagged.

    flagged (NDArray[int8]): For each token 1 or 0, -1 without a score. rows (Ints): The m flagged ones, ascending.
    types (Sequence[str]): Entity types. kinds (Ints): Likeliest type of each flagged token, an index into types, (m,).
    scores (Floats): Their P(inside an entity) or, where each label has a cut-off, P(their type), (m,).
    """

    flagged: NDArray[np.int8]
    rows: Ints
    types: Sequence[str]
    kinds: Ints
    scores: Floats


def doubtful_key(attr: str) -> str:
    """The key of the group in `doc.spans`."""
    return f"{attr}_doubtful"


def delete_doubtful(doc: Doc, attr: str) -> None:
    """Remove the group of an earlier run."""
    if doubtful_key(attr) in doc.spans:
        del doc.spans[doubtful_key(attr)]


def write_doubtful(docs: Sequence[Doc], attr: str, annotation: Annotation, flags: Flags) -> None:
    """Write the group on each Doc: a span per stretch of flagged tokens, and its highest score in `attrs["scores"]`.

    A stretch ends where an entity on the Doc begins or ends: an entity that was found is a span of its own, with its
    own label. Any other stretch has the label of its highest token. annotation (Annotation): Of the entities.
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
    """Runs of consecutive tokens, cut at the edges: their places in tokens. tokens, edges (Ints): Numbers, sorted."""
    if not len(tokens):
        return []
    area = np.searchsorted(edges, tokens, side="right")
    cuts = np.flatnonzero((np.diff(tokens) > 1) | (np.diff(area) > 0)) + 1
    return np.split(np.arange(len(tokens)), cuts)


@dataclass(frozen=True, eq=False)
class CalibratedSpans:
    """The spans of consecutive Docs.

    spans (Spans): In their tokens. labels (tuple): Of the spans' columns. raw, calibrated (Floats): One per span.
    accept (NDArray[int8]): 1 or 0, whether the span reaches its cut-off; -1 without cut-offs. event (str): What has to
        hold for a span to be right. layer (str): Annotation of the token labels that the probability is of; "" where it
        is of the span's own label.
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
    """What the pipe predicted for consecutive Docs.

    calibrated (Calibrated): The entries of all their units. annotation (Annotation): Of the labels.
    labels (tuple): Label of each column. carried (NDArray[uint64]): Hash of the label on each unit, 0 for none.
    spans (CalibratedSpans | None): None if the source has none. flags (Flags | None): None without recall cut-offs.
    accept (NDArray[int8] | None): 1 or 0, whether a document's label reaches its cut-off, -1 without a score; None
        without cut-offs. token_scores (bool): Whether tokens have attributes with their scores.
    """

    calibrated: Calibrated
    annotation: Annotation
    labels: tuple[str, ...]
    carried: NDArray[np.uint64]
    spans: CalibratedSpans | None = None
    flags: Flags | None = None
    accept: NDArray[np.int8] | None = None
    token_scores: bool = True


def _coded_labels(batch: CalibratedBatch) -> tuple[Sequence[str], Ints]:
    """(names of labels, the number of the name of each entry)."""
    marginals = batch.calibrated.marginals
    if marginals.names is None:
        return batch.labels, marginals.tags
    code_of = {name: code for code, name in enumerate(dict.fromkeys(marginals.names))}
    return tuple(code_of), np.array([code_of[name] for name in marginals.names], dtype=np.intp)


def build_blocks(docs: Sequence[Doc], batch: CalibratedBatch) -> list[Stored]:
    """One block for each Doc, in order. Sums are done once for the whole batch, and only sliced per Doc."""
    annotation, below = batch.annotation, batch.calibrated.below
    places = [annotation.unit_positions(doc) for doc in docs]
    bounds, indptr = [0, *accumulate(map(len, places))], batch.calibrated.marginals.indptr
    columns, (labels, codes) = _columns_of(batch, np.concatenate(places)), _coded_labels(batch)
    extra_bounds = [0] * len(bounds) if below is None else np.searchsorted(below.marginals.rows, bounds).tolist()
    parts = zip(docs, places, pairwise(bounds), pairwise(indptr[bounds].tolist()), pairwise(extra_bounds), strict=True)
    blocks: list[Stored] = []
    for doc, place, units, entries, extras in parts:
        last = doc[-1] if len(doc) else None
        block: Stored = {
            "version": BLOCK_VERSION,
            "layer": annotation.name,
            "end": 0 if last is None else last.idx + len(last.text_with_ws),
            "indptr": (indptr[units[0] : units[1] + 1] - entries[0]).astype(np.uint32),
            **_name_entries(labels, codes[slice(*entries)]),
        }
        if not batch.token_scores:
            block["token_scores"] = False
        if annotation.partners is not None:
            block["head"] = annotation.partners(doc)
        # Copies: a Doc that is kept does not hold the arrays of its whole batch.
        for name, column in columns.items():
            own_part = column[slice(*(units if COLUMNS[name].of == UNIT else entries))]
            block[name] = own_part if len(own_part) == len(column) else own_part.copy()
        if below is not None and extras[0] < extras[1]:
            block["extra"] = _extra_part(below, batch.labels, *extras, units[0])
        span_hashes: list[int] = []
        if batch.spans is not None:
            block["spans"], span_hashes = span_part(doc, batch.spans, *units, place[:, 0])
        blocks.append(HashedBlock(block, place[:, 1].copy(), span_hashes))
    return blocks


def _columns_of(batch: CalibratedBatch, places: Hashes) -> Stored:
    """Column -> its numbers for all Docs of the batch. places (Hashes): See `Annotation.places`."""
    calibrated, marginals = batch.calibrated, batch.calibrated.marginals
    columns = {
        "start": places[:, 0].astype(np.uint32),
        "word": unit_digests(batch.annotation.unit, places),
        "carried": batch.carried.astype(np.uint32),
        "out_of_reach": calibrated.out_of_reach,
        "accept": batch.accept,
        "flag": None if batch.flags is None else batch.flags.flagged,
        "raw": marginals.scores,
        "calibrated": calibrated.scores,
        "column": None if marginals.names is None else marginals.tags.astype(np.uint32),
        "in_set": calibrated.in_set,
    }
    return {name: column for name, column in columns.items() if column is not None}


def _name_entries(labels: Sequence[str], codes: Ints) -> Stored:
    """The names of the labels that some entries have, and the number of each entry's. codes (Ints): Of entries, into the labels."""
    is_named = np.zeros(len(labels), dtype=bool)
    is_named[codes] = True
    tags = [labels[code] for code in is_named.nonzero()[0].tolist()]
    return {"tags": tags, "tag": is_named.cumsum(dtype=np.uint32)[codes] - np.uint32(1)}


def _extra_part(below: Calibrated, labels: Sequence[str], first: int, end: int, start: int) -> Stored:
    """The labels below the threshold of a Doc whose first token in the batch is `start`. labels: Of the columns."""
    marginals = below.marginals
    columns = {"raw": marginals.scores[first:end].copy(), "calibrated": below.scores[first:end].copy()}
    tags = [labels[tag] for tag in marginals.tags[first:end].tolist()]
    return {"row": (marginals.rows[first:end] - start).astype(np.uint32), "tags": tags, **columns}


def span_part(doc: Doc, spans: CalibratedSpans, start: int, end: int, starts: Any) -> tuple[Stored, list[int]]:
    """The spans of one Doc, by their characters, and the hashes of their texts.

    start, end (int): Its tokens in the batch. starts: First character of each of its tokens.
    """
    index = np.flatnonzero((spans.spans.starts >= start) & (spans.spans.starts < end))
    first = spans.spans.starts[index] - start
    last = spans.spans.ends[index] - 1 - start
    text = doc.text if len(index) else ""
    begins = starts[first].astype(np.int64)
    ends = starts[last].astype(np.int64) + np.array([len(doc[i]) for i in last.tolist()], dtype=np.int64)
    hashes = [get_string_id(text[a:b]) for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    part: Stored = {
        "event": spans.event,
        "start": begins.astype(np.uint32),
        "end": ends.astype(np.uint32),
        "text": word_digests(np.array(hashes, dtype=np.uint64), begins),
        **(_said_part(doc, spans.layer, first.tolist(), last.tolist()) if spans.layer else {}),
        "labels": [spans.labels[column] for column in spans.spans.labels[index].tolist()],
        "raw": spans.raw[index].copy(),
        "calibrated": spans.calibrated[index].copy(),
        "accept": spans.accept[index].copy(),
        "chosen": spans.spans.chosen[index].copy(),
    }
    return part, hashes


def _said_part(doc: Doc, layer: str, firsts: list[int], lasts: list[int]) -> Stored:
    """Digests of what each span's tokens carry. firsts, lasts: First and last token of each span in the Doc."""
    carried_labels = said_of(get_annotation(layer), doc)
    digests = [said_digest(carried_labels[first : last + 1]) for first, last in zip(firsts, lasts, strict=True)]
    return {"layer": layer, "said": np.array(digests, dtype=np.uint32)}


def span_block(doc: Doc, spans: CalibratedSpans) -> Stored:
    """A block with spans of a Doc and no token."""
    counts: dict[str, Any] = {name: np.zeros(0, dtype=np.uint32) for name in ("start", "tag")}
    scores: dict[str, Any] = {name: np.zeros(0) for name in ("raw", "calibrated")}
    starts = doc.to_array(["IDX"]).astype(np.uint64, copy=False).reshape(-1)
    part, span_hashes = span_part(doc, spans, 0, len(doc), starts)
    block: Stored = {
        "version": BLOCK_VERSION,
        "layer": "tag",
        **counts,
        "word": np.zeros(0, dtype=WORD_DIGEST),
        "indptr": np.zeros(1, dtype=np.uint32),
        "tags": [],
        **scores,
        "spans": part,
    }
    return HashedBlock(block, np.zeros(0, dtype=np.uint64), span_hashes)
