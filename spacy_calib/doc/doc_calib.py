"""The view of a Doc's scores as arrays, Doc._.<attr>."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..annotations import get_annotation, plain_name
from ..pairs.documents import count_in_words
from ..types import Floats, Ints
from .store import Block, find_spans, link_values, rows_of


class ScoredSpan(NamedTuple):
    """A span, or entity with its identity (`kb_id_`) as label, and its probability before (raw) and after calibration (score).

    start, end (int): First token, and last token + 1. accept (bool | None): Whether the score reaches its cut-off; None without
    cut-offs, and for candidates. event (str): Name of the rule by which a span counts as right, "exact" for instance.
    """

    start: int
    end: int
    label: str
    raw: float
    score: float
    accept: bool | None
    event: str


@dataclass(frozen=True, eq=False, repr=False)
class DocCalib(dict):
    """Read-only view of a Doc's scores, `doc._.calib`: an entry for each token and tag above the threshold.

    As a dict it has layer, rows, tags, raw, calibrated, ents, candidates as plain data for `Doc.to_json(underscore=["calib"])`.
        doc (Doc): The Doc.
    rows (Ints): Token of each entry, ascending; 0 for a whole Doc. tags (NDArray[object]): Tag of each entry. raw, calibrated
        (Floats): Probability of each entry before and after calibration. columns (Ints): Column of each entry's tag in the
        scores of the source, -1 if unknown. scored (NDArray[bool]): Which tokens have values, (n_tokens,); (1,) for a document.
    layer (str): Name of the annotation of the tags. If joined Docs have scores of several annotations, only those of the
        annotation with most tokens are here. ents (tuple[ScoredSpan, ...]): Scored entities (or categorized spans), in order.
    candidates (tuple[ScoredSpan, ...]): Scored spans that are not on the Doc (a beam rejected them, say); most probable first.
    """

    __module__ = "spacy_calib"  # pickles outlive a move of the file

    rows: Ints
    tags: NDArray[np.object_]
    raw: Floats
    calibrated: Floats
    columns: Ints
    layer: str
    scored: NDArray[np.bool_]
    doc: Doc
    ents: tuple[ScoredSpan, ...] = ()
    candidates: tuple[ScoredSpan, ...] = ()

    def __post_init__(self) -> None:
        entries = {name: getattr(self, name).tolist() for name in ("rows", "tags", "raw", "calibrated")}
        spans = {name: [span._asdict() for span in getattr(self, name)] for name in ("ents", "candidates")}
        self.update(layer=self.layer, **entries, **spans)  # a dict, as `Doc.to_json` writes no arrays

    def __len__(self) -> int:
        return len(self.rows)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        spans = f", {len(self.ents)} entities" if self.ents else ""
        units = count_in_words(self.unit, len(self.scored))
        return f"<DocCalib: {int(self.scored.sum())} of {units} scored ({plain_name(self.layer)}), {len(self)} entries{spans}>"

    @property
    def unit(self) -> str:
        """The unit that has the labels: "token" or "document"."""
        return get_annotation(self.layer).kind.unit

    def to_dense(self, labels: list[str], calibrated: bool = True) -> Floats:
        """Return the scores as an array of shape (n_tokens, len(labels)), or (1, len(labels)) for a document.

        Entries below the threshold are 0, rows of tokens without values NaN.
        labels (list[str]): Labels of the columns; other tags are dropped. calibrated (bool): False for raw scores.

            >>> import numpy as np, spacy
            >>> nlp, source = spacy.blank("en"), {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": ["A", "B"]}
            >>> calib = nlp.add_pipe("calib", config={"source": source})  # not fitted: its scores are raw
            >>> doc = Doc(nlp.vocab, ["Hi", "there"], tags=["B", "A"])
            >>> doc.tensor = np.array([[0.2, 0.8], [0.995, 0.005]])
            >>> calib(doc)._.calib.to_dense(["A", "B"]).tolist()
            [[0.2, 0.8], [0.995, 0.0]]
        """
        dense = np.where(self.scored[:, None], np.zeros((len(self.scored), len(labels))), np.nan)
        column_of = {label: column for column, label in enumerate(labels)}
        columns = np.array([column_of.get(tag, -1) for tag in self.tags], dtype=np.intp)
        keep = columns >= 0
        dense[self.rows[keep], columns[keep]] = (self.calibrated if calibrated else self.raw)[keep]
        return dense


def doc_view(doc: Doc, attr: str) -> DocCalib | None:
    """Doc._.<attr>: the scores of all tokens, or of the document, as arrays; None if the Doc has no scores."""
    matches = rows_of(doc, attr)
    if not matches:
        return None
    # A Doc joined from Docs of two pipelines may hold tags and entity types: show those of most tokens.
    counts = Counter[str]()
    for block, units, _ in matches:
        counts[block.annotation.name] += len(units)
    layer = max(counts, key=counts.__getitem__)
    entries = [_read_entries(block, units, rows) for block, units, rows in matches if block.annotation.name == layer]
    if len(entries) > 1:  # a joined Doc: merge its blocks by token
        arrays: list[Any] = [np.concatenate(block_arrays) for block_arrays in zip(*entries, strict=True)]
        order = np.argsort(arrays[0], kind="stable")
        entries = [tuple(array[order] for array in arrays)]
    rows, tags, raw, calibrated, columns = entries[0]
    is_scored = np.zeros(get_annotation(layer).n_units(doc), dtype=bool)
    is_scored[rows] = True
    for array in (rows, tags, raw, calibrated, columns, is_scored):
        array.flags.writeable = False
    ents, candidates = scored_spans(doc, attr, layer)
    return DocCalib(rows, tags, raw, calibrated, columns, layer, is_scored, doc, ents, candidates)


def _read_entries(block: Block, units: Ints, rows: Ints) -> tuple[Any, ...]:
    """Return five arrays about the entries above the threshold: unit, tag, raw and calibrated score, the tag's source column.

    units, rows (Ints): Units of the Doc that have a row in the block, and the row of each. An unknown column is -1.
    """
    starts = block["indptr"][rows].astype(np.intp)  # first entry of each row, in the block's arrays
    counts = block["indptr"][rows + 1].astype(np.intp) - starts  # number of entries of each row
    firsts = np.cumsum(counts) - counts  # first entry of each row, in the arrays to return
    entries = np.repeat(starts - firsts, counts) + np.arange(counts.sum())  # indices in the block's arrays, of all rows
    unit_of_entry = np.repeat(units, counts)
    if "above" in block:
        is_above = block["above"][entries]
        unit_of_entry, entries = unit_of_entry[is_above], entries[is_above]
    labels = np.array([*block["tags"]], dtype=object)
    columns = block["column"][entries] if "column" in block else np.full(len(entries), -1, dtype=np.intp)
    return unit_of_entry, labels[block["tag"][entries]], block["raw"][entries], block["calibrated"][entries], columns


def scored_spans(doc: Doc, attr: str, layer: str) -> tuple[tuple[ScoredSpan, ...], tuple[ScoredSpan, ...]]:
    """Return (scored spans on the Doc, candidates) of prefix `attr` and annotation `layer`, except spans that changed since."""
    annotation = get_annotation(layer)
    if annotation.kind.of_links:
        links = [(span, values) for span in annotation.spans_on(doc) if (values := link_values(span, attr)) is not None]
        event = annotation.kind.span_event
        identities = (ScoredSpan(s.start, s.end, s.kb_id_, v.raw, v.calibrated, v.is_accepted, event) for s, v in links)
        return tuple(identities), ()  # no candidates
    on_doc = {(span.start, span.end, span.label_) for span in annotation.spans_on(doc)}
    ents, candidates = [], []
    for (start, end, label), values, event in find_spans(doc, attr, layer):
        span = doc.char_span(start, end)
        if span is None or not values.agrees(span):
            continue
        scored = ScoredSpan(span.start, span.end, label, values.raw, values.calibrated, values.is_accepted, event)
        if not values.on_doc:
            candidates.append(scored)
        elif (span.start, span.end, label) in on_doc:
            ents.append(scored)
    return tuple(ents), tuple(sorted(candidates, key=lambda span: -span.score))
