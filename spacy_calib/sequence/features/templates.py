"""Templates -> the features of tokens, and which of them a model knows (in the manner of Sha & Pereira 2003).

A feature is a hash of what stands around a token; those known are the rows of a table of weights.
"""

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
from ...types import Floats, Ints

Hashes = NDArray[np.uint64]

# Words and tags of a window of five, and neighbours joined: for noun phrases (Sha & Pereira 2003, table 1).
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
    """Attributes of tokens at distances from the token in question. parts: (attribute, distance)."""

    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """The template of "ORTH[-1] ORTH[0]". RAISES C328: it is none, or there is no such attribute."""
        parts = [_PART.fullmatch(part) for part in text.split()]
        if not parts or not all(part and (part[1] in IDS) for part in parts):
            raise calib_error("C328", given=text)
        return cls(tuple((part[1], int(part[2])) for part in parts if part))


def read_templates(given: str | Sequence[str]) -> tuple[Template, ...]:
    """Templates from the name of a set, or from their texts. RAISES C328: no such set, or no template."""
    if isinstance(given, str) and given not in TEMPLATES:
        raise calib_error("C328", given=given)
    return tuple(map(Template.of, TEMPLATES[given] if isinstance(given, str) else given))


def attributes_of(templates: Sequence[Template]) -> list[str]:
    """The attributes of tokens that templates look at."""
    return sorted({name for template in templates for name, _ in template.parts})


def feature_hashes(doc: Doc, bounds: Sequence[tuple[int, int]], templates: Sequence[Template]) -> Hashes:
    """The feature of each token by each template, shape (len(doc), n_templates); none looks beyond the bounds."""
    return batch_hashes([doc], [bounds], templates)


def batch_hashes(docs: Sequence[Doc], bounds: Sequence[Sequence[tuple[int, int]]], templates: Sequence[Template]) -> Hashes:
    """As `feature_hashes`, of some Docs, one after the other."""
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
        """The attribute of the token at this distance from each."""
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


# First row of unknown features, and the bits cut off their hashes, so that row times number of labels is no overflow.
_BEYOND, _KEPT = 1 << 40, np.uint64(20)


@dataclass(frozen=True, eq=False)
class Sparse:
    """The binary features of one sequence. rows (Ints): Features, token after token. starts (Ints): Where each token's
    begin, and the end of the last, shape (n + 1,); each token has at least one."""

    rows: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class FeatureIndex:
    """The features that are known. hashes (Hashes): Ascending; row 0 stands for one that every token has."""

    hashes: Hashes

    def __len__(self) -> int:
        return len(self.hashes) + 1

    @classmethod
    def of(cls, found: Sequence[Hashes], least: int = 1) -> FeatureIndex:
        """The index of the features found. least (int): Rarer features are left out."""
        flat = np.concatenate([np.zeros(0, dtype=np.uint64), *(one.reshape(-1) for one in found)])
        hashes, counts = np.unique(flat, return_counts=True)
        return cls(hashes[counts >= least])

    def rows(self, found: Hashes, unseen: bool = False) -> Sparse:
        """The known features of each token. found (Hashes): Shape (n, n_templates).

        unseen (bool): Unknown features, too, each in a row of its own beyond any table.
        """
        place = np.searchsorted(self.hashes, found.reshape(-1))
        known = np.zeros(len(place), dtype=bool)
        inside = place < len(self.hashes)
        known[inside] = self.hashes[place[inside]] == found.reshape(-1)[inside]
        others = _BEYOND + (found.reshape(-1) >> _KEPT).astype(np.intp) if unseen else -1
        rows = np.where(known, place + 1, others).reshape(found.shape)
        rows = np.concatenate([np.zeros((len(found), 1), dtype=np.intp), rows], axis=1)
        kept = rows >= 0
        return Sparse(rows[kept], np.concatenate([[0], np.cumsum(kept.sum(axis=1))]))


def cut(tokens: Sparse, start: int, end: int) -> Sparse:
    """The features of some tokens."""
    starts: Ints = tokens.starts[start : end + 1]
    return Sparse(tokens.rows[starts[0] : starts[-1]], starts - starts[0])


def row_sums(table: Floats, tokens: Sparse) -> Floats:
    """The sum of a table's rows over each token's features, shape (n, K). table (Floats): Shape (n_rows, K)."""
    from scipy.sparse import csr_matrix

    ones = np.ones(len(tokens.rows))
    found: Floats = csr_matrix((ones, tokens.rows, tokens.starts), shape=(len(tokens), len(table))) @ table
    return found
