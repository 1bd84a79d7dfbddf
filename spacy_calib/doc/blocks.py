"""What is stored on a Doc: one block of arrays per annotated Doc, in `doc.user_data`. `rows` finds the row of a token.

A block's key is ("._.", "_<attr>", start, start + print). `Span.as_doc` and `Doc.from_docs` of spaCy move both offsets,
so `start`, 0 when written, says where in the text the block's Doc now begins. `print` is a checksum of the block: it
shows damage, and keeps blocks of different Docs apart that end up at one start, where one would overwrite the other.

A token is recognized by its first character, its width (up to the start of the next token; up to "end" for the last one) and
a short digest of its text and first character. A block cut from another keeps the digests: "origin" is to be added to a
character before it is compared with them.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span

from ..annotations import Annotation, Hashes, head_offsets
from ..pairs.documents import TOKEN

# Odd numbers that look like noise: those of splitmix64.
_STEP, _MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
_ALL = (1 << 64) - 1
_STEPS, _MIXES, _HALF = np.uint64(_STEP), np.uint64(_MIX), np.uint64(32)
# Short: a dictionary must not read the words of a whole text back from a saved part that spaCy cut with all user data. Without the hashes in
# memory (`HashedBlock`), a word that replaces another of its length keeps its score once in 256 times.
WORD_DIGEST = np.uint8
_SHIFTS = {kind: np.uint64(64 - 8 * np.dtype(kind).itemsize) for kind in (WORD_DIGEST, np.uint32)}


def word_digest(word: int, offset: int) -> int:
    """Return the digest of one word or span, as `word_digests`. word (int): Hash of its text. offset (int): Its first character."""
    mixed = (word + offset * _STEP) & _ALL
    return (((mixed ^ (mixed >> 32)) * _MIX) & _ALL) >> 56


def word_digests(words: Hashes, offsets: NDArray[Any], kind: Any = WORD_DIGEST) -> NDArray[Any]:
    """Return digests of n texts, shape (n,). words (Hashes), offsets (NDArray[uint]): Hash and first character. kind: Unsigned type."""
    digests = words + offsets.astype(np.uint64, copy=False) * _STEPS
    digests = (digests ^ (digests >> _HALF)) * _MIXES
    return (digests >> _SHIFTS[kind]).astype(kind)


def unit_digests(unit: str, positions: Hashes) -> NDArray[Any]:
    """Return digests of a Doc's units. unit (str): "token" or "document". positions (Hashes): From `Annotation.unit_positions`."""
    return word_digests(positions[:, 1], positions[:, 0], WORD_DIGEST if unit == TOKEN else np.uint32)


def label_rows(annotation: Annotation, doc: Doc) -> NDArray[np.uint64]:
    """Return the predicted labels of a Doc, a row per token: label hash; for arcs also offset and digest of the head."""
    columns = [annotation.hashes(doc)]
    if annotation.arcs:
        offsets = head_offsets(doc)
        positions = doc.to_array(["IDX", "ORTH"]).astype(np.uint64, copy=False).reshape(-1, 2)
        heads = positions[np.searchsorted(positions[:, 0], positions[:, 0] + offsets.astype(np.uint64))]
        columns += [offsets.astype(np.uint64), word_digests(heads[:, 1], heads[:, 0]).astype(np.uint64)]
    return np.column_stack(columns)


def span_label_rows(annotation: Annotation, span: Span, offset: int) -> NDArray[np.uint64]:
    """Return `label_rows` of a span's tokens. offset (int): Its first character in the text that the block was written for."""
    origin, rows = span.start_char - offset, []
    for token in span:
        label, head = annotation.label(token), token.head
        arc = [(head.idx - token.idx) & _ALL, word_digest(head.orth, head.idx - origin)] if annotation.arcs else []
        rows.append([get_string_id(label) if label else 0, *arc])
    return np.array(rows, dtype=np.uint64)


def digest_labels(rows: NDArray[np.uint64]) -> int:
    """Return a checksum of rows from `label_rows` or `span_label_rows`."""
    return zlib.crc32(rows.tobytes())


# A block as it is stored: the entry `data` of `block.Block`.
BlockData = dict[str, Any]


class HashedBlock(BlockData):
    """A block in the process that wrote it, with the whole hashes of its texts, so that no other text passes for one of them.

    They are no items of the mapping: msgpack and pickle write a plain dict, from which a dictionary reads no word.
    word_hashes (Hashes): Of each unit. span_hashes (list[int]): Of each span.
    """

    __slots__ = ("span_hashes", "word_hashes")

    def __init__(self, data: BlockData, word_hashes: Hashes, span_hashes: list[int]):
        super().__init__(data)
        self.word_hashes, self.span_hashes = word_hashes, span_hashes

    def __copy__(self) -> HashedBlock:
        return HashedBlock(self, self.word_hashes, self.span_hashes)

    def __reduce__(self) -> tuple[type[BlockData], tuple[BlockData]]:
        return dict, (dict(self),)


UserData = MutableMapping[Any, Any]

# Blocks of another version are ignored.
BLOCK_VERSION = 5
# (id of the user data, attribute) -> what `rows` parsed, for the Docs read last; cleared when a block is added or removed.
BLOCK_CACHE: OrderedDict[tuple[int, str], Any] = OrderedDict()


def add_block(user_data: UserData, attr: str, block: BlockData) -> None:
    """Store a block in the user data of the Doc that it was made for."""
    user_data[("._.", f"_{attr}", 0, checksum_of(block))] = block
    BLOCK_CACHE.pop((id(user_data), attr), None)


def checksum_of(block: BlockData) -> int:
    """Return a checksum of the whole block."""
    return zlib.crc32(b"".join(_values_of(block)))


def _values_of(part: BlockData) -> list[Any]:
    """Return the bytes of all values in a block or a part of one, in order."""
    contents: list[Any] = []
    for value in part.values():
        if isinstance(value, np.ndarray):
            contents.append(value)
        elif isinstance(value, dict):
            contents += _values_of(value)
        else:
            # Lists come back as tuples from `Doc.from_bytes`.
            text = "\0".join(value) if isinstance(value, (list, tuple)) else str(value)
            contents.append(text.encode("utf-8", "surrogatepass"))
    return contents


def delete_blocks(user_data: UserData, attr: str) -> None:
    """Remove every block of an attribute."""
    for key, _ in find_blocks(user_data, attr):
        user_data.pop(key, None)
    BLOCK_CACHE.pop((id(user_data), attr), None)


def find_blocks(user_data: UserData, attr: str) -> list[tuple[Any, BlockData]]:
    """Return (key, value) of everything under keys of an attribute, valid or not."""
    name = f"_{attr}"
    # `list` copies in one step: another thread may be writing on the Doc.
    return [
        (key, value)
        for key, value in list(user_data.items())
        if type(key) is tuple and len(key) == 4 and key[1] == name and key[0] == "._."
    ]
