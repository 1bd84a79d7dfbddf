"""Find where texts and their types occur in an answer: nearest in the tree of its JSON, or else in characters."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import NamedTuple

_OPEN = re.compile(r"[\[{]")  # the beginning of JSON in prose
# A part of JSON: a string (group 2 is its closing quote, missing if it is cut off), a bracket or sign, or another value.
_PART = re.compile(r'("(?:[^"\\\n]|\\.)*)("?)|[{}\[\],:]|[^\s"{}\[\],:]+')
_MAX_DEPTH = 64  # deeper objects and lists count as the one at this depth
_SEPARATORS, _WINDOW = ",;|\n", 80  # signs between fields, and how many characters between text and type are searched for them
# A value within Markdown or quotation marks.
_MARKUP = re.compile(r"(\*{1,3}|_{1,3}|`{1,3}|[\"'])(?=\S)(.*\S)\1|[\u201c\u00ab](.*\S)[\u201d\u00bb]", re.S)


class TextMatch(NamedTuple):
    """An occurrence of a text, from character `start` to before `end` of an answer. value (str): The text without escapes. node
    (int): Its node in the tree of JSON, 0 outside. kind (int): VALUE or KEY of JSON, whole WORDS of prose, or PART of one."""

    start: int
    end: int
    value: str
    node: int
    kind: int


VALUE, KEY, WORDS, PART = range(4)


def strip_markup(text: str) -> tuple[int, str]:
    """Remove Markdown and quotation marks around a text. Return (number of characters removed at its start, the rest)."""
    start = 0
    while match := _MARKUP.fullmatch(text):
        group = 2 if match[2] is not None else 3  # the value within the same mark on both sides, or within “” or «»
        start, text = start + match.start(group), match[group]
    return start, text


def splits_word(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] begins or ends inside a word or number, in a script with upper and lower case."""

    def is_inside_word(index: int) -> bool:
        pair = text[max(0, index - 1) : index + 1]
        return len(pair) == 2 and all(letter.isdigit() or letter.lower() != letter.upper() for letter in pair)

    return is_inside_word(start) or is_inside_word(end)


class AnswerText:
    """The text of an answer, with the JSON found in it, which may be complete, cut off, or surrounded by prose.

    items (list[TextMatch]): Keys and values of JSON that are texts, numbers or constants, in order. documents (list[str]): Each
    complete object or list that is in no other. parents, depths (list[int]): Parent and depth of each node of the tree. Node 0
    is the whole text. The other nodes are objects, lists, keys with their values, and texts, numbers and constants in lists.
    The parent of a node is the object, list or key that contains it, or node 0.
    """

    def __init__(self, text: str):
        self.text = text
        self.items: list[TextMatch] = []
        self.documents: list[str] = []
        self.parents, self.depths = [0], [0]  # node 0, the whole text, counts as its own parent
        self._scan()  # adds the JSON in the text to these lists

    def _add_node(self, parent: int) -> int:
        """Add a node below its parent and return its number; the parent's number if that is at the maximum depth."""
        if self.depths[parent] >= _MAX_DEPTH:
            return parent
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        return len(self.parents) - 1

    def _scan(self) -> None:
        """Fill in `items`, `documents` and the tree of nodes (`parents`, `depths`) from the JSON in the text, broken or not."""
        position = start = 0
        # The open objects and lists: (whether it is an object, its node, the node of the key whose value is next, if any).
        stack: list[tuple[bool, int, int | None]] = []
        # Prose is skipped up to the next bracket that begins JSON (_OPEN); inside JSON the next part of it is read (_PART).
        while match := (_PART if stack else _OPEN).search(self.text, position):
            position, part = match.end(), match[0]
            is_object, node, key_node = stack[-1] if stack else (False, 0, None)  # outside: node 0, the whole text
            is_quoted = part[0] == '"'
            is_cut_off = is_quoted and not match[2]  # a string without its closing quote, group 2 of _PART
            if part in "[{":  # begins an object or list
                start = start if stack else match.start()  # of the outermost object or list
                # Its new node is below the key whose value it is, or else below the list or text that it is in.
                stack.append((part == "{", self._add_node(node if key_node is None else key_node), None))
            elif part in "]}":  # ends the innermost one, and perhaps the outermost
                stack.pop()
                if not stack:
                    self.documents.append(self.text[start:position])
            elif part == ",":  # next come a key, or an element of the list
                stack[-1] = (is_object, node, None)
            elif part != ":" and not is_cut_off:  # a key or value
                value = _unescape(part) if is_quoted else part
                is_key = is_object and key_node is None  # in an object a key comes first, then its value
                if is_key:
                    key_node = self._add_node(node)
                    stack[-1] = (True, node, key_node)
                # A value shares the node of its key. An element of a list gets a node of its own, below the list.
                item_node = self._add_node(node) if key_node is None else key_node
                start_and_end = match.start() + is_quoted, position - is_quoted  # without quotes
                self.items.append(TextMatch(*start_and_end, value, item_node, KEY if is_key else VALUE))

    @cached_property
    def _items_by_value(self) -> dict[str, list[TextMatch]]:
        items_by_value: dict[str, list[TextMatch]] = {}
        for item in self.items:
            items_by_value.setdefault(item.value, []).append(item)
        return items_by_value

    def find_all(self, text: str) -> list[TextMatch]:
        """Return all occurrences of a text, in order: as whole keys and values of JSON, or if there are none, anywhere."""
        if not text:
            return []
        if text in self._items_by_value:
            return self._items_by_value[text]
        starts = [item.start for item in self.items]
        matches = []
        for match in re.finditer("|".join(map(re.escape, _forms(text))), self.text):
            index = bisect_right(starts, match.start()) - 1  # the item of JSON that may contain the occurrence
            node = self.items[index].node if index >= 0 and match.end() <= self.items[index].end else 0
            kind = PART if splits_word(self.text, *match.span()) else WORDS
            matches.append(TextMatch(*match.span(), text, node, kind))
        return matches

    def end_of(self, text: str, start: int) -> int:
        """Return the end of a text that begins at character `start`, where it is written plainly or with JSON's escapes."""
        return start + next((len(form) for form in _forms(text) if self.text.startswith(form, start)), len(text))

    def has_value(self, start: int, end: int) -> bool:
        """Return whether a value of JSON begins at a character from `start` to before `end`."""
        return bisect_left(self._value_starts, start) < bisect_left(self._value_starts, end)

    @cached_property
    def _value_starts(self) -> list[int]:
        return [item.start for item in self.items if item.kind == VALUE]

    def _distance(self, text: TextMatch, label: TextMatch) -> tuple[int, int, int, int, bool]:
        """Return how far a text is from its type (`label`): (steps up and steps down the tree from the text to the type,
        separators and characters between the two, whether the type comes first)."""
        node, label_node = text.node, label.node
        while node != label_node:  # climb to the nearest common ancestor
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
        """Pair each occurrence of a text with the nearest one of its label; return the n best (JSON first), in text order."""
        labels = self.find_all(label)
        starts = [match.start for match in labels]
        candidates = []
        for match in self.find_all(text) if labels else ():
            neighbours = (bisect_left(starts, match.start) - 1, bisect_left(starts, match.end))  # the label before, and after
            labels_by_distance = [
                (self._distance(match, labels[index]), labels[index])
                for index in neighbours
                # An occurrence of the text inside the label itself is not paired with it.
                if 0 <= index < len(labels) and not labels[index].start < match.end <= labels[index].end
            ]
            if labels_by_distance:
                distance, nearest = min(labels_by_distance)
                rank = (match.kind, *distance, match.start)  # JSON first, then the nearest
                candidates.append((rank, match, nearest))
        best_candidates = sorted(candidates)[:n]
        return sorted((match, nearest) for _, match, nearest in best_candidates)


def _unescape(literal: str) -> str:
    """Return the content of a string literal of JSON; with unknown escapes, as it is between the quotes."""
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return literal[1:-1]


def _forms(text: str) -> list[str]:
    """Return the forms in which a text may be written, in prose and with the escapes of JSON, longest first."""
    return sorted({text, *(json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (True, False))}, key=len, reverse=True)
