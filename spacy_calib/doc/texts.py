"""The gold of examples -> digests of its documents and sentences, while they go by."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.distinct import digest
from ..expect.seen import TextUnits
from ..pairs.documents import SourceDocument
from ..types import Ints
from .annotations import Annotation


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
