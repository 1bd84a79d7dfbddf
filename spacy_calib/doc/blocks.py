"""What a Doc keeps: one block of arrays per annotated Doc in `doc.user_data`. How a token finds its own row there stands in `rows`.

spaCy shifts the two offsets of a user_data key along in `Span.as_doc` and `Doc.from_docs`. A block stands under
("._.", "_<attr>", start, start + print): `start` is 0 where it is written and afterwards says where in the text the block's Doc
begins, `print` is a checksum of all that the block holds. The checksum keeps blocks of different Docs apart that end up at the same start (they
would overwrite each other, and a leftover could then claim a token that is not its own), and a block that was damaged is told by it.

Its words it knows by their width, from the place of the next one ("end" behind the last), and by short `digests` of them and of their place; "origin" is to be added to a place in a block that we cut from another one.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from ..types import ROUNDING
from .annotations import get_annotation
from .texts import unit_digests, word_digests

Block = dict[str, Any]
UserData = MutableMapping[Any, Any]

BLOCK_VERSION = 3
# What `rows` made of the Docs that were read last, by user data and attribute; it is forgotten where blocks are written or removed.
REMEMBERED: OrderedDict[tuple[int, str], Any] = OrderedDict()


def block_name(attr: str) -> str:
    return f"_{attr}"


def add_block(user_data: UserData, attr: str, block: Block) -> None:
    """Put a block into user_data, beside those of other parts of the Doc. Its own part begins with the text."""
    user_data[("._.", block_name(attr), 0, print_of(block))] = block
    REMEMBERED.pop((id(user_data), attr), None)


def print_of(block: Block) -> int:
    """A checksum of all that a block holds. Those of version 1 were of some columns."""
    if block.get("version") == 1:
        spans = [block["spans"]["calibrated"]] if "spans" in block else []
        return zlib.crc32(b"".join([block["raw"], block["orth"], block["calibrated"], *spans]))
    return zlib.crc32(b"".join(_contents(block)))


def _contents(part: Block) -> list[Any]:
    """The bytes of all that a part of a block holds, in its order."""
    held: list[Any] = []
    for value in part.values():
        if isinstance(value, np.ndarray):
            held.append(value)
        elif isinstance(value, dict):
            held += _contents(value)
        else:
            # Lists come back as tuples from `Doc.from_bytes`.
            said = "\0".join(value) if isinstance(value, (list, tuple)) else str(value)
            held.append(said.encode("utf-8", "surrogatepass"))
    return held


def delete_blocks(user_data: UserData, attr: str) -> None:
    """Remove every block of this attribute."""
    for key, _ in held_blocks(user_data, attr):
        user_data.pop(key, None)
    REMEMBERED.pop((id(user_data), attr), None)


def held_blocks(user_data: UserData, attr: str) -> list[tuple[Any, Block]]:
    """All that stands under keys of this attribute, whole or not."""
    name = block_name(attr)
    # The list is made in one step, which another thread that writes on the Doc cannot get into.
    return [
        (key, value)
        for key, value in list(user_data.items())
        if type(key) is tuple and len(key) == 4 and key[1] == name and key[0] == "._."
    ]


def sound_blocks(user_data: UserData, attr: str) -> Iterator[tuple[Any, Block]]:
    """The blocks of this attribute that are as they were written."""
    for key, block in held_blocks(user_data, attr):
        try:
            whole = print_of(block) == key[3] - key[2] and _is_sound(block)
        except Exception:  # a damaged block may be anything
            continue
        if whole:
            yield key, block


def with_digests(block: Block) -> Block:
    """A block in the form of this version: older ones hold hashes of the words and of the texts of spans."""
    if "orth" not in block:
        return block
    places = np.column_stack([block["start"].astype(np.uint64), block["orth"]])
    made = {**block, "version": BLOCK_VERSION, "word": unit_digests(get_annotation(block["layer"]).unit, places)}
    if "spans" in block:
        made["spans"] = {**block["spans"], "text": word_digests(block["spans"]["text"], block["spans"]["start"])}
    del made["orth"]
    return made


# Columns of a block: the kind of their numbers, and of what each has one. "orth" is that of older versions.
COLUMNS = {
    "start": ("u", "token"), "word": ("u", "token"), "orth": ("u", "token"), "head": ("i", "token"), "carried": ("u", "token"), "out_of_reach": ("b", "token"), "tag": ("u", "entry"),
    "raw": ("f", "entry"), "calibrated": ("f", "entry"), "low": ("f", "entry"), "high": ("f", "entry"), "in_set": ("b", "entry"),
    "column": ("u", "entry"), "flag": ("i", "token"), "accept": ("i", "token"),
}  # fmt: skip
_ALWAYS = {"start", "tag", "raw", "calibrated"}
_SCORES = ("raw", "calibrated", "low", "high")


def _is_sound(block: Block) -> bool:
    """Whether its parts fit each other and its scores are probabilities: they do unless somebody made it up.

    RAISES C001, and whatever the map in an annotation's name says of itself: there is no such annotation.
    """
    get_annotation(block["layer"])
    bounds, tags = block["indptr"].tolist(), block["tags"]
    size = {"token": len(bounds) - 1, "entry": bounds[-1]}
    if bounds[0] != 0 or bounds != sorted(bounds) or not {*map(type, tags)} <= {str}:
        return False
    for name, column in block.items():
        kind, of = COLUMNS.get(name, ("", ""))
        if kind and (column.dtype.kind != kind or column.shape != (size[of],)):
            return False
    scored = [name for name in _SCORES if name in block]
    extra = block.get("extra") or {}
    n_extra = {len(extra[name]) for name in ("row", "tags", *scored)} if extra else {0}
    scores = np.concatenate([part[name] for part in (block, extra) if part for name in scored])
    in_range = not len(scores) or (np.minimum.reduce(scores) >= 0 and np.maximum.reduce(scores) <= 1 + ROUNDING)
    named = not size["entry"] or int(np.maximum.reduce(block["tag"])) < len(tags)
    whole = (
        block.keys() >= _ALWAYS
        and ("word" in block) != ("orth" in block)
        and ("in_set" in block) == ("out_of_reach" in block)
        and len(n_extra) == 1
        and type(block.get("end", 0)) is int
    )
    return whole and in_range and named
