"""Functions that write a calibrated batch on its Docs: a block of scores per Doc, and span groups of flagged tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup

from ..annotations import Annotation, get_annotation
from ..calibration.tokens import CalibratedEntries
from ..errors import calib_error
from ..types import Floats, Ints, Spans
from .doc_calib import doc_view
from .store import BLOCK_VERSION, COLUMNS, TEXT_BITS, UNIT, Block, BlockData, label_checksum, label_rows, text_hash

if TYPE_CHECKING:
    from .top_labels import TopLabels

_WRITER = "calib_attr"  # in the attrs of a group that a pipe wrote: its prefix


@dataclass(frozen=True, eq=False)
class Flags:
    """Which of n tokens of consecutive Docs are flagged for review.

    values (NDArray[int8]): 1 or 0 for each token, -1 without a score. rows (Ints): The m flagged tokens, ascending.
    types (Sequence[str]): Entity types. kinds (Ints): Most probable type of each flagged token, as an index into types, (m,).
    scores (Floats): Probability that each flagged token is in an entity or, if each label has its own cut-off, in an entity
    of its most probable type, (m,).
    """

    values: NDArray[np.int8]
    rows: Ints
    types: Sequence[str]
    kinds: Ints
    scores: Floats


def doubtful_key(attr: str) -> str:
    """Return the key in `doc.spans` of the group of flagged tokens of the pipe with the prefix `attr`."""
    return f"{attr}_doubtful"


def delete_groups(doc: Doc, attr: str, score_name: str | None = None) -> None:
    """Remove what an earlier run of the pipe (prefix `attr`) wrote to `doc.spans`: its groups, and its scores in other groups.

    score_name (str | None): Key of the group of scored spans, if any. RAISES C289: the group with this key is not the pipe's.
    """
    if doubtful_key(attr) in doc.spans:
        del doc.spans[doubtful_key(attr)]
    if score_name is not None and score_name in doc.spans:
        if doc.spans[score_name].attrs.get(_WRITER) != attr:
            raise calib_error("C289", name=score_name, owner=f"doc.spans['{score_name}']")
        del doc.spans[score_name]
    for group in doc.spans.values():
        group.attrs.pop(f"{attr}_scores", None)


def write_doubtful(docs: Sequence[Doc], attr: str, annotation: Annotation, flags: Flags) -> None:
    """Write a group "<attr>_doubtful" on each Doc: a span per stretch of flagged tokens, its highest score in attrs["scores"].

    Stretches are cut at the bounds of predicted entities. A stretch that is a predicted entity gets the entity's label, any
    other the type of its highest-scoring token. annotation (Annotation): Annotation of the entities.
    """
    name, doc_bounds = doubtful_key(attr), np.cumsum([0, *map(len, docs)])  # doc_bounds: first token of each Doc
    flag_bounds = np.searchsorted(flags.rows, doc_bounds)  # first flagged token of each Doc, as an index in flags.rows
    for doc, start, (first, end) in zip(docs, doc_bounds.tolist(), pairwise(flag_bounds.tolist()), strict=False):
        entity_labels = {(span.start, span.end): span.label_ for span in annotation.spans_on(doc)}
        tokens, scores, kinds = flags.rows[first:end] - start, flags.scores[first:end], flags.kinds[first:end]
        edges = np.array(sorted({edge for bounds in entity_labels for edge in bounds}), dtype=np.intp)
        spans, highest_scores = [], []
        for stretch in _stretches(tokens, edges):  # indices into `tokens`
            span_start, span_end = int(tokens[stretch[0]]), int(tokens[stretch[-1]]) + 1
            highest = stretch[int(scores[stretch].argmax())]
            label = entity_labels.get((span_start, span_end), flags.types[kinds[highest]])
            spans.append(Span(doc, span_start, span_end, label=label))
            highest_scores.append(scores[highest])
        doc.spans[name] = SpanGroup(doc, name=name, attrs={"scores": np.array(highest_scores, dtype=np.float64)}, spans=spans)


def write_scored_spans(doc: Doc, key: str, attr: str) -> None:
    """Write a Doc's scored spans (prefix `attr`) into `doc.spans[key]`, their calibrated scores into its `attrs["scores"]`."""
    view = doc_view(doc, attr)
    scored = () if view is None else view.ents
    spans = [Span(doc, span.start, span.end, label=span.label) for span in scored]
    attrs = {"scores": np.array([span.score for span in scored], dtype=np.float64), _WRITER: attr}
    doc.spans[key] = SpanGroup(doc, name=key, attrs=attrs, spans=spans)


def add_group_scores(doc: Doc, key: str, attr: str) -> None:
    """Add calibrated scores to the span group `doc.spans[key]`, in its `attrs["<attr>_scores"]`; NaN for spans without one."""
    view = doc_view(doc, attr)
    if view is not None and key in doc.spans:
        group, scores = doc.spans[key], {(span.start, span.end, span.label): span.score for span in view.ents}
        values = [scores.get((span.start, span.end, span.label_), np.nan) for span in group]
        group.attrs[f"{attr}_scores"] = np.array(values, dtype=np.float64)


def _stretches(tokens: Ints, edges: Ints) -> list[Ints]:
    """Split ascending tokens of a Doc into runs of neighbours, and before each token in `edges`; return indices in `tokens`."""
    if not len(tokens):
        return []
    n_edges = np.searchsorted(edges, tokens, side="right")  # number of edges up to each token
    cuts = np.flatnonzero((np.diff(tokens) > 1) | (np.diff(n_edges) > 0)) + 1
    return np.split(np.arange(len(tokens)), cuts)


@dataclass(frozen=True, eq=False)
class SpanScores:
    """Scored spans of consecutive Docs.

    spans (Spans): The spans. labels (tuple): Text of each label number. raw, calibrated (Floats): Probability of each span.
    accept (NDArray[int8]): 1 if it reaches its cut-off, else 0; -1 without cut-offs. event (str): Rule for when it is right.
    layer (str): Annotation of the token labels that the probability depends on; "" if it depends on the span's label only.
    """

    spans: Spans
    labels: tuple[str, ...]
    raw: Floats
    calibrated: Floats
    accept: NDArray[np.int8]
    event: str
    layer: str = ""


@dataclass(eq=False)
class Batch:
    """The scores that the pipe computed for a batch of Docs, one after the other.

    indices (list[int]): Index of each Doc among those given to the pipe. calibrated (CalibratedEntries): Scores of all units.
    annotation (Annotation): Annotation of the labels. labels (tuple): Label of each tag number. label_hashes (NDArray[uint64]):
    Hash of each unit's predicted label, 0 for none. top_labels (TopLabels | None): Labels for Docs that have none, if the
    source `sets_labels`. spans (SpanScores | None): None if the source has no spans. flags (Flags | None): None without recall
    cut-offs. accept (NDArray[int8] | None): 1 or 0, whether a document's label reaches its cut-off, -1 without a score; None
    without cut-offs. token_scores (bool): Whether tokens show their scores.
    """

    indices: list[int]
    calibrated: CalibratedEntries
    annotation: Annotation
    labels: tuple[str, ...]
    label_hashes: NDArray[np.uint64]
    top_labels: TopLabels | None = None
    spans: SpanScores | None = None
    flags: Flags | None = None
    accept: NDArray[np.int8] | None = None
    token_scores: bool = True


def build_blocks(docs: Sequence[Doc], batch: Batch) -> list[Block]:
    """Return the block of each Doc. Arrays are computed once for the batch and sliced for each Doc: numpy calls are slow."""
    annotation, (labels, indptr, columns) = batch.annotation, _entries_of(batch)
    units_by_doc = [annotation.unit_texts(doc) for doc in docs]
    starts, lengths, hashes = np.concatenate(units_by_doc).T
    columns |= _unit_columns(batch, starts, lengths)
    ends, unit_hashes = (starts + lengths).tolist(), hashes.astype("<u8")  # <: the same on every machine
    unit_bounds = [0, *accumulate(map(len, units_by_doc))]  # index in the batch of each Doc's first unit
    entry_bounds = indptr[unit_bounds].tolist()  # and of its first entry
    labels_by_doc, columns["tag"] = _labels_by_doc(labels, columns["tag"], entry_bounds)
    blocks = []
    # units, entries: (first, last + 1) of the Doc's units and entries, as indices in the batch.
    for doc, units, entries, doc_labels in zip(docs, pairwise(unit_bounds), pairwise(entry_bounds), labels_by_doc, strict=True):
        whole_hash = text_hash(unit_hashes[slice(*units)])
        block: BlockData = {
            "version": BLOCK_VERSION,
            "layer": annotation.name,
            "size": ends[units[1] - 1],  # without the space after the last token, which a join may add
            "text": whole_hash & TEXT_BITS,  # a saved Doc has only these bits; in memory, Block.text has all
            "indptr": (indptr[units[0] : units[1] + 1] - entries[0]).astype(np.uint32),
            "tags": doc_labels,
        }
        if not batch.token_scores:
            block["is_hidden"] = True
        if annotation.partners is not None:
            block["head"] = annotation.partners(doc)
        for name, column in columns.items():
            values = column[slice(*(units if COLUMNS[name][1] == UNIT else entries))]
            # Copied, so that a Doc does not keep the arrays of its whole batch in memory.
            block[name] = values if len(values) == len(column) else values.copy()
        if "above" in block and block["above"].all():  # without the column, all entries are above the threshold
            del block["above"]
        if batch.spans is not None:
            block["spans"] = span_data(doc, batch.spans, *units)
        blocks.append(Block(block, annotation, whole_hash))
    return blocks


def _labels_by_doc(labels: Sequence[str], codes: Ints, bounds: Sequence[int]) -> tuple[list[list[str]], NDArray[np.uint32]]:
    """Return the labels of each Doc's entries, and the index of each entry's label among those of its Doc.

    codes (Ints): Index in `labels` of each entry's label. bounds: First entry of each Doc, then the number of entries.
    """
    n_docs, n_labels = len(bounds) - 1, len(labels)
    # A cell of a table (Docs, labels), as one number: the Doc and the label of each entry.
    cells = np.arange(n_docs).repeat([end - first for first, end in pairwise(bounds)]) * n_labels + codes
    is_used = np.zeros(n_docs * n_labels, dtype=bool)  # whether a Doc has entries with a label
    is_used[cells] = True
    table = is_used.reshape(n_docs, n_labels)
    new_codes = table.cumsum(axis=1, dtype=np.uint32).ravel()[cells] - np.uint32(1)  # index among the labels of its Doc
    return [[labels[code] for code in used.nonzero()[0].tolist()] for used in table], new_codes


def _entries_of(batch: Batch) -> tuple[Sequence[str], Ints, BlockData]:
    """Return (labels, first entry of each unit, name -> column of entries). A unit's entries below the threshold are last."""
    marginals, below = batch.calibrated.marginals, batch.calibrated.below_threshold
    columns: BlockData = {"tag": marginals.tags, "raw": marginals.scores, "calibrated": batch.calibrated.scores}
    if marginals.names is not None:  # lemmas: columns are edit trees, and each entry has a label of its own
        code_of = {name: code for code, name in enumerate(dict.fromkeys(marginals.names))}
        codes = np.array([code_of[name] for name in marginals.names], dtype=np.intp)
        return tuple(code_of), marginals.indptr, {**columns, "tag": codes, "column": marginals.tags.astype(np.uint32)}
    if below is None:
        return batch.labels, marginals.indptr, columns
    order = np.argsort(np.concatenate([marginals.rows, below.marginals.rows]), kind="stable")
    columns_below = {"tag": below.marginals.tags, "raw": below.marginals.scores, "calibrated": below.scores}
    columns = {name: np.concatenate([column, columns_below[name]])[order] for name, column in columns.items()}
    columns["above"] = order < len(marginals.tags)
    # The first entry of a unit moves by the number of entries below the threshold that earlier units have.
    n_below = np.searchsorted(below.marginals.rows, np.arange(len(marginals.indptr)))
    return batch.labels, marginals.indptr + n_below, columns


def _unit_columns(batch: Batch, starts: NDArray[np.uint64], lengths: NDArray[np.uint64]) -> BlockData:
    """Return name -> column (see COLUMNS) with a value for each unit of the batch. starts, lengths: In characters."""
    columns = {
        "start": starts.astype(np.uint32),
        "length": lengths.astype(np.uint32),
        "carried": batch.label_hashes.astype(np.uint32),  # the low 32 bits: store.LOW_BITS
        "accept": batch.accept,
        "flag": None if batch.flags is None else batch.flags.values,
    }
    return {name: column for name, column in columns.items() if column is not None}


def span_data(doc: Doc, spans: SpanScores, start: int, end: int) -> BlockData:
    """Return the entry "spans" of a Doc's block. spans: Of the whole batch. start, end: The Doc's tokens in the batch."""
    index = np.flatnonzero((spans.spans.starts >= start) & (spans.spans.starts < end))
    firsts, ends = (spans.spans.starts[index] - start).tolist(), (spans.spans.ends[index] - start).tolist()  # tokens of the Doc
    data: BlockData = {
        "event": spans.event,
        "start": np.array([doc[i].idx for i in firsts], dtype=np.uint32),
        "end": np.array([doc[i - 1].idx + len(doc[i - 1]) for i in ends], dtype=np.uint32),
        "labels": [spans.labels[column] for column in spans.spans.labels[index].tolist()],
        "raw": spans.raw[index].copy(),
        "calibrated": spans.calibrated[index].copy(),
        "accept": spans.accept[index].copy(),
        "chosen": spans.spans.on_doc[index].copy(),
    }
    if spans.layer:
        rows = label_rows(get_annotation(spans.layer), doc)
        checksums = [label_checksum(rows, first, last) for first, last in zip(firsts, ends, strict=True)]
        data |= {"layer": spans.layer, "checksum": np.array(checksums, dtype=np.uint32)}
    return data
