"""Templates -> the features of tokens, as hashes of what stands around them (in the manner of Sha & Pereira 2003)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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

_PART = re.compile(r"([A-Z_]+)\[(-?\d+)\]")
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


def feature_hashes(doc: Doc, bounds: Sequence[tuple[int, int]], templates: Sequence[Template]) -> Hashes:
    """The feature that each template makes of each token, shape (len(doc), n_templates). bounds: Of the sequences; nothing is seen beyond."""
    names = sorted({name for template in templates for name, _ in template.parts})
    table = doc.to_array(list(names)).astype(np.uint64, copy=False).reshape(len(doc), len(names))
    column = {name: table[:, i] for i, name in enumerate(names)}
    at = np.arange(len(doc))
    first, last = np.zeros(len(doc), dtype=np.intp), np.zeros(len(doc), dtype=np.intp)
    for start, end in bounds:
        first[start:end], last[start:end] = start, end
    found = np.empty((len(doc), len(templates)), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for number, template in enumerate(templates):
            mixed = np.full(len(doc), np.uint64(number + 1) * _MIX)
            for name, distance in template.parts:
                place = at + distance
                inside = (place >= first) & (place < last)
                value = np.where(inside, column[name][np.where(inside, place, 0)], _OUTSIDE)
                mixed = (mixed ^ value) * _MIX
                mixed ^= mixed >> _SHIFT
            found[:, number] = mixed
    return found
