"""Converts the offsets that annotation tools count to characters, and checks them by the words that the tools export.

A browser counts UTF-16 units, "\\r\\n" as one character, and "&amp;" as "&"; other tools export "\\n" and count "\\r\\n".
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

_PIECE = re.compile(r"\r\n|&(?:#\d+|#[xX][\da-fA-F]+|\w+);|.", re.DOTALL)  # what a tool may count as one, or as several
# Ways of counting line ends, entities, and characters beyond the basic plane; plain characters come first.
_WAYS_OF_COUNTING = tuple(product(("as it is", "one", "two"), (False, True), (False, True)))
# Ways of counting of tools that export no words: by characters or UTF-16 units, with "\r\n" as two or as one.
READINGS = {
    "characters": ("as it is", False, False),
    "UTF-16 units": ("as it is", False, True),
    "characters, and each line end as one": ("one", False, False),
    "UTF-16 units, and each line end as one": ("one", False, True),
}


class MisplacedError(Exception):
    """A text does not have the words that a tool exported at the offsets start to end. actual (str): What it has there."""

    def __init__(self, words: str, start: int, end: int, actual: str):
        super().__init__(words)
        self.words, self.start, self.end, self.actual = words, start, end, actual


def locate_words(text: str, start: int, end: int, words: Any = None) -> tuple[int, int]:
    """Convert the start and end of a span, as a tool counted them, to character offsets (start, end).

    words (Any): The words that the tool exported with the span; if they are no string, the offsets are returned unchanged.
    RAISES MisplacedError: the words are not at these offsets, however they are counted.
    """
    if not isinstance(words, str):
        return start, end
    place = find_words(text, start, end, words)
    if place is None:
        raise MisplacedError(words, start, end, text[start:end])
    return place


def find_words(text: str, start: int, end: int, words: str) -> tuple[int, int] | None:
    """Convert offsets to characters (start, end) by the way of counting that puts them on `words`; None if none does."""
    if text[start:end] == words:
        return start, end
    starts_by_way = [_starts(text, *way) for way in _WAYS_OF_COUNTING]
    stretches = [(starts[start], starts[end]) for starts in starts_by_way if 0 <= start <= end < len(starts)]
    for normalize in (str, _normalize):  # equal words come first (`str` changes nothing), then similar ones
        for begin, stop in stretches:
            if normalize(text[begin:stop]) == normalize(words):
                return begin, stop
    return None


def reread(text: str, start: int, end: int, reading: str) -> tuple[int, int]:
    """Convert a tool's offsets to characters; (-1, -1) outside of the text. reading: How it counts, such as "UTF-16 units"."""
    starts = _starts(text, *READINGS[reading])
    return (starts[start], starts[end]) if 0 <= start <= end < len(starts) else (-1, -1)


def is_on_word_bounds(text: str, start: int, end: int) -> bool:
    """Return whether the stretch from start to end has no white space at its ends, is not empty, and cuts no word."""
    if not 0 <= start < end <= len(text) or text[start].isspace() or text[end - 1].isspace():
        return False
    # A cut inside of the text between two letters or digits cuts a word.
    inner_cuts = [cut for cut in (start, end) if 0 < cut < len(text)]
    return not any(text[cut - 1 : cut + 1].isalnum() for cut in inner_cuts)


def _normalize(words: str) -> str:
    """Return words with single spaces for white space (also written "\\n"), and characters for HTML entities."""
    return " ".join(html.unescape(words).replace("\\n", "\n").split())


@lru_cache(maxsize=2 * len(_WAYS_OF_COUNTING))
def _starts(text: str, line_ends: str, unescape: bool, utf16: bool) -> list[int]:
    """Return the character offset of each unit that a tool counts, and the length of the text at the end.

    line_ends (str): "one" counts "\\r\\n" as one unit, "two" counts "\\n" as two; any other value counts characters. unescape
    (bool): Whether "&amp;" counts as "&". utf16 (bool): Whether characters above U+FFFF count as two units.
    """
    starts: list[int] = []
    for piece in _PIECE.finditer(text):
        display = piece[0]
        if line_ends == "one":
            display = display.replace("\r\n", "\n")
        elif line_ends == "two" and display == "\n":
            display = "\r\n"
        display = html.unescape(display) if unescape else display
        # If the tool counts other units than the characters of a piece, all its units begin where the piece begins.
        keeps_length = len(display) == len(piece[0])
        for i, character in enumerate(display):
            starts += [piece.start() + i * keeps_length] * (2 if utf16 and character > "\uffff" else 1)
    return [*starts, len(text)]


class Coverage:
    """The positions that spans cover: characters of a text, or tokens. places (Iterable): (start, end, ...) of each span."""

    def __init__(self, places: Iterable[Sequence[Any]]):
        self._flags = bytearray()  # 1 for each covered position
        for start, end, *_ in places:
            self._flags.extend(bytes(max(0, end - len(self._flags))))  # zeros up to `end`
            self._flags[start:end] = b"\1" * (end - start)

    def overlaps(self, span: Sequence[Any]) -> bool:
        """Return whether a span, (start, end, ...), includes a covered position."""
        return 1 in self._flags[span[0] : span[1]]
