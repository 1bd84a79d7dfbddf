"""The order of review -> the queue: what is too short for a person to judge, or was in the queue already, is left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import Ints
from ..scored import ScoredCorpus
from .units import Units


def below_cutoff(corpus: ScoredCorpus) -> NDArray[np.bool_]:
    """Whether each entity has a cut-off that it does not reach."""
    return corpus.spans.accept == 0


def long_enough(corpus: ScoredCorpus, units: Units, order: Ints, min_words: int) -> Ints:
    """The units of at least that many words (tokens with a letter or a digit).

    order (Ints): Units, first to last.
    """
    before = np.concatenate([[0], np.cumsum(corpus.lengths * corpus.is_word)])
    return order[(before[units.lasts] - before[units.firsts])[order] >= min_words]


def without_repeats(corpus: ScoredCorpus, units: Units, order: Ints) -> Ints:
    """The first unit of those that stand at the same place in sentences of the same tokens.

    order (Ints): Units, first to last.
    """
    sentence = corpus.sentences[units.firsts]
    starts = corpus.sentence_starts[sentence]
    place = np.stack([_texts(corpus)[sentence], units.firsts - starts, units.lasts - starts], axis=1)
    return order[np.sort(np.unique(place[order], axis=0, return_index=True)[1])]


def _texts(corpus: ScoredCorpus) -> Ints:
    """A number for each sentence, the same for those of the same tokens."""
    numbers: dict[tuple[str, ...], int] = {}
    words, bounds = corpus.words.tolist(), corpus.sentence_starts.tolist()
    return np.array(
        [numbers.setdefault(tuple(words[a:b]), len(numbers)) for a, b in zip(bounds, bounds[1:], strict=False)], dtype=np.intp
    )
