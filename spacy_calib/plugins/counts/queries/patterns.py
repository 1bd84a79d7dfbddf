"""Patterns as for spaCy's Matcher, of labels that are uncertain; and the parser of all queries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.matcher import Matcher
from spacy.pipeline import EntityLinker
from spacy.tokens import Doc, Token
from spacy.vocab import Vocab

from ....doc.view import doc_view
from ....types import Floats
from ..messages import calib_error
from .base import DOCUMENT, LabelQuery, Query, QueryResult, Scored, ViewOf, units_of
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
    "IN": lambda values: lambda value: value in values,
    "NOT_IN": lambda values: lambda value: value not in values,
}


def label_test(condition: Any) -> Test:
    """Return the test of a label's value. RAISES ValueError: uncertain labels have no such condition."""
    if isinstance(condition, str):
        return lambda value: value == condition
    if isinstance(condition, Mapping) and len(condition) == 1:
        name, operand = next(iter(condition.items()))
        if name == "REGEX" and isinstance(operand, str):
            regex = re.compile(operand)
            return lambda value: regex.search(value) is not None
        if name in _TESTS and isinstance(operand, list):
            return _TESTS[name](operand)
    raise ValueError(f"a label may be a text, or one of {', '.join(_TESTS)}, REGEX, but {condition!r} was given")


@dataclass(frozen=True)
class Place:
    """The condition on one token. plain (dict): Attributes for spaCy's Matcher. tests (tuple): (scores, test) of others."""

    plain: Mapping[str, Any]
    tests: tuple[tuple[Scored, Test], ...]
    _matchers: dict[int, Matcher] = field(default_factory=dict, compare=False, repr=False)

    def fits(self, doc: Doc) -> NDArray[np.bool_]:
        """Return which tokens have the attributes in `plain`."""
        if not self.plain:
            return np.ones(len(doc), dtype=bool)
        if id(doc.vocab) not in self._matchers:
            self._matchers[id(doc.vocab)] = single_matcher(doc.vocab, self.plain)
        matches = np.zeros(len(doc), dtype=bool)
        matches[[start for _, start, _ in self._matchers[id(doc.vocab)](doc, allow_missing=True)]] = True
        return matches


def _of_labels(label_scores: Scored, test: Test) -> Test:
    """Return the test of a value as a test of labels."""
    return lambda label: test(label_scores.value(label))


def single_matcher(vocab: Vocab, attributes: Mapping[str, Any]) -> Matcher:
    """Return a Matcher of one token. RAISES ValueError, MatchPatternError: spaCy does not know such a pattern, or attribute."""
    matcher = Matcher(vocab, validate=True)
    matcher.add("place", [[dict(attributes)]])
    for name in attributes.get("_", ()):
        if not Token.has_extension(name):
            raise ValueError(f"there is no attribute Token._.{name}")
    return matcher


@dataclass(frozen=True)
class PatternQuery(Query):
    """How often a pattern matches, its tokens independent given the scores."""

    text: str
    unit: str
    places: Sequence[Place]

    @property
    def labels(self) -> list[tuple[str, str]]:
        tests = [test for place in self.places for test in place.tests]
        return [
            (label_scores.attr, label)
            for label_scores, test in tests
            for label in label_scores.labels
            if test(label_scores.value(label))
        ]

    @property
    def needs(self) -> list[str]:
        return sorted({key for place in self.places for key in place.plain if key in _ANNOTATED})

    @property
    def of_scores(self) -> bool:
        return all(key in _OF_WORDS for place in self.places for key in place.plain)

    def answer(self, doc: Doc, view_of: ViewOf = doc_view) -> QueryResult:
        fits = [place.fits(doc) for place in self.places]
        columns_by_kind: list[list[Floats]] = [[], []]
        for place, fit in zip(self.places, fits, strict=True):
            columns = [fit.astype(np.float64)] * 2
            for label_scores, test in place.tests:
                chances = label_scores.chances(doc, _of_labels(label_scores, test), view_of)
                columns = [column * chance for column, chance in zip(columns, chances, strict=True)]
            for column_list, column in zip(columns_by_kind, columns, strict=True):
                column_list.append(column)
        raw, calibrated = (_in_a_row(column_list) for column_list in columns_by_kind)
        units = (raw > 0) | (calibrated > 0)
        return QueryResult(raw[units], calibrated[units], self._count(doc, fits))

    def _count(self, doc: Doc, fits: Sequence[NDArray[np.bool_]], gold: bool = False) -> int:
        columns = []
        for place, fit in zip(self.places, fits, strict=True):
            for label_scores, test in place.tests:
                fit = fit & label_scores.carried(doc, _of_labels(label_scores, test), gold)
            columns.append(fit.astype(np.float64))
        n = int(_in_a_row(columns).sum())
        return min(n, 1) if self.unit == DOCUMENT else n

    def true(self, doc: Doc) -> int:
        return self._count(doc, [place.fits(doc) for place in self.places], gold=True)


def _in_a_row(columns: Sequence[Floats]) -> Floats:
    """Return the product over the places, for each token that may be the first of a match."""
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
class QueryAbilities:
    """What a pipeline can be asked. resolves, parses (bool): Whether it has coreference, and dependencies."""

    scored: Sequence[Scored]
    resolves: bool
    parses: bool
    vocab: Vocab


def split_query(text: str) -> tuple[str, Any]:
    """Return ("label", label), ("pattern", list of dicts) or ("event", dict), without a pipeline. RAISES C392: none of them."""
    query_text = text.strip()
    if query_text[:1] in ("[", "{"):
        try:
            data = json.loads(query_text)
        except (ValueError, RecursionError) as error:
            raise calib_error("C392", given=repr(text), why=f"it is no JSON ({error})") from None
        return ("event", _event(data, text)) if isinstance(data, dict) else ("pattern", _pattern(data, text))
    if not query_text:
        raise calib_error("C392", given=repr(text), why="it is empty")
    return "label", query_text


def _event(data: dict[str, Any], text: str) -> dict[str, list[str]]:
    lists = {key: [value] if isinstance(value, str) else value for key, value in data.items()}
    fault = ""
    if set(data) - _EVENT:
        fault = f"an event has {', '.join(sorted(_EVENT))}, but not {', '.join(sorted(set(data) - _EVENT))}"
    elif not lists.get("verb"):
        fault = "an event needs a verb"
    elif not all(isinstance(value, list) and all(isinstance(word, str) and word for word in value) for value in lists.values()):
        fault = "verb, names and not are words, or lists of them"
    if fault:
        raise calib_error("C392", given=repr(text), why=fault)
    return lists


def _pattern(data: Any, text: str) -> list[dict[str, Any]]:
    fault = ""
    if not isinstance(data, list) or not data or not all(isinstance(item, dict) for item in data):
        fault = "a pattern is a list with an object for each token"
    elif any(key.upper() == "OP" for item in data for key in item):
        fault = "a pattern with OP is of no fixed length; write a query for each length"
    if fault:
        raise calib_error("C392", given=repr(text), why=fault)
    return [{key.upper(): value for key, value in item.items()} for item in data]


def make_query(text: str, abilities: QueryAbilities, unit: str | None = None, n_draws: int = 200, seed: int = 0) -> Query:
    """Return the query that a pipeline can answer.

    unit (str | None): What to count, token, entity or document; None for the default. n_draws, seed (int): Of clusterings.
    RAISES C392: it cannot be read. C393: no pipe knows the label, C389: several do. C483: a pipe counts it with others. C394: no pipe scores the attribute. C395: it needs another
    component. C398: another unit.
    """
    kind, data = split_query(text)
    if kind == "label":
        return _label_query(text, data, abilities, unit)
    if kind == "event":
        if not abilities.resolves or not abilities.parses:
            missing, add = ("coreference", "calib_coref") if abilities.parses else ("dependencies", "a parser")
            raise calib_error("C395", query=repr(text), what=missing, add=add)
        words = {key: frozenset(word.lower() for word in data.get(key, [])) for key in _EVENT}
        event_unit = _unit(unit, EventQuery.units, "An event")
        return EventQuery(text, event_unit, words["verb"], words["names"], words["not"], n_draws, seed)
    places = [_place(item, abilities, text) for item in data]
    return PatternQuery(text, _unit(unit, PatternQuery.units, "A pattern"), tuple(places))


def _unit(unit: str | None, units: Sequence[str], subject: str) -> str:
    if unit is not None and unit not in units:
        raise calib_error("C398", what=subject, given=unit, wanted=" or ".join(units))
    return units[0] if unit is None else unit


def _label_query(text: str, label: str, abilities: QueryAbilities, unit: str | None) -> LabelQuery:
    knowing = []
    for label_scores in abilities.scored:
        names_of_pipe = {
            name[2:] if label_scores.annotation.has_prefixes and name != "O" else name
            for name in _countable_labels(label_scores)
        }
        own_name = next((name for name, shown in label_scores.names.items() if shown == label), label)
        if own_name in names_of_pipe:
            knowing.append((label_scores, own_name))
    if len(knowing) > 1:
        options = " or ".join(f"--attr {label_scores.attr}" for label_scores, _ in knowing)
        raise calib_error("C389", query=repr(text), n=len(knowing), options=options)
    for label_scores, own_name in knowing:
        return LabelQuery(text, _unit(unit, units_of(label_scores), f"The label {label}"), label_scores, own_name)
    _check_alone(text, label, abilities.scored)
    names = sorted(
        {
            label_scores.names.get(name, name)
            for label_scores in abilities.scored
            for name in _countable_labels(label_scores)
            if name
        }
    )
    listing = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    listing += " (no other identity of links is counted)" * any(
        label_scores.annotation.spans_are_units for label_scores in abilities.scored
    )
    raise calib_error("C393", given=label, query=repr(text), known=listing or "none")


def _check_alone(text: str, label: Any, scored: Iterable[Scored]) -> None:
    """RAISES C483: the scores have the label under a name that stands for others, too."""
    for label_scores in scored:
        if isinstance(label, str) and (merged := label_scores.merged.get(label)):
            labels = " and ".join(", ".join(label_scores.merged_in(merged)).rsplit(", ", 1))
            raise calib_error("C483", name=label_scores.attr, labels=labels, given=label, query=repr(text), merged=merged)


def _countable_labels(label_scores: Scored) -> Sequence[str]:
    """Return the labels that a query may name: of links only NIL, as their columns are places among the candidates."""
    return [EntityLinker.NIL] if label_scores.annotation.spans_are_units else label_scores.labels


def _place(attributes: Mapping[str, Any], abilities: QueryAbilities, text: str) -> Place:
    by_key = {label_scores.key: label_scores for label_scores in reversed(abilities.scored) if label_scores.key}
    plain = {key: value for key, value in attributes.items() if key not in by_key}
    for key in plain:
        if key in _UNCERTAIN:
            raise calib_error(
                "C394", query=repr(text), key=key, known=", ".join(sorted(by_key)) or "nothing that a token can be"
            )
        if key == "DEP" and not abilities.parses:
            raise calib_error("C395", query=repr(text), what="dependencies", add="a parser")
    tests = []
    for key, value in attributes.items():
        if key in by_key:
            try:
                test = label_test(value)
            except Exception as error:  # what is wrong with a regular expression is of a class of its own
                raise calib_error("C392", given=repr(text), why=str(error)) from None
            label_scores = by_key[key]
            if value != "" and not any(test(label_scores.value(label)) for label in label_scores.labels):
                _check_alone(text, value, [label_scores])
                values = sorted({label_scores.value(label) for label in label_scores.labels} - {""})
                raise calib_error("C393", given=value, query=repr(text), known=", ".join(values[:_SHOWN]))
            tests.append((label_scores, test))
    try:
        if plain:
            single_matcher(abilities.vocab, plain)
    except Exception as error:
        raise calib_error("C392", given=repr(text), why=" ".join(str(error).split())) from None
    return Place(plain, tuple(tests))
