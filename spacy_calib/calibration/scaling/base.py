"""The contract of a scaling: the probabilities of all tags of a token in, other probabilities of the same tags out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...pairs.documents import cross_fit, folds_of, thin_out
from ...pairs.progress import UNREPORTED, Progress
from ...types import Floats, Ints, Pairs, as_probabilities, check_lengths
from ..steps import ASKED, Predictions

# A scaling looks at the tags of a token that have at least this probability.
FLOOR = 1e-4
# A fit looks at no more pairs than this; of more, whole documents at equal distances are kept.
MOST_PAIRS = 500_000


_Made = TypeVar("_Made", bound="Scaling")


class Scaling(ABC):
    """Weighs the tags of a token against one another, before the threshold cuts them off.

    Settings are constructor arguments; what was learned ends in an underscore.

    registered (str): Name in the registry `calib_scalings`, by which a saved scaling finds its class.
    short (str): Name on the command line; "" where that is the registered name.
    growth (int): Its size grows with this power of the number of tags; lists show those that grow least first.
    biased (bool): Whether it has a bias for each tag.
    floor (float): Tags of a token with a lower probability take no part, but together as one more outcome.
    """

    registered: ClassVar[str]
    short: ClassVar[str] = ""
    growth: ClassVar[int] = 2
    biased: ClassVar[bool] = True
    floor: ClassVar[float] = FLOOR

    @property
    @abstractmethod
    def fitted(self) -> bool: ...

    @property
    @abstractmethod
    def n_tags(self) -> int:
        """Number of tags that it was fitted to; 0 before."""

    def clone(self: _Made) -> _Made:
        """A scaling with the same settings, not fitted."""
        return type(self)(**self.settings())

    def settings(self) -> dict[str, Any]:
        """The constructor arguments, as plain data."""
        return {}

    @abstractmethod
    def size(self) -> int:
        """How many numbers were fitted. RAISES C004: not fitted."""

    def describe(self) -> dict[str, Any]:
        """For `info`: name, whether biased, temperature and ridge (or None), fitted numbers. RAISES C004: not fitted."""
        description = {"name": self.registered, "biased": self.biased}
        return {**description, "temperature": None, "ridge": None, "size": self.size()}

    # Fitting

    @abstractmethod
    def fit(self, pairs: Pairs, n_tags: int) -> Scaling:
        """Learn from the pairs that reach the floor.

        pairs (Pairs): A token without a hit above the floor has its gold tag below it. n_tags (int): Number of tags.
        RETURNS (Scaling): Itself. RAISES C003: no pairs.
        """

    def cross_fit(
        self, pairs: Pairs, documents: Ints, n_tags: int, n_folds: int = 5, progress: Progress = UNREPORTED
    ) -> Floats:
        """Fit this one on all pairs, and score each pair by a scaling that did not see its document.

        With a single document there is nothing to hold out: this one's own scores are given.

        documents (Ints): Of the pairs, ascending. RETURNS (Floats): The scaled scores. RAISES C003: no pairs.
        """
        fitting, folds = progress.parts(2, 1)
        fitting.update(0.0)
        index = thin_out(documents, MOST_PAIRS)
        self.fit_documents(pairs.take(index), documents[index], n_tags)
        if len(np.unique(documents)) < 2:
            return self.scale_pairs(pairs)

        def score(train: Ints, test: Ints) -> Floats:
            some_pairs = pairs.take(train[thin_out(documents[train], MOST_PAIRS)])
            return self.refit(some_pairs, n_tags).scale_pairs(pairs.take(test))

        return cross_fit(folds_of(documents, n_folds), score, folds)

    def scale_pairs(self, pairs: Pairs) -> Floats:
        """The scaled score of each pair. pairs (Pairs): All of a token that reach the floor, and perhaps others."""
        return self.scale(pairs.rows, pairs.tags, pairs.scores, pairs.scores >= self.floor)

    def fit_documents(self, pairs: Pairs, documents: Ints, n_tags: int) -> None:
        """Fit this one; where it has a setting that held-out documents may choose, choose that first."""
        self.fit(pairs, n_tags)

    def refit(self, pairs: Pairs, n_tags: int) -> Scaling:
        """Another one of this kind, fitted on some of the pairs that this one was fitted on."""
        return self.clone().fit(pairs, n_tags)

    # Applying

    def apply(self, given: Predictions) -> Predictions:
        """Weigh all labels of each token; those that are only asked for bear on no other."""
        counted = (given.raw >= self.floor) & (given.levels != ASKED)
        return given.having(scores=self.scale(given.rows, given.tags, given.scores, None if counted.all() else counted))

    def scale(self, rows: Ints, tags: Ints, scores: Floats, counted: NDArray[np.bool_] | None = None) -> Floats:
        """The scaled probabilities of n entries; those of a token depend on one another and on no other token.

        rows (Ints): Token of each entry. tags (Ints), scores (Floats): All tags of the token that reach the floor.
        counted (NDArray[bool] | None): False for an entry below the floor whose probability is asked for, too.
        RAISES C001: scores out of range. C002: arrays of unequal length. C004: not fitted.
        """
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        probabilities = as_probabilities("scores", scores)
        arrays = {"row": rows, "tag": tags, "flag": probabilities if counted is None else counted}
        check_lengths(type(self).__name__, "score", len(probabilities), arrays)
        if not len(probabilities):
            return np.zeros(0)
        ascending = bool((rows[1:] >= rows[:-1]).all())
        order = slice(None) if ascending else np.argsort(rows, kind="stable")
        flags = None if counted is None else np.asarray(counted)[order]
        scaled_scores = np.empty(len(probabilities))
        scaled_scores[order] = self._scale(rows[order], tags[order], probabilities[order], flags)
        return scaled_scores

    @abstractmethod
    def _scale(self, rows: Ints, tags: Ints, scores: Floats, counted: NDArray[np.bool_] | None) -> Floats:
        """As `scale`, of entries token by token, one at least."""

    # Saving

    def state(self) -> dict[str, Any]:
        """Name, settings and what was learned."""
        return {"@calib_scalings": self.registered, "settings": self.settings(), "learned": self._learned()}

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """What was learned, as plain data and arrays, copied."""

    @abstractmethod
    def load_learned(self, learned: dict[str, Any]) -> Scaling:
        """Take over what was learned, from a state. RAISES Misfit: it is not of the form declared."""
