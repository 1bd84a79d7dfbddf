"""Conversion of the offsets that annotation tools count to characters, checked by the words that the tool exports.

A browser counts UTF-16 units, counts "\\r\\n" as one character, and shows "&amp;" as "&"; or two characters of a line end became one
after the tool had counted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

# A piece of a text that a tool may count differently.
_PIECE = re.compile(r"\r\n|&(?:#\d+|#[xX][\da-fA-F]+|\w+);|.", re.DOTALL)
# Ways of counting line ends, entities, and characters beyond the basic plane; plain characters come first.
_VIEWS = tuple(product(("as it is", "one", "two"), (False, True), (False, True)))


class MisplacedError(Exception):
    """The text at an offset differs from the words that the tool exports. words (str): These. actual (str): The text from start to end."""

    def __init__(self, words: str, start: int, end: int, actual: str):
        super().__init__(words)
        self.words, self.start, self.end, self.actual = words, start, end, actual


def locate_words(text: str, start: int, end: int, words: Any = None) -> tuple[int, int]:
    """Convert the start and end that a tool counted to character offsets, by its words if known. RAISES MisplacedError: not found."""
    if not isinstance(words, str):
        return start, end
    if text[start:end] == words:
        return start, end
    stretches = [
        (starts[start], starts[end]) for starts in (_starts(text, *view) for view in _VIEWS) if 0 <= start <= end < len(starts)
    ]
    for normalize in (str, _normalize):
        for first, last in stretches:
            if normalize(text[first:last]) == normalize(words):
                return first, last
    raise MisplacedError(words, start, end, text[start:end])


def has_words_at(text: str, start: int, end: int, words: str) -> bool:
    """Return whether a text has words at the offsets that a tool counted, in any way of counting."""
    try:
        locate_words(text, start, end, words)
    except MisplacedError:
        return False
    return True


def _normalize(words: str) -> str:
    """Normalize white space and entities."""
    return " ".join(html.unescape(words).replace("\\n", "\n").split())


@lru_cache(maxsize=2 * len(_VIEWS))
def _starts(text: str, line_ends: str, unescape: bool, utf16: bool) -> list[int]:
    """Return the character offset of each unit of a way of counting, and the end of the text."""
    starts: list[int] = []
    for piece in _PIECE.finditer(text):
        display = piece[0]
        if line_ends == "one":
            display = display.replace("\r\n", "\n")
        elif line_ends == "two" and display == "\n":
            display = "\r\n"
        display = html.unescape(display) if unescape else display
        keeps_length = len(display) == len(piece[0])
        for i, character in enumerate(display):
            starts += [piece.start() + i * keeps_length] * (2 if utf16 and character > "\uffff" else 1)
    return [*starts, len(text)]


class Coverage:
    """Which characters of a text are in some stretches. places (Iterable): First character, and the one after the last, of each."""

    def __init__(self, places: Iterable[Sequence[Any]]):
        self._flags = bytearray()
        for start, end, *_ in places:
            self._flags.extend(bytes(max(0, end - len(self._flags))))
            self._flags[start:end] = b"\1" * (end - start)

    def overlaps(self, span: Sequence[Any]) -> bool:
        """Whether a stretch has a character in common with one of these."""
        return 1 in self._flags[span[0] : span[1]]
