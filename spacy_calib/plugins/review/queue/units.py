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
    """n units of one kind, in text order; all arrays have shape (n,).

    kind (str): One of KINDS. firsts, lasts (Ints): First token in the corpus, and the one after the last. labels (Ints): Index
    of the label in the corpus's names; -1 for units with several labels. raw, calibrated (Floats): Probability that all labels
    of the unit are right; of several labels their product. right (NDArray[int8]): Whether they are: 1 or 0, -1 if unknown.
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
        return combine.reduceat(np.append(values, 0.0), bounds)[::2] if len(bounds) else np.zeros(0)


def units_of(corpus: ScoredCorpus, kind: str) -> ReviewUnits:
    """Return the units of one of KINDS that have a score."""
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
    """Return the sentences or documents with a scored token: wrong if the label of one is wrong, right if those of all are.

    kind (str): "sentence" or "document". starts (Ints): First token of each, and at the end the number of all tokens.
    """
    tokens = np.flatnonzero(corpus.is_counted)
    # Numbers of the units that have a scored token, and the place in `tokens` of the first one of each.
    numbers, firsts = np.unique(np.searchsorted(starts, tokens, side="right") - 1, return_index=True)
    if not len(tokens):
        empty = np.zeros(0)
        return ReviewUnits(kind, tokens, tokens, tokens, empty, empty, empty.astype(np.int8))
    worst = np.minimum.reduceat(np.where(corpus.right[tokens] == WRONG, WRONG, RIGHT), firsts)
    all_have_gold = np.minimum.reduceat(corpus.right[tokens], firsts) != UNKNOWN
    right = np.where((worst == WRONG) | all_have_gold, worst, UNKNOWN).astype(np.int8)
    labels = np.full(len(numbers), -1)
    raw, calibrated = _products(corpus.raw[tokens], firsts), _products(corpus.calibrated[tokens], firsts)
    return ReviewUnits(kind, starts[numbers], starts[numbers + 1], labels, raw, calibrated, right)


def _products(scores: Floats, firsts: Ints) -> Floats:
    """Return the product of each run of scores, which begin at `firsts`. Logarithms are added, as small products would be 0."""
    return np.exp(np.add.reduceat(np.log(np.maximum(scores, np.finfo(float).tiny)), firsts))


def unit_keys(corpus: ScoredCorpus, units: ReviewUnits) -> Digests:
    """Return a 64-bit key of each unit, equal for repeats.

    Repeats are sentences or documents with equal texts; tokens or entities at equal positions in sentences with equal texts.
    """
    if units.kind in ("sentence", DOCUMENT):
        return np.array([digest(corpus.text(*bounds)) for bounds in _bounds(units.firsts, units.lasts)], dtype=np.uint64)
    # Distinct sentences with a unit, and the index among them of each unit's sentence.
    sentences, index = np.unique(corpus.sentences[units.firsts], return_inverse=True)
    starts, ends = corpus.sentence_starts[sentences], corpus.sentence_starts[sentences + 1]
    digests = [digest(corpus.text(*bounds)) for bounds in _bounds(starts, ends)]
    keys: Digests = np.array(digests, dtype=np.uint64)[index.reshape(-1)]
    for tokens in (units.firsts, units.lasts):  # the key depends on the text and both positions in the sentence
        positions = tokens - starts[index.reshape(-1)]
        keys = splitmix64(keys + positions.astype(np.uint64) + STEP)
    return keys


def find_labelled(corpus: ScoredCorpus, units: ReviewUnits, keys: Digests, labelled: Digests) -> NDArray[np.bool_]:
    """Return whether each unit is labelled: its text, its Doc, or one with an equal key is; shape (n_units,).

    keys (Digests): Key of each unit, from `unit_keys`. labelled (Digests): Digests of the labelled documents and sentences.
    """
    doc_digests = [digest(corpus.text(*bounds)) for bounds in _bounds(corpus.doc_starts[:-1], corpus.doc_starts[1:])]
    in_labelled_doc = np.isin(np.array(doc_digests, dtype=np.uint64), labelled)[corpus.docs[units.firsts]]
    return np.isin(keys, np.union1d(labelled, keys[in_labelled_doc]))


def _bounds(firsts: Ints, lasts: Ints) -> Any:
    return zip(firsts.tolist(), lasts.tolist(), strict=True)
