"""The scored tokens, tags and spans of many Docs as flat arrays, which `gold.scored_corpora` makes from Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints, Pairs
from .documents import DOCUMENT, TOKEN
from .pairing import JudgedPairs

RIGHT, WRONG, UNKNOWN = 1, 0, -1  # UNKNOWN: without known gold


@dataclass(frozen=True, eq=False)
class ScoredSpans:
    """n spans (entities) with a score, in text order.

    docs (Ints): Number of each span's Doc. starts, ends (Ints): First token of each in its Doc, and the one after the last.
    labels (Ints): Label of each, as an index in the names of the corpus. raw, calibrated (Floats): Scores before and after
    calibration. right (NDArray[int8]): 1 right, 0 wrong, -1 without gold. accept (NDArray[int8]): 1 or 0, whether the span
    reaches its cut-off, -1 without cut-offs.
    """

    docs: Ints
    starts: Ints
    ends: Ints
    labels: Ints
    raw: Floats
    calibrated: Floats
    right: NDArray[np.int8]
    accept: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.docs)


@dataclass(frozen=True, eq=False)
class ScoredCorpus:
    """n tokens of some Docs, their m scores (of tags above the threshold), and their spans.

    If documents have labels instead of tokens, each "token" below is a document.

    names (tuple[str, ...]): All labels that occur.
    docs (Ints): Number of each token's Doc, ascending, shape (n,). n_docs (int): Docs, with or without tokens.
    doc_documents (Ints | None): Source document of each Doc; None if each is one. unit (str): What counts as a document.
    of_documents (bool): Whether a row is a whole document. words (NDArray[object]): Text of each token. spaces, starts
    (NDArray[bool]): Whether a space follows it, and whether it begins a sentence; the first token of a Doc always does.
    labels, gold (Ints): Predicted and gold label of each token, an index in names; -1 for none.
    raw, calibrated (Floats): Probability of the predicted label before and after calibration; NaN without one.
    right (NDArray[int8]): Whether the predicted label is a gold label: 1 or 0, -1 without label or gold.
    rows, tags, columns (Ints): Token of each of the m scores, ascending; its tag, an index in names; its column in the source.
    tag_raw, tag_calibrated (Floats): The m scores before and after calibration. hits (NDArray[int8]): Whether each tag is
    a gold label: 1 or 0, -1 without gold. origins (tuple[dict, ...]): "line", "file", "id", "meta" of each Doc, or ().
    """

    names: tuple[str, ...]
    docs: Ints
    n_docs: int
    words: NDArray[np.object_]
    spaces: NDArray[np.bool_]
    starts: NDArray[np.bool_]
    labels: Ints
    raw: Floats
    calibrated: Floats
    gold: Ints
    right: NDArray[np.int8]
    rows: Ints
    tags: Ints
    columns: Ints
    tag_raw: Floats
    tag_calibrated: Floats
    hits: NDArray[np.int8]
    spans: ScoredSpans
    origins: tuple[dict[str, Any], ...] = ()
    doc_documents: Ints | None = None
    unit: str = DOCUMENT
    of_documents: bool = False

    def __len__(self) -> int:
        return len(self.docs)

    @property
    def row_unit(self) -> str:
        """The unit of the n rows: "token" or "document"."""
        return DOCUMENT if self.of_documents else TOKEN

    def origin(self, doc: int) -> dict[str, Any]:
        """Return the origin of a Doc: "line", "file", "id" and "meta" of its record in a file; {} if unknown."""
        return self.origins[doc] if self.origins else {}

    @cached_property
    def documents(self) -> Ints:
        """Source document of each token, shape (n,)."""
        return self.documents_of(self.docs)

    def documents_of(self, docs: Ints) -> Ints:
        """Return the source document of each of `docs`, which are numbers of Docs."""
        return docs if self.doc_documents is None else self.doc_documents[docs]

    @property
    def n_documents(self) -> int:
        return self.n_docs if self.doc_documents is None else int(self.doc_documents.max(initial=-1)) + 1

    @cached_property
    def doc_starts(self) -> Ints:
        """First token of each Doc, and the number of tokens at the end: shape (n_docs + 1,)."""
        return np.searchsorted(self.docs, np.arange(self.n_docs + 1))

    @cached_property
    def sentences(self) -> Ints:
        """Number of each token's sentence, from 0, shape (n,)."""
        return np.cumsum(self.starts) - 1

    @cached_property
    def sentence_starts(self) -> Ints:
        """First token of each sentence, and the number of tokens at the end."""
        return np.append(np.flatnonzero(self.starts), len(self))

    @cached_property
    def indptr(self) -> Ints:
        """Index of the first score of each token, and m at the end, as in a CSR matrix: shape (n + 1,)."""
        return np.searchsorted(self.rows, np.arange(len(self) + 1))

    @cached_property
    def is_counted(self) -> NDArray[np.bool_]:
        """Whether each token has a scored label and is not white space, shape (n,)."""
        is_space = np.array([word.isspace() for word in self.words.tolist()], dtype=bool)
        return ~np.isnan(self.calibrated) & ~is_space

    @cached_property
    def is_word(self) -> NDArray[np.bool_]:
        """Whether each token contains a letter or a digit, shape (n,)."""
        return np.array([any(map(str.isalnum, word)) for word in self.words.tolist()], dtype=bool)

    @cached_property
    def offsets(self) -> Ints:
        """First character of each token in its Doc, shape (n,)."""
        sizes = np.fromiter(map(len, self.words.tolist()), dtype=np.intp, count=len(self)) + self.spaces
        starts = np.cumsum(sizes) - sizes  # in all texts, one after the other
        return starts - starts[self.doc_starts[self.docs]]

    @cached_property
    def lengths(self) -> Ints:
        """Number of words in each row, shape (n,): 1 for a token, 0 for white space, all words of its text for a document."""
        words = self.words.tolist()
        counts = (len(word.split()) if self.of_documents else not word.isspace() for word in words)
        return np.fromiter(counts, dtype=np.intp, count=len(words))

    def pairs(self) -> JudgedPairs:
        """Return a pair for each of the m scores whose token has gold: the score, and whether its tag is right."""
        keep = self.hits != UNKNOWN
        rows = self.rows[keep]
        has_gold = np.zeros(len(self), dtype=bool)
        has_gold[rows] = True
        pairs = Pairs(rows, self.columns[keep], self.tag_raw[keep], self.hits[keep] == RIGHT, int(has_gold.sum()))
        return JudgedPairs(pairs, self.tag_calibrated[keep], self.documents[rows], self.unit)

    def predicted_pairs(self, rows: Ints | None = None) -> JudgedPairs:
        """Return a pair per token: its predicted label, and whether this is right. rows: Tokens with gold; None for all."""
        # The number of a label is its column. Not for lemmas: the columns are edit trees, and scores of the lemmas show which.
        columns = self.labels.copy()
        matches = np.flatnonzero(self.tags == self.labels[self.rows])  # scores of predicted labels
        columns[self.rows[matches]] = self.columns[matches]
        if rows is None:
            rows = np.flatnonzero((self.right != UNKNOWN) & ~np.isnan(self.calibrated))
        pairs = Pairs(np.arange(len(rows)), columns[rows], self.raw[rows], self.right[rows] == RIGHT, len(rows))
        return JudgedPairs(pairs, self.calibrated[rows], self.documents[rows], self.unit)

    def span_pairs(self, labels: Sequence[str]) -> JudgedPairs:
        """Return a pair for each span with gold: its score, and whether it is right. labels: The span label of each tag."""
        spans, column = self.spans, {label: i for i, label in enumerate(labels)}
        keep = np.flatnonzero(spans.right != UNKNOWN)
        column_of_name = np.array([column.get(name, -1) for name in self.names], dtype=np.intp)  # -1: unknown to the source
        tags = column_of_name[spans.labels[keep]]
        pairs = Pairs(np.arange(len(keep)), tags, spans.raw[keep], spans.right[keep] == RIGHT, len(keep))
        return JudgedPairs(pairs, spans.calibrated[keep], self.documents_of(spans.docs[keep]), self.unit)

    def text(self, first: int, last: int) -> str:
        """Return the text of the tokens from `first` to before `last`, without white space at both ends."""
        words, spaces = self.words[first:last].tolist(), self.spaces[first:last].tolist()
        return "".join(word + " " * space for word, space in zip(words, spaces, strict=True)).strip()

    def sentence_of(self, token: int) -> tuple[int, int]:
        """Return (first token, the one after the last) of the sentence that contains a token."""
        number = int(self.sentences[token])
        return int(self.sentence_starts[number]), int(self.sentence_starts[number + 1])
