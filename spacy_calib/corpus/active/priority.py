"""How much a sentence is worth labelling (Mejer & Crammer 2010, section 6)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from ...errors import calib_error
from ...types import Floats
from ..doubt import doubts
from ..parts import random_order
from .pieces import Pieces
from .rare import any_probability, entity_events, tag_probability

if TYPE_CHECKING:
    from ..scored import ScoredCorpus

BY = ("least-confident", "expected-errors", "margin", "entropy", "rare-tag", "random")
SIGNALS = ("calibrated", "raw")
# What adds up over sentences, so that a budget in words is best spent where a word brings most of it.
ADDITIVE = ("expected-errors", "rare-tag")


def token_values(corpus: ScoredCorpus, by: str, signal: str = "calibrated", tags: Collection[str] = ()) -> Floats:
    """What each token adds to the priority of its sentence: its doubt, or for "rare-tag" P(it has one of the tags).

    by (str): One of BY; "random" gives the doubt, which explains but does not order. signal (str): "calibrated" or "raw" scores.
    RETURNS (Floats): Shape (n tokens,), NaN for tokens that are not counted.
    RAISES C001: by or signal is none of those.
    """
    for name, given, wanted in (("by", by, BY), ("signal", signal, SIGNALS)):
        if given not in wanted:
            raise calib_error("C001", name=name, wanted=f"one of {', '.join(wanted)}", given=repr(given))
    raw = signal == "raw"
    if by == "rare-tag":
        return tag_probability(corpus, tags, raw)
    if by in ("margin", "entropy"):
        return doubts(corpus, f"raw_{by}" if raw else by)
    return doubts(corpus, signal)


def priorities(corpus: ScoredCorpus, pieces: Pieces, values: Floats, by: str, seed: int = 0) -> Floats:
    """The priority of each piece; -inf for pieces without counted tokens, and for "rare-tag" where none of the tags has a score.

    least-confident: the greatest doubt among its tokens, as in the paper. expected-errors: the sum of its doubts, which for calibrated
    scores is the number of wrong labels to expect. margin, entropy: the mean over its tokens, as the paper's MinMargin is divided by the
    length (there of the best two labelings of the sentence, here of the best two tags of each token). rare-tag: P(at least one token has
    one of the tags). random: a random order, see `parts.random_order`.

    values (Floats): Of `token_values`. seed (int): Of the random order. RETURNS (Floats): Higher is labelled first, shape (n pieces,).
    """
    if by == "least-confident":
        found = pieces.maxima(values)
    elif by == "expected-errors":
        found = pieces.sums(values)
    elif by == "rare-tag":
        found = any_probability(pieces, values, entity_events(corpus))
    elif by == "random":
        found = random_order(corpus, pieces.first, seed)
    else:
        found = pieces.sums(values) / np.maximum(1, pieces.counted)
    nothing_found = (found <= 0) & (by == "rare-tag")
    return np.where((pieces.counted == 0) | nothing_found, -np.inf, found)
