"""`Answer`: the tokens of a language model's answer with their log-probabilities, and the scores of parts of its text."""

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
from .placing import AnswerText, splits_word, strip_markup
from .shapes import CUT, read_response

MIN_LOGPROB = -100.0  # lower log-probabilities, such as -inf or -9999.0 of OpenAI, count as this: a probability of 0
_TOLERANCE = 1e-6  # two log-probabilities that differ by less are equal
SCORES = ("product", "least", "first", "margin")  # of a field, as `Answer.scores` describes; the first is its probability


class Field(NamedTuple):
    """A text and its type (label) in an answer. start, end: Offsets of the text. label_start: Offset of the type."""

    text: str
    label: str
    start: int
    end: int
    label_start: int


@dataclass(frozen=True)
class Answer:
    """The n tokens of a language model's answer, with their log-probabilities. Offsets count characters of `text`.

    tokens (tuple[bytes, ...]): UTF-8 bytes of each token, perhaps of a part of a character. logprobs (tuple[float, ...]): NaN
    if unknown. tops (tuple[tuple[tuple[bytes, float], ...], ...]): The top tokens at each step with their log-probabilities; ()
    if unknown. outcome (str): "" for a complete answer, else "cut" (limit of tokens), "filtered", "refused", "called" (a tool).

        >>> answer = Answer.from_response({"tokens": ["dog", " ->", " animal"], "logprobs": [-0.1, -0.01, -0.2]})
        >>> answer.lines()
        [Field(text='dog', label='animal', start=0, end=3, label_start=7)]
    """

    __module__ = "spacy_calib"  # pickles outlive a move of the file

    tokens: tuple[bytes, ...]
    logprobs: tuple[float, ...]
    tops: tuple[tuple[tuple[bytes, float], ...], ...]
    outcome: str = ""

    @classmethod
    def from_response(cls, response: object) -> Answer:
        """Read the first choice of a response, without thoughts before the answer and special tokens after it.

        response: A response, as an object or mapping, of the OpenAI API, a compatible server, llama.cpp, Ollama, vLLM, SGLang,
        TGI, Gemini or LangChain. Also one of its choices; the chunks of a streamed chat; a list of objects, one per token; or a
        mapping with the lists "tokens", "logprobs" (or "token_logprobs") and perhaps "top_logprobs".
        RAISES C641: another kind of object. C642: a text without log-probabilities. C643: lists of unequal length, or a number
        that is no log-probability. C647: token numbers in place of texts.
        """
        if isinstance(response, Answer):
            return response
        try:
            items, outcome = read_response(response)
            logprobs = tuple(_check_logprob(number) for _, number, _ in items)
            all_tops = [
                tuple((token, _check_logprob(number)) for token, number in tops if number is not None) for *_, tops in items
            ]
            tokens = tuple(token for token, *_ in items)
            return cls(tokens, logprobs, tuple(map(_restore_prefix, tokens, logprobs, all_tops)), outcome)
        except (AttributeError, LookupError, TypeError, RecursionError):  # not the lists and mappings of a response
            raise calib_error("C641", given=repr(response)) from None

    def plain(self) -> dict[str, Any]:
        """Return the answer as plain data, from which `from_response` rebuilds it."""
        content = [
            {**_plain_token(token, logprob), "top_logprobs": [_plain_token(*pair) for pair in tops]}
            for token, logprob, tops in zip(self.tokens, self.logprobs, self.tops, strict=True)
        ]
        return {"logprobs": {"content": content}} | ({"outcome": self.outcome} if self.outcome else {})

    @cached_property
    def _characters(self) -> str:
        """The tokens joined to a text, in which each byte that is not UTF-8 is one surrogate character."""
        return b"".join(self.tokens).decode("utf-8", "surrogateescape")

    @cached_property
    def text(self) -> str:
        """The text of the answer; each byte that is not UTF-8 is one U+FFFD."""
        return re.sub("[\udc80-\udcff]", "\ufffd", self._characters)

    @cached_property
    def _token_spans(self) -> list[tuple[int, int]]:
        """(first character, the one after the last) of each token; tokens that are parts of one character share it."""
        char_ends = list(accumulate(len(character.encode("utf-8", "surrogateescape")) for character in self._characters))
        token_ends = accumulate(map(len, self.tokens))  # both in bytes
        spans = []
        for token, end in zip(self.tokens, token_ends, strict=True):
            first = bisect_right(char_ends, end - len(token))  # number of characters that end before the token
            spans.append((first, bisect_right(char_ends, end - 1) + 1 if token else first))  # an empty token has no character
        return spans

    def _find_tokens(self, start: int, end: int) -> list[int]:
        """Return the indices of the tokens that have a character from `start` to before `end`."""
        firsts, highest_ends = self._search_bounds
        candidates = range(bisect_right(highest_ends, start), bisect_left(firsts, end))
        # An empty token inside a character ends where that character begins, so before the end of the token to its left.
        return [index for index in candidates if start < self._token_spans[index][1]]

    @cached_property
    def _search_bounds(self) -> tuple[list[int], list[int]]:
        """(first character of each token, highest end of any token up to it), both ascending for binary search."""
        return [first for first, _ in self._token_spans], [*accumulate((end for _, end in self._token_spans), max)]

    def _logprob_at(self, index: int) -> float:
        """Return the log-probability of the token with this index. RAISES C642: it is unknown."""
        if math.isnan(self.logprobs[index]):
            raise calib_error("C642", given=brief(self.text))
        return self.logprobs[index]

    def scores(self, field: Field) -> dict[str, float]:
        """Return four scores of a field, in [0, 1], with the names in SCORES.

        "product", "least": Product and minimum of the probabilities of the field's tokens: those of its text and its type, and
        those between the two unless another value of JSON is there. "first": Probability of the first token of its type.
        "margin": "first" minus that of the most likely other token, at least 0. RAISES C642: a token has no log-probability.
        """
        label_span = (field.label_start, self._layout.end_of(field.label, field.label_start))
        front, back = sorted([(field.start, field.end), label_span])  # text and type, in the order of the answer
        # If other values are between the two, their tokens do not count, else the tokens there do.
        spans = [front, back] if self._layout.has_value(front[1], back[0]) else [(front[0], max(front[1], back[1]))]
        token_indices = {index for span in spans for index in self._find_tokens(*span)}
        logprobs = [self._logprob_at(index) for index in sorted(token_indices)]
        type_token = self._find_tokens(field.label_start, field.label_start + 1)[0]
        first = math.exp(self._logprob_at(type_token))
        rivals = [math.exp(logprob) for token, logprob in self.tops[type_token] if token != self.tokens[type_token]]
        margin = max(0.0, first - max(rivals, default=1.0 - first))  # without top tokens: all others count as one rival
        return dict(zip(SCORES, (math.exp(sum(logprobs)), math.exp(min(logprobs)), first, margin), strict=True))

    def among(self, names: Sequence[str], index: int = 0) -> dict[str, float]:
        """Return name -> probability that the name is at character `index`, by the top tokens there; the values sum to 1.

        If a token begins several names, they share its probability: if the model wrote this token, the tokens after it show in
        which proportion, else equally. names: For instance categories. RETURNS (dict): {} if no top token begins a name.
        """
        tokens = self._find_tokens(index, index + 1)
        sums = self._sum_by_name({name: name.encode() for name in names}, tokens[0]) if tokens else {}
        total = sum(sums.values())
        return {name: sums[name] / total for name in names} if total else {}

    def _sum_by_name(self, tails: Mapping[str, bytes], index: int) -> dict[str, float]:
        """Return name -> probability that its tail follows at token `index`. tails: Name -> its bytes not yet in the answer."""
        sums = dict.fromkeys(tails, 0.0)
        tops = dict(self.tops[index]) if index < len(self.tokens) else {}
        if tops and not math.isnan(self.logprobs[index]):  # the answer's token may be none of the top ones
            tops.setdefault(self.tokens[index], self.logprobs[index])
        for token, logprob in tops.items():
            word = token.lstrip()  # a token may begin with the space before a word
            candidates = {
                name: tail for name, tail in tails.items() if word and tail and (tail.startswith(word) or word.startswith(tail))
            }
            # If the token contains whole tails ("New York" and "New"), only the longest counts.
            longest = max((tail for tail in candidates.values() if word.startswith(tail)), key=len, default=None)
            matches = {name: tail for name, tail in candidates.items() if longest is None or tail == longest}
            shares = dict.fromkeys(matches, 1.0 / max(1, len(matches)))  # of the token's probability, equal at first
            if len(matches) > 1 and token == self.tokens[index]:  # what follows is known only for the token that was written
                next_sums = self._sum_by_name({name: tail[len(word) :] for name, tail in matches.items()}, index + 1)
                total = sum(next_sums.values())
                shares = {name: next_sums[name] / total for name in matches} if total else shares
            for name, share in shares.items():
                sums[name] += math.exp(logprob) * share
        return sums

    @cached_property
    def _layout(self) -> AnswerText:
        """The text with its JSON parsed, in which texts and types are located."""
        return AnswerText(self.text)

    @property
    def json(self) -> list[str]:
        """Each complete JSON object or list in the text, without the text around it."""
        return self._layout.documents

    def fields(self, pairs: Iterable[tuple[str, str]]) -> list[Field]:
        """Locate (text, type) pairs in the answer, and return their fields, without pairs that the answer does not contain.

        A text or type is located as a whole key or value of JSON or, if there is none, anywhere in the answer. Of several
        occurrences, the text and type nearest to each other are taken: in the tree of JSON, or else in characters. Equal pairs
        get different occurrences.
        """
        pairs = list(pairs)
        unused_matches = {pair: iter(self._layout.locate(*pair, n)) for pair, n in Counter(pairs).items()}
        fields = []
        for pair in pairs:
            if (match := next(unused_matches[pair], None)) is not None:
                text_match, label_match = match
                fields.append(Field(*pair, text_match.start, text_match.end, label_match.start))
        return fields

    def lines(self, separator: str = "->") -> list[Field]:
        """Return a field for each line such as "text -> TYPE", without Markdown. separator (str): The sign between the two.

        The last line of a cut answer is left out.
        """
        # A list mark or number, if any, then the text, the separator and the type.
        pattern = re.compile(
            rf"^[ \t]*(?:(?:[-*\u2022]|\d+[.)])[ \t]+)?(\S.*?)[ \t]*{re.escape(separator)}[ \t]*(\S.*?)[ \t]*$", re.M
        )
        fields = []
        for match in pattern.finditer(self.text):
            (text_shift, text), (label_shift, label) = strip_markup(match[1]), strip_markup(match[2])
            start = match.start(1) + text_shift
            fields.append(Field(text, label, start, start + len(text), match.start(2) + label_shift))
        end_of_last_line = self.text.rfind("\n") if self.outcome == CUT else len(self.text)  # of the last complete one
        return [field for field in fields if field.label_start <= end_of_last_line]

    def found_in(
        self, text: str, fields: Iterable[Field], types: Mapping[str, str] | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Find fields in the text that the prompt was about, and return their spans, and how many fields have none.

        Longer fields are placed first. A field overlaps no other one if possible; else no other field with its label may begin
        at the same character. Case is ignored if necessary. types (Mapping | None): Name of a type in the prompt, in any case
        -> label; None takes each type as label. RETURNS (tuple): Spans as dicts of "start", "end", "label" and scores, for
        `spans_from`; numbers of fields that are "invented" (the type is not in `types`) or "absent" (no place in the text).
        """
        labels = None if types is None else {name.casefold(): label for name, label in types.items()}
        places = _Places(text)
        counts: Counter[str] = Counter()
        spans: dict[int, dict[str, Any]] = {}  # number of the field -> its span
        longest_first = sorted(enumerate(fields), key=lambda numbered: -len(numbered[1].text))
        for index, field in longest_first:
            label: str | None = field.label
            if labels is not None:  # the type as it is written, or else without Markdown and punctuation
                label = labels.get(field.label.casefold()) or labels.get(_normalize(field.label))
            if not label:
                counts["invented"] += 1
                continue
            place = places.take(" ".join(field.text.split()), label)
            if place is None:
                counts["absent"] += 1
                continue
            start, end = place
            scores = self.scores(field)
            spans[index] = {"start": start, "end": end, "label": label, "score": scores["product"], **scores}
        return [spans[index] for index in sorted(spans)], dict(counts)


class _Places:
    """The places in a text that are assigned to fields, one after the other."""

    def __init__(self, text: str):
        self.text = text
        self._is_taken = bytearray(len(text))  # for each character, whether a field has it
        self._starts: set[tuple[int, str]] = set()  # (first character, label) of each field
        # (words, label, whether it may overlap) -> occurrences of the words that no equal field has tried yet.
        self._occurrences: dict[tuple[str, str, bool], Iterator[tuple[int, int]]] = {}

    def take(self, words: str, label: str) -> tuple[int, int] | None:
        """Take the next free occurrence of some words for a field, and return (start, end) in characters; None if none is free.

        The occurrence overlaps no other field if possible; else no other field with this label may begin at its start.
        """
        for may_overlap in (False, True):
            candidates = self._occurrences.setdefault((words, label, may_overlap), _find_words(self.text, words))
            for start, end in candidates:
                if (start, label) not in self._starts and (may_overlap or not any(self._is_taken[start:end])):
                    self._is_taken[start:end] = b"\1" * (end - start)
                    self._starts.add((start, label))
                    return start, end
        return None


def _find_words(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each occurrence of some whole words in a text, first those in the same case."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    for flags in (0, re.I) if words else ():  # the second pass repeats those in the same case
        yield from (match.span() for match in re.finditer(pattern, text, flags) if not splits_word(text, *match.span()))


def _normalize(label: str) -> str:
    """Return a type's name in lower case, without the Markdown and punctuation around it."""
    return strip_markup(label.strip(" .,;:!"))[1].strip(" .,;:!").casefold()


def _restore_prefix(
    token: bytes, token_logprob: float, tops: tuple[tuple[bytes, float], ...]
) -> tuple[tuple[bytes, float], ...]:
    """Return the top tokens of a step with the white space before them, which llama.cpp writes only before the answer's token.

    token (bytes), token_logprob (float): The answer's token at this step. tops (tuple): (token, log-probability) of each top.
    """
    bare_tokens = [  # the answer's token as it is among the top tokens, without the white space
        top
        for top, logprob in tops
        if top and abs(logprob - token_logprob) < _TOLERANCE and (token.endswith(top) or top.strip() == token.strip())
    ]
    if not bare_tokens or token in dict(tops):  # the prefix is not known, or nothing is missing
        return tops
    prefix = token[: -len(bare_tokens[0])] if token.endswith(bare_tokens[0]) else b""
    return tuple((token if top == bare_tokens[0] else prefix + top, logprob) for top, logprob in tops)


def _plain_token(token: bytes, logprob: float) -> dict[str, Any]:
    """Return a token and its log-probability (None for NaN) as plain data, in the form of the OpenAI API."""
    return {"bytes": list(token), "logprob": None if math.isnan(logprob) else logprob}


def _check_logprob(number: Any) -> float:
    """Return a log-probability, clipped to [MIN_LOGPROB, 0]; NaN for None. RAISES C643: it is no number of at most 0."""
    if number is None:
        return math.nan
    try:
        value = math.nan if isinstance(number, (bool, str, bytes)) else float(number)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not value <= 1e-3:  # rounding may make it more than 0; NaN fails this, too
        raise calib_error("C643", given=brief(repr(number)))
    return min(0.0, max(MIN_LOGPROB, value))
