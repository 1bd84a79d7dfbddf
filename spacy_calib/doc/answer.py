"""The answer of a language model, with the probabilities of its tokens: what it says of stretches of its text."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from ..errors import brief, calib_error

# A token that a server calls impossible or does not tell the probability of (-inf, -9999.0 of OpenAI) has this logarithm: a probability of 0.
LEAST = -100.0
# Two log-probabilities that differ by less are one.
_SAME = 1e-6
# Names of the scores of a field, as `Answer.scores` gives them: the first is the probability, the others are looked at beside it.
SCORES = ("product", "least", "first", "margin")


class Field(NamedTuple):
    """A span and its type in an answer. start, end (int): Its first character there, and the one behind the last.
    at (int): First character of the type.
    """

    text: str
    label: str
    start: int
    end: int
    at: int


def _held(thing: Any, name: str) -> Any:
    """A field of a mapping, or of an object; None where there is none."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _choices(response: Any) -> Any:
    """The choices of a response, None where it has none. OpenAI's Responses, and what llama.cpp gives at /completion, have one each."""
    output, text = _held(response, "output"), _held(response, "content")
    if output is not None:
        parts = [part for item in output for part in _held(item, "content") or () if _held(part, "type") == "output_text"]
        content = [one for part in parts for one in _held(part, "logprobs") or ()]
        return [{"text": "".join(_held(part, "text") for part in parts), "logprobs": {"content": content or None}}]
    if isinstance(text, str):
        return [{"text": text, "logprobs": {"content": _held(response, "completion_probabilities")}}]
    return _held(response, "choices")


@dataclass(frozen=True)
class Answer:
    """n tokens that a model generated. Places are characters of `text`, which is all tokens joined.

    tokens (tuple[bytes, ...]): Their bytes: one may hold a part of a character. logprobs (tuple[float, ...]): Of each, NaN where the model says nothing.
    tops (tuple[tuple[tuple[bytes, float], ...], ...]): At each place the likeliest tokens with their log-probabilities; () where nothing is known.
    """

    tokens: tuple[bytes, ...]
    logprobs: tuple[float, ...]
    tops: tuple[tuple[tuple[bytes, float], ...], ...]

    # Reading

    @classmethod
    def of(cls, response: Any, choice: int = 0) -> Answer:
        """Read one choice of a response.

        response (Any): As the API of OpenAI gives it (chat, completion or response), and those that speak like it, or llama.cpp's own, as an object or a
            mapping; a choice alone; or a mapping of tokens, logprobs (or token_logprobs) and perhaps top_logprobs to lists.
        RAISES C641: it is none of these. C642: `logprobs` is null. C643: lists that do not fit, or a number that is no log-probability.
        """
        if isinstance(response, Answer):
            return response
        try:
            choices = _choices(response)
            if choices is None:
                return cls._read(response)
            if not isinstance(choices, Sequence) or not -len(choices) <= choice < len(choices):
                raise calib_error("C641", given=brief(repr(choices)))
            return cls._read(choices[choice])
        except (AttributeError, TypeError):  # something else than lists and mappings where these belong
            raise calib_error("C641", given=brief(repr(response))) from None

    @classmethod
    def _read(cls, response: Any) -> Answer:
        told = any(_held(response, name) is not None for name in ("message", "text"))
        given = _held(response, "logprobs")
        given = (
            response if isinstance(given, Sequence) or (given is None and not told) else given
        )  # plain lists stand in the mapping itself
        content, tokens = _held(given, "content"), _held(given, "tokens")
        if told and content is None and tokens is None:
            raise calib_error("C642", given=brief(_said(response)))
        if content is not None:
            return cls._checked(
                [_bytes(one) for one in content],
                [_held(one, "logprob") for one in content],
                [[(_bytes(top), _held(top, "logprob")) for top in _held(one, "top_logprobs") or ()] for one in content],
            )
        numbers = next((found for name in ("token_logprobs", "logprobs") if (found := _held(given, name)) is not None), None)
        if not isinstance(tokens, Sequence) or not isinstance(numbers, Sequence):
            raise calib_error("C641", given=brief(repr(response)))
        tops = _held(given, "top_logprobs") or [None] * len(tokens)
        of_each = [[(_bytes(token), number) for token, number in (top or {}).items()] for top in tops]
        return cls._checked([_bytes(one) for one in tokens], numbers, of_each)

    @classmethod
    def _checked(cls, tokens: Sequence[bytes], numbers: Sequence[Any], tops: Sequence[Sequence[tuple[bytes, Any]]]) -> Answer:
        """RAISES C643: other lengths, or a number that is no log-probability."""
        if not len(tokens) == len(numbers) == len(tops):
            raise calib_error("C643", given=f"{len(tokens)} tokens, {len(numbers)} numbers, {len(tops)} lists of others")
        logs = tuple(_log(number) for number in numbers)
        of_tops = (tuple((token, _log(number)) for token, number in top if number is not None) for top in tops)
        return cls(tuple(tokens), logs, tuple(map(_with_held_back, tokens, logs, of_tops)))

    def plain(self) -> dict[str, Any]:
        """The same as plain data, which `of` reads again."""
        content = [
            {**_plain(token, number), "top_logprobs": [_plain(*one) for one in top]}
            for token, number, top in zip(self.tokens, self.logprobs, self.tops, strict=True)
        ]
        return {"logprobs": {"content": content}}

    # Looking at it

    @cached_property
    def _signs(self) -> str:
        return b"".join(self.tokens).decode("utf-8", "surrogateescape")

    @cached_property
    def text(self) -> str:
        """Each byte that is no UTF-8 stands as one U+FFFD."""
        return re.sub("[\udc80-\udcff]", "\ufffd", self._signs)

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """First character of each token, and the one behind its last; a character that tokens share is in all of them."""
        behind = list(accumulate(len(sign.encode("utf-8", "surrogateescape")) for sign in self._signs))
        ends = list(accumulate(map(len, self.tokens)))
        return [
            (bisect_right(behind, end - len(token)), bisect_right(behind, end - 1) + 1 if token else bisect_right(behind, end))
            for token, end in zip(self.tokens, ends, strict=True)
        ]

    def _covering(self, start: int, end: int) -> list[int]:
        """The tokens that hold a character of the stretch."""
        firsts, lasts = self._bounds
        near = range(bisect_right(lasts, start), bisect_left(firsts, end))
        return [place for place in near if start < self._places[place][1]]

    @cached_property
    def _bounds(self) -> tuple[list[int], list[int]]:
        """Of the tokens, the first character, and the greatest one behind a last that there was so far; both rise."""
        return [first for first, _ in self._places], [*accumulate((last for _, last in self._places), max)]

    def logprob(self, start: int, end: int) -> float:
        """The log-probability of the tokens that hold the characters from start to before end, given all before them."""
        return sum(self._known(place) for place in self._covering(start, end))

    def _known(self, place: int) -> float:
        """RAISES C642: the model says nothing of this token."""
        if math.isnan(self.logprobs[place]):
            raise calib_error("C642", given=brief(self.text))
        return self.logprobs[place]

    def scores(self, field: Field) -> dict[str, float]:
        """Of a field, by SCORES: the probability of all from its beginning to its end, the least one of a token there, and of the first token of its type that one
        and by how much it passes the next likely one.
        """
        start, end = min(field.start, field.at), max(field.end, field.at + len(field.label))
        numbers = [self._known(place) for place in self._covering(start, end)]
        at = self._covering(field.at, field.at + 1)[0]
        first = math.exp(self._known(at))
        rivals = [math.exp(number) for token, number in self.tops[at] if token != self.tokens[at]]
        margin = max(0.0, first - max(rivals, default=1.0 - first))
        return dict(zip(SCORES, (math.exp(sum(numbers)), math.exp(min(numbers)), first, margin), strict=True))

    def among(self, names: Sequence[str], at: int = 0) -> dict[str, float]:
        """The probability of each name as what goes on at a place, among these names: of the likeliest tokens there, those that begin a name, or a
        name and more, count for it. One that begins several counts for those that what follows it says, where the model wrote it, and else for all alike.

        {} where none of the likeliest tokens begins a name, or none is known. at (int): A character; the token that holds it is looked at.
        """
        places = self._covering(at, at + 1)
        masses = self._masses({name: name.encode() for name in names}, places[0]) if places else {}
        total = sum(masses.values())
        return {name: masses[name] / total for name in names} if total else {}

    def _masses(self, rest: Mapping[str, bytes], place: int) -> dict[str, float]:
        """Of each name the probability that a token at a place begins it. rest (Mapping): What of it is to come."""
        found = dict.fromkeys(rest, 0.0)
        tops = dict(self.tops[place]) if place < len(self.tokens) else {}
        if tops and not math.isnan(self.logprobs[place]):
            tops.setdefault(self.tokens[place], self.logprobs[place])
        for token, number in tops.items():
            begun = token.lstrip()
            own = {
                name: left
                for name, left in rest.items()
                if begun and left and (left.startswith(begun) or begun.startswith(left))
            }
            longest = max((left for left in own.values() if begun.startswith(left)), key=len, default=b"")
            own = {name: left for name, left in own.items() if not longest or left == longest}
            share = dict.fromkeys(own, 1.0 / max(1, len(own)))
            if len(own) > 1 and token == self.tokens[place]:
                further = self._masses({name: left[len(begun) :] for name, left in own.items()}, place + 1)
                total = sum(further.values())
                share = {name: further[name] / total for name in own} if total else share
            for name, part in share.items():
                found[name] += math.exp(number) * part
        return found

    # Fields

    def fields(self, pairs: Iterable[tuple[str, str]]) -> list[Field]:
        """Where pairs of a text and a type stand in the answer, one behind the other: what JSON says, for example. A pair that it has not got is left out.

        Of the types beside a text the nearer one is meant, since the next pair, or a key such as "person_attributes", may name it again.
        """
        whole, behind, found = self.text, 0, []
        for text, label in pairs:
            start = whole.find(text, behind)
            start, after = (whole.find(text), 0) if start < 0 else (start, behind)
            before, at = whole.rfind(label, after, max(start, 0)), whole.find(label, start + len(text))
            if before >= 0 and (at < 0 or start - before - len(label) <= at - start - len(text)):
                at = before
            if start >= 0 and at >= 0 and text and label:
                behind = max(start + len(text), at + len(label))
                found.append(Field(text, label, start, start + len(text), at))
        return found

    def lines(self, between: str = "->") -> list[Field]:
        """The fields of lines such as "text -> TYPE". between (str): What stands between the two."""
        marked = re.compile(
            rf"^[ \t]*(?:(?:[-*\u2022]|\d+[.)])[ \t]*)?(\S.*?)[ \t]*{re.escape(between)}[ \t]*(\S.*?)[ \t]*$", re.M
        )
        return [Field(one[1], one[2], one.start(1), one.end(1), one.start(2)) for one in marked.finditer(self.text)]

    def found_in(
        self, text: str, fields: Iterable[Field], types: Mapping[str, str] | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """(what `spans_from` takes: where each field stands in a text, with its scores; how many were left out as "invented" and as "absent").

        A field stands for the first place of its text that no field before it has with the same type; where the text has it in other case alone, that is meant.
        types (Mapping | None): What the prompt calls each type, in any case -> its label; others are invented. None keeps all.
        """
        known = None if types is None else {name.casefold(): label for name, label in types.items()}
        taken: set[tuple[int, str]] = set()
        counts: Counter[str] = Counter()
        found = []
        for field in fields:
            label = field.label if known is None else known.get(field.label.casefold())
            if label is None:
                counts["invented"] += 1
                continue
            words = r"\s+".join(map(re.escape, field.text.split()))
            places = (one.span() for flags in (0, re.I) for one in re.finditer(words, text, flags))
            free = ((start, end) for start, end in places if (start, label) not in taken and not _goes_on(text, start, end))
            place = next(free, None) if words else None
            if place is None:
                counts["absent"] += 1
                continue
            taken.add((place[0], label))
            scores = self.scores(field)
            found.append({"start": place[0], "end": place[1], "label": label, "score": scores[SCORES[0]], **scores})
        return found, dict(counts)


def _with_held_back(written: bytes, number: float, tops: tuple[tuple[bytes, float], ...]) -> tuple[tuple[bytes, float], ...]:
    """The likeliest tokens at a place, each with what the server held back before it. llama.cpp writes white space that might have begun a stop word, and
    parts of a character, in front of the next token, but not of those beside it. Others strip white space from one of the two.
    """
    own = [
        token
        for token, other in tops
        if token and abs(other - number) < _SAME and (written.endswith(token) or token.strip() == written.strip())
    ]
    if not own or written in dict(tops):
        return tops
    held = written[: -len(own[0])] if written.endswith(own[0]) else b""
    return tuple((written if token == own[0] else held + token, other) for token, other in tops)


def _goes_on(text: str, start: int, end: int) -> bool:
    """Whether a word goes on over either end of a stretch, in a script that has cases."""

    def joined(place: int) -> bool:
        beside = text[max(0, place - 1) : place + 1]
        return len(beside) == 2 and all(sign.isdigit() or sign.lower() != sign.upper() for sign in beside)

    return joined(start) or joined(end)


def _plain(token: bytes, number: float) -> dict[str, Any]:
    return {"bytes": list(token), "logprob": None if math.isnan(number) else number}


def _said(choice: Any) -> str:
    message = _held(choice, "message")
    return str(_held(message, "content") if message is not None else _held(choice, "text"))


def _bytes(token: Any) -> bytes:
    """Of a token, which may be a text, bytes, or something with one of both. RAISES C641: it is none."""
    held = token if isinstance(token, (str, bytes)) else _held(token, "bytes")
    held = _held(token, "token") if held is None else held
    if isinstance(held, str):
        return held.encode("utf-8", "surrogatepass")
    try:
        return bytes(list(held))
    except (TypeError, ValueError):
        raise calib_error("C641", given=brief(repr(token))) from None


def _log(number: Any) -> float:
    """RAISES C643: no log-probability."""
    if number is None:
        return math.nan
    try:
        value = math.nan if isinstance(number, (bool, str, bytes)) else float(number)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not value <= 1e-3:
        raise calib_error("C643", given=brief(repr(number)))
    return min(0.0, max(LEAST, value))
