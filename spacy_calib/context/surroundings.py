"""What is looked at around a token: the scores of its tags, and the tokens beside it. Knows arrays, never Docs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from ..calibration.recalibrators.logistic import log_odds
from ..pairs.build import leading
from ..types import Floats, Ints
from .words import Flags, Words

Values = TypeVar("Values", Floats, Ints)

# How many usual tokens are added to each Doc before its means are taken.
_TOKENS_ADDED = 10.0
# The log-odds of an entry that is not there: a rival below the threshold.
NO_ENTRY = float(log_odds(np.array([0.01]))[0])


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of n_tokens tokens. rows (Ints): Token of each, ascending. tags (Ints), scores (Floats): Of each."""

    rows: Ints
    tags: Ints
    scores: Floats
    n_tokens: int

    @cached_property
    def log_odds(self) -> Floats:
        return log_odds(self.scores)

    @cached_property
    def leads(self) -> Flags:
        """Whether each entry is the likeliest of its token."""
        return leading(self.rows, self.scores)


class Surroundings:
    """What features look at; all arrays have a value for each token.

    entries (Entries): Of the tokens. words (Words | None): What stands in them; None where nothing is known but scores.
    """

    def __init__(self, entries: Entries, words: Words | None):
        self.entries, self.words = entries, words

    # Of a token alone

    @cached_property
    def first_tag(self) -> Ints:
        """The likeliest tag; -1 without entries."""
        return self._tags_of(np.flatnonzero(self.entries.leads))

    @cached_property
    def first(self) -> Floats:
        """The log-odds of the likeliest tag."""
        return self._log_odds_of(np.flatnonzero(self.entries.leads))

    @cached_property
    def second_tag(self) -> Ints:
        """The second likeliest tag; -1 where there is none."""
        return self._tags_of(self._seconds)

    @cached_property
    def second(self) -> Floats:
        """The log-odds of the second likeliest tag."""
        return self._log_odds_of(self._seconds)

    @cached_property
    def entropy(self) -> Floats:
        """Entropy in nats, of the scores as they are and of what they leave to all other tags."""
        scores, n = self.entries.scores, self.entries.n_tokens
        own = np.bincount(self.entries.rows, _surprise(scores), n)
        return own + _surprise(np.clip(1.0 - np.bincount(self.entries.rows, scores, n), 0.0, 1.0))

    @cached_property
    def shape(self) -> Ints:
        """What the form looks like: 1 for title case, 2 for a number, 3 for both, else 0."""
        assert self.words is not None
        return self.words.shapes["title"] + 2 * self.words.shapes["number"].astype(np.intp)

    @cached_property
    def _seconds(self) -> Ints:
        """The second likeliest entry of each token that has one."""
        others = np.flatnonzero(~self.entries.leads)
        return others[leading(self.entries.rows[others], self.entries.scores[others])]

    # Of its neighbours

    def neighbour(self, values: Values, step: int, default: float) -> Values:
        """The value of the token `step` places on in the same Doc; the default where there is none with a score."""
        found = np.full(len(values), default, dtype=values.dtype)
        here, there = self._beside(step)
        found[here] = values[there]
        return found

    def document_mean(self, values: Floats, usual: float) -> Floats:
        """The mean over the Doc's tokens and ten of a usual value, so that short Docs do not swing."""
        assert self.words is not None
        docs, n = self.words.docs, len(self.words.starts) - 1
        sums = np.bincount(docs, values * self.scored, n) + _TOKENS_ADDED * usual
        return (sums / (np.bincount(docs, self.scored, n) + _TOKENS_ADDED))[docs]

    def neighbouring_tags(self, none: int) -> tuple[Ints, Ints]:
        """(likeliest tag of the token before each, of the one behind). none (int): For no token and higher tags."""
        tags = np.where((self.first_tag < 0) | (self.first_tag > none), none, self.first_tag)
        return self.neighbour(tags, -1, none), self.neighbour(tags, 1, none)

    def _beside(self, step: int) -> tuple[Ints, Ints]:
        """(tokens with such a neighbour, the neighbours), of tokens of one Doc that are scored."""
        assert self.words is not None
        n, docs = len(self.words), self.words.docs
        here = np.arange(-step, n) if step < 0 else np.arange(n - step)
        there = here + step
        same = (docs[here] == docs[there]) & self.scored[there]
        return here[same], there[same]

    @cached_property
    def scored(self) -> Flags:
        """Whether each token has entries and is more than white space."""
        has_entries = self.first_tag >= 0
        return has_entries if self.words is None else has_entries & self.words.counts

    def _tags_of(self, places: Ints) -> Ints:
        found = np.full(self.entries.n_tokens, -1, dtype=np.intp)
        found[self.entries.rows[places]] = self.entries.tags[places]
        return found

    def _log_odds_of(self, places: Ints) -> Floats:
        found = np.full(self.entries.n_tokens, NO_ENTRY)
        found[self.entries.rows[places]] = self.entries.log_odds[places]
        return found


def _surprise(scores: Floats) -> Floats:
    """-p log p, 0 for p = 0."""
    return -scores * np.log(np.maximum(scores, 1e-300))
