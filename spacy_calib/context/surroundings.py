"""The features that context looks at: the scores of a token's tags, the tokens beside it, and its document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..calibration.recalibrators.logistic import log_odds, sigmoid
from ..pairs.build import leading
from ..types import Floats, Ints
from .words import Flags, Words

Values = TypeVar("Values", Floats, Ints)

# How many usual tokens are added to each Doc before its means are taken.
_TOKENS_ADDED = 10.0
# The log-odds of an entry that is not there: a rival below the threshold.
NO_ENTRY = float(log_odds(np.array([0.01]))[0])


class Surroundings:
    """What features look at, of n tokens.

    rows, tags (Ints), scores (Floats): Token (ascending), tag and score of each entry. words (Words | None): What stands in the tokens; None where nothing
    is known but scores. log_odds (Floats): Of the scores. leads (Flags): Whether each is the likeliest entry of its token.
    first_tag, second_tag (Ints), first, second (Floats): Of each token the likeliest and the second likeliest tag, -1 where there is none, and their log-odds.
    entropy (Floats): Of each token, in nats: of the scores, as they are, and of what they leave to all other tags.
    """

    def __init__(self, rows: Ints, tags: Ints, scores: Floats, n_tokens: int, words: Words | None):
        self.rows, self.tags, self.scores, self.words = rows, tags, scores, words
        self.log_odds, self.leads = log_odds(scores), leading(rows, scores)
        others = (~self.leads).nonzero()[0]
        self.first_tag, self.second_tag = np.full((2, n_tokens), -1, dtype=np.intp)
        self.first, self.second = np.full((2, n_tokens), NO_ENTRY)
        for entries, tag_of, odds_of in (
            (self.leads.nonzero()[0], self.first_tag, self.first),
            (others[leading(rows[others], scores[others])], self.second_tag, self.second),
        ):
            tag_of[rows[entries]], odds_of[rows[entries]] = tags[entries], self.log_odds[entries]
        every = np.concatenate([scores, np.maximum(1.0 - np.bincount(rows, scores, n_tokens), 0.0)])
        surprise = -every * np.log(np.maximum(every, 1e-300))
        self.entropy: Floats = np.bincount(rows, surprise[: len(scores)], n_tokens) + surprise[len(scores) :]

    @cached_property
    def shape(self) -> Ints:
        """What the form of each token looks like, as one number: 1 for title case, 2 for a number, 3 for both."""
        assert self.words is not None
        return self.words.shapes["title"] + 2 * self.words.shapes["number"].astype(np.intp)

    @cached_property
    def scored(self) -> Flags:
        """Tokens with entries that are more than white space."""
        return self.first_tag >= 0 if self.words is None else (self.first_tag >= 0) & self.words.counts

    # Of its neighbours

    @cached_property
    def _beside(self) -> tuple[Ints, Ints]:
        """The token before each and the one behind, in the same Doc, with entries and more than white space; n where there is none."""
        assert self.words is not None
        docs, n = self.words.docs, len(self.first_tag)
        before, behind = np.full((2, n), n)
        here, same = np.arange(n), docs[1:] == docs[:-1]
        np.copyto(before[1:], here[:-1], where=same & self.scored[:-1])
        np.copyto(behind[:-1], here[1:], where=same & self.scored[1:])
        return before, behind

    def neighbours(self, values: Values, default: float) -> tuple[Values, Values]:
        """The value of the token before each, and that of the one behind; the default where there is none."""
        padded = np.concatenate([values, np.array([default], dtype=values.dtype)])
        before, behind = self._beside
        return padded[before], padded[behind]

    def document_mean(self, values: Floats, usual: float) -> Floats:
        """The mean over the Doc's tokens and ten of a usual value, so that short Docs do not swing."""
        assert self.words is not None
        docs, n = self.words.docs, len(self.words.starts) - 1
        sums = np.bincount(docs, values * self.scored, n) + _TOKENS_ADDED * usual
        return (sums / (np.bincount(docs, self.scored, n) + _TOKENS_ADDED))[docs]

    def neighbouring_tags(self, none: int) -> tuple[Ints, Ints]:
        """The same of the likeliest tag. none (int): Stands for no token, and for tags that are not below it."""
        return self.neighbours(np.where((self.first_tag < 0) | (self.first_tag > none), none, self.first_tag), none)


# Log-odds of a neighbour that is not there: beside the first and the last word nothing is doubtful.
_SURE = 3.0
# Score of the likeliest tag, and entropy, of the usual tokens that are added to a Doc before its means are taken.
_USUAL, _USUAL_ENTROPY = 0.9, 0.3


class Feature(ABC):
    """Something of a token, beside its word and tags, that may tell whether its scores are too high or too low.

    name (str): In the settings. columns (tuple[str, ...]): What each column says.
    """

    name: str
    columns: tuple[str, ...]

    @abstractmethod
    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        """The values of all tokens, column by column."""

    def named(self, around: Surroundings, n: int) -> Sequence[str]:
        """What each of its n columns says of these tokens."""
        return self.columns


class Neighbours(Feature):
    """How sure the model is of the tokens beside it."""

    name = "neighbours"
    columns = ("confidence in the token before", "confidence in the token behind")

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return around.neighbours(around.first, _SURE)


class Document(Feature):
    """How sure the model is of the whole Doc: high scores say less where the Doc is strange to it."""

    name = "document"
    columns = (
        "the document's mean confidence",
        "the document's mean entropy",
        "that confidence, times that in the token",
    )

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        confidence = around.document_mean(sigmoid(around.first), _USUAL)
        return [confidence, around.document_mean(around.entropy, _USUAL_ENTROPY), confidence * around.first]


class Hints(Feature):
    """What the source says of a token beside its scores, such as how sure a parser was on the way to an arc."""

    name = "hints"
    columns = ()

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return [] if around.words is None else list(around.words.hints.values())

    def named(self, around: Surroundings, n: int) -> Sequence[str]:
        return () if around.words is None else tuple(around.words.hints)


# Those that a config can name, in the order of their columns.
FEATURES: dict[str, Feature] = {feature.name: feature for feature in (Document(), Hints(), Neighbours())}


class FromDocs(Feature):
    """A function of Docs: something about each token that arrays do not show. No config names one.

    function (Callable): Gives an array of shape (n_tokens,) or (n_tokens, k) for all tokens of the Docs, in order.
    """

    def __init__(self, name: str, function: Callable[[Sequence[Any]], Any]):
        self.name = name
        self.columns = (name,)
        self.function = function

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        assert around.words is not None
        return list(around.words.columns[self.name].T)

    def named(self, around: Surroundings, n: int) -> Sequence[str]:
        return self.columns if n == 1 else [f"{self.name}, column {place + 1}" for place in range(n)]
