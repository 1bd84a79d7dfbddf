"""Builds scored corpora for evaluation: scores of a calib pipe and gold from Docs, in a few dozen bytes per token.

If documents have labels instead of tokens, each row of a corpus is a document, and its text is stored as the word.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import Annotation, Hashes, Kind, texts_of
from ..annotations.annotation import ONLY_REJECTED, map_unique
from ..annotations.span_events import span_hits
from ..doc.attributes import doc_values, token_values
from ..doc.doc_calib import DocCalib, doc_view
from ..pairs.documents import DocumentNumbers
from ..pairs.scored_corpus import UNKNOWN, ScoredCorpus, ScoredSpans
from ..types import Floats, Ints
from .keys import ORIGIN
from .reading import document_of


class _LabelNumbers:
    """Numbers labels from 0, first those in `labels`, then others as they occur; looks numbers up by name or hash."""

    def __init__(self, labels: Iterable[str]) -> None:
        self.numbers: dict[str, int] = {}
        self._number_by_hash: dict[int, int] = {}
        for label in labels:
            self.number(label)

    def number(self, name: str) -> int:
        """Return the number of a label, the next free one if it is new."""
        number = self.numbers.setdefault(name, len(self.numbers))
        if name:  # the hash of "" is 0, which means no label
            self._number_by_hash[get_string_id(name)] = number
        return number

    def numbers_of(self, names: NDArray[Any]) -> Ints:
        """Return the number of each label; several new ones are numbered in alphabetical order."""
        for name in sorted({*names.tolist()} - self.numbers.keys()):
            self.number(name)
        return np.array([self.numbers[name] for name in names.tolist()], dtype=np.intp)

    def numbers_of_hashes(self, hashes: Hashes, annotation: Annotation, doc: Doc, doc_hashes: Hashes) -> Ints:
        """Return the number of each label hash, -1 for the hash 0 (no label).

        doc, doc_hashes (Hashes): A Doc and the label hash of each of its tokens. A new hash gets its name from such a token.
        """
        for label_hash in sorted({*hashes.tolist()} - self._number_by_hash.keys() - {0}):
            first_unit = int(np.flatnonzero(doc_hashes == np.uint64(label_hash))[0])
            self._number_by_hash[label_hash] = self.number(annotation.label_at(doc, first_unit))
        return np.array([self._number_by_hash.get(label_hash, -1) for label_hash in hashes.tolist()], dtype=np.intp)


_TOKENS = {
    "docs": np.intp, "words": object, "spaces": bool, "starts": bool, "labels": np.intp, "raw": np.float64,
    "calibrated": np.float64, "gold": np.intp, "right": np.int8,
}  # fmt: skip
_SCORES = {
    "rows": np.intp, "tags": np.intp, "columns": np.intp, "tag_raw": np.float64, "tag_calibrated": np.float64, "hits": np.int8,
}  # fmt: skip
_SPANS = {
    "docs": np.intp, "starts": np.intp, "ends": np.intp, "labels": np.intp, "raw": np.float64, "calibrated": np.float64,
    "right": np.int8, "accept": np.int8,
}  # fmt: skip
_Columns = dict[str, Any]
_MAX_BUFFERED = 500  # Docs whose columns are not concatenated yet: many small arrays take more memory than their content


def scored_corpus(examples: Iterable[Example], attr: str, annotation: Annotation, labels: Sequence[str] = ()) -> ScoredCorpus:
    """Collect the scores that a calib pipe wrote on the predicted Docs of examples, and compare the labels with the gold.

    attr (str): Prefix of the pipe's attributes. annotation (Annotation): The annotation that it scores. labels (Sequence[str]):
    Labels of its source, by column; others are numbered as they occur.
    """
    collector = Collector(attr, annotation, labels)
    collector.add(examples)
    return collector.take()


class Collector:
    """Collects the scores of a calib pipe from Docs. attr: Prefix of the pipe's attributes. labels: Labels of its source."""

    def __init__(self, attr: str, annotation: Annotation, labels: Sequence[str] = ()):
        self._attr, self._annotation, self._labels = attr, annotation, labels
        self._begin()

    def _begin(self) -> None:
        """Begin a new corpus: set all columns and counts to those of no Docs."""
        self._names = _LabelNumbers(self._labels)
        self._tokens, self._scores, self._spans = _ColumnBuffer(_TOKENS), _ColumnBuffer(_SCORES), _ColumnBuffer(_SPANS)
        self._words: dict[str, str] = {}  # one string for each word, not one for each token
        self._origins: list[dict[str, Any]] = []
        self._documents, self._doc_documents = DocumentNumbers(), array("q")
        self.n_rows = 0

    @property
    def n_docs(self) -> int:
        """Number of Docs since the last `take`."""
        return len(self._origins)

    def add(self, examples: Iterable[Example]) -> None:
        """Append the tokens, scores and spans of Examples, with their gold, to the columns of the corpus."""
        annotation = self._annotation
        for example in examples:
            view = doc_view(example.predicted, self._attr)  # the scores on the Doc, None if it has none
            gold = annotation.aligned_gold(example)  # label hash of each unit, 0 without gold
            scores = {} if view is None else self._score_columns(example, view, gold)
            tokens = self._token_columns(example, view, gold, scores)
            if not annotation.kind.of_documents:
                tokens["words"][:] = [self._words.setdefault(word, word) for word in tokens["words"].tolist()]
            self._tokens.append(tokens)
            if scores:
                self._scores.append({**scores, "rows": scores["rows"] + self.n_rows})
            if view is not None and view.ents:
                self._spans.append(self._span_columns(example, view))
            self.n_rows += annotation.n_units(example.predicted)
            self._doc_documents.append(self._documents.number(document_of(example)))
            self._origins.append(example.reference.user_data.get(ORIGIN, {}))

    def take(self) -> ScoredCorpus:
        """Return the corpus of the Docs that were added since the last call."""
        corpus = ScoredCorpus(
            names=tuple(self._names.numbers),
            n_docs=self.n_docs,
            spans=ScoredSpans(**self._spans.join_all()),
            origins=tuple(self._origins) if any(self._origins) else (),
            doc_documents=np.array(self._doc_documents, dtype=np.intp),
            unit=self._documents.unit,
            of_documents=self._annotation.kind.of_documents,
            **self._tokens.join_all(),
            **self._scores.join_all(),
        )
        self._begin()
        return corpus

    def _token_columns(self, example: Example, view: DocCalib | None, gold: Hashes, scores: _Columns) -> _Columns:
        """Return the columns of _TOKENS: name -> a value for each token (or document) of one Example.

        view (DocCalib | None): The scores of the predicted Doc; None if it has none. gold (Hashes): Hash of each token's gold
        label, 0 without gold. scores (dict): The same scores as columns, by `_score_columns`; {} if `view` is None.
        """
        annotation, doc, reference = self._annotation, example.predicted, example.reference
        hashes = annotation.hashes(doc)
        labels = self._names.numbers_of_hashes(hashes, annotation, doc, hashes)  # the predicted labels
        raw, calibrated = _predicted_label_scores(doc, view, self._attr, annotation.kind, scores, labels)
        rows, is_document = np.arange(len(hashes)), annotation.kind.of_documents
        right = _hits(example, annotation, gold, rows, hashes)
        right[hashes == 0] = UNKNOWN
        known_gold = np.where(gold == ONLY_REJECTED, 0, gold)  # 0 if only wrong labels are known
        gold_hashes = annotation.gold_hashes(reference)
        return {
            "docs": np.full(len(rows), self.n_docs),
            "words": np.array(texts_of(annotation, doc), dtype=object),
            "spaces": np.zeros(len(rows), dtype=bool) if is_document else doc.to_array(["SPACY"]).reshape(-1),
            "starts": np.ones(len(rows), dtype=bool) if is_document else _sentence_starts(doc, reference),
            "labels": labels,
            "raw": raw,
            "calibrated": calibrated,
            "gold": self._names.numbers_of_hashes(known_gold, annotation.gold, reference, gold_hashes),
            "right": right,
        }

    def _score_columns(self, example: Example, view: DocCalib, gold: Hashes) -> _Columns:
        """Return the columns of _SCORES: a value for each entry of `view` (token, label). gold: Gold hash of each token."""
        hits = _hits(example, self._annotation, gold, view.rows, map_unique(view.tags, get_string_id))
        tags = self._names.numbers_of(view.tags)
        # Docs that store no columns: the source's labels were numbered first, so their numbers are their columns.
        columns_by_number = np.where(tags < len(self._labels), tags, -1)  # -1 for other labels
        columns = np.where(view.columns >= 0, view.columns, columns_by_number)
        return {
            "rows": view.rows,
            "tags": tags,
            "columns": columns,
            "tag_raw": view.raw,
            "tag_calibrated": view.calibrated,
            "hits": hits,
        }

    def _span_columns(self, example: Example, view: DocCalib) -> _Columns:
        """Return the columns of _SPANS: a value for each span with a score (`view.ents`) of one Example."""
        keys = [(span.start, span.end, get_string_id(span.label)) for span in view.ents]
        return {
            "docs": np.full(len(keys), self.n_docs),
            "starts": [span.start for span in view.ents],
            "ends": [span.end for span in view.ents],
            "labels": [self._names.number(span.label) for span in view.ents],
            "raw": [span.raw for span in view.ents],
            "calibrated": [span.score for span in view.ents],
            "right": span_hits(example, self._annotation, keys, view.ents[0].event),
            "accept": [UNKNOWN if span.accept is None else int(span.accept) for span in view.ents],
        }


class _ColumnBuffer:
    """Columns of arrays to which the arrays of one Doc after another are appended. dtypes (dict): Column name -> type."""

    def __init__(self, dtypes: dict[str, Any]):
        self._dtypes = dtypes
        self._parts: list[_Columns] = []  # each with the joined columns of _MAX_BUFFERED Docs
        self._buffer: list[_Columns] = []  # the columns of each further Doc

    def append(self, columns: _Columns) -> None:
        """Append the columns of a Doc. Now and then those of many Docs are joined, which takes less memory."""
        self._buffer.append(columns)
        if len(self._buffer) == _MAX_BUFFERED:
            self._parts.append(self._join(self._buffer))
            self._buffer = []

    def join_all(self) -> _Columns:
        """Return the columns of all Docs, and empty the buffer."""
        return self._join([*self._parts, *self._buffer])

    def _join(self, parts: Sequence[_Columns]) -> _Columns:
        """Return each column of all parts, concatenated. Parts lose their arrays, to free memory."""
        return {
            key: np.concatenate([np.zeros(0, dtype=dtype), *(np.asarray(part.pop(key), dtype=dtype) for part in parts)])
            for key, dtype in self._dtypes.items()
        }


def _hits(example: Example, annotation: Annotation, gold: Hashes, rows: Ints, hashes: Hashes) -> NDArray[np.int8]:
    """Return whether n labels are right: 1 or 0, or UNKNOWN without gold, shape (n,).

    rows, hashes: Token and hash of each label, shape (n,). gold: Hash of each token's gold label, 0 without gold.
    """
    # In these cases gold decides on each label by itself; otherwise a unit has one right label, and all others are wrong.
    if annotation.kind.of_arcs or annotation.kind.overlapping or annotation.rejected_labels(example) is not None:
        has_gold, right = annotation.is_known(example, rows, hashes), annotation.is_gold(example, rows, hashes)
    else:
        has_gold, right = gold[rows] != 0, gold[rows] == hashes
    return np.where(has_gold, right, UNKNOWN).astype(np.int8)


def _predicted_label_scores(
    doc: Doc, view: DocCalib | None, attr: str, kind: Kind, scores: _Columns, labels: Ints
) -> tuple[Floats, Floats]:
    """Return (raw, calibrated) score of each token's (or document's) predicted label, NaN without one.

    view (DocCalib | None), scores (dict): The scores above the threshold, also as columns; None and {} without any. attr (str):
    Prefix of the pipe's attributes, which give scores below it. labels (Ints): Number of each predicted label, -1 for none.
    """
    raw, calibrated = np.full(len(labels), np.nan), np.full(len(labels), np.nan)
    if view is None:
        return raw, calibrated
    entries = np.flatnonzero(scores["tags"] == labels[scores["rows"]])  # the scores of predicted labels
    raw[scores["rows"][entries]] = scores["tag_raw"][entries]
    calibrated[scores["rows"][entries]] = scores["tag_calibrated"][entries]
    below_threshold = view.scored & np.isnan(raw) & (labels >= 0)  # these labels have no entry
    for i in np.flatnonzero(below_threshold).tolist():
        values = doc_values(doc, attr) if kind.of_documents else token_values(doc[i], attr)
        if values is not None:
            raw[i], calibrated[i] = values.raw, values.calibrated
    return raw, calibrated


def _sentence_starts(doc: Doc, reference: Doc) -> NDArray[np.bool_]:
    """Return whether each token starts a sentence, by `doc` or, if it has no sentences, by a `reference` of the same tokens."""
    source = doc
    if not doc.has_annotation("SENT_START") and [token.text for token in doc] == [token.text for token in reference]:
        source = reference
    starts = source.to_array(["SENT_START"]).reshape(-1).astype(np.int64) == 1
    starts[:1] = True
    return starts
