"""Templates -> the features of tokens, as hashes of what stands around them (in the manner of Sha & Pereira 2003)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDS
from spacy.tokens import Doc

from ...errors import calib_error

Hashes = NDArray[np.uint64]

# Words and tags of a window of five, and their neighbours joined: the features of noun phrases of Sha & Pereira (2003), table 1.
CHUNKING = (
    *(f"ORTH[{i}]" for i in range(-2, 3)), "ORTH[-1] ORTH[0]", "ORTH[0] ORTH[1]",
    *(f"TAG[{i}]" for i in range(-2, 3)), *(f"TAG[{i}] TAG[{i + 1}]" for i in range(-2, 2)),
    *(f"TAG[{i}] TAG[{i + 1}] TAG[{i + 2}]" for i in range(-2, 1)),
)  # fmt: skip
# What a word looks like in place of tags, for entities.
SPELLING = (
    *(f"LOWER[{i}]" for i in range(-2, 3)), "LOWER[-1] LOWER[0]", "LOWER[0] LOWER[1]",
    *(f"SHAPE[{i}]" for i in range(-2, 3)), "SHAPE[-1] SHAPE[0]", "SHAPE[0] SHAPE[1]", "ORTH[0]",
    "PREFIX[0]", "SUFFIX[0]", "SUFFIX[-1]", "SUFFIX[1]", "IS_TITLE[0] SENT_START[0]",
)  # fmt: skip
TEMPLATES = {"chunking": CHUNKING, "spelling": SPELLING}

_PART = re.compile(r"([A-Z_]+)\[(-?\d{1,3})\]")
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
_OUTSIDE = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True)
class Template:
    """Attributes of tokens at distances from the one that is looked at. parts: (attribute, distance)."""

    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """text (str): "ORTH[-1] ORTH[0]". RAISES C328: it is none, or there is no such attribute."""
        parts = [_PART.fullmatch(part) for part in text.split()]
        if not parts or not all(part and (part[1] in IDS) for part in parts):
            raise calib_error("C328", given=text)
        return cls(tuple((part[1], int(part[2])) for part in parts if part))


def read_templates(given: str | Sequence[str]) -> tuple[Template, ...]:
    """given: The name of a set of templates, or their texts. RAISES C328."""
    if isinstance(given, str) and given not in TEMPLATES:
        raise calib_error("C328", given=given)
    return tuple(map(Template.of, TEMPLATES[given] if isinstance(given, str) else given))


def attributes_of(templates: Sequence[Template]) -> list[str]:
    """The attributes of tokens that they look at."""
    return sorted({name for template in templates for name, _ in template.parts})


def feature_hashes(doc: Doc, bounds: Sequence[tuple[int, int]], templates: Sequence[Template]) -> Hashes:
    """The feature that each template makes of each token, shape (len(doc), n_templates). bounds: Of the sequences; nothing is seen beyond."""
    return batch_hashes([doc], [bounds], templates)


def batch_hashes(docs: Sequence[Doc], bounds: Sequence[Sequence[tuple[int, int]]], templates: Sequence[Template]) -> Hashes:
    """The same of some Docs, one after the other."""
    names = attributes_of(templates)
    tables = [doc.to_array(list(names)).astype(np.uint64, copy=False).reshape(len(doc), len(names)) for doc in docs]
    table = np.concatenate([np.zeros((0, len(names)), dtype=np.uint64), *tables])
    at = np.arange(len(table))
    first, last = np.zeros(len(table), dtype=np.intp), np.zeros(len(table), dtype=np.intp)
    offset = 0
    for doc, own in zip(docs, bounds, strict=True):
        for start, end in own:
            first[offset + start : offset + end], last[offset + start : offset + end] = offset + start, offset + end
        offset += len(doc)

    @cache
    def value(name: str, distance: int) -> Hashes:
        """The attribute of the token that stands so far from each."""
        place = at + distance
        inside = (place >= first) & (place < last)
        return np.where(inside, table[np.where(inside, place, 0), names.index(name)], _OUTSIDE)

    found = np.empty((len(table), len(templates)), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for number, template in enumerate(templates):
            mixed = np.full(len(table), np.uint64(number + 1) * _MIX)
            for part in template.parts:
                mixed ^= value(*part)
                mixed *= _MIX
                mixed ^= mixed >> _SHIFT
            found[:, number] = mixed
    return found
