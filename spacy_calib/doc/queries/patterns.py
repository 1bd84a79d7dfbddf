"""How often consecutive tokens are of given kinds: patterns as for spaCy's Matcher, of labels that are uncertain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.matcher import Matcher
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...types import Floats
from ..attributes import doc_view
from .base import DOCUMENT, Answer, Query, Scored, ViewOf

# What a component or an annotator gives; all other attributes are of the text.
_ANNOTATED = ("DEP", "LEMMA", "MORPH")
# What a tokenizer gives.
_OF_WORDS = frozenset(
    [
        "ORTH",
        "TEXT",
        "NORM",
        "LOWER",
        "LENGTH",
        "SHAPE",
        "PREFIX",
        "SUFFIX",
        "LIKE_NUM",
        "LIKE_URL",
        "LIKE_EMAIL",
        "SPACY",
        "IS_ALPHA",
        "IS_ASCII",
        "IS_DIGIT",
        "IS_LOWER",
        "IS_UPPER",
        "IS_TITLE",
        "IS_PUNCT",
        "IS_SPACE",
        "IS_STOP",
        "IS_BRACKET",
        "IS_QUOTE",
        "IS_CURRENCY",
    ]
)
Test = Callable[[str], bool]
_TESTS: dict[str, Callable[[Any], Test]] = {
    "IN": lambda wanted: lambda value: value in wanted,
    "NOT_IN": lambda wanted: lambda value: value not in wanted,
}


def asked_of(wanted: Any) -> Test:
    """The test that a label's value has to pass. RAISES ValueError: it cannot be asked of an uncertain label."""
    if isinstance(wanted, str):
        return lambda value: value == wanted
    if isinstance(wanted, Mapping) and len(wanted) == 1:
        name, what = next(iter(wanted.items()))
        if name == "REGEX" and isinstance(what, str):
            found = re.compile(what)
            return lambda value: found.search(value) is not None
        if name in _TESTS and isinstance(what, list):
            return _TESTS[name](what)
    raise ValueError(f"a label may be a text, or one of {', '.join(_TESTS)}, REGEX, but {wanted!r} was given")


@dataclass(frozen=True)
class Place:
    """What one token of a pattern has to be.

    sure (dict): Attributes taken as they are, for spaCy's Matcher. tests (tuple): (scores, test) of the uncertain ones.
    """

    sure: Mapping[str, Any]
    tests: tuple[tuple[Scored, Test], ...]
    _matchers: dict[int, Matcher] = field(default_factory=dict, compare=False, repr=False)

    def fits(self, doc: Doc) -> NDArray[np.bool_]:
        """Which tokens have the attributes in `sure`."""
        if not self.sure:
            return np.ones(len(doc), dtype=bool)
        if id(doc.vocab) not in self._matchers:
            self._matchers[id(doc.vocab)] = single_matcher(doc.vocab, self.sure)
        kept = np.zeros(len(doc), dtype=bool)
        kept[[start for _, start, _ in self._matchers[id(doc.vocab)](doc, allow_missing=True)]] = True
        return kept


def _of_labels(scored: Scored, test: Test) -> Test:
    """The test of a value as a test of labels."""
    return lambda label: test(scored.value(label))


def single_matcher(vocab: Vocab, wanted: Mapping[str, Any]) -> Matcher:
    """A Matcher of one token. RAISES ValueError, MatchPatternError: spaCy does not know such a pattern."""
    matcher = Matcher(vocab, validate=True)
    matcher.add("place", [[dict(wanted)]])
    return matcher


@dataclass(frozen=True)
class PatternQuery(Query):
    """How often a pattern matches, its tokens independent given the scores. places (Sequence[Place]): Its tokens."""

    text: str
    unit: str
    places: Sequence[Place]

    @property
    def labels(self) -> list[tuple[str, str]]:
        tests = [test for place in self.places for test in place.tests]
        return [(scored.attr, label) for scored, test in tests for label in scored.labels if test(scored.value(label))]

    @property
    def needs(self) -> list[str]:
        return sorted({key for place in self.places for key in place.sure if key in _ANNOTATED})

    @property
    def of_scores(self) -> bool:
        return all(key in _OF_WORDS for place in self.places for key in place.sure)

    def answer(self, doc: Doc, view_of: ViewOf = doc_view) -> Answer:
        fits = [place.fits(doc) for place in self.places]
        both: list[list[Floats]] = [[], []]
        for place, own in zip(self.places, fits, strict=True):
            columns = [own.astype(np.float64)] * 2
            for scored, test in place.tests:
                chances = scored.chances(doc, _of_labels(scored, test), view_of)
                columns = [column * chance for column, chance in zip(columns, chances, strict=True)]
            for held, column in zip(both, columns, strict=True):
                held.append(column)
        raw, calibrated = (_in_a_row(held) for held in both)
        units = (raw > 0) | (calibrated > 0)
        return Answer(raw[units], calibrated[units], self._count(doc, fits))

    def _count(self, doc: Doc, fits: Sequence[NDArray[np.bool_]], gold: bool = False) -> int:
        columns = []
        for place, kept in zip(self.places, fits, strict=True):
            for scored, test in place.tests:
                kept = kept & scored.carried(doc, _of_labels(scored, test), gold)
            columns.append(kept.astype(np.float64))
        n = int(_in_a_row(columns).sum())
        return min(n, 1) if self.unit == DOCUMENT else n

    def true(self, doc: Doc) -> int:
        return self._count(doc, [place.fits(doc) for place in self.places], gold=True)


def _in_a_row(columns: Sequence[Floats]) -> Floats:
    """The product over the places, for each token that may be the first of a match."""
    n_first = len(columns[0]) - len(columns) + 1
    if n_first <= 0:
        return np.zeros(0)
    product = np.ones(n_first)
    for place, column in enumerate(columns):
        product = product * column[place : place + n_first]
    return product
