"""Queries by token patterns, as for spaCy's Matcher but with uncertain labels; and the parser of all queries."""

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
from spacy.tokens import Doc, Token
from spacy.vocab import Vocab

from ....doc.view import doc_view
from ....types import Floats
from ..messages import calib_error
from .base import DOCUMENT, LabelQuery, LabelScores, LabelTest, Query, QueryResult, ViewOf, countable_units
from .entity_events import EventQuery

# Attributes that a component or an annotator sets; all others depend on the text alone.
_ANNOTATION_KEYS = ("DEP", "LEMMA", "MORPH")
# Attributes that a tokenizer sets.
_WORD_KEYS = frozenset({
    "ORTH", "TEXT", "NORM", "LOWER", "LENGTH", "SHAPE", "PREFIX", "SUFFIX", "LIKE_NUM", "LIKE_URL", "LIKE_EMAIL", "SPACY",
    "IS_ALPHA", "IS_ASCII", "IS_DIGIT", "IS_LOWER", "IS_UPPER", "IS_TITLE", "IS_PUNCT", "IS_SPACE", "IS_STOP", "IS_BRACKET",
    "IS_QUOTE", "IS_CURRENCY",
})  # fmt: skip
_TESTS: dict[str, Callable[[Any], LabelTest]] = {
    "IN": lambda values: lambda value: value in values,
    "NOT_IN": lambda values: lambda value: value not in values,
}


def make_label_test(condition: Any) -> LabelTest:
    """Return the test of a label by a condition: a label, {"IN": [...]}, {"REGEX": ...} and so on. RAISES ValueError: another."""
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
class TokenCondition:
    """The condition of a pattern on one token.

    plain (Mapping): Attributes for spaCy's Matcher. tests (tuple): (scores, test of the value) for each uncertain attribute.
    """

    plain: Mapping[str, Any]
    tests: tuple[tuple[LabelScores, LabelTest], ...]
    _matchers: dict[int, Matcher] = field(default_factory=dict, compare=False, repr=False)

    def match(self, doc: Doc) -> NDArray[np.bool_]:
        """Return which tokens have the attributes in `plain`."""
        if not self.plain:
            return np.ones(len(doc), dtype=bool)
        if id(doc.vocab) not in self._matchers:
            self._matchers[id(doc.vocab)] = single_matcher(doc.vocab, self.plain)
        matches = np.zeros(len(doc), dtype=bool)
        matches[[start for _, start, _ in self._matchers[id(doc.vocab)](doc, allow_missing=True)]] = True
        return matches


def _as_label_test(label_scores: LabelScores, test: LabelTest) -> LabelTest:
    """Return the test of a Matcher attribute's value as a test of the labels with these scores."""
    return lambda label: test(label_scores.value(label))


def single_matcher(vocab: Vocab, attributes: Mapping[str, Any]) -> Matcher:
    """Return a Matcher of single tokens. RAISES ValueError, MatchPatternError: spaCy knows no such pattern or attribute."""
    matcher = Matcher(vocab, validate=True)
    matcher.add("token", [[dict(attributes)]])
    for name in attributes.get("_", ()):
        if not Token.has_extension(name):
            raise ValueError(f"there is no attribute Token._.{name}")
    return matcher


@dataclass(frozen=True)
class PatternQuery(Query):
    """Counts the matches of a token pattern; the labels of its tokens are taken as independent."""

    text: str
    unit: str
    conditions: Sequence[TokenCondition]

    @property
    def labels(self) -> list[tuple[str, str]]:
        tests = [test for condition in self.conditions for test in condition.tests]
        return [(scores.attr, label) for scores, test in tests for label in scores.labels if test(scores.value(label))]

    @property
    def needs(self) -> list[str]:
        return sorted({key for condition in self.conditions for key in condition.plain if key in _ANNOTATION_KEYS})

    @property
    def reads_only_scores(self) -> bool:
        return all(key in _WORD_KEYS for condition in self.conditions for key in condition.plain)

    def answer(self, doc: Doc, view_of: ViewOf = doc_view) -> QueryResult:
        """Return the probability of each match: the product over its tokens."""
        matches = [condition.match(doc) for condition in self.conditions]
        raw_columns, calibrated_columns = [], []
        for condition, match in zip(self.conditions, matches, strict=True):
            raw = calibrated = match.astype(np.float64)
            for label_scores, test in condition.tests:
                raw_scores, scores = label_scores.sum_scores(doc, _as_label_test(label_scores, test), view_of)
                raw, calibrated = raw * raw_scores, calibrated * scores
            raw_columns.append(raw)
            calibrated_columns.append(calibrated)
        raw, calibrated = _multiply_along(raw_columns), _multiply_along(calibrated_columns)
        is_possible = (raw > 0) | (calibrated > 0)
        return QueryResult(raw[is_possible], calibrated[is_possible], self._count(doc, matches))

    def _count(self, doc: Doc, matches: Sequence[NDArray[np.bool_]], gold: bool = False) -> int:
        """Return how many matches there are by the predicted labels, or by the gold."""
        columns = []
        for condition, match in zip(self.conditions, matches, strict=True):
            for label_scores, test in condition.tests:
                match = match & label_scores.match_labels(doc, _as_label_test(label_scores, test), gold)
            columns.append(match.astype(np.float64))
        n = int(_multiply_along(columns).sum())
        return min(n, 1) if self.unit == DOCUMENT else n

    def count_gold(self, doc: Doc) -> int:
        return self._count(doc, [condition.match(doc) for condition in self.conditions], gold=True)


def _multiply_along(columns: Sequence[Floats]) -> Floats:
    """Return the probability of a match from each token on: the product of a probability for each token of the pattern.

    columns (Sequence[Floats]): For each condition of the pattern the probability that each token meets it, shape (n_tokens,).
    """
    n_starts = len(columns[0]) - len(columns) + 1
    if n_starts <= 0:
        return np.zeros(0)
    product = np.ones(n_starts)
    for offset, column in enumerate(columns):
        product = product * column[offset : offset + n_starts]
    return product


# Attributes that are always uncertain: a pipeline without scores of them cannot answer the query.
_UNCERTAIN_KEYS = ("TAG", "POS", "ENT_TYPE")
_EVENT_KEYS = {"verb", "names", "not"}
_MAX_LISTED = 40


@dataclass(frozen=True)
class QueryAbilities:
    """What a pipeline offers to queries: its label scores, and whether it has coreference and dependencies."""

    label_scores: Sequence[LabelScores]
    has_coref: bool
    has_parser: bool
    vocab: Vocab


def split_query(text: str) -> tuple[str, Any]:
    """Parse a query into ("label", label), ("pattern", list of dicts) or ("event", dict). RAISES C392: it is none of them."""
    query_text = text.strip()
    if query_text[:1] in ("[", "{"):
        try:
            data = json.loads(query_text)
        except (ValueError, RecursionError) as error:
            raise calib_error("C392", given=repr(text), why=f"it is no JSON ({error})") from None
        return ("event", _read_event(data, text)) if isinstance(data, dict) else ("pattern", _read_pattern(data, text))
    if not query_text:
        raise calib_error("C392", given=repr(text), why="it is empty")
    return "label", query_text


def _read_event(data: dict[str, Any], text: str) -> dict[str, list[str]]:
    """Return the lists of words of an event query. RAISES C392: a key or a value is none."""
    lists = {key: [value] if isinstance(value, str) else value for key, value in data.items()}
    fault = ""
    if set(data) - _EVENT_KEYS:
        fault = f"an event has {', '.join(sorted(_EVENT_KEYS))}, but not {', '.join(sorted(set(data) - _EVENT_KEYS))}"
    elif not lists.get("verb"):
        fault = "an event needs a verb"
    elif not all(isinstance(value, list) and all(isinstance(word, str) and word for word in value) for value in lists.values()):
        fault = "verb, names and not are words, or lists of them"
    if fault:
        raise calib_error("C392", given=repr(text), why=fault)
    return lists


def _read_pattern(data: Any, text: str) -> list[dict[str, Any]]:
    """Return a token pattern with keys in capitals. RAISES C392: it is none, or of no fixed length."""
    fault = ""
    if not isinstance(data, list) or not data or not all(isinstance(item, dict) for item in data):
        fault = "a pattern is a list with an object for each token"
    elif any(key.upper() == "OP" for item in data for key in item):
        fault = "a pattern with OP is of no fixed length; write a query for each length"
    if fault:
        raise calib_error("C392", given=repr(text), why=fault)
    return [{key.upper(): value for key, value in item.items()} for item in data]


def make_query(text: str, abilities: QueryAbilities, unit: str | None = None, n_draws: int = 200, seed: int = 0) -> Query:
    """Build a query that a pipeline can answer.

    unit (str | None): What to count: token, entity or document; None for the default. n_draws, seed (int): Number and seed of
    sampled clusterings. RAISES C392: the query cannot be read. C393: no pipe has the label. C389: several have it. C483: a pipe
    merges it with other labels. C394: no pipe scores the attribute. C395: a component is missing. C398: another unit.
    """
    kind, data = split_query(text)
    if kind == "label":
        return _make_label_query(text, data, abilities, unit)
    if kind == "event":
        if not abilities.has_coref or not abilities.has_parser:
            missing, add = ("coreference", "calib_coref") if abilities.has_parser else ("dependencies", "a parser")
            raise calib_error("C395", query=repr(text), what=missing, add=add)
        words = {key: frozenset(word.lower() for word in data.get(key, [])) for key in _EVENT_KEYS}
        event_unit = _check_unit(unit, EventQuery.units, "An event")
        return EventQuery(text, event_unit, words["verb"], words["names"], words["not"], n_draws, seed)
    conditions = tuple(_make_condition(item, abilities, text) for item in data)
    return PatternQuery(text, _check_unit(unit, PatternQuery.units, "A pattern"), conditions)


def _check_unit(unit: str | None, units: Sequence[str], subject: str) -> str:
    if unit is not None and unit not in units:
        raise calib_error("C398", what=subject, given=unit, wanted=" or ".join(units))
    return units[0] if unit is None else unit


def _make_label_query(text: str, label: str, abilities: QueryAbilities, unit: str | None) -> LabelQuery:
    """Return the query for a label. RAISES C389: several components have it. C393: none has it."""
    candidates = []
    for label_scores in abilities.label_scores:
        pipe_labels = {
            name[2:] if label_scores.annotation.has_prefixes and name != "O" else name
            for name in _countable_labels(label_scores)
        }
        pipe_label = next((name for name, query_name in label_scores.names.items() if query_name == label), label)
        if pipe_label in pipe_labels:
            candidates.append((label_scores, pipe_label))
    if len(candidates) > 1:
        options = " or ".join(f"--attr {label_scores.attr}" for label_scores, _ in candidates)
        raise calib_error("C389", query=repr(text), n=len(candidates), options=options)
    for label_scores, pipe_label in candidates:
        query_unit = _check_unit(unit, countable_units(label_scores), f"The label {label}")
        return LabelQuery(text, query_unit, label_scores, pipe_label)
    _check_not_merged(text, label, abilities.label_scores)
    all_scores = abilities.label_scores
    names = sorted({scores.names.get(name, name) for scores in all_scores for name in _countable_labels(scores) if name})
    listing = ", ".join(names[:_MAX_LISTED]) + (", ..." if len(names) > _MAX_LISTED else "")
    listing += " (no other identity of links is counted)" * any(scores.annotation.spans_are_units for scores in all_scores)
    raise calib_error("C393", given=label, query=repr(text), known=listing or "none")


def _check_not_merged(text: str, label: Any, all_scores: Sequence[LabelScores]) -> None:
    """Check that a missing label is not one of several that share one score. RAISES C483."""
    for label_scores in all_scores:
        if isinstance(label, str) and (name := label_scores.merged_labels.get(label)):
            labels = " and ".join(", ".join(label_scores.list_merged(name)).rsplit(", ", 1))
            raise calib_error("C483", name=label_scores.attr, labels=labels, given=label, query=repr(text), merged=name)


def _countable_labels(label_scores: LabelScores) -> Sequence[str]:
    """Return the labels that a query may name; of entity links only NIL, as all other columns are ranks of candidates."""
    return [EntityLinker.NIL] if label_scores.annotation.spans_are_units else label_scores.labels


def _make_condition(attributes: Mapping[str, Any], abilities: QueryAbilities, text: str) -> TokenCondition:
    """Return the condition of one token: what spaCy matches, and tests of labels that have scores. RAISES C392 to C395."""
    by_key = {label_scores.key: label_scores for label_scores in reversed(abilities.label_scores) if label_scores.key}
    plain = {key: value for key, value in attributes.items() if key not in by_key}
    for key in plain:
        if key in _UNCERTAIN_KEYS:
            raise calib_error(
                "C394", query=repr(text), key=key, known=", ".join(sorted(by_key)) or "nothing that a token can be"
            )
        if key == "DEP" and not abilities.has_parser:
            raise calib_error("C395", query=repr(text), what="dependencies", add="a parser")
    tests = []
    for key, value in attributes.items():
        if key in by_key:
            try:
                test = make_label_test(value)
            except Exception as error:  # a wrong regular expression raises re.error
                raise calib_error("C392", given=repr(text), why=str(error)) from None
            label_scores = by_key[key]
            if value != "" and not any(test(label_scores.value(label)) for label in label_scores.labels):
                _check_not_merged(text, value, [label_scores])
                values = sorted({label_scores.value(label) for label in label_scores.labels} - {""})
                raise calib_error("C393", given=value, query=repr(text), known=", ".join(values[:_MAX_LISTED]))
            tests.append((label_scores, test))
    try:
        if plain:
            single_matcher(abilities.vocab, plain)
    except Exception as error:
        raise calib_error("C392", given=repr(text), why=" ".join(str(error).split())) from None
    return TokenCondition(plain, tuple(tests))
