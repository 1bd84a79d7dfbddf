"""Features of the context of a token: the scores of its tags, of its neighbours, and of its document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.solvers import log_odds, sigmoid
from ..pairs.pairing import find_top
from ..types import Floats, Ints
from .words import Flags, Words

# Added to the sums of each Doc (rows: number of tokens, top scores, entropies) before its means are taken: ten average tokens.
_PRIOR_SUMS = 10.0 * np.array([[1.0], [0.9], [0.3]])
# The log-odds of a missing entry: a rival below the threshold.
NO_ENTRY = float(log_odds(np.array([0.01]))[0])
# Log-odds and tag of a missing neighbour (sure: at the ends of a Doc nothing is ambiguous), and of a missing entry.
_MISSING_LOG_ODDS, _MISSING_TAGS = np.array([3.0, NO_ENTRY]), np.array([-1, -1])
_NO_NEIGHBOUR, _NO_TOP = -2, -1  # their indices, from the end, in an array of all entries to which both are appended


class TokenScores:
    """Scores of n tokens, and the values that features are computed from: top tags, neighbours, entropy.

    rows, tags (Ints), scores (Floats): Token (ascending), tag and score of each entry. words (Words): The tokens.
    log_odds (Floats): Log-odds of each entry. is_top (Flags): Whether it is the token's highest (of ties the first).
    top_tags (Ints), top_log_odds (Floats): Tag and log-odds of the highest and the second entry of each token, shape (2, n);
        -1 and NO_ENTRY if it lacks this entry. is_scored (Flags): Whether it has entries and is more than white space.
    neighbours (tuple): Two pairs of arrays (log-odds, tags), (n,) each: the highest entry of the token before each token, and
        that of the token behind it. Without a scored token there, in the same Doc, the log-odds are 3, and the tag is -1.
    entropy (Floats): Entropy of each token in nats, with the probability left over by its entries as one more outcome.
    """

    def __init__(self, rows: Ints, tags: Ints, scores: Floats, words: Words):
        self.rows, self.tags, self.scores, self.words = rows, tags, scores, words
        self.log_odds = log_odds(scores)
        self.is_top: Flags = find_top(rows, scores)
        n = len(words.forms)
        # The indices of each token's highest (row 0) and second entry (row 1).
        highest, others = self.is_top.nonzero()[0], (~self.is_top).nonzero()[0]
        second = others[find_top(rows[others], scores[others])]
        top_two = np.full((2, n), _NO_TOP)
        top_two[0, rows[highest]], top_two[1, rows[second]] = highest, second
        # Appended are the values that stand for a missing neighbour (index _NO_NEIGHBOUR) and a missing entry (index _NO_TOP).
        entry_log_odds, entry_tags = np.concatenate((self.log_odds, _MISSING_LOG_ODDS)), np.concatenate((tags, _MISSING_TAGS))
        self.top_log_odds: Floats = entry_log_odds[top_two]
        self.top_tags: Ints = entry_tags[top_two]
        self.is_scored: Flags = (top_two[0] >= 0) & words.counts  # not white space
        # The highest entries of the tokens before (row 0) and behind (row 1) each of n + 1 borders; border i is before token i.
        # The borders of Docs (`starts`, with 0 and n) have no tokens that are neighbours.
        at_border = np.empty((2, n + 1), dtype=np.intp)
        at_border[0, 1:] = at_border[1, :-1] = np.where(self.is_scored, top_two[0], _NO_NEIGHBOUR)
        at_border[:, words.starts] = _NO_NEIGHBOUR
        previous, following = at_border[0, :-1], at_border[1, 1:]
        self.neighbours = tuple((entry_log_odds[index], entry_tags[index]) for index in (previous, following))
        left_over = 1.0 - np.bincount(rows, scores, n)
        probabilities = np.maximum(np.concatenate((scores, left_over)), 1e-300)  # above 0, for the logarithm
        terms = -probabilities * np.log(probabilities)  # one for each entry, then one for what each token has left over
        self.entropy: Floats = np.bincount(rows, terms[: len(scores)], n) + terms[len(scores) :]


class Feature(ABC):
    """A property of a token, other than its word and tags, that may show whether its scores are too high or too low.

    name (str): Name in configs and saved states. columns (tuple[str, ...]): Description of each column of numbers.
    """

    name: str
    columns: tuple[str, ...]

    @abstractmethod
    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        """Return the columns of numbers that this feature has for these tokens, shape (n_tokens,) each."""

    def column_names(self, tokens: TokenScores) -> Sequence[str]:
        """Return the description of each column that the feature has for these tokens."""
        return self.columns


class NeighbourConfidence(Feature):
    """Log-odds of the top tags of the previous and the next token."""

    name = "neighbours"
    columns = ("confidence in the previous token", "confidence in the next token")

    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        previous, following = tokens.neighbours
        return previous[0], following[0]


class DocumentConfidence(Feature):
    """Mean top score and mean entropy of the token's Doc: a high score means less in a Doc that is unlike the training data."""

    name = "document"
    columns = ("the document's mean confidence", "the document's mean entropy", "that confidence, times the token's")

    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        """Return three columns: mean top score and mean entropy of the token's Doc, and the former times the token's log-odds.

        Means are over the scored tokens of the Doc and ten average tokens, so that those of short Docs vary less.
        """
        doc_of_token, n_docs = tokens.words.docs, len(tokens.words.starts) - 1
        highest_log_odds = tokens.top_log_odds[0]  # row 1 has those of the second entries
        values = tokens.is_scored, sigmoid(highest_log_odds), tokens.entropy
        # Unlike np.sum, bincount gives the same sums, to the last bit, in any batch; the last bit can change a fit.
        doc_sums = [np.bincount(doc_of_token, column * tokens.is_scored, n_docs) for column in values]
        n_tokens, score_sums, entropy_sums = _PRIOR_SUMS + doc_sums  # arrays by Doc
        confidence, entropy = (score_sums / n_tokens)[doc_of_token], (entropy_sums / n_tokens)[doc_of_token]
        return confidence, entropy, confidence * highest_log_odds


class FurtherScoresFeature(Feature):
    """Further scores: other scores that the source has of a token, such as a parser's confidence in the steps to an arc."""

    name = "hints"
    columns = ()

    def __call__(self, tokens: TokenScores) -> Sequence[Floats]:
        return tuple(tokens.words.further_scores.values())

    def column_names(self, tokens: TokenScores) -> Sequence[str]:
        return tuple(tokens.words.further_scores)


# The features that a config can name, in the order of their columns.
_FEATURES = DocumentConfidence(), FurtherScoresFeature(), NeighbourConfidence()
FEATURES: dict[str, Feature] = {feature.name: feature for feature in _FEATURES}


@dataclass(frozen=True)
class DocFunction:
    """A function of Docs that returns k numbers for each token, shape (n_tokens, k), stored as `Words.columns[name]`."""

    name: str
    function: Callable[[Sequence[Any]], NDArray[Any]]
