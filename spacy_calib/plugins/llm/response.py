"""The answer of a language model with the probabilities of its tokens, and the probabilities of parts of its text."""

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

from ...errors import brief
from .messages import calib_error

# A token that a server calls impossible or does not tell the probability of (-inf, -9999.0 of OpenAI) has this logarithm: a probability of 0.
LEAST = -100.0
# Two log-probabilities that differ by less are one.
_SAME = 1e-6
# Names of the scores of a field, as `Answer.scores` gives them: the first is the probability, the others are looked at beside it.
SCORES = ("product", "least", "first", "margin")


class Field(NamedTuple):
    """A span and its type in an answer. start, end (int): Its characters there. at (int): First character of the type."""

    text: str
    label: str
    start: int
    end: int
    at: int


def _get(thing: Any, name: str) -> Any:
    """Return a field of a mapping or an object, or None."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _choices(response: Any) -> Any:
    """Return the choices of a response, or None. OpenAI's Responses and llama.cpp's /completion have one each."""
    output, text = _get(response, "output"), _get(response, "content")
    if output is not None:
        parts = [part for item in output for part in _get(item, "content") or () if _get(part, "type") == "output_text"]
        content = [logprob for part in parts for logprob in _get(part, "logprobs") or ()]
        return [{"text": "".join(_get(part, "text") for part in parts), "logprobs": {"content": content or None}}]
    if isinstance(text, str):
        return [{"text": text, "logprobs": {"content": _get(response, "completion_probabilities")}}]
    return _get(response, "choices")


@dataclass(frozen=True)
class Answer:
    """n tokens that a model generated. Positions are characters of `text`, all tokens joined.

    tokens (tuple[bytes, ...]): One may hold part of a character. logprobs (tuple[float, ...]): NaN where unknown. tops
    (tuple[tuple[tuple[bytes, float], ...], ...]): At each place the top tokens with their log-probabilities; () where unknown.
    """

    __module__ = "spacy_calib"  # pickles outlive a move of the file

    tokens: tuple[bytes, ...]
    logprobs: tuple[float, ...]
    tops: tuple[tuple[tuple[bytes, float], ...], ...]

    # Reading

    @classmethod
    def of(cls, response: Any, choice: int = 0) -> Answer:
        """Read one choice of a response.

        response (Any): An object or mapping from the OpenAI API (chat, completion or response), compatible ones, or llama.cpp;
        one choice; or a mapping of tokens, logprobs (or token_logprobs) and perhaps top_logprobs to lists. RAISES C641: it is
        none of these. C642: `logprobs` is null. C643: lists that do not fit, or a number that is no log-probability.
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
        has_text = any(_get(response, name) is not None for name in ("message", "text"))
        logprobs = _get(response, "logprobs")
        logprobs = (
            response if isinstance(logprobs, Sequence) or (logprobs is None and not has_text) else logprobs
        )  # plain lists stand in the mapping itself
        content, tokens = _get(logprobs, "content"), _get(logprobs, "tokens")
        if has_text and content is None and tokens is None:
            raise calib_error("C642", given=brief(_text_of(response)))
        if content is not None:
            return cls._from_lists(
                [_bytes(item) for item in content],
                [_get(item, "logprob") for item in content],
                [[(_bytes(top), _get(top, "logprob")) for top in _get(item, "top_logprobs") or ()] for item in content],
            )
        numbers = next(
            (values for name in ("token_logprobs", "logprobs") if (values := _get(logprobs, name)) is not None), None
        )
        if not isinstance(tokens, Sequence) or not isinstance(numbers, Sequence):
            raise calib_error("C641", given=brief(repr(response)))
        tops = _get(logprobs, "top_logprobs") or [None] * len(tokens)
        of_each = [[(_bytes(token), number) for token, number in (top or {}).items()] for top in tops]
        return cls._from_lists([_bytes(item) for item in tokens], numbers, of_each)

    @classmethod
    def _from_lists(
        cls, tokens: Sequence[bytes], numbers: Sequence[Any], tops: Sequence[Sequence[tuple[bytes, Any]]]
    ) -> Answer:
        """RAISES C643: different lengths, or a number that is no log-probability."""
        if not len(tokens) == len(numbers) == len(tops):
            raise calib_error("C643", given=f"{len(tokens)} tokens, {len(numbers)} numbers, {len(tops)} lists of others")
        logs = tuple(_log(number) for number in numbers)
        of_tops = (tuple((token, _log(number)) for token, number in top if number is not None) for top in tops)
        return cls(tuple(tokens), logs, tuple(map(_with_held_back, tokens, logs, of_tops)))

    def plain(self) -> dict[str, Any]:
        """Return plain data, which `of` reads."""
        content = [
            {**_plain(token, number), "top_logprobs": [_plain(*pair) for pair in top]}
            for token, number, top in zip(self.tokens, self.logprobs, self.tops, strict=True)
        ]
        return {"logprobs": {"content": content}}

    # Looking at it

    @cached_property
    def _signs(self) -> str:
        return b"".join(self.tokens).decode("utf-8", "surrogateescape")

    @cached_property
    def text(self) -> str:
        """The text, with each byte that is no UTF-8 as one U+FFFD."""
        return re.sub("[\udc80-\udcff]", "\ufffd", self._signs)

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """First character of each token and the one after its last; tokens may share a character."""
        char_ends = list(accumulate(len(sign.encode("utf-8", "surrogateescape")) for sign in self._signs))
        ends = list(accumulate(map(len, self.tokens)))
        return [
            (
                bisect_right(char_ends, end - len(token)),
                bisect_right(char_ends, end - 1) + 1 if token else bisect_right(char_ends, end),
            )
            for token, end in zip(self.tokens, ends, strict=True)
        ]

    def _covering(self, start: int, end: int) -> list[int]:
        """Return the tokens that hold a character of the stretch."""
        firsts, lasts = self._bounds
        candidates = range(bisect_right(lasts, start), bisect_left(firsts, end))
        return [place for place in candidates if start < self._places[place][1]]

    @cached_property
    def _bounds(self) -> tuple[list[int], list[int]]:
        """First character of each token, and the highest end so far; both ascend."""
        return [first for first, _ in self._places], [*accumulate((last for _, last in self._places), max)]

    def logprob(self, start: int, end: int) -> float:
        """Return the log-probability of the tokens from start to before end, given all before them."""
        return sum(self._logprob_at(place) for place in self._covering(start, end))

    def _logprob_at(self, place: int) -> float:
        """RAISES C642: the token has no probability."""
        if math.isnan(self.logprobs[place]):
            raise calib_error("C642", given=brief(self.text))
        return self.logprobs[place]

    def scores(self, field: Field) -> dict[str, float]:
        """Return the scores of a field, by SCORES.

        They are the product and the minimum of the probabilities from its first to its last token, the probability of the first
        token of its type, and how far that exceeds the next one.
        """
        start, end = min(field.start, field.at), max(field.end, field.at + len(field.label))
        numbers = [self._logprob_at(place) for place in self._covering(start, end)]
        type_token = self._covering(field.at, field.at + 1)[0]
        first = math.exp(self._logprob_at(type_token))
        rivals = [math.exp(number) for token, number in self.tops[type_token] if token != self.tokens[type_token]]
        margin = max(0.0, first - max(rivals, default=1.0 - first))
        return dict(zip(SCORES, (math.exp(sum(numbers)), math.exp(min(numbers)), first, margin), strict=True))

    def among(self, names: Sequence[str], at: int = 0) -> dict[str, float]:
        """Return the probability of each name as the continuation at a character, among these names, by the top tokens there.

        A token that begins several names counts for those that what follows it says, where the model wrote it, and else for all
        alike. {} if no top token begins a name. at (int): A character of the token.
        """
        places = self._covering(at, at + 1)
        masses = self._masses({name: name.encode() for name in names}, places[0]) if places else {}
        total = sum(masses.values())
        return {name: masses[name] / total for name in names} if total else {}

    def _masses(self, remaining: Mapping[str, bytes], place: int) -> dict[str, float]:
        """Return the probability that a token at a place begins each name. remaining (Mapping): The rest of each."""
        masses = dict.fromkeys(remaining, 0.0)
        tops = dict(self.tops[place]) if place < len(self.tokens) else {}
        if tops and not math.isnan(self.logprobs[place]):
            tops.setdefault(self.tokens[place], self.logprobs[place])
        for token, number in tops.items():
            begun = token.lstrip()
            matches = {
                name: tail
                for name, tail in remaining.items()
                if begun and tail and (tail.startswith(begun) or begun.startswith(tail))
            }
            longest = max((tail for tail in matches.values() if begun.startswith(tail)), key=len, default=b"")
            matches = {name: tail for name, tail in matches.items() if not longest or tail == longest}
            share = dict.fromkeys(matches, 1.0 / max(1, len(matches)))
            if len(matches) > 1 and token == self.tokens[place]:
                next_masses = self._masses({name: tail[len(begun) :] for name, tail in matches.items()}, place + 1)
                total = sum(next_masses.values())
                share = {name: next_masses[name] / total for name in matches} if total else share
            for name, part in share.items():
                masses[name] += math.exp(number) * part
        return masses

    # Fields

    def fields(self, pairs: Iterable[tuple[str, str]]) -> list[Field]:
        """Locate pairs of a text and a type in the answer, in order, for example from JSON; missing ones are left out.

        The nearer type around a text is taken, as the next pair, or a key such as "person_attributes", may name it again.
        """
        whole, offset, fields = self.text, 0, []
        for text, label in pairs:
            start = whole.find(text, offset)
            start, lower = (whole.find(text), 0) if start < 0 else (start, offset)
            preceding, following = whole.rfind(label, lower, max(start, 0)), whole.find(label, start + len(text))
            if preceding >= 0 and (following < 0 or start - preceding - len(label) <= following - start - len(text)):
                following = preceding
            if start >= 0 and following >= 0 and text and label:
                offset = max(start + len(text), following + len(label))
                fields.append(Field(text, label, start, start + len(text), following))
        return fields

    def lines(self, separator: str = "->") -> list[Field]:
        """Return the fields of lines such as "text -> TYPE"."""
        pattern = re.compile(
            rf"^[ \t]*(?:(?:[-*\u2022]|\d+[.)])[ \t]*)?(\S.*?)[ \t]*{re.escape(separator)}[ \t]*(\S.*?)[ \t]*$", re.M
        )
        return [
            Field(match[1], match[2], match.start(1), match.end(1), match.start(2)) for match in pattern.finditer(self.text)
        ]

    def found_in(
        self, text: str, fields: Iterable[Field], types: Mapping[str, str] | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Return (the input of `spans_from`: each field's place in a text with its scores; counts of "invented" and "absent"
        fields).

        A field is matched to the first free place of its text, ignoring case if necessary. types (Mapping | None): Name in the
        prompt, in any case -> label; others are invented. None keeps all.
        """
        labels = None if types is None else {name.casefold(): label for name, label in types.items()}
        used: set[tuple[int, str]] = set()
        counts: Counter[str] = Counter()
        spans = []
        for field in fields:
            label = field.label if labels is None else labels.get(field.label.casefold())
            if label is None:
                counts["invented"] += 1
                continue
            words = r"\s+".join(map(re.escape, field.text.split()))
            places = (match.span() for flags in (0, re.I) for match in re.finditer(words, text, flags))
            free = ((start, end) for start, end in places if (start, label) not in used and not _splits_word(text, start, end))
            place = next(free, None) if words else None
            if place is None:
                counts["absent"] += 1
                continue
            used.add((place[0], label))
            scores = self.scores(field)
            spans.append({"start": place[0], "end": place[1], "label": label, "score": scores[SCORES[0]], **scores})
        return spans, dict(counts)


def _with_held_back(
    emitted_token: bytes, number: float, tops: tuple[tuple[bytes, float], ...]
) -> tuple[tuple[bytes, float], ...]:
    """Return the top tokens with what the server held back before the emitted one, such as white space (llama.cpp)."""
    matches = [
        top
        for top, logprob in tops
        if top and abs(logprob - number) < _SAME and (emitted_token.endswith(top) or top.strip() == emitted_token.strip())
    ]
    if not matches or emitted_token in dict(tops):
        return tops
    prefix = emitted_token[: -len(matches[0])] if emitted_token.endswith(matches[0]) else b""
    return tuple((emitted_token if top == matches[0] else prefix + top, logprob) for top, logprob in tops)


def _splits_word(text: str, start: int, end: int) -> bool:
    """Return whether a stretch begins or ends inside a word, in a script that has cases."""

    def joins_letters(place: int) -> bool:
        pair = text[max(0, place - 1) : place + 1]
        return len(pair) == 2 and all(sign.isdigit() or sign.lower() != sign.upper() for sign in pair)

    return joins_letters(start) or joins_letters(end)


def _plain(token: bytes, number: float) -> dict[str, Any]:
    return {"bytes": list(token), "logprob": None if math.isnan(number) else number}


def _text_of(choice: Any) -> str:
    message = _get(choice, "message")
    return str(_get(message, "content") if message is not None else _get(choice, "text"))


def _bytes(token: Any) -> bytes:
    """Return the bytes of a token: a text, bytes, or something with one of both. RAISES C641: it is none."""
    value = token if isinstance(token, (str, bytes)) else _get(token, "bytes")
    value = _get(token, "token") if value is None else value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return bytes(list(value))
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
