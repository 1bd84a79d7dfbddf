"""The answer of a language model with the probabilities of its tokens, and the probabilities of parts of its text."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from reprlib import repr
from typing import Any, NamedTuple

from ...errors import brief
from .messages import calib_error
from .placing import AnswerText, bare, splits_word
from .shapes import CUT, read_response

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


@dataclass(frozen=True)
class Answer:
    """n tokens that a model generated. Positions are characters of `text`, all tokens joined.

    tokens (tuple[bytes, ...]): One may hold part of a character. logprobs (tuple[float, ...]): NaN where unknown. tops
    (tuple[tuple[tuple[bytes, float], ...], ...]): At each place the top tokens with their log-probabilities; () where unknown.
    outcome (str): "" if the answer ended by itself, else "cut" (by the limit of tokens), "filtered", "refused" or "called" (a tool).
    """

    __module__ = "spacy_calib"  # pickles outlive a move of the file

    tokens: tuple[bytes, ...]
    logprobs: tuple[float, ...]
    tops: tuple[tuple[tuple[bytes, float], ...], ...]
    outcome: str = ""

    # Reading

    @classmethod
    def of(cls, response: Any, choice: int = 0) -> Answer:
        """Read one choice of a response.

        response (Any): An object or mapping from the OpenAI API (chat, completion or response, or the chunks of a streamed chat),
        compatible ones, llama.cpp, Ollama, vLLM, SGLang, TGI, Gemini or LangChain; one choice; a list of tokens; or a mapping of
        tokens, logprobs (or token_logprobs) and perhaps top_logprobs to lists. Thoughts before the answer and special tokens
        behind it are dropped. RAISES C641: it is none of these. C642: no log-probabilities come with the text. C643: lists that
        do not fit, or a number that is no log-probability. C647: numbers in place of tokens.
        """
        if isinstance(response, Answer):
            return response
        try:
            items, outcome = read_response(response, choice)
            logs = tuple(_log(number) for _, number, _ in items)
            of_tops = [tuple((token, _log(number)) for token, number in tops if number is not None) for *_, tops in items]
            tokens = tuple(token for token, *_ in items)
            return cls(tokens, logs, tuple(map(_with_held_back, tokens, logs, of_tops)), outcome)
        except (AttributeError, LookupError, TypeError, RecursionError):  # something else where lists and mappings belong
            raise calib_error("C641", given=repr(response)) from None

    def plain(self) -> dict[str, Any]:
        """Return plain data, which `of` reads."""
        content = [
            {**_plain(token, number), "top_logprobs": [_plain(*pair) for pair in top]}
            for token, number, top in zip(self.tokens, self.logprobs, self.tops, strict=True)
        ]
        return {"logprobs": {"content": content}} | ({"outcome": self.outcome} if self.outcome else {})

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

        They are the product and the minimum of the probabilities from its first to its last token (without what is between text and
        type if other values of JSON are there), the probability of the first token of its type, and how far that exceeds the next one.
        """
        front, back = sorted([(field.start, field.end), (field.at, self._layout.end_of(field.label, field.at))])
        stretches = [front, back] if self._layout.has_value(front[1], back[0]) else [(front[0], max(front[1], back[1]))]
        numbers = [self._logprob_at(place) for place in sorted({i for ends in stretches for i in self._covering(*ends)})]
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

    @cached_property
    def _layout(self) -> AnswerText:
        return AnswerText(self.text)

    @property
    def json(self) -> list[str]:
        """Each whole object or list of JSON in the text, whatever stands around it."""
        return self._layout.documents

    def fields(self, pairs: Iterable[tuple[str, str]]) -> list[Field]:
        """Locate pairs of a text and a type in the answer, for example from JSON; missing ones are left out.

        Texts and types are values or keys of JSON, or else parts of the text. A text stands where the type is nearest, in the same
        object or list or above it, and a pair that is asked for again stands at another place.
        """
        pairs = list(pairs)
        places = {pair: iter(self._layout.locate(*pair, n)) for pair, n in Counter(pairs).items()}
        located = ((pair, next(places[pair], None)) for pair in pairs)
        return [Field(*pair, place[0].start, place[0].end, place[1].start) for pair, place in located if place is not None]

    def lines(self, separator: str = "->") -> list[Field]:
        """Return the fields of lines such as "text -> TYPE", without Markdown around either; of a cut answer all but its end."""
        pattern = re.compile(
            rf"^[ \t]*(?:(?:[-*\u2022]|\d+[.)])[ \t]+)?(\S.*?)[ \t]*{re.escape(separator)}[ \t]*(\S.*?)[ \t]*$", re.M
        )
        fields = []
        for match in pattern.finditer(self.text):
            (before, text), (within, label) = bare(match[1]), bare(match[2])
            start = match.start(1) + before
            fields.append(Field(text, label, start, start + len(text), match.start(2) + within))
        return [field for field in fields if not (self.outcome == CUT and self.text.find("\n", field.at) < 0)]

    def found_in(
        self, text: str, fields: Iterable[Field], types: Mapping[str, str] | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Return (the input of `spans_from`: each field's place in a text with its scores; counts of "invented" and "absent"
        fields).

        Longer fields are placed first, each on characters that none has taken, or else where no field of its label begins, ignoring
        case if necessary. types (Mapping | None): Name in the prompt, in any case -> label; others are invented. None keeps all.
        """
        labels = None if types is None else {name.casefold(): label for name, label in types.items()}
        taken, begun = bytearray(len(text)), set[tuple[int, str]]()
        places: dict[tuple[str, str, bool], Iterator[tuple[int, int]]] = {}
        counts: Counter[str] = Counter()
        spans: dict[int, dict[str, Any]] = {}
        fields = list(fields)
        for index in sorted(range(len(fields)), key=lambda index: -len(fields[index].text)):
            field, place = fields[index], None
            label = field.label if labels is None else labels.get(field.label.casefold()) or labels.get(_word(field.label))
            if not label:
                counts["invented"] += 1
                continue
            words = " ".join(field.text.split())
            for overlaps in (False, True):
                stretches = places.setdefault((words, label, overlaps), _stretches(text, words))
                free = ((a, b) for a, b in stretches if (a, label) not in begun and (overlaps or not any(taken[a:b])))
                place = place or next(free, None)
            if place is None:
                counts["absent"] += 1
                continue
            taken[slice(*place)] = b"\1" * (place[1] - place[0])
            begun.add((place[0], label))
            scores = self.scores(field)
            spans[index] = {"start": place[0], "end": place[1], "label": label, "score": scores[SCORES[0]], **scores}
        return [spans[index] for index in sorted(spans)], dict(counts)


def _stretches(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Yield where words stand in a text as whole words, first in the same case."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    for flags in (0, re.I) if words else ():
        yield from (match.span() for match in re.finditer(pattern, text, flags) if not splits_word(text, *match.span()))


def _word(label: str) -> str:
    """Return a type without what Markdown and sentences put around it."""
    return bare(label.strip(" .,;:!"))[1].strip(" .,;:!").casefold()


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


def _plain(token: bytes, number: float) -> dict[str, Any]:
    return {"bytes": list(token), "logprob": None if math.isnan(number) else number}


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
