"""Orders of a queue: how doubtful each token's label is, by several signals, and the priority of a unit made of these.

Sources: Mejer & Crammer 2010, sections 5 (relative confidence) and 6 (priorities); the "rare instance discovery" of Kranzlein
et al. 2021, section 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ....pairs.keyed import STEP, splitmix64
from ....pairs.scored_corpus import ScoredCorpus
from ....types import Floats, Groups, Ints
from ..messages import calib_error
from .units import ReviewUnits

DOUBTS = ("calibrated", "raw", "margin", "raw_margin", "entropy", "raw_entropy")


class Order(NamedTuple):
    """How units are ordered.

    value (str): Value of each token: one of DOUBTS, or "rare-tag" for P(it has one of the rare tags). aggregation (str): How
    these make the priority of a unit: "whole" (1 - P(all labels right)), "max", "sum", "mean", "any" (P(at least one token)) or
    "random".
    """

    value: str
    aggregation: str

    @property
    def adds_up(self) -> bool:
        """Whether the priority grows with the length, so that a budget in words needs it per word."""
        return self.aggregation in ("sum", "any")


# Orders to review predictions in.
REVIEW = {
    "calibrated": Order("calibrated", "whole"),
    "raw": Order("raw", "whole"),
    **{name: Order(name, "max") for name in ("margin", "raw_margin", "entropy", "raw_entropy")},
    "random": Order("calibrated", "random"),
}
# Orders to label texts in, to train on; margin and entropy are means, as the paper divides by the length.
LABEL = {
    "least-confident": Order("calibrated", "max"),
    "expected-errors": Order("calibrated", "sum"),
    "margin": Order("margin", "mean"),
    "entropy": Order("entropy", "mean"),
    "rare-tag": Order("rare-tag", "any"),
    "random": Order("calibrated", "random"),
}


def token_values(corpus: ScoredCorpus, order: Order, tags: Collection[str] = ()) -> Floats:
    """Return the value of each token, (n_tokens,), NaN for tokens without a score. tags (Collection[str]): The rare tags."""
    return tag_probability(corpus, tags) if order.value == "rare-tag" else doubts(corpus, order.value)


def priorities(corpus: ScoredCorpus, units: ReviewUnits, order: Order, values: Floats, seed: int = 0) -> Floats:
    """Return the priority of each unit, shape (n_units,); -inf for a unit in which no rare tag has a score.

    values (Floats): Value of each token, from `token_values`, shape (n_tokens,). seed (int): For the random order.
    """
    if order.aggregation == "whole":
        return 1 - (units.raw if order.value == "raw" else units.calibrated)
    if order.aggregation == "random":
        return random_order(corpus, units.firsts, seed)
    if order.aggregation == "max":
        return units.maxima(values)
    if order.aggregation == "any":
        probability = any_probability(units, values, entity_events(corpus))
        return np.where(probability <= 0, -np.inf, probability)
    return units.sums(values) / (np.maximum(1, units.counts(corpus.is_counted)) if order.aggregation == "mean" else 1)


def unit_doubts(corpus: ScoredCorpus, units: ReviewUnits, order: str = "calibrated", seed: int = 0) -> Floats:
    """Return how doubtful each unit is, shape (n_units,). order (str): A name of REVIEW. RAISES C001: no such order."""
    if order not in REVIEW:
        raise calib_error("C001", name="order", wanted=f"one of {', '.join(REVIEW)}", given=repr(order))
    return priorities(corpus, units, REVIEW[order], token_values(corpus, REVIEW[order]), seed)


def doubts(corpus: ScoredCorpus, signal: str = "calibrated") -> Floats:
    """Return how doubtful the label of each token is.

    signal (str): "calibrated" or "raw" (1 minus the label's probability), "margin" or "raw_margin" (the probability of the best
        other tag minus that of the label), "entropy" or "raw_entropy" (of the token's scores, in nats).
    RETURNS (Floats): Higher is more doubtful, shape (n_tokens,); NaN for tokens without a score.
    RAISES C001: no signal has this name.
    """
    if signal not in DOUBTS:
        raise calib_error("C001", name="signal", wanted=f"one of {', '.join(DOUBTS)}", given=repr(signal))
    raw = signal.startswith("raw")
    label_scores, tag_scores = (corpus.raw, corpus.tag_raw) if raw else (corpus.calibrated, corpus.tag_calibrated)
    if signal.endswith("margin"):
        is_rival = corpus.tags != corpus.labels[corpus.rows]
        best = np.zeros(len(corpus))  # 0 if no other tag reaches the threshold
        np.maximum.at(best, corpus.rows[is_rival], tag_scores[is_rival])
        values = best - label_scores
    elif signal.endswith("entropy"):
        values = entropies(corpus, tag_scores)
    else:
        values = 1 - label_scores
    return np.where(corpus.is_counted, values, np.nan)


def entropies(corpus: ScoredCorpus, tag_scores: Floats) -> Floats:
    """Return the entropy of each token's scores in nats, shape (n_tokens,); what is missing to 1 is one more outcome.

    tag_scores (Floats): Score of each tag entry of the corpus, shape (n_entries,).
    """
    total = np.bincount(corpus.rows, tag_scores, minlength=len(corpus))
    scale = np.maximum(1.0, total)
    entropy = np.bincount(corpus.rows, _entropy_terms(tag_scores / scale[corpus.rows]), minlength=len(corpus))
    return entropy + _entropy_terms(np.maximum(0.0, 1 - total / scale))


def _entropy_terms(scores: Floats) -> Floats:
    """Return -p log p, which is 0 at 0."""
    return -scores * np.log(np.where(scores > 0, scores, 1.0))


def random_order(corpus: ScoredCorpus, firsts: Ints, seed: int) -> Floats:
    """Return a random number in [0, 1) per unit, (n_units,), decided only by the seed, the Doc's number and the first token.

    firsts (Ints): First token of each unit, shape (n_units,).
    """
    if corpus.numbers is None:
        return np.random.default_rng(seed).permutation(len(firsts)) / max(1, len(firsts))
    docs = corpus.docs[firsts]
    numbers = splitmix64(np.full(len(firsts), seed % 2**64, dtype=np.uint64) + STEP)
    for key in (corpus.numbers_of_docs[docs], firsts - corpus.doc_starts[docs]):
        numbers = splitmix64(numbers + key.astype(np.uint64) + STEP)
    return (numbers >> np.uint64(11)) / 2.0**53


# Rare tags


def rare_tags(labels: Sequence[str], groups: Groups, share: float) -> list[str]:
    """Return the least frequent tags that together have at most a share of the fit's gold tokens, with tags that never occur.

    labels (Sequence[str]): All labels, as columns. groups (Groups): Of the fitted maps, with the gold frequencies; a label with
        a group of its own, such as "O", is no tag. share (float): In (0, 1).
    RETURNS (list[str]): Rarest first, ties by name; [] if even the rarest tag has a larger share, or no frequency is known.
    """
    tags = [i for i in range(min(len(labels), len(groups.of_tag))) if not 0 <= groups.of_tag[i] < groups.n_singletons]
    tags.sort(key=lambda i: (groups.counts[i], labels[i]))
    frequency = groups.counts[tags]
    n_rare = int((np.cumsum(frequency) <= share * frequency.sum()).sum()) if frequency.sum() else 0
    return [labels[i] for i in tags[:n_rare]]


def tag_probability(corpus: ScoredCorpus, tags: Collection[str]) -> Floats:
    """Return P(one of these tags) of each token, (n_tokens,): the sum of their scores, at most 1; NaN without scores."""
    in_tags = np.array([name in tags for name in corpus.names], dtype=bool)
    mask = in_tags[corpus.tags]
    sums = np.bincount(corpus.rows[mask], corpus.tag_calibrated[mask], minlength=len(corpus))
    return np.where(corpus.is_counted, np.minimum(sums, 1.0), np.nan)


def any_probability(units: ReviewUnits, probability: Floats, events: Ints) -> Floats:
    """Return the probability that at least one token of each unit has a tag, (n,), as if events were independent.

    probability (Floats): Of each token, (n_tokens,); NaN counts as 0. events (Ints): Number of each token's event, (n_tokens,):
        the tokens of one predicted entity share an event, which counts once, with the highest probability of its tokens.
    """
    best = np.zeros(int(events.max(initial=-1)) + 1)
    np.maximum.at(best, events, np.nan_to_num(probability))
    _, first_tokens = np.unique(events, return_index=True)
    misses = np.zeros(len(probability))
    with np.errstate(divide="ignore", over="ignore"):
        misses[first_tokens] = np.log1p(-best[events[first_tokens]])
        return -np.expm1(units.sums(misses))


def entity_events(corpus: ScoredCorpus) -> Ints:
    """Return the event of each token, (n_tokens,): one event per predicted entity, and one per token outside of entities."""
    events = np.arange(len(corpus))
    spans = corpus.spans
    offsets = corpus.doc_starts[spans.docs]
    for start, end in zip((offsets + spans.starts).tolist(), (offsets + spans.ends).tolist(), strict=True):
        events[start:end] = start
    return events
