"""Hunting rare tags: the probability that a text holds one (the "rare instance discovery" of Kranzlein et al. 2021, section 1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...types import Floats, Groups, Ints
from .pieces import Pieces

if TYPE_CHECKING:
    from ..scored import ScoredCorpus


def rare_tags(labels: Sequence[str], groups: Groups, share: float) -> list[str]:
    """The least frequent tags, as many as together hold at most a share of the gold tokens at the fit; tags never seen are among them.

    labels (Sequence[str]): As columns. groups (Groups): Of the fitted maps, with the gold frequencies. Labels that stand alone in a
        group in front ("O" beside entity types) are none of the tags. share (float): In (0, 1).
    RETURNS (list[str]): Rarest first, equal ones by name. Empty where even the rarest tag holds more, and where no frequency is known.
    """
    tags = [i for i in range(min(len(labels), len(groups.of_tag))) if not 0 <= groups.of_tag[i] < groups.alone]
    tags.sort(key=lambda i: (groups.counts[i], labels[i]))
    frequency = groups.counts[tags]
    n_rare = int((np.cumsum(frequency) <= share * frequency.sum()).sum()) if frequency.sum() else 0
    return [labels[i] for i in tags[:n_rare]]


def tag_probability(corpus: ScoredCorpus, tags: Collection[str], raw: bool = False) -> Floats:
    """P(the token has one of these tags): the sum of their scores, at most 1.

    raw (bool): Before calibration. RETURNS (Floats): Shape (n tokens,), NaN for tokens that are not counted.
    """
    wanted = np.array([name in tags for name in corpus.names], dtype=bool)
    own = wanted[corpus.tags]
    scores = corpus.tag_raw if raw else corpus.tag_calibrated
    found = np.bincount(corpus.rows[own], scores[own], minlength=len(corpus))
    return np.where(corpus.counted, np.minimum(found, 1.0), np.nan)


def any_probability(pieces: Pieces, probability: Floats, events: Ints) -> Floats:
    """P(at least one token of a piece has it), taking the events of a piece as independent.

    probability (Floats): Of each token; NaN counts as 0. events (Ints): Number of each token's event, shape (n tokens,): tokens with one
        number (those of one predicted entity) stand or fall together, and count once, with their highest probability.
    RETURNS (Floats): Shape (n pieces,).
    """
    best = np.zeros(int(events.max(initial=-1)) + 1)
    np.maximum.at(best, events, np.nan_to_num(probability))
    _, once = np.unique(events, return_index=True)
    misses = np.zeros(len(probability))
    with np.errstate(divide="ignore"):
        misses[once] = np.log1p(-best[events[once]])
    return -np.expm1(np.add.reduceat(misses, pieces.first)) if len(pieces) else np.zeros(0)


def entity_events(corpus: ScoredCorpus) -> Ints:
    """One event for each predicted entity, and one for each token outside of them; shape (n tokens,)."""
    events = np.arange(len(corpus))
    spans = corpus.spans
    offsets = corpus.doc_starts[spans.docs]
    for start, end in zip((offsets + spans.starts).tolist(), (offsets + spans.ends).tolist(), strict=True):
        events[start:end] = start
    return events
