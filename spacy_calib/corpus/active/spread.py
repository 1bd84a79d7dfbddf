"""Which few documents stand for all: what `adapt` and an interval from few labels are best served by."""

from __future__ import annotations

import numpy as np

from ...types import Floats, Ints

# The shortest documents that together hold less than this share of the words tell next to nothing, and cost a label each.
SHORT = 0.1


def stand_for_all(doubt: Floats, words: Ints, n: int, seed: int = 0) -> Ints:
    """The documents to label: spread over their doubt, without the shortest ones, which would be most of a few where texts differ in length.

    On the texts of scripts/study_select_adapt.py five of them make an interval a quarter narrower than five of all documents do, and
    the most doubtful ones make it more than twice as wide.

    doubt (Floats): Expected share of wrong labels of each document, shape (m,). words (Ints): In each. n, seed: See `spread`.
    RETURNS (Ints): min(n, m) places, in random order. Short ones are among them only where there are no others.
    """
    order = np.argsort(words, kind="stable")
    rank = np.searchsorted(np.cumsum(words[order]), SHORT * words.sum())
    kept = np.flatnonzero(words >= words[order[rank]]) if len(words) else order
    if len(kept) < n:
        kept = np.arange(len(words))
    return kept[spread(doubt[kept], n, seed)]


def spread(values: Floats, n: int, seed: int = 0) -> Ints:
    """A random sample that is spread evenly over the values: sorted by them, all are cut into n equal parts, and one is drawn from each
    (a stratified sample, Cochran 1977, chapter 5).

    Every place is as likely as any other to be drawn, so that what the sample says of all is not biased, as it would be if
    the most doubtful ones were taken; and no luck of the draw takes them all from one end.

    values (Floats): Such as the expected share of wrong labels of each document, shape (m,). n (int): All of them where there are no more.
    seed (int): Of the draw. RETURNS (Ints): min(n, m) places, in random order: the first few of them are a random sample, too.
    """
    rng = np.random.default_rng(seed)
    n = min(n, len(values))
    if not n:
        return np.zeros(0, dtype=np.intp)
    size = len(values) // n
    order = np.lexsort((rng.random(len(values)), values))  # equal values in random order
    # What is left over when all are cut into equal parts is chosen at random, or the places in smaller parts would be likelier than others.
    parts = order[np.sort(rng.permutation(len(values))[: n * size])].reshape(n, size)
    return rng.permutation(parts[np.arange(n), rng.integers(size, size=n)])
