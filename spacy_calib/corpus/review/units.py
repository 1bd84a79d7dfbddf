"""A scored corpus -> the units that a person reviews: tokens, sentences, entities or documents, each with the probability that it is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...types import Floats, Ints
from ..doubt import check_doubt, doubts
from ..parts import random_order
from ..scored import RIGHT, UNKNOWN, WRONG, ScoredCorpus


@dataclass(frozen=True, eq=False)
class Units:
    """n stretches of tokens of a corpus, in the order of the text.

    kind (str): One of UNIT_KINDS.
    firsts, lasts (Ints): First token in the corpus, and the one after the last, shape (n,).
    labels (Ints): Place in the corpus's names; -1 for sentences.
    raw, calibrated (Floats): Probability that nothing in it is wrong; for a sentence the product over its tokens, as if independent.
    right (NDArray[int8]): 1 or 0, -1 where it is not known.
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


def token_units(corpus: ScoredCorpus) -> Units:
    """The rows that are counted: tokens, or documents where these have the labels."""
    index = np.flatnonzero(corpus.counted)
    return Units(
        corpus.row_unit,
        index,
        index + 1,
        corpus.labels[index],
        corpus.raw[index],
        corpus.calibrated[index],
        corpus.right[index],
    )


def sentence_units(corpus: ScoredCorpus) -> Units:
    """The sentences with a counted token. One is wrong if any of its tokens is, and right if all counted ones are known to be."""
    index = np.flatnonzero(corpus.counted)
    numbers, firsts = np.unique(corpus.sentences[index], return_index=True)
    starts = corpus.sentence_starts
    if not len(index):
        none = np.zeros(0)
        return Units("sentence", index, index, index, none, none, none.astype(np.int8))
    worst = np.minimum.reduceat(np.where(corpus.right[index] == WRONG, WRONG, RIGHT), firsts)
    known = np.minimum.reduceat(corpus.right[index], firsts) != UNKNOWN
    return Units(
        "sentence",
        starts[numbers],
        starts[numbers + 1],
        np.full(len(numbers), -1),
        _products(corpus.raw[index], firsts),
        _products(corpus.calibrated[index], firsts),
        np.where((worst == WRONG) | known, worst, UNKNOWN).astype(np.int8),
    )


def entity_units(corpus: ScoredCorpus) -> Units:
    """The entities (or categorized spans) with a score."""
    spans = corpus.spans
    offsets = corpus.doc_starts[spans.docs]
    return Units("entity", spans.starts + offsets, spans.ends + offsets, spans.labels, spans.raw, spans.calibrated, spans.right)


UNIT_KINDS = {"token": token_units, "sentence": sentence_units, "entity": entity_units, "document": token_units}


def units_of(corpus: ScoredCorpus, kind: str) -> Units:
    """The units of one kind. RAISES C001: there is no such kind."""
    if kind not in UNIT_KINDS:
        raise calib_error("C001", name="unit", wanted=f"one of {', '.join(UNIT_KINDS)}", given=repr(kind))
    return UNIT_KINDS[kind](corpus)


def unit_doubts(corpus: ScoredCorpus, units: Units, by: str = "calibrated", seed: int = 0) -> Floats:
    """How doubtful each unit is; higher is more doubtful, shape (n,).

    by (str): See `doubt.doubts`: "calibrated" and "raw" give the probability that something in it is wrong, margin and entropy
        those of its most doubtful token. seed (int): Of the random order: see `parts.random_order`.
    RAISES C001: no signal has this name.
    """
    if check_doubt(by) == "random":
        return random_order(corpus, units.firsts, seed)
    if by in ("calibrated", "raw"):
        return 1 - (units.calibrated if by == "calibrated" else units.raw)
    of_tokens = np.append(np.nan_to_num(doubts(corpus, by), nan=-np.inf), -np.inf)
    bounds = np.stack([units.firsts, units.lasts], axis=1).reshape(-1)
    return np.maximum.reduceat(of_tokens, bounds)[::2] if len(bounds) else np.zeros(0)


def _products(scores: Floats, firsts: Ints) -> Floats:
    """The product of each stretch of scores, by the sum of their logarithms: the product itself of many small scores would be 0."""
    return np.exp(np.add.reduceat(np.log(np.maximum(scores, np.finfo(float).tiny)), firsts))
