"""Choose the units of a queue by priority: ties, units left out, repeated texts, documents in turn, and the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....gold.tool_exports import AT_RANDOM, BY_DOUBT
from ....pairs.keyed import Digests
from ....pairs.scored_corpus import ScoredCorpus
from ....types import Floats, Ints
from .orders import Order, doubts, priorities
from .units import ReviewUnits, labelled_keys, unit_keys, units_of

# Whether a unit may be in the queue, or why it is left out.
IN, ACCEPTED, BELOW, SHORT = 0, 1, 2, 3
# The shortest documents, which together have this share of the words, are not sampled: they show little and cost a label each.
SHARE_OF_SHORT = 0.1
NO_DIGESTS: Digests = np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True)
class QueuePlan:
    """Settings that decide which units are in a queue, and in which order.

    kind (str): One of units.KINDS. order (Order): What makes the priorities. seed (int): Of random choices. min_words (int):
    Minimum of words with a letter or a digit. accepted (bool | None): Only entities that reach their cut-off (True) or are
    below it (False). repeats (bool): Keep units whose text occurs again. n, per_doc (int | None): Maximum number of units, and
    of units of one document. is_stratified (bool): Sample n documents with `sample_documents`. labelled_keys (Digests | None):
    Keys of texts that are labelled already. is_sample (bool): Sample n of all entities, or of all accepted ones.
    """

    kind: str
    order: Order
    seed: int = 0
    min_words: int = 0
    accepted: bool | None = None
    repeats: bool = False
    n: int | None = None
    per_doc: int | None = None
    is_stratified: bool = False
    labelled_keys: Digests | None = None
    is_sample: bool = False

    @property
    def sampling(self) -> str:
        """How units are chosen: AT_RANDOM from all, or BY_DOUBT, by their scores."""
        is_random = self.order.aggregation == "random" and self.accepted is None
        return AT_RANDOM if self.is_stratified or is_random else BY_DOUBT


@dataclass(frozen=True, eq=False)
class UnitPool:
    """The data by which units of a queue are chosen from n units; all arrays have shape (n,).

    documents (Ints): Number of the document. words (NDArray[int32]): Number of words. scores (Floats): Priority. ties (Floats):
    Raw scores, which order units with equal priorities, the smallest first. keys (Digests): From `unit_keys`, equal for equal
    texts. left_out (NDArray[int8]): IN (a candidate), ACCEPTED, BELOW or SHORT.
    """

    documents: Ints
    words: NDArray[np.int32]
    scores: Floats
    ties: Floats
    keys: Digests
    left_out: NDArray[np.int8]

    @classmethod
    def from_corpus(cls, corpus: ScoredCorpus, units: ReviewUnits, values: Floats, plan: QueuePlan) -> UnitPool:
        """Build the pool of one corpus. values (Floats): Value of each token, from `doubts`, shape (n_tokens,)."""
        docs, words = corpus.docs[units.firsts], units.counts(corpus.lengths).astype(np.int32)
        if plan.is_stratified:
            scores = units.sums(values) / words.clip(1)  # expected share of wrong labels
        else:
            scores = priorities(corpus, units, plan.order, values, plan.seed)
            scores = 1 - scores if plan.accepted else scores  # the most certain first
        is_eligible = units.counts(corpus.lengths * corpus.is_word) >= plan.min_words
        unwanted = np.full(len(units), False) if plan.accepted is None else corpus.spans.accept != int(plan.accepted)
        return cls(
            corpus.documents_of(docs),
            words,
            scores,
            units.raw,
            unit_keys(corpus, units),
            np.select([unwanted, ~is_eligible], [BELOW if plan.accepted else ACCEPTED, SHORT], IN).astype(np.int8),
        )

    def sort(self) -> Ints:
        """Return the indices of all units, highest priority first; ties by `ties`, then in text order."""
        return np.lexsort((self.ties, -self.scores))


@dataclass(frozen=True, eq=False)
class Queue:
    """The units chosen for review, in order.

    corpus (ScoredCorpus): The corpus of the units. units (ReviewUnits): All units of the corpus. values (Floats): Value of each
    token, by `doubts`. scores (Floats): Priority of each unit. order (Ints): Indices of the chosen units, first to last.
    candidates (Ints): Indices of all that may be chosen. left_out (dict): Number of units left out as "accepted", "below",
    "too_short", "excluded", "repeats". sampling (str): How the units were chosen, BY_DOUBT or AT_RANDOM.
    """

    corpus: ScoredCorpus
    units: ReviewUnits
    values: Floats
    scores: Floats
    order: Ints
    candidates: Ints
    left_out: dict[str, int]
    sampling: str = BY_DOUBT


def select_units(pool: UnitPool, plan: QueuePlan, excluded: ArrayLike = ()) -> tuple[Ints, Ints, dict[str, int]]:
    """Choose units of the pool by a plan. excluded (Digests): Keys to leave out, from `labelled_keys`.

    RETURNS (tuple): Indices of the chosen units, first to last; of all candidates, in text order; the number of units left out
        for each reason, each counted once.
    """
    order = pool.sort()
    order = order[pool.left_out[order] == IN]
    not_excluded = order[~np.isin(pool.keys[order], np.asarray(excluded, dtype=np.uint64))]
    candidates = not_excluded
    if not (plan.repeats or plan.accepted or plan.is_sample):
        candidates = not_excluded[np.sort(np.unique(pool.keys[not_excluded], return_index=True)[1])]  # first of equal texts
    left_out = {
        "accepted": int((pool.left_out == ACCEPTED).sum()),
        "below": int((pool.left_out == BELOW).sum()),
        "too_short": int((pool.left_out == SHORT).sum()),
        "excluded": len(order) - len(not_excluded),
        "repeats": len(not_excluded) - len(candidates),
    }
    all_candidates = np.sort(candidates)
    if plan.per_doc is not None:
        docs = pool.documents[candidates]
        by_doc = np.argsort(docs, kind="stable")
        _, first, sizes = np.unique(docs[by_doc], return_index=True, return_counts=True)
        turn = np.empty(len(candidates), dtype=np.intp)  # number of units of the same document before each
        turn[by_doc] = np.arange(len(candidates)) - np.repeat(first, sizes)
        candidates = candidates[np.argsort(turn, kind="stable")[: int((turn < plan.per_doc).sum())]]
    words = pool.words[candidates]
    if plan.is_sample:
        n = len(words) if plan.n is None else plan.n
        units = all_candidates[sample_entities(pool.documents[all_candidates], n, plan.seed)]
    elif plan.is_stratified:
        units = candidates[sample_documents(pool.scores[candidates], words, plan.n or 0, plan.seed)]
    else:
        units = candidates if plan.n is None else candidates[: max(0, plan.n)]
    return units, all_candidates, left_out


def queue_of(corpus: ScoredCorpus, plan: QueuePlan) -> Queue:
    """Choose the units of a corpus to review, by a plan."""
    units, values = units_of(corpus, plan.kind), doubts(corpus, plan.order.value)
    pool = UnitPool.from_corpus(corpus, units, values, plan)
    excluded = NO_DIGESTS if plan.labelled_keys is None else labelled_keys(corpus, units, pool.keys, plan.labelled_keys)
    return Queue(corpus, units, values, pool.scores, *select_units(pool, plan, excluded), plan.sampling)


def sample_documents(doubt: Floats, words: ArrayLike, n: int, seed: int = 0) -> Ints:
    """Sample documents to label, stratified by doubt, without the shortest ones, which would be most of a small sample.

    doubt (Floats): Expected share of wrong labels of each document, shape (m,). words (Ints): Number of words, shape (m,). n
        (int): Size of the sample. seed (int): Of the sample. RETURNS (Ints): min(n, m) indices, in random order; short
        documents only if there are too few others.
    """
    sizes = np.asarray(words, dtype=np.intp)
    order = np.argsort(sizes, kind="stable")
    rank = np.searchsorted(np.cumsum(sizes[order]), SHARE_OF_SHORT * sizes.sum())  # the first that is not too short
    candidates = np.flatnonzero(sizes >= sizes[order[rank]]) if len(sizes) else order
    if len(candidates) < n:
        candidates = np.arange(len(sizes))
    return candidates[stratified_sample(doubt[candidates], n, seed)]


def stratified_sample(values: Floats, n: int, seed: int = 0) -> Ints:
    """Sample one item at random from each of n equal parts of the sorted values (stratified sample, Cochran 1977, chapter 5).

    Each item is equally likely to be sampled, so estimates from the sample are unbiased, and the sample covers all values.

    values (Floats): What the items are sorted by, shape (m,). n (int): Size of the sample. seed (int): Of the sample.
    RETURNS (Ints): min(n, m) indices, in random order: the first few of them are a random sample, too.
    """
    rng = np.random.default_rng(seed)
    n = min(n, len(values))
    if not n:
        return np.zeros(0, dtype=np.intp)
    size = len(values) // n
    order = np.lexsort((rng.random(len(values)), values))  # equal values in random order
    # Items that do not fill a part are dropped at random: with parts of unequal size some items would be likelier than others.
    parts = order[np.sort(rng.permutation(len(values))[: n * size])].reshape(n, size)
    return rng.permutation(parts[np.arange(n), rng.integers(size, size=n)])


def sample_entities(documents: ArrayLike, n: int, seed: int = 0) -> Ints:
    """Sample entities with equal probability, from as many documents as possible.

    Randomized systematic sampling (Hartley and Rao 1962): documents and the entities of each in random order, of which every (m
    / n)th is taken from a random start. So a document is sampled with a probability proportional to its entities, with one of
    them; with more than m / n it gives several, as some must if n exceeds the number of documents. Draws with replacement
    would be independent; this sample varies a little less.

    documents (Ints): Document of each entity, shape (m,). n (int): Size of the sample. RETURNS (Ints): min(n, m) indices, in
    random order: the first few of them are a sample, too.
    """
    rng, (_, codes) = np.random.default_rng(seed), np.unique(documents, return_inverse=True)
    n, m = min(n, len(codes)), len(codes)
    order = np.lexsort((rng.random(m), rng.permutation(int(codes.max(initial=-1)) + 1)[codes]))
    picks = (np.arange(n) + rng.random()) * (m / max(1, n))
    return rng.permutation(order[np.minimum(picks.astype(np.intp), m - 1)])
