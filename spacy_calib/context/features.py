"""The features that context looks at: each says something of a token, in one column or several. Knows arrays, never Docs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import Floats
from .surroundings import Surroundings
from .words import SHAPES


class Feature(ABC):
    """Something of a token that may tell whether its scores are too high or too low.

    registered (str): Name in the registry `calib_features`. short (str): What it is called in the settings.
    columns (tuple[str, ...]): What each column says, in words.
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


class Entropy(Feature):
    """How evenly the scores of a token are spread over its tags."""

    registered = "spacy-calib.Entropy.v1"
    short = "entropy"
    columns = ("entropy of the token's scores",)

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return [around.entropy]


class Neighbours(Feature):
    """How sure the model is of the tokens beside it."""

    registered = "spacy-calib.Neighbours.v1"
    short = "neighbours"
    columns = ("confidence in the token before", "confidence in the token behind")

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return [around.neighbour(around.leading, step, "leading") for step in (-1, 1)]


class Document(Feature):
    """How sure the model is of the whole Doc."""

    registered = "spacy-calib.Document.v1"
    short = "document"
    columns = (
        "the document's mean confidence",
        "the document's mean entropy",
        "that confidence, where the token's own is high",
    )

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        confidence = around.document_mean(around.confidence, "confidence")
        # Where a whole Doc is strange to the model, high scores say less: their slope changes with the Doc.
        together = (confidence - around.averages["confidence"]) * (around.leading - around.averages["leading"])
        return [confidence, around.document_mean(around.entropy, "entropy"), together]


class Familiarity(Feature):
    """How often the form and the ending were met."""

    registered = "spacy-calib.Familiarity.v1"
    short = "familiarity"
    columns = ("how often the form was met", "a form never met", "how often the ending was met", "an ending never met")

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        met = around.met
        return [np.log1p(met.forms), around.unfamiliar, np.log1p(met.endings), (met.endings == 0).astype(np.float64)]


class Unfamiliar(Feature):
    """How many words of the Doc were never met."""

    registered = "spacy-calib.Unfamiliar.v1"
    short = "unfamiliar"
    columns = ("the document's share of unfamiliar words",)

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return [around.document_mean(around.unfamiliar, "unfamiliar")]


class Shape(Feature):
    """What the form looks like."""

    registered = "spacy-calib.Shape.v1"
    short = "shape"
    columns = ("title case", "a number")

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return [around.words.shapes[name].astype(np.float64) for name in SHAPES]


class Hints(Feature):
    """What the source says of a token beside its scores: of an arc how sure the parser was on the way to it. Most sources say nothing."""

    registered = "spacy-calib.Hints.v1"
    short = "hints"
    columns = ()

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return list(around.words.hints.values())

    def named(self, around: Surroundings, n: int) -> Sequence[str]:
        return tuple(around.words.hints)


class FromDocs(Feature):
    """A user's own: what a registered function `(docs) -> array` says of the tokens of Docs.

    function (Callable): It gives an array of shape (n_tokens,) or (n_tokens, k) for all tokens of the Docs, one Doc after the other.
    """

    def __init__(self, registered: str, function: Callable[[Sequence[Any]], Any]):
        self.registered = self.short = registered
        self.columns = (registered,)
        self.function = function

    def __call__(self, around: Surroundings) -> Sequence[Floats]:
        return list(around.words.columns[self.registered].T)

    def named(self, around: Surroundings, n: int) -> Sequence[str]:
        return self.columns if n == 1 else [f"{self.registered}, column {place + 1}" for place in range(n)]


def make_entropy() -> Feature:
    """Registered as spacy-calib.Entropy.v1."""
    return Entropy()


def make_neighbours() -> Feature:
    """Registered as spacy-calib.Neighbours.v1."""
    return Neighbours()


def make_document() -> Feature:
    """Registered as spacy-calib.Document.v1."""
    return Document()


def make_hints() -> Feature:
    """Registered as spacy-calib.Hints.v1."""
    return Hints()


def make_familiarity() -> Feature:
    """Registered as spacy-calib.Familiarity.v1."""
    return Familiarity()


def make_unfamiliar() -> Feature:
    """Registered as spacy-calib.Unfamiliar.v1."""
    return Unfamiliar()


def make_shape() -> Feature:
    """Registered as spacy-calib.Shape.v1."""
    return Shape()
