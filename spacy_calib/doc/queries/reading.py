"""The text of a query -> the query, as far as a pipeline can answer it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spacy.vocab import Vocab

from ...errors import calib_error
from .base import LabelQuery, Query, Scored, units_of
from .entity_events import EventQuery
from .patterns import PatternQuery, Place, asked_of, single_matcher

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
    key, equals, value = given.partition("=")
    if equals and key in ("text", "lemma", "label"):
        if not value:
            raise calib_error("C392", given=repr(text), why=f"nothing stands behind {key}=")
        if key == "label":
            return "label", value
        words = value.split()
        return "pattern", [{"LOWER": word.lower()} if key == "text" else {"LEMMA": word} for word in words]
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
        own = {name[2:] if scored.annotation.prefixed and name != "O" else name for name in scored.labels}
        if label in own:
            return LabelQuery(text, _unit(unit, units_of(scored), f"The label {label}"), scored, label)
    names = sorted({name for scored in asked.scored for name in scored.labels} - {""})
    known = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise calib_error("C393", given=label, query=repr(text), known=known or "none")


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
