"""A scored corpus -> its units: tokens, entities, sentences or documents, each with the probability that it is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....pairs.documents import DOCUMENT, TOKEN
from ....pairs.keyed import STEP, Digests, digest, splitmix64
from ....pairs.scored_corpus import RIGHT, UNKNOWN, WRONG, ScoredCorpus
from ....types import Floats, Ints
from ..messages import calib_error

KINDS = (TOKEN, "entity", "sentence", DOCUMENT)


@dataclass(frozen=True, eq=False)
class Units:
    """n stretches of tokens of a corpus, in the order of the text.

    kind (str): One of KINDS. firsts, lasts (Ints): First token in the corpus, and the one after the last, shape (n,). labels (Ints): Place in
    the corpus's names; -1 where a unit holds several labels. raw, calibrated (Floats): Probability that nothing in it is wrong; of several
    labels the product, as if independent. right (NDArray[int8]): 1 or 0, -1 where it is not known.
    """

    kind: str
    firsts: Ints
    lasts: Ints
    labels: Ints
    raw: Floats
    calibrated: Floats
    right: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.firsts)

    def sums(self, values: Floats) -> Floats:
        """The sum of a value over the tokens of each unit, NaN counting nothing. values (Floats): One for each token. RETURNS (Floats): (n,)."""
        return self._over(np.add, np.nan_to_num(values))

    def maxima(self, values: Floats) -> Floats:
        """The greatest value of each unit, -inf where all are NaN; shape (n,)."""
        return self._over(np.maximum, np.where(np.isnan(values), -np.inf, values))

    def counts(self, values: NDArray[Any]) -> Ints:
        """The sum of whole numbers, or of flags, over the tokens of each unit; shape (n,)."""
        before = np.concatenate([[0], np.cumsum(values, dtype=np.intp)])
        return before[self.lasts] - before[self.firsts]

    def _over(self, combine: np.ufunc, values: Floats) -> Floats:
        bounds = np.stack([self.firsts, self.lasts], axis=1).reshape(-1)
        return combine.reduceat(np.append(values, 0.0), bounds)[::2] if len(bounds) else np.zeros(0)


def units_of(corpus: ScoredCorpus, kind: str) -> Units:
    """The units of one kind that have a score. RAISES C001: there is no such kind."""
    if kind not in KINDS:
        raise calib_error("C001", name="unit", wanted=f"one of {', '.join(KINDS)}", given=repr(kind))
    if kind == "entity":
        return _entities(corpus)
    if kind == corpus.row_unit:
        return _rows(corpus)
    return _stretches(corpus, kind, corpus.doc_starts if kind == DOCUMENT else corpus.sentence_starts)


def _rows(corpus: ScoredCorpus) -> Units:
    """The rows that are counted: tokens, or documents where these have the labels."""
    index = np.flatnonzero(corpus.is_counted)
    raw, calibrated = corpus.raw[index], corpus.calibrated[index]
    return Units(corpus.row_unit, index, index + 1, corpus.labels[index], raw, calibrated, corpus.right[index])


def _entities(corpus: ScoredCorpus) -> Units:
    """The entities (or categorized spans) with a score."""
    spans = corpus.spans
    offsets = corpus.doc_starts[spans.docs]
    return Units("entity", spans.starts + offsets, spans.ends + offsets, spans.labels, spans.raw, spans.calibrated, spans.right)


def _stretches(corpus: ScoredCorpus, kind: str, starts: Ints) -> Units:
    """The stretches with a counted token: wrong if any is, right if all counted ones are. starts: First tokens, and the end."""
    index = np.flatnonzero(corpus.is_counted)
    numbers, firsts = np.unique(np.searchsorted(starts, index, side="right") - 1, return_index=True)
    if not len(index):
        none = np.zeros(0)
        return Units(kind, index, index, index, none, none, none.astype(np.int8))
    worst = np.minimum.reduceat(np.where(corpus.right[index] == WRONG, WRONG, RIGHT), firsts)
    known = np.minimum.reduceat(corpus.right[index], firsts) != UNKNOWN
    return Units(
        kind,
        starts[numbers],
        starts[numbers + 1],
        np.full(len(numbers), -1),
        _products(corpus.raw[index], firsts),
        _products(corpus.calibrated[index], firsts),
        np.where((worst == WRONG) | known, worst, UNKNOWN).astype(np.int8),
    )


def _products(scores: Floats, firsts: Ints) -> Floats:
    """The product of each stretch of scores, by the sum of their logarithms: the product itself of many small scores would be 0."""
    return np.exp(np.add.reduceat(np.log(np.maximum(scores, np.finfo(float).tiny)), firsts))


def unit_keys(corpus: ScoredCorpus, units: Units) -> Digests:
    """64 bits of each unit that needs no second look: of its text, or of its sentence's text and its place in there."""
    if units.kind in ("sentence", DOCUMENT):
        return np.array([digest(corpus.text(*bounds)) for bounds in _bounds(units.firsts, units.lasts)], dtype=np.uint64)
    sentences, own = np.unique(corpus.sentences[units.firsts], return_inverse=True)
    starts = corpus.sentence_starts
    texts = [digest(corpus.text(*bounds)) for bounds in _bounds(starts[sentences], starts[sentences + 1])]
    found: Digests = np.array(texts, dtype=np.uint64)[own.reshape(-1)]
    for place in (units.firsts, units.lasts):
        found = splitmix64(found + (place - starts[sentences][own.reshape(-1)]).astype(np.uint64) + STEP)
    return found


def labelled_keys(corpus: ScoredCorpus, units: Units, keys: Digests, given: Digests) -> Digests:
    """The given keys (see `unit_keys`), and those of units in these labelled documents, wherever sentences begin."""
    if not len(given):
        return given
    docs = [digest(corpus.text(*bounds)) for bounds in _bounds(corpus.doc_starts[:-1], corpus.doc_starts[1:])]
    return np.union1d(given, keys[np.isin(np.array(docs, dtype=np.uint64), given)[corpus.docs[units.firsts]]])


def _bounds(firsts: Ints, lasts: Ints) -> Any:
    return zip(firsts.tolist(), lasts.tolist(), strict=True)
