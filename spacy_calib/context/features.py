"""The features of a context: the scores of a token's tags, the tokens next to it, and its document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.recalibrators.logistic import log_odds, sigmoid
from ..pairs.build import find_top
from ..types import Floats, Ints
from .words import Flags, Words

# What is added to each Doc before its means are taken: ten average tokens, their top scores and entropies.
_ADDED = 10.0 * np.array([[1.0], [0.9], [0.3]])
# The log-odds of a missing entry: a rival below the threshold.
NO_ENTRY = float(log_odds(np.array([0.01]))[0])
# Log-odds and tag of a missing neighbour, as next to the first and the last word nothing is doubtful; and of a missing entry.
_MISSING = np.array([3.0, NO_ENTRY]), np.array([-1, -1])
_NO_NEIGHBOUR, _NO_TOP = -2, -1  # where these are


class TokenScores:
    """The scores of n tokens, as features look at them.

    rows, tags (Ints), scores (Floats): Token (ascending), tag and score of each entry. words (Words): The tokens.
    log_odds (Floats): Of the scores. is_top (Flags): Whether each entry is the highest of its token; of equal ones the first.
    top_tags (Ints), top_log_odds (Floats): Tag and log-odds of the highest entry of each token and of the second, shape (2, n); -1 and NO_ENTRY
        for a missing entry.
    neighbours: (log-odds, tags) of the highest entry of the token before each, and of the token after it. A neighbour is in the same Doc,
        has entries and is more than white space.
    scored (Flags): Whether a token has entries and is more than white space. entropy (Floats): Of each token, in nats: of its scores, and of the probability that they leave to all other tags.
    """

    def __init__(self, rows: Ints, tags: Ints, scores: Floats, words: Words):
        self.rows, self.tags, self.scores, self.words = rows, tags, scores, words
        n = len(words.forms)
        self.log_odds = log_odds(scores)
        self.is_top: Flags = find_top(rows, scores)
        first, others = self.is_top.nonzero()[0], (~self.is_top).nonzero()[0]
        second = others[find_top(rows[others], scores[others])]
        entries = np.empty((2, n), dtype=np.intp)
        entries[:] = _NO_TOP
        entries[0, rows[first]], entries[1, rows[second]] = first, second
        log_odds_, tags_ = np.concatenate((self.log_odds, _MISSING[0])), np.concatenate((tags, _MISSING[1]))
        self.top_log_odds: Floats = log_odds_[entries]
        self.top_tags: Ints = tags_[entries]
        self.scored: Flags = (entries[0] >= 0) & words.counts
        near = np.empty((2, n + 1), dtype=np.intp)
        near[0, 1:] = near[1, :-1] = np.where(self.scored, entries[0], _NO_NEIGHBOUR)
        near[:, words.starts] = _NO_NEIGHBOUR
        near_log_odds, near_tags = log_odds_[near], tags_[near]
        self.neighbours = (near_log_odds[0, :-1], near_tags[0, :-1]), (near_log_odds[1, 1:], near_tags[1, 1:])
        every = np.maximum(np.concatenate((scores, 1.0 - np.bincount(rows, scores, n))), 1e-300)
        surprise = -every * np.log(every)
        self.entropy: Floats = np.bincount(rows, surprise[: len(scores)], n) + surprise[len(scores) :]

    def document_means(self, *values: Floats, added: Floats = _ADDED) -> Floats:
        """The means over the scored tokens of a Doc and some average ones, so that those of short Docs do not swing, shape (k, n).

        values (Floats): Of each token, k times. added (Floats): The number of average tokens and the sums of their values, shape (1 + k, 1).
        """
        starts = self.words.starts
        n_docs = len(starts) - 1
        docs = np.arange(n_docs).repeat(starts[1:] - starts[:-1])
        # One token after the other, whatever the batch: a fit answers to the last bit of its inputs.
        sums = np.array([np.bincount(docs, column * self.scored, n_docs) for column in (self.scored, *values)]) + added
        return (sums[1:] / sums[0])[:, docs]


class Feature(ABC):
    """A property of a token, other than its word and tags, that may show whether its scores are too high or too low.

    name (str): In the settings. columns (tuple[str, ...]): Meaning of each column.
    """

    name: str
    columns: tuple[str, ...]

    @abstractmethod
    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        """The values of all tokens, column by column."""

    def column_names(self, tokens: TokenScores, n_columns: int) -> Sequence[str]:
        """The meaning of each column for these tokens."""
        return self.columns


class Neighbours(Feature):
    """How confident the model is in the tokens before and after."""

    name = "neighbours"
    columns = ("confidence in the token before", "confidence in the token behind")

    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        before, after = tokens.neighbours
        return before[0], after[0]


class Document(Feature):
    """How confident the model is in the whole Doc: high scores mean less in a Doc that is strange to the model."""

    name = "document"
    columns = (
        "the document's mean confidence",
        "the document's mean entropy",
        "that confidence, times that in the token",
    )

    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        confidence, entropy = tokens.document_means(sigmoid(tokens.top_log_odds[0]), tokens.entropy)
        return confidence, entropy, confidence * tokens.top_log_odds[0]


class Hints(Feature):
    """What the source adds about a token, such as how confident a parser was on the way to an arc."""

    name = "hints"
    columns = ()

    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        return tuple(tokens.words.hints.values())

    def column_names(self, tokens: TokenScores, n_columns: int) -> Sequence[str]:
        return tuple(tokens.words.hints)


# Those that a config can name, in the order of their columns.
FEATURES: dict[str, Feature] = {feature.name: feature for feature in (Document(), Hints(), Neighbours())}


class FromDocs(Feature):
    """A function of Docs, for properties of tokens that the arrays do not show. No config names one.

    function (Callable): Returns an array of shape (n_tokens,) or (n_tokens, k) for all tokens of the Docs, in order.
    """

    def __init__(self, name: str, function: Callable[[Sequence[Any]], NDArray[Any]]):
        self.name = name
        self.columns = (name,)
        self.function = function

    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        return tuple(tokens.words.columns[self.name].T)

    def column_names(self, tokens: TokenScores, n_columns: int) -> Sequence[str]:
        return self.columns if n_columns == 1 else [f"{self.name}, column {place + 1}" for place in range(n_columns)]
