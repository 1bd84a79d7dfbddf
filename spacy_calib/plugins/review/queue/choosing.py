"""Priorities -> the queue: order, ties, what is left out, one text once, diversity by document, and the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....gold.tool_exports import AT_RANDOM, BY_DOUBT
from ....pairs.keyed import Digests
from ....pairs.scored_corpus import ScoredCorpus
from ....types import Floats, Ints
from ..corpus_parts import Kept, numbered
from ..stored import Stored
from .orders import Order, priorities, token_values
from .units import Units, labelled_keys, unit_keys, units_of

# Whether a unit may be in the queue, or why not.
IN, ACCEPTED, SHORT = 0, 1, 2
# The shortest documents that together hold less than this share of the words tell next to nothing, and cost a label each.
SHARE_OF_SHORT = 0.1
NONE: Digests = np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True)
class Plan:
    """What is wanted in a queue.

    kind (str): One of units.KINDS. order (Order). tags (Sequence[str]): Those that are hunted. seed (int): Of what is random. per_word (bool):
    Whether priorities are divided by the words. raw_first (bool): Of units of equal priority the one of higher doubt before calibration comes first; else the
    shorter one (Mejer & Crammer 2010, section 6). min_words (int): With a letter or a digit. below_only (bool): Entities below their cut-off alone.
    repeats (bool): Whether one text may be there several times. n, max_words, per_doc (int | None): At most that many units, words, units of one document.
    spread (bool): n that stand for all, see `stand_for_all`. labelled (Digests | None): Keys of texts that are labelled already.
    """

    kind: str
    order: Order
    tags: Sequence[str] = ()
    seed: int = 0
    per_word: bool = False
    raw_first: bool = False
    min_words: int = 0
    below_only: bool = False
    repeats: bool = False
    n: int | None = None
    max_words: int | None = None
    per_doc: int | None = None
    spread: bool = False
    labelled: Digests | None = None

    @property
    def drawn(self) -> str:
        """How its units are drawn: at random from all, or by doubt, as those below a cut-off are."""
        return AT_RANDOM if self.spread or (self.order.over == "random" and not self.below_only) else BY_DOUBT

    @property
    def compares_all(self) -> bool:
        """Whether something has to be known of every unit; else the best ones so far do."""
        return self.spread or self.labelled is not None or self.max_words is not None or self.per_doc is not None


@dataclass(frozen=True, eq=False)
class Pool:
    """n units, as far as they are compared.

    documents (Ints): Number of each one's document; of several corpora each Doc is one. words (NDArray[int32]): How many it has. scores (Floats): Its priority. ties (NDArray): Of equal
    ones the smaller comes first. keys (Digests): See `unit_keys`. left_out (NDArray[int8]): IN, or why it is not.
    """

    documents: Ints
    words: NDArray[np.int32]
    scores: Floats
    ties: NDArray[Any]
    keys: Digests
    left_out: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def of(cls, corpus: ScoredCorpus, units: Units, values: Floats, plan: Plan) -> Pool:
        """Those of one corpus. values (Floats): See `token_values`."""
        docs, words = corpus.docs[units.firsts], units.counts(corpus.lengths).astype(np.int32)
        scores = priorities(corpus, units, plan.order, values, plan.seed) / (words.clip(1) if plan.per_word else 1)
        long = (units.counts(corpus.lengths * corpus.is_word) >= plan.min_words) & (
            (plan.order.over != "any") | (scores > -np.inf)
        )
        accepted = corpus.spans.accept != 0 if plan.below_only else np.zeros(len(units), dtype=bool)
        return cls(
            corpus.documents_of(docs) if corpus.numbers is None else corpus.numbers[docs],
            words,
            scores,
            units.raw if plan.raw_first else words,
            unit_keys(corpus, units),
            np.select([accepted, ~long], [ACCEPTED, SHORT], IN).astype(np.int8),
        )

    @classmethod
    def joined(cls, parts: Sequence[Pool]) -> Pool:
        """Those of several corpora, in their order."""
        columns: dict[str, Any] = {one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)}
        return cls(**columns)

    def ordered(self) -> Ints:
        """All units, those of the highest priority first; equal ones by `ties`, then in the order of the text."""
        return np.lexsort((self.ties, -self.scores))


@dataclass(frozen=True, eq=False)
class Queue:
    """corpus (ScoredCorpus): With the units of the queue, and perhaps others. units (Units): Its own. values (Floats): See `token_values`. scores
    (Floats): Priority of each unit. order (Ints): The units of the queue, first to last. left_out (dict): How many of all units are not in it, "accepted",
    "too_short" and "repeats"; "labelled" of those with such a text. possible (bool): Whether there is one but for the budget. n_blocks (int): How many corpora
    there were. drawn (str): See Plan.
    """

    corpus: ScoredCorpus
    units: Units
    values: Floats
    scores: Floats
    order: Ints
    left_out: dict[str, int]
    possible: bool
    n_blocks: int
    drawn: str = BY_DOUBT


class Chosen(NamedTuple):
    """order (Ints): The units that are wanted, first to last. left_out (dict): See Queue. possible (bool): Whether there is one but for the budget."""

    order: Ints
    left_out: dict[str, int]
    possible: bool


def choose(pool: Pool, plan: Plan, labelled: ArrayLike = ()) -> Chosen:
    """The units that are wanted of those in the pool. labelled (Digests): See `labelled_keys`."""
    order = pool.ordered()
    order = order[pool.left_out[order] == IN]
    kept = order if plan.repeats else _new_texts(order, pool.keys, labelled)
    left_out = {
        "accepted": int((pool.left_out == ACCEPTED).sum()),
        "too_short": int((pool.left_out == SHORT).sum()),
        "repeats": len(order) - len(kept),
        "labelled": int(np.isin(pool.keys, labelled).sum()) if np.size(labelled) else 0,
    }
    if plan.per_doc is not None:
        docs = pool.documents[kept]
        by_doc = np.argsort(docs, kind="stable")
        _, first, sizes = np.unique(docs[by_doc], return_index=True, return_counts=True)
        turn = np.empty(len(kept), dtype=np.intp)
        turn[by_doc] = np.arange(len(kept)) - np.repeat(first, sizes)
        kept = kept[np.argsort(turn, kind="stable")[: int((turn < plan.per_doc).sum())]]
    if plan.spread:
        chosen = kept[stand_for_all(pool.scores[kept], pool.words[kept], plan.n or 0, plan.seed)]
    else:
        chosen = _within(kept, pool.words[kept], plan.n, plan.max_words)
    return Chosen(chosen, left_out, len(kept) > 0)


def queue_of(corpora: Iterable[ScoredCorpus], plan: Plan, count: Callable[[ScoredCorpus], None]) -> Queue:
    """The queue of one pipe's successive corpora. count: Is given each of several. RAISES C468: no temporary file."""
    every = numbered(corpora)
    return _compared(every, plan, count) if plan.compares_all else _best_so_far(every, plan, count)


def _best_so_far(corpora: Iterable[ScoredCorpus], plan: Plan, count: Callable[[ScoredCorpus], None]) -> Queue:
    """Of many corpora the Docs of the best units so far are held."""

    def wanted(corpus: ScoredCorpus) -> Ints:
        queue = _of_one(corpus, plan)
        return np.unique(corpus.docs[queue.units.firsts[queue.order]])

    kept = Kept(wanted, count)
    for corpus in corpora:
        kept.add(corpus)
    return _of_one(kept.corpus, plan, kept.n_blocks)


def _of_one(corpus: ScoredCorpus, plan: Plan, n_blocks: int = 1) -> Queue:
    units, values = units_of(corpus, plan.kind), token_values(corpus, plan.order, plan.tags)
    pool = Pool.of(corpus, units, values, plan)
    labelled = NONE if plan.labelled is None else labelled_keys(corpus, units, pool.keys, plan.labelled)
    chosen = choose(pool, plan, labelled)
    return Queue(corpus, units, values, pool.scores, *chosen, n_blocks, plan.drawn)


def _compared(corpora: Iterable[ScoredCorpus], plan: Plan, count: Callable[[ScoredCorpus], None]) -> Queue:
    """Of each unit a few numbers are held, and the Docs wait in a temporary file."""
    stored, parts = Stored(), []
    labelled = given = NONE if plan.labelled is None else plan.labelled
    for corpus in corpora:
        if corpus.numbers is None:
            return _of_one(corpus, plan)
        units = units_of(corpus, plan.kind)
        pool = Pool.of(corpus, units, token_values(corpus, plan.order, plan.tags), plan)
        stored.add(corpus)
        count(corpus)
        parts.append(pool)
        labelled = np.union1d(labelled, labelled_keys(corpus, units, pool.keys, given))
    every = Pool.joined(parts)
    chosen = choose(every, plan, labelled)
    docs = every.documents[chosen.order]
    corpus = stored.some(np.unique(docs)) if len(docs) else corpus
    units, values = units_of(corpus, plan.kind), token_values(corpus, plan.order, plan.tags)
    inside = chosen.order - np.searchsorted(every.documents, docs)
    own = np.searchsorted(corpus.numbers_of_docs[corpus.docs[units.firsts]], docs) + inside
    scores = np.zeros(len(units))
    scores[own] = every.scores[chosen.order]
    return Queue(corpus, units, values, scores, own, *chosen[1:], len(parts), plan.drawn)


def _new_texts(order: Ints, keys: Digests, labelled: ArrayLike) -> Ints:
    """The places whose text is neither labelled nor that of an earlier place."""
    order = order[~np.isin(keys[order], np.asarray(labelled, dtype=np.uint64))]
    return order[np.sort(np.unique(keys[order], return_index=True)[1])]


def _within(order: Ints, words: ArrayLike, n: int | None, max_words: int | None) -> Ints:
    """The first ones; a unit that fits no more into the words is passed over. words: Of each one in the order."""
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


# Documents that stand for all


def stand_for_all(doubt: Floats, words: ArrayLike, n: int, seed: int = 0) -> Ints:
    """The documents to label: spread over their doubt, without the shortest ones, which would be most of a few where texts differ in length.

    On the texts of scripts/study_select_adapt.py five of them make an interval a quarter narrower than five of all documents do, and
    the most doubtful ones make it more than twice as wide.

    doubt (Floats): Expected share of wrong labels of each document, shape (m,). words (Ints): In each. n, seed: See `spread`.
    RETURNS (Ints): min(n, m) places, in random order. Short ones are among them only where there are no others.
    """
    sizes = np.asarray(words, dtype=np.intp)
    order = np.argsort(sizes, kind="stable")
    rank = np.searchsorted(np.cumsum(sizes[order]), SHARE_OF_SHORT * sizes.sum())
    kept = np.flatnonzero(sizes >= sizes[order[rank]]) if len(sizes) else order
    if len(kept) < n:
        kept = np.arange(len(sizes))
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
