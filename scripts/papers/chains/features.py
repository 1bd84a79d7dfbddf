"""Templates -> sparse features of tokens (Sha & Pereira 2003).

A feature is a hash of the context of a token; the known ones are the rows of a model's table of weights.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDS
from spacy.tokens import Doc

from spacy_calib.types import Floats, Ints

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
MIX, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
_OUTSIDE = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True)
class Template:
    """A template of features: attributes of the token and its neighbours. parts: (attribute, distance in tokens) of each."""

    parts: tuple[tuple[str, int], ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Parse a template such as "ORTH[-1] ORTH[0]"."""
        parts = [_PART.fullmatch(part) for part in text.split()]
        if not parts or not all(part and (part[1] in IDS) for part in parts):
            raise ValueError("no such feature template")
        return cls(tuple((part[1], int(part[2])) for part in parts if part))


def read_templates(features: str | Sequence[str]) -> tuple[Template, ...]:
    """Return templates from the name of a set, or from their texts."""
    if isinstance(features, str) and features not in TEMPLATES:
        raise ValueError("no such feature template")
    return tuple(map(Template.parse, TEMPLATES[features] if isinstance(features, str) else features))


def batch_hashes(docs: Sequence[Doc], bounds: Sequence[Sequence[tuple[int, int]]], templates: Sequence[Template]) -> Hashes:
    """Return the features of the tokens of some Docs, shape (n_tokens, n_templates). bounds: (start, end) of each Doc's chains."""
    names: list[Any] = sorted({name for template in templates for name, _ in template.parts})
    tables = [doc.to_array(names).astype(np.uint64, copy=False).reshape(len(doc), len(names)) for doc in docs]
    table = np.concatenate([np.zeros((0, len(names)), dtype=np.uint64), *tables])
    tokens = np.arange(len(table))
    first, last = np.zeros(len(table), dtype=np.intp), np.zeros(len(table), dtype=np.intp)
    offset = 0
    for doc, doc_bounds in zip(docs, bounds, strict=True):
        for start, end in doc_bounds:
            first[offset + start : offset + end], last[offset + start : offset + end] = offset + start, offset + end
        offset += len(doc)

    @cache
    def value(name: str, distance: int) -> Hashes:
        """Return the attribute of the token at this distance from each token, _OUTSIDE beyond its chain."""
        neighbours = tokens + distance
        is_inside = (neighbours >= first) & (neighbours < last)
        return np.where(is_inside, table[np.where(is_inside, neighbours, 0), names.index(name)], _OUTSIDE)

    hashes = np.empty((len(table), len(templates)), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for number, template in enumerate(templates):
            column = np.full(len(table), np.uint64(number + 1) * MIX)
            for part in template.parts:
                column ^= value(*part)
                column *= MIX
                column ^= column >> SHIFT
            hashes[:, number] = column
    return hashes


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """The binary features of a sequence. rows (Ints): Numbers of features, token after token. starts (Ints): Where each begins, and n."""

    rows: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class FeatureIndex:
    """Numbers the known features. hashes (Hashes): Ascending, of rows 1, 2 ...; row 0 is a feature that every token has."""

    hashes: Hashes

    def __len__(self) -> int:
        return len(self.hashes) + 1

    @classmethod
    def from_hashes(cls, hash_arrays: Sequence[Hashes], minimum: int = 1) -> FeatureIndex:
        """Build the index of features. minimum (int): Rarer features are left out."""
        flat = np.concatenate([np.zeros(0, dtype=np.uint64), *(array.reshape(-1) for array in hash_arrays)])
        hashes, counts = np.unique(flat, return_counts=True)
        return cls(hashes[counts >= minimum])

    def rows(self, hashes: Hashes) -> SparseFeatures:
        """Return the known features of each token. hashes (Hashes): Hash of each feature, shape (n_tokens, n_templates)."""
        flat = hashes.reshape(-1)
        index = np.searchsorted(self.hashes, flat)
        is_known = np.zeros(len(index), dtype=bool)
        in_range = index < len(self.hashes)
        is_known[in_range] = self.hashes[index[in_range]] == flat[in_range]
        rows = np.where(is_known, index + 1, -1).reshape(hashes.shape)
        rows = np.concatenate([np.zeros((len(hashes), 1), dtype=np.intp), rows], axis=1)
        has_row = rows >= 0
        return SparseFeatures(rows[has_row], np.concatenate([[0], np.cumsum(has_row.sum(axis=1))]))


def cut(tokens: SparseFeatures, start: int, end: int) -> SparseFeatures:
    """Return the features of the tokens from `start` to before `end`."""
    starts: Ints = tokens.starts[start : end + 1]
    return SparseFeatures(tokens.rows[starts[0] : starts[-1]], starts - starts[0])


def row_sums(table: Floats, tokens: SparseFeatures) -> Floats:
    """Return the sum of a table's rows over each token's features, shape (n, K)."""
    from scipy.sparse import csr_matrix

    ones = np.ones(len(tokens.rows))
    sums: Floats = csr_matrix((ones, tokens.rows, tokens.starts), shape=(len(tokens), len(table))) @ table
    return sums
