"""Priorities -> the batch: order, ties, duplicates, diversity by document, and the budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...types import Floats, Ints
from .pieces import Pieces

if TYPE_CHECKING:
    from ..scored import ScoredCorpus


def text_key(text: str) -> str:
    """A text without its white space, in which tokenizers differ: two texts with one key are the same text."""
    return "".join(text.split())


def labelled_keys(corpus: ScoredCorpus, pieces: Pieces, keys: Sequence[str], given: Collection[str]) -> set[str]:
    """The keys of labelled texts: those given, and those of the sentences of labelled documents, wherever the pipeline sees them begin.

    keys (Sequence[str]): `text_key` of each piece. given (Collection[str]): Keys of whole documents, or of sentences.
    """
    bounds = corpus.doc_starts
    done = [doc for doc in range(corpus.n_docs) if text_key(corpus.text(bounds[doc], bounds[doc + 1])) in given]
    return {*given, *(keys[i] for i in np.flatnonzero(np.isin(pieces.docs, done)).tolist())}


def choose(
    pieces: Pieces,
    scores: Floats,
    keys: Sequence[str],
    *,
    n: int | None = None,
    max_words: int | None = None,
    per_doc: int | None = None,
    excluded: Collection[str] = (),
    documents: Ints | None = None,
) -> Ints:
    """The pieces to be labelled, most urgent first.

    scores (Floats): Priority of each piece; those of -inf are never chosen. Equal ones: the shorter first (Mejer & Crammer 2010, section 6),
        then in the order of the text. keys (Sequence[str]): `text_key` of each piece: one text is chosen once. n (int | None): At most
        that many pieces. max_words (int | None): At most that many words; a piece that fits no more is passed over. per_doc (int | None):
        At most that many pieces of one document, round robin: the best one of each, then the second best ones, and so on.
    excluded (Collection[str]): Keys of texts that are labelled already. documents (Ints | None): Of each piece; None takes its Doc.
    RETURNS (Ints): Places in `pieces`.
    """
    order = np.lexsort((np.arange(len(pieces)), pieces.words, -scores))
    order = order[np.isfinite(scores[order])]
    order = _new_texts(order, keys, excluded)
    if per_doc is not None:
        order = _round_robin(order, (pieces.docs if documents is None else documents)[order], per_doc)
    return _within(order, pieces.words[order], n, max_words)


def _new_texts(order: Ints, keys: Sequence[str], excluded: Collection[str]) -> Ints:
    """The places whose text is neither excluded nor that of an earlier place."""
    met = set(excluded)
    kept = []
    for place in order.tolist():
        if keys[place] not in met:
            met.add(keys[place])
            kept.append(place)
    return np.array(kept, dtype=np.intp)


def _round_robin(order: Ints, docs: Ints, per_doc: int) -> Ints:
    """docs (Ints): The document of each one in the order."""
    by_doc = np.argsort(docs, kind="stable")
    _, first, sizes = np.unique(docs[by_doc], return_index=True, return_counts=True)
    turn = np.empty(len(order), dtype=np.intp)
    turn[by_doc] = np.arange(len(order)) - np.repeat(first, sizes)
    return order[np.argsort(turn, kind="stable")[: int((turn < per_doc).sum())]]


def _within(order: Ints, words: ArrayLike, n: int | None, max_words: int | None) -> Ints:
    """words: Of each one in the order."""
    kept: list[int] = []
    left = np.inf if max_words is None else max_words
    for place, size in zip(order.tolist(), np.asarray(words).tolist(), strict=True):
        if n is not None and len(kept) >= n:
            break
        if size <= left:
            kept.append(place)
            left -= size
    return np.array(kept, dtype=np.intp)
