"""Find texts and their types in an answer: values and keys of JSON by its structure, other texts by distance."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import NamedTuple

_OPEN = re.compile(r"[\[{]")
_PART = re.compile(r'("(?:[^"\\\n]|\\.)*)("?)|[{}\[\],:]|[^\s"{}\[\],:]+')
# Deeper containers count as the one at this depth.
_MAX_DEPTH = 64
# Characters that separate fields, and how many characters between a text and a type are searched for them.
_SEPARATORS, _WINDOW = ",;|\n", 80
# A value within Markdown or quotation marks.
_MARKUP = re.compile(r"(\*{1,3}|_{1,3}|`{1,3}|[\"'])(?=\S)(.*\S)\1|[\u201c\u00ab](.*\S)[\u201d\u00bb]", re.S)


class TextMatch(NamedTuple):
    """An occurrence of a text in an answer. value (str): The text without escapes. node (int): Its node in the tree of JSON; 0
    outside. kind (int): VALUE or KEY of JSON, whole WORDS of another text, or PART of words."""

    start: int
    end: int
    value: str
    node: int
    kind: int


VALUE, KEY, WORDS, PART = range(4)


def strip_markup(text: str) -> tuple[int, str]:
    """Return (number of characters removed at the start, value without Markdown and quotation marks around it)."""
    start = 0
    while match := _MARKUP.fullmatch(text):
        group = 2 if match[2] is not None else 3
        start, text = start + match.start(group), match[group]
    return start, text


def splits_word(text: str, start: int, end: int) -> bool:
    """Return whether the characters from start to end begin or end inside a word, in a script with upper and lower case."""

    def joins_letters(index: int) -> bool:
        pair = text[max(0, index - 1) : index + 1]
        return len(pair) == 2 and all(letter.isdigit() or letter.lower() != letter.upper() for letter in pair)

    return joins_letters(start) or joins_letters(end)


class AnswerText:
    """A text with JSON in it: complete, cut off, or among other words.

    items (list[TextMatch]): Keys and values of JSON that are texts, numbers or constants, in order. documents (list[str]): Each
    complete object or list that is in no other. parents, depths (list[int]): Parent and depth of each node: an object, a list,
    or the content of one key of an object.
    """

    def __init__(self, text: str):
        self.text = text
        self.items: list[TextMatch] = []
        self.documents: list[str] = []
        self.parents, self.depths = [0], [0]
        self._scan()

    def _add_node(self, parent: int) -> int:
        if self.depths[parent] >= _MAX_DEPTH:
            return parent
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        return len(self.parents) - 1

    def _scan(self) -> None:
        """Find keys and values of the JSON in the text, and build the tree of its objects; broken JSON is read as far as it
        goes."""
        position = start = 0
        stack: list[tuple[bool, int, int | None]] = []  # (an object, its node, the node of the key whose value is next)
        while match := (_PART if stack else _OPEN).search(self.text, position):
            position, part = match.end(), match[0]
            is_object, node, member = stack[-1] if stack else (False, 0, None)
            if part in "[{":
                start = start if stack else match.start()
                stack.append((part == "{", self._add_node(node if member is None else member), None))
            elif part in "]}":
                stack.pop()
                self.documents += [] if stack else [self.text[start:position]]
            elif part == ",":
                stack[-1] = (is_object, node, None)
            elif part != ":" and not (part[0] == '"' and not match[2]):
                is_quoted = part[0] == '"'
                value = _unescape(part) if is_quoted else part
                is_key = is_object and member is None
                if is_key:
                    member = self._add_node(node)
                    stack[-1] = (True, node, member)
                leaf = self._add_node(node) if member is None else member  # a list's element is as deep as the content of a key
                kind = KEY if is_key else VALUE
                self.items.append(TextMatch(match.start() + is_quoted, position - is_quoted, value, leaf, kind))

    @cached_property
    def _items_by_value(self) -> dict[str, list[TextMatch]]:
        items_by_value: dict[str, list[TextMatch]] = {}
        for item in self.items:
            items_by_value.setdefault(item.value, []).append(item)
        return items_by_value

    def find_all(self, text: str) -> list[TextMatch]:
        """Return all occurrences of a text, in order: as a key or value of JSON, or else within other text."""
        if not text:
            return []
        if text in self._items_by_value:
            return self._items_by_value[text]
        starts = [item.start for item in self.items]
        matches = []
        for match in re.finditer("|".join(map(re.escape, _forms(text))), self.text):
            index = bisect_right(starts, match.start()) - 1
            node = self.items[index].node if index >= 0 and match.end() <= self.items[index].end else 0
            kind = PART if splits_word(self.text, *match.span()) else WORDS
            matches.append(TextMatch(*match.span(), text, node, kind))
        return matches

    def end_of(self, text: str, start: int) -> int:
        """Return the end of a text, plain or with the escapes of JSON, that begins at a character."""
        return start + next((len(form) for form in _forms(text) if self.text.startswith(form, start)), len(text))

    def has_value(self, start: int, end: int) -> bool:
        """Return whether a value of JSON begins between two characters."""
        index = bisect_left(self._value_starts, start)
        return index < len(self._value_starts) and self._value_starts[index] < end

    @cached_property
    def _value_starts(self) -> list[int]:
        return [item.start for item in self.items if item.kind == VALUE]

    def _distance(self, text: TextMatch, label: TextMatch) -> tuple[int, int, int, int, bool]:
        """Return (steps up the tree, steps down, separators, characters between, whether the type precedes the text)."""
        node, label_node = text.node, label.node
        while node != label_node:
            if self.depths[node] >= self.depths[label_node]:
                node = self.parents[node]
            else:
                label_node = self.parents[label_node]
        first, second = sorted((text, label))
        gap = self.text[first.end : min(second.start, first.end + _WINDOW)]
        separators = sum(map(gap.count, _SEPARATORS))
        up, down = self.depths[text.node] - self.depths[node], self.depths[label.node] - self.depths[node]
        return up, down, separators, second.start - first.end, label.start < text.start

    def locate(self, text: str, label: str, n: int) -> list[tuple[TextMatch, TextMatch]]:
        """Return (occurrence of the text, nearest occurrence of the label) of the n nearest pairs, in text order."""
        labels = self.find_all(label)
        starts = [match.start for match in labels]
        candidates = []
        for match in self.find_all(text) if labels else ():
            neighbours = (bisect_left(starts, match.start) - 1, bisect_left(starts, match.end))
            options = [
                (self._distance(match, labels[index]), labels[index])
                for index in neighbours
                if 0 <= index < len(labels) and not labels[index].start < match.end <= labels[index].end
            ]
            if options:
                distance, nearest = min(options)
                candidates.append(((match.kind, *distance, match.start), match, nearest))
        return sorted((match, nearest) for _, match, nearest in sorted(candidates)[:n])


def _unescape(literal: str) -> str:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return literal[1:-1]


def _forms(text: str) -> list[str]:
    """Return a text as it is written in prose and in JSON, longest first."""
    return sorted({text, *(json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (True, False))}, key=len, reverse=True)
