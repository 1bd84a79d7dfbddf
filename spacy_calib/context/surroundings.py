"""What the features of a token look at: the scores of its tags, of its neighbours and of its Doc, and how often its form was met. Knows arrays,
never Docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..calibration.recalibrators.logistic import log_odds
from ..pairs.build import leading
from ..types import Floats, Ints
from .familiarity import Met
from .words import Flags, Words

# Scores are clipped to this distance from 0 and 1 before their log-odds are taken: those of a binning map may be 0 or 1.
CLIP = 1e-4
# What averages are taken of: attributes of Surroundings.
AVERAGED = ("leading", "confidence", "entropy", "unfamiliar")
# An entry that is not there: a rival below the threshold.
_NO_ENTRY = float(log_odds(np.array([CLIP]), CLIP)[0])


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of some tokens. rows (Ints): Token of each, ascending. scores (Floats): Calibrated by the maps."""

    rows: Ints
    scores: Floats

    @cached_property
    def log_odds(self) -> Floats:
        return log_odds(self.scores, CLIP)

    @cached_property
    def leads(self) -> Flags:
        """Whether each is the likeliest entry of its token."""
        return leading(self.rows, self.scores)


class Surroundings:
    """What features look at; all arrays have a value for each token.

    words (Words), entries (Entries), met (Met): Of the tokens.
    averages (Mapping[str, float]): Means over the tokens of the fit, by what they are of: towards these the means of a Doc are shrunk, and
        they stand for a neighbour that is not there. None takes those of these tokens.
    shrinkage (float): As many tokens of an average Doc are added to each Doc before its means are taken.
    """

    def __init__(
        self, words: Words, entries: Entries, met: Met, averages: Mapping[str, float] | None = None, shrinkage: float = 10.0
    ):
        self.words, self.entries, self.met = words, entries, met
        self.shrinkage = shrinkage
        self.averages = self._averages() if averages is None else averages

    # Of a token alone

    @cached_property
    def confidence(self) -> Floats:
        """The score of the likeliest tag; 0 without entries."""
        return self._of_leads(self.entries.scores, 0.0)

    @cached_property
    def leading(self) -> Floats:
        """The log-odds of the likeliest tag."""
        return self._of_leads(self.entries.log_odds, _NO_ENTRY)

    @cached_property
    def rival(self) -> Floats:
        """The log-odds of the second likeliest tag."""
        others = np.flatnonzero(~self.entries.leads)
        found = np.full(len(self.words), _NO_ENTRY)
        rows, values = self.entries.rows[others], self.entries.log_odds[others]
        if len(rows):
            firsts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
            found[rows[firsts]] = np.maximum.reduceat(values, firsts)
        return found

    @cached_property
    def entropy(self) -> Floats:
        """In nats: of the scores, as they are, and of what they leave to all other tags."""
        scores, n = self.entries.scores, len(self.words)
        own = np.bincount(self.entries.rows, _surprise(scores), n)
        return own + _surprise(np.clip(1.0 - np.bincount(self.entries.rows, scores, n), 0.0, 1.0))

    @cached_property
    def unfamiliar(self) -> Floats:
        """1 where the form was never met, else 0."""
        return (self.met.forms == 0).astype(np.float64)

    # Of its neighbours and its Doc

    def neighbour(self, values: Floats, step: int, average: str) -> Floats:
        """The value of the token so many places before (-1) or behind (1) in the same Doc."""
        found = np.full(len(values), self.averages[average])
        if step < 0:
            here, there = np.arange(-step, len(values)), np.arange(len(values) + step)
        else:
            here, there = np.arange(len(values) - step), np.arange(step, len(values))
        docs = self.words.docs
        same = (docs[here] == docs[there]) & self.scored[there]
        found[here[same]] = values[there[same]]
        return found

    def document_mean(self, values: Floats, average: str) -> Floats:
        """The mean over the tokens of the Doc, shrunk towards the average."""
        docs, n = self.words.docs, len(self.words.starts) - 1
        sums = np.bincount(docs, values * self.scored, n) + self.shrinkage * self.averages[average]
        return (sums / (np.bincount(docs, self.scored, n) + self.shrinkage))[docs]

    @cached_property
    def scored(self) -> Flags:
        """Tokens with entries that are more than white space."""
        has_entries = np.zeros(len(self.words), dtype=bool)
        has_entries[self.entries.rows] = True
        return has_entries & self.words.counts

    def _averages(self) -> dict[str, float]:
        """Over the tokens that are here."""
        scored = np.flatnonzero(self.scored)
        return {name: float(getattr(self, name)[scored].mean()) if len(scored) else 0.0 for name in AVERAGED}

    def _of_leads(self, values: Floats, default: float) -> Floats:
        found = np.full(len(self.words), default)
        found[self.entries.rows[self.entries.leads]] = values[self.entries.leads]
        return found


def _surprise(scores: Floats) -> Floats:
    """-p log p, 0 for p = 0."""
    return -scores * np.log(np.maximum(scores, 1e-300))
