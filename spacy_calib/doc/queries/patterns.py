"""Patterns as for spaCy's Matcher, of labels that are uncertain; and the text of any query -> the query."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.matcher import Matcher
from spacy.pipeline import EntityLinker
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...errors import calib_error
from ...types import Floats
from ..view import doc_view
from .base import DOCUMENT, Answer, LabelQuery, Query, Scored, ViewOf, units_of
from .entity_events import EventQuery

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


# Labels that are always uncertain: without scores of them, a pipeline cannot say how many there are.
_UNCERTAIN = ("TAG", "POS", "ENT_TYPE")
_EVENT = {"verb", "names", "not"}
_SHOWN = 40


@dataclass(frozen=True)
class Asked:
    """What a pipeline can be asked.

    scored (Sequence[Scored]): The scores of its calib pipes. resolves, parses (bool): Whether a component resolves
        coreference, and whether one sets dependencies. vocab (Vocab): The pipeline's.
    """

    scored: Sequence[Scored]
    resolves: bool
    parses: bool
    vocab: Vocab


def split_query(text: str) -> tuple[str, Any]:
    """("label", it), ("pattern", list of dicts) or ("event", dict); needs no pipeline. RAISES C392: none of them."""
    given = text.strip()
    if given[:1] in ("[", "{"):
        try:
            held = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise calib_error("C392", given=repr(text), why=f"it is no JSON ({error})") from None
        return ("event", _event(held, text)) if isinstance(held, dict) else ("pattern", _pattern(held, text))
    if not given:
        raise calib_error("C392", given=repr(text), why="it is empty")
    return "label", given


def _event(held: dict[str, Any], text: str) -> dict[str, list[str]]:
    lists = {key: [value] if isinstance(value, str) else value for key, value in held.items()}
    fault = ""
    if set(held) - _EVENT:
        fault = f"an event has {', '.join(sorted(_EVENT))}, but not {', '.join(sorted(set(held) - _EVENT))}"
    elif not lists.get("verb"):
        fault = "an event needs a verb"
    elif not all(isinstance(value, list) and all(isinstance(word, str) and word for word in value) for value in lists.values()):
        fault = "verb, names and not are words, or lists of them"
    if fault:
        raise calib_error("C392", given=repr(text), why=fault)
    return lists


def _pattern(held: Any, text: str) -> list[dict[str, Any]]:
    fault = ""
    if not isinstance(held, list) or not held or not all(isinstance(one, dict) for one in held):
        fault = "a pattern is a list with an object for each token"
    elif any(key.upper() == "OP" for one in held for key in one):
        fault = "a pattern with OP is of no fixed length; write a query for each length"
    if fault:
        raise calib_error("C392", given=repr(text), why=fault)
    return [{key.upper(): value for key, value in one.items()} for one in held]


def make_query(text: str, asked: Asked, unit: str | None = None, n_draws: int = 200, seed: int = 0) -> Query:
    """The query that a pipeline can answer.

    unit (str | None): What to count, token, entity or document; None for what the query is about. n_draws, seed (int):
        Of clusterings. RAISES C392: it cannot be read. C393: no pipe knows the label. C394: no pipe scores what it asks
        for. C395: it needs another component. C398: it cannot be counted in this unit.
    """
    kind, held = split_query(text)
    if kind == "label":
        return _label_query(text, held, asked, unit)
    if kind == "event":
        if not asked.resolves or not asked.parses:
            what, add = ("coreference", "calib_coref") if asked.parses else ("dependencies", "a parser")
            raise calib_error("C395", query=repr(text), what=what, add=add)
        words = {key: frozenset(word.lower() for word in held.get(key, [])) for key in _EVENT}
        own = _unit(unit, EventQuery.units, "An event")
        return EventQuery(text, own, words["verb"], words["names"], words["not"], n_draws, seed)
    places = [_place(one, asked, text) for one in held]
    return PatternQuery(text, _unit(unit, PatternQuery.units, "A pattern"), tuple(places))


def _unit(unit: str | None, units: Sequence[str], what: str) -> str:
    if unit is not None and unit not in units:
        raise calib_error("C398", what=what, given=unit, wanted=" or ".join(units))
    return units[0] if unit is None else unit


def _label_query(text: str, label: str, asked: Asked, unit: str | None) -> LabelQuery:
    for scored in asked.scored:
        own = {name[2:] if scored.annotation.prefixed and name != "O" else name for name in _counted(scored)}
        if label in own:
            return LabelQuery(text, _unit(unit, units_of(scored), f"The label {label}"), scored, label)
    names = sorted({name for scored in asked.scored for name in _counted(scored)} - {""})
    known = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    known += " (no other identity of links is counted)" * any(scored.annotation.spans_are_units for scored in asked.scored)
    raise calib_error("C393", given=label, query=repr(text), known=known or "none")


def _counted(scored: Scored) -> Sequence[str]:
    """The labels that a query may name: the columns of links are places among the candidates, but for that of NIL."""
    return [EntityLinker.NIL] if scored.annotation.spans_are_units else scored.labels


def _place(held: Mapping[str, Any], asked: Asked, text: str) -> Place:
    by_key = {scored.key: scored for scored in reversed(asked.scored) if scored.key}
    sure = {key: value for key, value in held.items() if key not in by_key}
    for key in sure:
        if key in _UNCERTAIN:
            raise calib_error(
                "C394", query=repr(text), key=key, known=", ".join(sorted(by_key)) or "nothing that a token can be"
            )
        if key == "DEP" and not asked.parses:
            raise calib_error("C395", query=repr(text), what="dependencies", add="a parser")
    tests = []
    for key, value in held.items():
        if key in by_key:
            try:
                test = asked_of(value)
            except Exception as error:  # what is wrong with a regular expression is of a class of its own
                raise calib_error("C392", given=repr(text), why=str(error)) from None
            scored = by_key[key]
            if value != "" and not any(test(scored.value(label)) for label in scored.labels):
                known = sorted({scored.value(label) for label in scored.labels} - {""})
                raise calib_error("C393", given=value, query=repr(text), known=", ".join(known[:_SHOWN]))
            tests.append((scored, test))
    try:
        if sure:
            single_matcher(asked.vocab, sure)
    except Exception as error:
        raise calib_error("C392", given=repr(text), why=" ".join(str(error).split())) from None
    return Place(sure, tuple(tests))
