"""Priorities -> the batch: order, ties, duplicates, diversity by document, and the budget."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...types import Floats, Ints
from ..distinct import Digests, digest
from .pieces import Pieces

if TYPE_CHECKING:
    from ..scored import ScoredCorpus


class Choosable(Protocol):
    """n pieces of text. docs (Ints): Number of each one's Doc. words (Ints): How many it has."""

    @property
    def docs(self) -> Ints: ...

    @property
    def words(self) -> NDArray[Any]: ...

    def __len__(self) -> int: ...


def labelled_keys(corpus: ScoredCorpus, pieces: Pieces, keys: Digests, given: Digests) -> Digests:
    """The keys of labelled texts: those given, and those of the sentences of labelled documents, wherever the pipeline sees them begin.

    keys (Digests): `digest` of each piece. given (Digests): Those of whole documents, or of sentences.
    """
    if not len(given):
        return given
    bounds = corpus.doc_starts.tolist()
    docs = np.array([digest(corpus.text(first, last)) for first, last in pairwise(bounds)], dtype=np.uint64)
    return np.union1d(given, keys[np.isin(docs, given)[pieces.docs]])


def choose(
    pieces: Choosable,
    scores: Floats,
    keys: Digests,
    *,
    n: int | None = None,
    max_words: int | None = None,
    per_doc: int | None = None,
    excluded: ArrayLike = (),
    documents: Ints | None = None,
) -> Ints:
    """The pieces to be labelled, most urgent first.

    scores (Floats): Priority of each piece; those of -inf are never chosen. Equal ones: the shorter first (Mejer & Crammer 2010, section 6),
        then in the order of the text. keys (Digests): `digest` of the text of each piece: one text is chosen once. n (int | None): At most
        that many pieces. max_words (int | None): At most that many words; a piece that fits no more is passed over. per_doc (int | None):
        At most that many pieces of one document, round robin: the best one of each, then the second best ones, and so on.
    excluded (Digests): Keys of texts that are labelled already. documents (Ints | None): Of each piece; None takes its Doc.
    RETURNS (Ints): Places in `pieces`.
    """
    order = np.lexsort((np.arange(len(pieces)), pieces.words, -scores))
    order = order[np.isfinite(scores[order])]
    order = _new_texts(order, keys, excluded)
    if per_doc is not None:
        order = _round_robin(order, (pieces.docs if documents is None else documents)[order], per_doc)
    return _within(order, pieces.words[order], n, max_words)


def _new_texts(order: Ints, keys: Digests, excluded: ArrayLike) -> Ints:
    """The places whose text is neither excluded nor that of an earlier place."""
    order = order[~np.isin(keys[order], np.asarray(excluded, dtype=np.uint64))]
    return order[np.sort(np.unique(keys[order], return_index=True)[1])]


def _round_robin(order: Ints, docs: Ints, per_doc: int) -> Ints:
    """docs (Ints): The document of each one in the order."""
    by_doc = np.argsort(docs, kind="stable")
    _, first, sizes = np.unique(docs[by_doc], return_index=True, return_counts=True)
    turn = np.empty(len(order), dtype=np.intp)
    turn[by_doc] = np.arange(len(order)) - np.repeat(first, sizes)
    return order[np.argsort(turn, kind="stable")[: int((turn < per_doc).sum())]]


def _within(order: Ints, words: ArrayLike, n: int | None, max_words: int | None) -> Ints:
    """words: Of each one in the order."""
    if max_words is None:
        return order if n is None else order[: max(0, n)]
    kept: list[int] = []
    sizes, left = np.asarray(words), max_words
    least = int(sizes.min(initial=max_words))
    for at in range(len(order)):
        if left < least or (n is not None and len(kept) >= n):
            break
        if sizes[at] <= left:
            kept.append(order[at])
            left -= int(sizes[at])
    return np.array(kept, dtype=np.intp)
