"""Where texts and their types stand in an answer: strings of JSON by their structure, anything else by nearness."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import NamedTuple

_OPEN = re.compile(r"[\[{]")
_PART = re.compile(r'("(?:[^"\\\n]|\\.)*)("?)|[{}\[\],:]|[^\s"{}\[\],:]+')
# Containers that lie deeper belong to the one at this depth.
_DEEPEST = 64
# What separates one field from the next, between a text and a type; looked for in so many characters.
_SEPARATORS, _NEAR = ",;|\n", 80
# Pairs of signs that Markdown or quotation puts around a value.
_AROUND = re.compile(r"(\*{1,3}|_{1,3}|`{1,3}|[\"'])(?=\S)(.*\S)\1|[\u201c\u00ab](.*\S)[\u201d\u00bb]", re.S)


class Place(NamedTuple):
    """Characters of an answer. value (str): The text, without escapes. node (int): In the tree of JSON; 0 outside. kind (int): A value
    of JSON, a key, or a part of another text that begins and ends with words, or not."""

    start: int
    end: int
    value: str
    node: int
    kind: int


VALUE, KEY, WORDS, PART = range(4)


def bare(text: str) -> tuple[int, str]:
    """Return (number of signs left out before it, a value without the Markdown and the quotation marks around it)."""
    start = 0
    while match := _AROUND.fullmatch(text):
        group = 2 if match[2] is not None else 3
        start, text = start + match.start(group), match[group]
    return start, text


def splits_word(text: str, start: int, end: int) -> bool:
    """Return whether a stretch begins or ends inside a word, in a script that has cases."""

    def joins_letters(place: int) -> bool:
        pair = text[max(0, place - 1) : place + 1]
        return len(pair) == 2 and all(sign.isdigit() or sign.lower() != sign.upper() for sign in pair)

    return joins_letters(start) or joins_letters(end)


class AnswerText:
    """A text in which JSON may stand, whole, cut off, or among other words.

    places (list[Place]): Keys and values of JSON that are texts, numbers or constants, in order. documents (list[str]): Each whole
    object or list that is within no other. parents, depths (list[int]): Of each node: an object, a list, or what an object holds
    under one key.
    """

    def __init__(self, text: str):
        self.text = text
        self.places: list[Place] = []
        self.documents: list[str] = []
        self.parents, self.depths = [0], [0]
        self._scan()

    def _node(self, parent: int) -> int:
        if self.depths[parent] >= _DEEPEST:
            return parent
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        return len(self.parents) - 1

    def _scan(self) -> None:
        position = start = 0
        stack: list[tuple[bool, int, int | None]] = []  # (an object, its node, the node of the key whose value is next)
        while match := (_PART if stack else _OPEN).search(self.text, position):
            position, part = match.end(), match[0]
            is_object, node, member = stack[-1] if stack else (False, 0, None)
            if part in "[{":
                start = start if stack else match.start()
                stack.append((part == "{", self._node(node if member is None else member), None))
            elif part in "]}":
                stack.pop()
                self.documents += [] if stack else [self.text[start:position]]
            elif part == ",":
                stack[-1] = (is_object, node, None)
            elif part != ":" and not (part[0] == '"' and not match[2]):
                quoted = part[0] == '"'
                value = _unescaped(part) if quoted else part
                is_key = is_object and member is None
                if is_key:
                    member = self._node(node)
                    stack[-1] = (True, node, member)
                within = self._node(node) if member is None else member  # an element of a list is as far in as what a key holds
                self.places.append(Place(match.start() + quoted, position - quoted, value, within, KEY if is_key else VALUE))

    @cached_property
    def _by_value(self) -> dict[str, list[Place]]:
        by_value: dict[str, list[Place]] = {}
        for place in self.places:
            by_value.setdefault(place.value, []).append(place)
        return by_value

    def places_of(self, text: str) -> list[Place]:
        """Return where a text stands, in order: as a key or value of JSON, or else as a part of something."""
        if not text:
            return []
        if text in self._by_value:
            return self._by_value[text]
        starts = [place.start for place in self.places]
        places = []
        for match in re.finditer("|".join(map(re.escape, _forms(text))), self.text):
            index = bisect_right(starts, match.start()) - 1
            node = self.places[index].node if index >= 0 and match.end() <= self.places[index].end else 0
            kind = PART if splits_word(self.text, *match.span()) else WORDS
            places.append(Place(*match.span(), text, node, kind))
        return places

    def end_of(self, text: str, start: int) -> int:
        """Return the end of a text that begins at a character, perhaps with escapes."""
        return start + next((len(form) for form in _forms(text) if self.text.startswith(form, start)), len(text))

    def has_value(self, start: int, end: int) -> bool:
        """Return whether a value of JSON lies between two characters."""
        index = bisect_left(self._values, start)
        return index < len(self._values) and self._values[index] < end

    @cached_property
    def _values(self) -> list[int]:
        return [place.start for place in self.places if place.kind == VALUE]

    def _distance(self, text: Place, label: Place) -> tuple[int, int, int, int, bool]:
        """Return how far a type is from a text: steps up and down the tree, separators and characters between; before it or not."""
        node, other = text.node, label.node
        while node != other:
            if self.depths[node] >= self.depths[other]:
                node = self.parents[node]
            else:
                other = self.parents[other]
        first, second = sorted((text, label))
        between = self.text[first.end : min(second.start, first.end + _NEAR)]
        separators = sum(map(between.count, _SEPARATORS))
        up, down = self.depths[text.node] - self.depths[node], self.depths[label.node] - self.depths[node]
        return up, down, separators, second.start - first.end, label.start < text.start

    def locate(self, text: str, label: str, n: int) -> list[tuple[Place, Place]]:
        """Return (text, type) for at most n places of a text with a type, those nearest to the type, in order."""
        labels = self.places_of(label)
        starts = [place.start for place in labels]
        ranked = []
        for place in self.places_of(text) if labels else ():
            before, after = bisect_left(starts, place.start) - 1, bisect_left(starts, place.end)
            around = [labels[index] for index in (before, after) if 0 <= index < len(labels)]
            options = [(self._distance(place, other), other) for other in around if not other.start < place.end <= other.end]
            if options:
                distance, nearest = min(options)
                ranked.append(((place.kind, *distance, place.start), place, nearest))
        return sorted((place, nearest) for _, place, nearest in sorted(ranked)[:n])


def _unescaped(quoted: str) -> str:
    try:
        return str(json.loads(quoted, strict=False))
    except ValueError:
        return quoted[1:-1]


def _forms(text: str) -> list[str]:
    """Return a text as it stands in prose and in JSON, longest first."""
    return sorted({text, *(json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (True, False))}, key=len, reverse=True)
