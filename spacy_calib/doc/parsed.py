"""One block prepared for look-ups: its rows as Python lists, its spans as a dict."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import get_annotation
from .blocks import Block, said_by, said_digest, word_digest, word_digests

# The part of a label's hash that a block keeps.
_LOW_HALF = (1 << 32) - 1

# A span: (first character, the one after the last, label).
SpanKey = tuple[int, int, str]


class SpanValues(NamedTuple):
    """What a block holds of one span.

    place, text (int): First character in its block, and digest. accept (int): Whether it reaches its cut-off; -1 without
    cut-offs. chosen (bool): Whether it is on the Doc. layer (str), said (int): Annotation and digest of the token labels that
    the probability depends on; else "" and 0.
    """

    place: int
    text: int
    raw: float
    calibrated: float
    accept: int
    chosen: bool
    layer: str
    said: int

    @property
    def accepted(self) -> bool | None:
        """Whether it reaches its cut-off; None without cut-offs, and for candidates."""
        return None if self.accept < 0 or not self.chosen else bool(self.accept)

    def agrees(self, span: Span) -> bool:
        """Return whether the text (and token labels, if they count) of the span are as scored."""
        if word_digest(get_string_id(span.text), self.place) != self.text:
            return False
        return not self.layer or said_digest(said_by(get_annotation(self.layer), span, self.place)) == self.said


def parse_spans(block: Block, start: int) -> dict[SpanKey, SpanValues]:
    """Return the spans of a block whose Doc begins at the character `start`."""
    columns_by_name = block.get("spans")
    if columns_by_name is None:
        return {}
    begins, ends = columns_by_name["start"].astype(np.int64), columns_by_name["end"].astype(np.int64)
    keys = zip((begins + start).tolist(), (ends + start).tolist(), columns_by_name["labels"], strict=True)
    columns = (columns_by_name[name].tolist() for name in ("text", "raw", "calibrated", "accept", "chosen"))
    layers, label_digests = (
        [columns_by_name.get("layer", "")] * len(begins),
        columns_by_name.get("said", np.zeros(len(begins), dtype=np.uint32)),
    )
    places = (begins + block.get("origin", 0)).tolist()
    return dict(zip(keys, map(SpanValues, places, *columns, layers, label_digests.tolist()), strict=True))


class TokenValues(NamedTuple):
    """Raw and calibrated probability of a unit's label."""

    raw: float
    calibrated: float


@lru_cache(maxsize=4096)
def _low_half(label: str) -> int:
    """Return the part of a label's hash that blocks keep, 0 for none."""
    return get_string_id(label) & _LOW_HALF if label else 0


class ParsedBlock:
    """The units of a block as Python lists, from which one item is read several times as fast as from arrays.

    label, raw, calibrated: Of each entry, row by row (see `indptr`); then of labels below the threshold. end (int | None):
    Character after the last token. origin (int): Where in the Doc the block's text begins. word_hashes: Hash of each row's
    word, 0 until it was met. token_scores (bool): Whether tokens have attributes with their scores.
    """

    __slots__ = (
        "accept", "annotation", "extra_entries", "calibrated", "carried", "end", "flag", "word_hashes", "head", "in_set", "indptr", "label",
        "origin", "out_of_reach", "raw", "row_of_start", "start", "token_scores", "word",
    )  # fmt: skip

    def __init__(self, start: int, block: Block):
        self.annotation = get_annotation(block["layer"])
        self.token_scores: bool = block.get("token_scores", True)
        self.start: list[int] = (block["start"].astype(np.int64) + start).tolist()
        self.row_of_start: dict[int, int] = dict(zip(self.start, range(len(self.start)), strict=True))
        self.end: int | None = block["end"] + start if "end" in block else None
        self.origin: int = start - block.get("origin", 0)
        self.word: list[int] = block["word"].tolist()
        self.word_hashes = [0] * len(self.word)
        self.head: list[int] | None = block["head"].tolist() if "head" in block else None
        self.carried: list[int] | None = block["carried"].tolist() if "carried" in block else None
        self.indptr: list[int] = block["indptr"].tolist()
        self.label: list[str] = [*map(block["tags"].__getitem__, block["tag"].tolist())]
        self.raw: list[float] = block["raw"].tolist()
        self.calibrated: list[float] = block["calibrated"].tolist()
        self.in_set: list[bool] | None = block["in_set"].tolist() if "in_set" in block else None
        self.out_of_reach: list[bool] | None = block["out_of_reach"].tolist() if "in_set" in block else None
        self.accept: list[int] | None = block["accept"].tolist() if "accept" in block else None
        self.flag: list[int] | None = block["flag"].tolist() if "flag" in block else None
        # Row -> the entry of its label below the threshold.
        self.extra_entries: dict[int, int] = {}
        if block.get("extra"):
            self._add_below(block["extra"])

    def _add_below(self, extra: Block) -> None:
        self.extra_entries = {row: i for i, row in enumerate(extra["row"].tolist(), len(self.label))}
        self.label += extra["tags"]
        self.raw += extra["raw"].tolist()
        self.calibrated += extra["calibrated"].tolist()

    def row_of(self, token: Token) -> int | None:
        """Return the row of a token, by first character, width and word; None for none."""
        start = token.idx
        row = self.row_of_start.get(start)
        if row is None or self.word_hashes[row] == token.orth:
            return row
        next_start = self.start[row + 1] if row + 1 < len(self.start) else self.end
        gap = 0 if next_start is None else next_start - start - len(token)
        if gap not in (0, 1) or word_digest(token.orth, start - self.origin) != self.word[row]:
            return None
        self.word_hashes[row] = token.orth
        return row

    def has_head(self, row: int, token: Token) -> bool:
        """Return whether the token of a row still has its partner (head, or last token of its entity), if it needs one."""
        if self.head is None:
            return True
        head = self.annotation.partner(token)
        return head.idx - token.idx == self.head[row] and self.row_of(head) is not None

    def stands_on(self, doc: Doc) -> bool:
        """Return whether its rows are exactly a Doc's tokens, with the heads that they had."""
        place = doc.to_array(["IDX", "ORTH"]).astype(np.uint64, copy=False).reshape(-1, 2)
        starts = place[:, 0].astype(np.int64)
        if starts.tolist() != self.start or word_digests(place[:, 1], starts - self.origin).tolist() != self.word:
            return False
        partners = self.annotation.partners
        return self.head is None or (partners is not None and partners(doc).tolist() == self.head)

    def carries(self, row: int, label: str) -> bool:
        """Return whether this row was written for this label, "" for none; True if unknown."""
        return self.carried is None or self.carried[row] == _low_half(label)

    def entry_of(self, row: int, label: str) -> int | None:
        """Return the entry of a label at a row, or None."""
        try:
            return self.label.index(label, self.indptr[row], self.indptr[row + 1])
        except ValueError:
            i = self.extra_entries.get(row)
            return i if i is not None and self.label[i] == label else None

    def values_of(self, row: int, label: str) -> TokenValues | None:
        """Return the values of a label at a row, or None."""
        i = self.entry_of(row, label)
        return None if i is None else TokenValues(self.raw[i], self.calibrated[i])

    def set_of(self, row: int) -> tuple[str, ...] | None:
        """Return the labels in the set of a row, best first; None without sets, or if no set is enough."""
        if self.in_set is None or self.out_of_reach is None or self.out_of_reach[row]:
            return None
        return tuple(self.label[i] for i in self._best_first(row) if self.in_set[i])

    def _best_first(self, row: int) -> list[int]:
        """Return the entries of a row by calibrated score, then raw score, highest first."""
        return sorted(range(self.indptr[row], self.indptr[row + 1]), key=lambda i: (-self.calibrated[i], -self.raw[i]))

    def scores_of(self, row: int) -> dict[str, float]:
        """Return label -> calibrated probability of a row, highest first."""
        return {self.label[i]: self.calibrated[i] for i in self._best_first(row)}

    def raw_of(self, row: int) -> dict[str, float]:
        """Return label -> raw probability of a row, in the order of `scores_of`."""
        return {self.label[i]: self.raw[i] for i in self._best_first(row)}
