"""The base class of scalings: a scaling maps the probabilities of all tags of a token to other probabilities of these tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...pairs.documents import cross_fit, folds_of, thin_out
from ...pairs.progress import UNREPORTED, Progress
from ...types import Floats, Ints, Pairs, as_probabilities, check_lengths
from ..steps import OUTPUT_ONLY, Predictions

# A scaling reads the tags of a token that have at least this probability.
FLOOR = 1e-4
# A fit uses at most so many pairs; of more, whole documents at equal distances are kept.
MOST_PAIRS = 500_000


_AnyScaling = TypeVar("_AnyScaling", bound="Scaling")


class Scaling(ABC):
    """Rescales the probabilities of all tags of a token together, before the threshold cuts them off.

    Constructor arguments are its settings; learned attributes end in an underscore.

    registered (str): Name in the registry `calib_scalings`, by which a saved scaling finds its class.
    short (str): Name on the command line; "" if that is the registered name.
    growth (int): The number of parameters grows with this power of the number of tags; lists show the slowest growth first.
    biased (bool): Whether each tag has a bias. floor (float): Tags of a token below it are merged into one more outcome.
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
        """Number of tags that the scaling was fitted to; 0 if it is not fitted."""

    def clone(self: _AnyScaling) -> _AnyScaling:
        return type(self)(**self.settings())

    def settings(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def size(self) -> int:
        """Return the number of fitted parameters. RAISES C004: not fitted."""

    def describe(self) -> dict[str, Any]:
        """Return "name", "biased", "temperature" and "ridge" (or None), and "size" (number of parameters) for `calib info`."""
        description = {"name": self.registered, "biased": self.biased}
        return {**description, "temperature": None, "ridge": None, "size": self.size()}

    # Fitting

    @abstractmethod
    def fit(self, pairs: Pairs, n_tags: int) -> Scaling:
        """Fit to the pairs that reach the floor.

        pairs (Pairs): If no pair of a token is a hit, its gold tag is below the floor. n_tags (int): Number of tags.
        RETURNS (Scaling): This scaling. RAISES C003: no pairs.
        """

    def cross_fit(
        self, pairs: Pairs, documents: Ints, n_tags: int, n_folds: int = 5, progress: Progress = UNREPORTED
    ) -> Floats:
        """Fit this scaling on all pairs, and return out-of-fold scores, by cross-validation over documents.

        With a single document no fold can be held out, and the scores are those of this scaling, which has seen the pairs.

        documents (Ints): Document of each pair, ascending, shape (n,). RETURNS (Floats): The scaled score of each pair, (n,).
        RAISES C003: no pairs.
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
        """Return the scaled score of each pair. pairs (Pairs): All pairs of each token that reach the floor, perhaps others."""
        return self.scale(pairs.rows, pairs.tags, pairs.scores, pairs.scores >= self.floor)

    def fit_documents(self, pairs: Pairs, documents: Ints, n_tags: int) -> None:
        """Fit this scaling. A subclass may first choose a setting by cross-validation over the documents of the pairs."""
        self.fit(pairs, n_tags)

    def refit(self, pairs: Pairs, n_tags: int) -> Scaling:
        """Return a new scaling with the same settings, fitted on a part of the pairs that this one was fitted on."""
        return self.clone().fit(pairs, n_tags)

    # Applying

    def apply(self, predictions: Predictions) -> Predictions:
        """Replace the scores of each token's labels by scaled ones. OUTPUT_ONLY labels influence no other."""
        is_input = (predictions.raw >= self.floor) & (predictions.levels != OUTPUT_ONLY)
        flags = None if is_input.all() else is_input
        return predictions.replace_unchecked(scores=self.scale(predictions.rows, predictions.tags, predictions.scores, flags))

    def scale(self, rows: Ints, tags: Ints, scores: Floats, is_input: NDArray[np.bool_] | None = None) -> Floats:
        """Return the scaled probabilities of n entries; those of a token depend on all its entries and on no other token.

        rows, tags (Ints), scores (Floats): Token, tag and score of each entry, (n,), for all tags of a token above the floor.
        is_input (NDArray[bool] | None): False for an entry (below the floor) that influences no other; None if all do.
        RAISES C001: scores out of range. C002: arrays of unequal length. C004: not fitted.
        """
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        probabilities = as_probabilities("scores", scores)
        arrays = {"row": rows, "tag": tags, "flag": probabilities if is_input is None else is_input}
        check_lengths(type(self).__name__, "score", len(probabilities), arrays)
        if not len(probabilities):
            return np.zeros(0)
        ascending = bool((rows[1:] >= rows[:-1]).all())
        order = slice(None) if ascending else np.argsort(rows, kind="stable")
        flags = None if is_input is None else np.asarray(is_input)[order]
        scaled_scores = np.empty(len(probabilities))
        scaled_scores[order] = self._scale(rows[order], tags[order], probabilities[order], flags)
        return scaled_scores

    @abstractmethod
    def _scale(self, rows: Ints, tags: Ints, scores: Floats, is_input: NDArray[np.bool_] | None) -> Floats:
        """Return the scaled probabilities of n > 0 valid entries; arguments as in `scale`, with rows ascending."""

    # Saving

    def state(self) -> dict[str, Any]:
        """Return the registered name, settings and learned values, from which `make_part` rebuilds the scaling."""
        return {"@calib_scalings": self.registered, "settings": self.settings(), "learned": self._learned_state()}

    @abstractmethod
    def _learned_state(self) -> dict[str, Any]:
        """Return copies of the learned values, as plain data and arrays."""

    @abstractmethod
    def load_learned(self, values: dict[str, Any]) -> Scaling:
        """Set the learned values from a state; return this scaling. RAISES InvalidState: they lack the declared form."""
