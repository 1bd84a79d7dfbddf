"""Short digests, by which a block knows its words and the labels of its units again.

spaCy copies a block whole into each part that `Span.as_doc(copy_user_data=True)` cuts from its Doc. A dictionary could
read whole hashes back, so a block keeps eight bits of word and place: one word in 256 agrees by chance, but a token is
also known by place, width and neighbours. The row of a whole document has none of these, and keeps 32 bits of its text.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span

from ..pairs.documents import TOKEN
from .annotations import Annotation, Hashes, head_places

# Odd numbers that look like noise: those of splitmix64.
_STEP, _MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
_ALL = (1 << 64) - 1


def word_digest(word: int, place: int) -> int:
    """`word_digests` of one word or span. word (int): Hash of its text. place (int): Its first character."""
    mixed = (word + place * _STEP) & _ALL
    return (((mixed ^ (mixed >> 32)) * _MIX) & _ALL) >> 56


def word_digests(words: Hashes, places: NDArray[Any], kind: Any = np.uint8) -> NDArray[Any]:
    """Digests of texts. words (Hashes), places (NDArray[uint]): Hash and first character. kind: Their unsigned type."""
    mixed = words + places.astype(np.uint64) * np.uint64(_STEP)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_MIX)
    return (mixed >> np.uint64(64 - 8 * np.dtype(kind).itemsize)).astype(kind)


def unit_digests(unit: str, places: Hashes) -> NDArray[Any]:
    """Digests of a Doc's units. unit (str): "token" or "document". places (Hashes): See `Annotation.places`."""
    return word_digests(places[:, 1], places[:, 0], np.uint8 if unit == TOKEN else np.uint32)


def said_of(annotation: Annotation, doc: Doc) -> NDArray[np.uint64]:
    """What each token carries, a row each: label hash; for arcs also the head's place, from the token, and digest."""
    columns = [annotation.hashes(doc)]
    if annotation.arcs:
        offsets = head_places(doc)
        place = doc.to_array(["IDX", "ORTH"]).astype(np.uint64, copy=False).reshape(-1, 2)
        heads = place[np.searchsorted(place[:, 0], place[:, 0] + offsets.astype(np.uint64))]
        columns += [offsets.astype(np.uint64), word_digests(heads[:, 1], heads[:, 0]).astype(np.uint64)]
    return np.column_stack(columns)


def said_by(annotation: Annotation, span: Span, place: int) -> NDArray[np.uint64]:
    """`said_of` for a span's tokens. place (int): Its first character in the text that the block was written for."""
    origin, rows = span.start_char - place, []
    for token in span:
        label, head = annotation.label(token), token.head
        arc = [(head.idx - token.idx) & _ALL, word_digest(head.orth, head.idx - origin)] if annotation.arcs else []
        rows.append([get_string_id(label) if label else 0, *arc])
    return np.array(rows, dtype=np.uint64)


def said_digest(said: NDArray[np.uint64]) -> int:
    """A checksum of what some tokens carry, from `said_of` or `said_by`."""
    return zlib.crc32(said.tobytes())
