"""Choose the units of a queue by priority: ties, units left out, repeated texts, documents in turn, and the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....gold.tool_exports import AT_RANDOM, BY_DOUBT
from ....pairs.keyed import Digests
from ....pairs.scored_corpus import ScoredCorpus
from ....types import Floats, Ints
from .orders import token_doubts, unit_doubts
from .units import ReviewUnits, find_labelled, unit_keys, units_of

SHARE_OF_SHORT = 0.1  # the shortest documents, with this share of all words, are not sampled: they show little for their cost


@dataclass(frozen=True)
class QueuePlan:
    """Settings that decide which units are in a queue, and in which order.

    kind (str): One of units.KINDS. order (str): One of orders.ORDERS. seed (int): Of random choices. min_words (int):
    Minimum of words with a letter or a digit. accepted (bool | None): Only entities that reach their cut-off (True), or only
    those below it (False); None for all. repeats (bool): Keep units whose text occurs again. n, per_doc (int | None): Maximum
    number of units, and of units of one document. is_stratified (bool): Sample n documents with `sample_documents`. labelled
    (Digests | None): Of texts that are labelled already. is_sample (bool): Sample n of all entities, or of all accepted ones.
    """

    kind: str
    order: str
    seed: int = 0
    min_words: int = 0
    accepted: bool | None = None
    repeats: bool = False
    n: int | None = None
    per_doc: int | None = None
    is_stratified: bool = False
    labelled: Digests | None = None
    is_sample: bool = False

    @property
    def sampling(self) -> str:
        """How units are chosen: AT_RANDOM from all, or BY_DOUBT, by their scores."""
        is_random = self.order == "random" and self.accepted is None  # `accepted` chooses by cut-offs, which compare scores
        return AT_RANDOM if self.is_stratified or is_random else BY_DOUBT


@dataclass(frozen=True, eq=False)
class Queue:
    """The units chosen for review, in order.

    corpus (ScoredCorpus): The corpus of the units. units (ReviewUnits): All units of the corpus. doubts (Floats): Doubt of each
    token, by `token_doubts`. priorities (Floats): Priority of each unit. order (Ints): Indices of the chosen units, first to
    last. candidates (Ints): Indices of all that may be chosen. left_out (dict): Number of units left out as "accepted",
    "below", "too_short", "excluded", "repeats". sampling (str): How the units were chosen, BY_DOUBT or AT_RANDOM.
    """

    corpus: ScoredCorpus
    units: ReviewUnits
    doubts: Floats
    priorities: Floats
    order: Ints
    candidates: Ints
    left_out: dict[str, int]
    sampling: str = BY_DOUBT


def queue_of(corpus: ScoredCorpus, plan: QueuePlan) -> Queue:
    """Choose the units of a corpus to review and their order, by a plan."""
    units, doubts = units_of(corpus, plan.kind), token_doubts(corpus, plan.order)
    words, keys = units.counts(corpus.lengths), unit_keys(corpus, units)
    if plan.is_stratified:
        priorities = units.sums(doubts) / words.clip(1)  # expected share of wrong labels
    else:
        priorities = unit_doubts(corpus, units, plan.order, plan.seed)
        priorities = 1 - priorities if plan.accepted else priorities  # accepted entities: the most certain first
    no_unit = np.full(len(units), False)
    is_left_out = {
        "accepted": no_unit,
        "below": no_unit,
        "too_short": units.counts(corpus.lengths * corpus.is_word) < plan.min_words,
        "excluded": no_unit if plan.labelled is None else find_labelled(corpus, units, keys, plan.labelled),
    }
    if plan.accepted is not None:  # for entities only: keep the accepted ones (True), or those below their cut-offs (False)
        is_left_out["below" if plan.accepted else "accepted"] = corpus.spans.accept != int(plan.accepted)
    documents = corpus.documents_of(corpus.docs[units.firsts])
    order, candidates, left_out = select_units(plan, priorities, units.raw, documents, words, keys, is_left_out)
    return Queue(corpus, units, doubts, priorities, order, candidates, left_out, plan.sampling)


def select_units(
    plan: QueuePlan,
    priorities: Floats,
    ties: Floats,
    documents: Ints,
    words: Ints,
    keys: Digests,
    is_left_out: dict[str, NDArray[np.bool_]],
) -> tuple[Ints, Ints, dict[str, int]]:
    """Choose units by a plan, from the data of n units; all arrays have shape (n,).

    priorities (Floats): Units with the highest come first. ties (Floats): Raw scores, which order units with equal priorities,
    the smallest first. documents (Ints): Number of the document. words (Ints): Number of words. keys (Digests): From
    `unit_keys`, equal for repeats. is_left_out (dict): Reason -> whether the unit is left out for it; the first reason counts.
    RETURNS (tuple): Indices of the chosen units, first to last; indices of all candidates, in text order; reason -> number of
    units left out for it.
    """
    order = np.lexsort((ties, -priorities))  # equal units stay in text order
    left_out = {}
    for reason, has_reason in is_left_out.items():
        left_out[reason] = int(has_reason[order].sum())
        order = order[~has_reason[order]]
    n_with_repeats = len(order)
    keeps_repeats = plan.repeats or plan.accepted or plan.is_sample  # a list of accepted entities, or a sample, has each
    if not keeps_repeats:
        first_of_repeats = np.unique(keys[order], return_index=True)[1]
        order = order[np.sort(first_of_repeats)]
    left_out["repeats"] = n_with_repeats - len(order)
    candidates = np.sort(order)
    if plan.per_doc is not None:
        order = order[_take_turns(documents[order], plan.per_doc)]
    n = len(order) if plan.n is None else max(0, plan.n)
    if plan.is_sample:
        order = candidates[sample_entities(documents[candidates], n, plan.seed)]
    elif plan.is_stratified:
        order = order[sample_documents(priorities[order], words[order], n, plan.seed)]
    return order[:n], candidates, left_out


def _take_turns(documents: Ints, per_doc: int) -> Ints:
    """Return indices of units: the first of each document, then the second, up to `per_doc`. documents: Of each unit, (n,)."""
    by_doc = np.argsort(documents, kind="stable")
    _, first, sizes = np.unique(documents[by_doc], return_index=True, return_counts=True)
    turn = np.empty(len(documents), dtype=np.intp)  # number of earlier units of the same document
    turn[by_doc] = np.arange(len(documents)) - np.repeat(first, sizes)
    n_taken = int((turn < per_doc).sum())
    return np.argsort(turn, kind="stable")[:n_taken]  # units with the lowest turns come first


def sample_documents(doubt: Floats, words: ArrayLike, n: int, seed: int = 0) -> Ints:
    """Sample documents to label, stratified by doubt, without the shortest ones, which would be most of a small sample.

    doubt (Floats): Expected share of wrong labels of each document, shape (m,). words (Ints): Number of words, shape (m,). n
        (int): Size of the sample. seed (int): Of the sample. RETURNS (Ints): min(n, m) indices, in random order; short
        documents only if there are too few others.
    """
    sizes = np.asarray(words, dtype=np.intp)
    order = np.argsort(sizes, kind="stable")  # the shortest first
    n_short = np.searchsorted(np.cumsum(sizes[order]), SHARE_OF_SHORT * sizes.sum())  # with this share of all words
    candidates = np.flatnonzero(sizes >= sizes[order[n_short]]) if len(sizes) else order
    if len(candidates) < n:  # too few others: all documents
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

    Randomized systematic sampling (Hartley and Rao 1962): documents, and the entities of each, are put in random order; every
    (m / n)th entity is taken, from a random start. So a document's probability is proportional to its number of entities, and
    only documents with more than m / n entities can give several. Draws with replacement would vary a little more.

    documents (Ints): Document of each entity, shape (m,). n (int): Size of the sample. seed (int): Of the sample. RETURNS
    (Ints): min(n, m) indices, in random order: the first few of them are a sample, too.
    """
    rng, document_index = np.random.default_rng(seed), np.unique(documents, return_inverse=True)[1]
    m, n_documents = len(document_index), int(document_index.max(initial=-1)) + 1
    n = min(n, m)
    # Entities sorted by a random number of their document, then by one of their own.
    order = np.lexsort((rng.random(m), rng.permutation(n_documents)[document_index]))
    places = (np.arange(n) + rng.random()) * (m / max(1, n))  # in `order`; the start is random
    return rng.permutation(order[np.minimum(places.astype(np.intp), m - 1)])
