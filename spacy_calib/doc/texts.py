"""Digests: of the gold's documents and sentences, as they pass; and of a block's words and labels.

spaCy copies a block whole into each part that `Span.as_doc(copy_user_data=True)` cuts from its Doc. A dictionary could
read whole hashes back, so a block keeps eight bits of word and place: one word in 256 agrees by chance, but a token is
also known by place, width and neighbours. The row of a whole document has none of these, and keeps 32 bits of its text.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..corpus.distinct import digest
from ..expect.seen import TextUnits
from ..pairs.documents import TOKEN, SourceDocument
from ..types import Ints
from .annotations import Annotation, Hashes, head_places


def document_digest(document: SourceDocument, doc: Doc) -> int:
    """64 bits by which a document is known wherever it stands: of its name, or else of the first text that was met of
    it (and of its number, where a file numbers its documents). Its place in a file does not count.
    """
    numbered = document.key[-1] if isinstance(document.key, tuple) else document
    key = numbered.key if isinstance(numbered, SourceDocument) else None
    name = repr(key) if isinstance(key, str) else f"{key if isinstance(key, int) else ''} {digest(doc.text)}"
    return int.from_bytes(blake2b(f"{document.unit} {name}".encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class TextWatch:
    """Remembers which texts it has seen, as digests. annotation (Annotation | None): Only gold Docs with this
    annotation count; None counts all.
    """

    def __init__(self, annotation: Annotation | None):
        self.annotation = annotation
        self._begin()

    def _begin(self) -> None:
        self._digests = array("Q")
        self._words = array("q")
        self._documents = array("q")
        self._whole = array("b")
        self._n_documents = 0

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples, each noted as it passes."""
        for example in examples:
            if self.annotation is None or self.annotation.gold_hashes(example.reference).any():
                self._look_at(example.reference)
            yield example

    def _look_at(self, doc: Doc) -> None:
        parts = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
        for whole, part in ((True, doc[:]), *((False, sent) for sent in parts)):
            self._digests.append(digest(part.text))
            self._words.append(len(part))
            self._documents.append(self._n_documents)
            self._whole.append(whole)
        self._n_documents += 1

    def units(self) -> TextUnits:
        """What was seen so far."""
        return TextUnits(
            np.array(self._digests, dtype=np.uint64),
            np.array(self._words, dtype=np.intp),
            np.array(self._documents, dtype=np.intp),
            np.array(self._whole, dtype=bool),
        )

    def take(self) -> TextUnits:
        """What was seen since the last `take`; documents are then numbered from 0 again."""
        units = self.units()
        self._begin()
        return units


class Noted:
    """Counts each passing example's gold spans, and digests its text. n_gold (int): Sum of the counts taken so far."""

    def __init__(self, annotation: Annotation):
        self._annotation, self.n_gold = annotation, 0
        self._gold, self._digests = array("q"), array("Q")

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples, each noted as it passes."""
        for example in examples:
            self._gold.append(len(self._annotation.spans_on(example.reference)))
            self._digests.append(digest(example.reference.text))
            yield example

    def take(self) -> tuple[Ints, list[int]]:
        """(numbers of gold spans, digests) of the examples since the last `take`."""
        gold, digests = np.array(self._gold, dtype=np.intp), self._digests.tolist()
        self._gold, self._digests = array("q"), array("Q")
        self.n_gold += int(gold.sum())
        return gold, digests


_ALL = (1 << 64) - 1
# Odd numbers that look like noise: those of splitmix64.
_STEP, _MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9


def word_digest(word: int, place: int) -> int:
    """`word_digests` of one word or span. word (int): Hash of its text. place (int): Its first character."""
    mixed = (word + place * _STEP) & _ALL
    return (((mixed ^ (mixed >> 32)) * _MIX) & _ALL) >> 56


def word_digests(words: Hashes, places: NDArray[Any], kind: Any = np.uint8) -> NDArray[Any]:
    """Digests of texts. words (Hashes), places (NDArray[uint]): Hash and first character. kind: Their unsigned type."""
    mixed = words + places.astype(np.uint64) * np.uint64(_STEP)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_MIX)
    return (mixed >> np.uint64(64 - 8 * np.dtype(kind).itemsize)).astype(kind)


def unit_digests(unit: str, places: Hashes) -> NDArray[Any]:
    """Digests of a Doc's units. unit (str): "token" or "document". places (Hashes): See `Annotation.places`."""
    return word_digests(places[:, 1], places[:, 0], np.uint8 if unit == TOKEN else np.uint32)


def said_of(annotation: Annotation, doc: Doc) -> NDArray[np.uint64]:
    """What each token carries, a row each: label hash; for arcs also the head's place, from the token, and digest."""
    columns = [annotation.hashes(doc)]
    if annotation.arcs:
        offsets = head_places(doc)
        place = doc.to_array(["IDX", "ORTH"]).astype(np.uint64, copy=False).reshape(-1, 2)
        heads = place[np.searchsorted(place[:, 0], place[:, 0] + offsets.astype(np.uint64))]
        columns += [offsets.astype(np.uint64), word_digests(heads[:, 1], heads[:, 0]).astype(np.uint64)]
    return np.column_stack(columns)


def said_by(annotation: Annotation, span: Span, place: int) -> NDArray[np.uint64]:
    """`said_of` for a span's tokens. place (int): Its first character in the text that the block was written for."""
    origin, rows = span.start_char - place, []
    for token in span:
        label, head = annotation.label(token), token.head
        arc = [(head.idx - token.idx) & _ALL, word_digest(head.orth, head.idx - origin)] if annotation.arcs else []
        rows.append([get_string_id(label) if label else 0, *arc])
    return np.array(rows, dtype=np.uint64)


def said_digest(said: NDArray[np.uint64]) -> int:
    """A checksum of what some tokens carry, from `said_of` or `said_by`."""
    return zlib.crc32(said.tobytes())
