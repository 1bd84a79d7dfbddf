"""What comes first: the doubt of a token's label by several signals, and what makes of them the priority of a unit.

Sources: Mejer & Crammer 2010, sections 5 (relative confidence) and 6 (priorities); the "rare instance discovery" of Kranzlein et al. 2021, section 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ....pairs.keyed import STEP, splitmix64
from ....pairs.scored_corpus import ScoredCorpus
from ....types import Floats, Groups, Ints
from ..messages import calib_error
from .units import Units

DOUBTS = ("calibrated", "raw", "margin", "raw_margin", "entropy", "raw_entropy")


class Order(NamedTuple):
    """value (str): What each token is worth: one of DOUBTS, "spread": p (1 - p), or "rare-tag": P(it has one of the tags that are hunted). over (str): What makes the
    priority of a unit of it: "whole" (1 - P(nothing in it is wrong)), "greatest", "sum", "mean", "any" (P(at least one token)), "random".
    """

    value: str
    over: str

    @property
    def adds_up(self) -> bool:
        """Whether a budget in words is best spent where a word brings most of it."""
        return self.over in ("sum", "any")


# To check what is predicted.
REVIEW = {
    "calibrated": Order("calibrated", "whole"),
    "raw": Order("raw", "whole"),
    **{name: Order(name, "greatest") for name in ("margin", "raw_margin", "entropy", "raw_entropy")},
    "random": Order("calibrated", "random"),
}
# To label and train on; margin and entropy are means, as the paper divides by the length.
LABEL = {
    "least-confident": Order("calibrated", "greatest"),
    "expected-errors": Order("calibrated", "sum"),
    "margin": Order("margin", "mean"),
    "entropy": Order("entropy", "mean"),
    "rare-tag": Order("rare-tag", "any"),
    "random": Order("calibrated", "random"),
}


def token_values(corpus: ScoredCorpus, order: Order, tags: Collection[str] = ()) -> Floats:
    """What each token is worth, NaN for tokens that are not counted; shape (n tokens,). tags (Collection[str]): Those that are hunted."""
    return tag_probability(corpus, tags) if order.value == "rare-tag" else doubts(corpus, order.value)


def priorities(corpus: ScoredCorpus, units: Units, order: Order, values: Floats, seed: int = 0) -> Floats:
    """Each unit's priority, higher first; -inf without a score of a hunted tag. values: See `token_values`."""
    if order.over == "whole":
        return 1 - (units.raw if order.value == "raw" else units.calibrated)
    if order.over == "random":
        return random_order(corpus, units.firsts, seed)
    if order.over == "greatest":
        return units.maxima(values)
    if order.over == "any":
        found = any_probability(units, values, entity_events(corpus))
        return np.where(found <= 0, -np.inf, found)
    return units.sums(values) / (np.maximum(1, units.counts(corpus.is_counted)) if order.over == "mean" else 1)


def unit_doubts(corpus: ScoredCorpus, units: Units, by: str = "calibrated", seed: int = 0) -> Floats:
    """How doubtful each unit is. by (str): One of REVIEW. RAISES C001: no such order."""
    if by not in REVIEW:
        raise calib_error("C001", name="by", wanted=f"one of {', '.join(REVIEW)}", given=repr(by))
    return priorities(corpus, units, REVIEW[by], token_values(corpus, REVIEW[by]), seed)


def doubts(corpus: ScoredCorpus, by: str = "calibrated") -> Floats:
    """How doubtful the label of each token is.

    by (str): "calibrated" or "raw" (1 minus the label's probability), "margin" or "raw_margin" (the best other tag's probability minus the
        label's), "entropy" or "raw_entropy" (of the token's scores, in nats).
    RETURNS (Floats): Higher is more doubtful, shape (n,); NaN for tokens that are not counted.
    RAISES C001: no signal has this name.
    """
    if by not in DOUBTS:
        raise calib_error("C001", name="by", wanted=f"one of {', '.join(DOUBTS)}", given=repr(by))
    raw = by.startswith("raw")
    label_scores, tag_scores = (corpus.raw, corpus.tag_raw) if raw else (corpus.calibrated, corpus.tag_calibrated)
    if by.endswith("margin"):
        other = corpus.tags != corpus.labels[corpus.rows]
        best = np.zeros(len(corpus))  # where no other tag reaches the threshold
        np.maximum.at(best, corpus.rows[other], tag_scores[other])
        found = best - label_scores
    elif by.endswith("entropy"):
        found = entropies(corpus, tag_scores)
    else:
        found = 1 - label_scores
    return np.where(corpus.is_counted, found, np.nan)


def entropies(corpus: ScoredCorpus, tag_scores: Floats) -> Floats:
    """The entropy of each token's scores in nats, shape (n,). What they leave of 1 counts as one more outcome; where they sum to more
    than 1, which scores calibrated one by one may do, they are divided by their sum.
    """
    total = np.bincount(corpus.rows, tag_scores, minlength=len(corpus))
    scale = np.maximum(1.0, total)
    summed = np.bincount(corpus.rows, _surprise(tag_scores / scale[corpus.rows]), minlength=len(corpus))
    return summed + _surprise(np.maximum(0.0, 1 - total / scale))


def _surprise(scores: Floats) -> Floats:
    """-p log p, 0 at 0."""
    return -scores * np.log(np.where(scores > 0, scores, 1.0))


def random_order(corpus: ScoredCorpus, firsts: Ints, seed: int) -> Floats:
    """A number in [0, 1) per unit, from seed, Doc and place, whatever else is there. firsts: The first token of each."""
    if corpus.numbers is None:
        return np.random.default_rng(seed).permutation(len(firsts)) / max(1, len(firsts))
    docs = corpus.docs[firsts]
    found = splitmix64(np.full(len(firsts), seed % 2**64, dtype=np.uint64) + STEP)
    for key in (corpus.numbers_of_docs[docs], firsts - corpus.doc_starts[docs]):
        found = splitmix64(found + key.astype(np.uint64) + STEP)
    return (found >> np.uint64(11)) / 2.0**53


# Rare tags


def rare_tags(labels: Sequence[str], groups: Groups, share: float) -> list[str]:
    """The least frequent tags, as many as together hold at most a share of the gold tokens at the fit; tags never seen are among them.

    labels (Sequence[str]): As columns. groups (Groups): Of the fitted maps, with the gold frequencies. Labels that stand alone in a
        group in front ("O" beside entity types) are none of the tags. share (float): In (0, 1).
    RETURNS (list[str]): Rarest first, equal ones by name. Empty where even the rarest tag holds more, and where no frequency is known.
    """
    tags = [i for i in range(min(len(labels), len(groups.of_tag))) if not 0 <= groups.of_tag[i] < groups.n_singletons]
    tags.sort(key=lambda i: (groups.counts[i], labels[i]))
    frequency = groups.counts[tags]
    n_rare = int((np.cumsum(frequency) <= share * frequency.sum()).sum()) if frequency.sum() else 0
    return [labels[i] for i in tags[:n_rare]]


def tag_probability(corpus: ScoredCorpus, tags: Collection[str]) -> Floats:
    """P(the token has one of these tags): the sum of their scores, at most 1; shape (n tokens,), NaN for tokens that are not counted."""
    wanted = np.array([name in tags for name in corpus.names], dtype=bool)
    own = wanted[corpus.tags]
    found = np.bincount(corpus.rows[own], corpus.tag_calibrated[own], minlength=len(corpus))
    return np.where(corpus.is_counted, np.minimum(found, 1.0), np.nan)


def any_probability(units: Units, probability: Floats, events: Ints) -> Floats:
    """P(at least one token of a unit has it), taking the events of a unit as independent.

    probability (Floats): Of each token; NaN counts as 0. events (Ints): Number of each token's event, shape (n tokens,): tokens with one
        number (those of one predicted entity) stand or fall together, and count once, with their highest probability.
    RETURNS (Floats): Shape (n,).
    """
    best = np.zeros(int(events.max(initial=-1)) + 1)
    np.maximum.at(best, events, np.nan_to_num(probability))
    _, once = np.unique(events, return_index=True)
    misses = np.zeros(len(probability))
    with np.errstate(divide="ignore", over="ignore"):
        misses[once] = np.log1p(-best[events[once]])
        return -np.expm1(units.sums(misses))


def entity_events(corpus: ScoredCorpus) -> Ints:
    """One event for each predicted entity, and one for each token outside of them; shape (n tokens,)."""
    events = np.arange(len(corpus))
    spans = corpus.spans
    offsets = corpus.doc_starts[spans.docs]
    for start, end in zip((offsets + spans.starts).tolist(), (offsets + spans.ends).tolist(), strict=True):
        events[start:end] = start
    return events
