"""Units of a scored corpus: tokens, entities, sentences or documents, each with the probability that it is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....pairs.documents import DOCUMENT, TOKEN
from ....pairs.keyed import STEP, Digests, digest, splitmix64
from ....pairs.scored_corpus import RIGHT, UNKNOWN, WRONG, ScoredCorpus
from ....types import Floats, Ints

KINDS = (TOKEN, "entity", "sentence", DOCUMENT)


@dataclass(frozen=True, eq=False)
class ReviewUnits:
    """The n units of one kind in a corpus (its tokens, entities, sentences or documents), in text order.

    kind (str): One of KINDS. firsts, lasts (Ints): First token of each unit, and the token after its last, as indices in the
    corpus, shape (n,) like all arrays. labels (Ints): Index of the label in `ScoredCorpus.names`; -1 if each token of the unit
    has its own label. raw, calibrated (Floats): Probability that the label is right, or the product of these probabilities over
    the tokens. right (NDArray[int8]): 1 if all labels of the unit are right, 0 if one is wrong, -1 if that is unknown.
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

    def take(self, index: Ints) -> ReviewUnits:
        """Return the units at these indices."""
        firsts, lasts, labels = self.firsts[index], self.lasts[index], self.labels[index]
        return ReviewUnits(self.kind, firsts, lasts, labels, self.raw[index], self.calibrated[index], self.right[index])

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each unit's tokens, (n,); NaN counts as 0. values (Floats): One per token."""
        return self._reduce(np.add, np.nan_to_num(values))

    def maxima(self, values: Floats) -> Floats:
        """Return the maximum of the values of each unit's tokens, (n,); -inf if all are NaN."""
        return self._reduce(np.maximum, np.where(np.isnan(values), -np.inf, values))

    def counts(self, values: NDArray[Any]) -> Ints:
        """Return the sum of integers or flags of each unit's tokens, (n,). values: One per token."""
        totals = np.concatenate([[0], np.cumsum(values, dtype=np.intp)])
        return totals[self.lasts] - totals[self.firsts]

    def _reduce(self, combine: np.ufunc, values: Floats) -> Floats:
        """Combine the values of each unit's tokens, (n,). combine (np.ufunc): np.add, for instance. values: One per token."""
        bounds = np.stack([self.firsts, self.lasts], axis=1).reshape(-1)
        # 0 is appended as a bound may follow the last token. Every second result is dropped: that of tokens between two units.
        return combine.reduceat(np.append(values, 0.0), bounds)[::2]


def units_of(corpus: ScoredCorpus, kind: str) -> ReviewUnits:
    """Return the units of a corpus that have a score. kind (str): One of KINDS, such as "entity"."""
    spans, offsets = corpus.spans, corpus.doc_starts[corpus.spans.docs]
    if kind == "entity":
        firsts, lasts = spans.starts + offsets, spans.ends + offsets
        return ReviewUnits(kind, firsts, lasts, spans.labels, spans.raw, spans.calibrated, spans.right)
    if kind == corpus.row_unit:  # tokens, or documents with categories
        rows = np.flatnonzero(corpus.is_counted)
        raw, calibrated = corpus.raw[rows], corpus.calibrated[rows]
        return ReviewUnits(kind, rows, rows + 1, corpus.labels[rows], raw, calibrated, corpus.right[rows])
    return _longer_units(corpus, kind, corpus.doc_starts if kind == DOCUMENT else corpus.sentence_starts)


def _longer_units(corpus: ScoredCorpus, kind: str, starts: Ints) -> ReviewUnits:
    """Return the sentences or documents that contain a scored token.

    kind (str): "sentence" or "document". starts (Ints): First token of each, and at the end the number of all tokens.
    """
    tokens = np.flatnonzero(corpus.is_counted)  # the scored ones
    # Numbers (indices in `starts`) of the units that have a scored token, and the index in `tokens` of each one's first.
    numbers, firsts = np.unique(np.searchsorted(starts, tokens, side="right") - 1, return_index=True)
    # A unit is wrong if the label of one token is wrong, right if the labels of all are right, and else unknown.
    has_error = np.logical_or.reduceat(corpus.right[tokens] == WRONG, firsts)
    is_all_right = np.logical_and.reduceat(corpus.right[tokens] == RIGHT, firsts)
    right = np.where(has_error, WRONG, np.where(is_all_right, RIGHT, UNKNOWN)).astype(np.int8)
    labels = np.full(len(numbers), -1)
    raw, calibrated = _products(corpus.raw[tokens], firsts), _products(corpus.calibrated[tokens], firsts)
    return ReviewUnits(kind, starts[numbers], starts[numbers + 1], labels, raw, calibrated, right)


def _products(scores: Floats, firsts: Ints) -> Floats:
    """Return the product of the scores of each unit. firsts (Ints): Index in `scores` of the first score of each unit."""
    return np.exp(np.add.reduceat(np.log(np.maximum(scores, np.finfo(float).tiny)), firsts))


def unit_keys(corpus: ScoredCorpus, units: ReviewUnits) -> Digests:
    """Return a 64-bit key of each unit, equal for repeats.

    Repeats are sentences or documents with equal texts; tokens or entities at equal positions in sentences with equal texts.
    """
    if units.kind in ("sentence", DOCUMENT):
        return np.array([digest(corpus.text(*bounds)) for bounds in _bounds(units.firsts, units.lasts)], dtype=np.uint64)
    keys = _sentence_digests(corpus, units)
    starts = corpus.sentence_starts[corpus.sentences[units.firsts]]
    for tokens in (units.firsts, units.lasts):  # both positions in the sentence are hashed into the key, one after the other
        keys = splitmix64(keys + (tokens - starts).astype(np.uint64) + STEP)
    return keys


def find_labelled(corpus: ScoredCorpus, units: ReviewUnits, keys: Digests, labelled: Digests) -> NDArray[np.bool_]:
    """Return for each unit whether it is labelled already, shape (n_units,).

    A unit counts as labelled if it is in a labelled Doc, if it repeats a unit of such a Doc, or if it is a labelled sentence or
    in one. keys (Digests): Key of each unit, from `unit_keys`. labelled (Digests): Digests of labelled documents and sentences.
    """
    doc_digests = [digest(corpus.text(*bounds)) for bounds in _bounds(corpus.doc_starts[:-1], corpus.doc_starts[1:])]
    in_labelled_doc = np.isin(np.array(doc_digests, dtype=np.uint64), labelled)[corpus.docs[units.firsts]]
    # The key of a sentence or document is the digest of its text.
    texts = keys if units.kind in ("sentence", DOCUMENT) else _sentence_digests(corpus, units)
    return np.isin(texts, labelled) | np.isin(keys, keys[in_labelled_doc])


def _sentence_digests(corpus: ScoredCorpus, units: ReviewUnits) -> Digests:
    """Return the digest of the text of each unit's sentence."""
    # Distinct sentences with a unit, and the index among them of each unit's sentence.
    sentences, index = np.unique(corpus.sentences[units.firsts], return_inverse=True)
    starts, ends = corpus.sentence_starts[sentences], corpus.sentence_starts[sentences + 1]
    digests: Digests = np.array([digest(corpus.text(*bounds)) for bounds in _bounds(starts, ends)], dtype=np.uint64)
    return digests[index]


def _bounds(firsts: Ints, lasts: Ints) -> Any:
    return zip(firsts.tolist(), lasts.tolist(), strict=True)
