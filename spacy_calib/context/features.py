"""The features that context looks at: each says something of a token, in one column or several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ..calibration.recalibrators.logistic import sigmoid
from ..types import Floats
from .surroundings import Surroundings

# Log-odds of a neighbour that is not there: beside the first and the last word nothing is doubtful.
_SURE = 3.0
# Score of the likeliest tag, and entropy, of the usual tokens that are added to a Doc before its means are taken.
_USUAL, _USUAL_ENTROPY = 0.9, 0.3


class Feature(ABC):
    """Something of a token, beside its word and tags, that may tell whether its scores are too high or too low.

    registered (str): Name in the registry `calib_features`. short (str): Name in the settings.
    columns (tuple[str, ...]): What each column says.
    """

    registered: str
    short: str
    columns: tuple[str, ...]

    @abstractmethod
    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        """The values of all tokens, column by column."""

    def named(self, around: Surroundings, n: int) -> Sequence[str]:
        """What each of its n columns says of these tokens."""
        return self.columns


class Neighbours(Feature):
    """How sure the model is of the tokens beside it."""

    registered = "spacy-calib.Neighbours.v1"
    short = "neighbours"
    columns = ("confidence in the token before", "confidence in the token behind")

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return around.neighbours(around.first, _SURE)


class Document(Feature):
    """How sure the model is of the whole Doc: high scores say less where the Doc is strange to it."""

    registered = "spacy-calib.Document.v1"
    short = "document"
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

    registered = "spacy-calib.Hints.v1"
    short = "hints"
    columns = ()

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return [] if around.words is None else list(around.words.hints.values())

    def named(self, around: Surroundings, n: int) -> Sequence[str]:
        return () if around.words is None else tuple(around.words.hints)


class FromDocs(Feature):
    """A user's feature: a registered function `(docs) -> array` of something about each token.

    function (Callable): Gives an array of shape (n_tokens,) or (n_tokens, k) for all tokens of the Docs, in order.
    """

    def __init__(self, registered: str, function: Callable[[Sequence[Any]], Any]):
        self.registered = self.short = registered
        self.columns = (registered,)
        self.function = function

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        assert around.words is not None
        return list(around.words.columns[self.registered].T)

    def named(self, around: Surroundings, n: int) -> Sequence[str]:
        return self.columns if n == 1 else [f"{self.registered}, column {place + 1}" for place in range(n)]
