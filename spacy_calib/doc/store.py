"""The scores on a Doc: one block of arrays per Doc and attribute, in `doc.user_data`, and who finds the row of a token in it.

A block's key is ("._.", "_<attr>", start, start + print). `Span.as_doc` and `Doc.from_docs` of spaCy move both offsets, so `start`, 0
when written, says where in the text the block's Doc now begins. `print` is a checksum of the block: it shows damage, and keeps blocks
apart that end up at one start, where one would overwrite the other.

A row belongs to a token if start and word agree (for arcs also the head) and
- all rows are the tokens of this Doc, which is checked once per Doc; or else, in a Doc that was cut, joined or retokenized,
- both neighbours are those of its row, or one neighbour is (or an end of the Doc) and the token has the label of the row:
  rows left over by a cut may lie on equal words of a Doc that was joined on. A token that two blocks claim has no row.
The row of a whole document belongs to a Doc that begins where the block does and has the same text.
"""

from __future__ import annotations

import contextlib
import zlib
from bisect import bisect_left
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import Annotation, Hashes, get_annotation, head_offsets
from ..annotations.base import NO_PARTNER
from ..pairs.documents import TOKEN
from ..types import ROUNDING, Ints

UserData = MutableMapping[Any, Any]
BlockData = dict[str, Any]
# A span: (first character, last character + 1, label).
SpanKey = tuple[int, int, str]

# Blocks of another version are ignored.
BLOCK_VERSION = 6
# The bits of a label's hash that a block keeps; and those of a text: few, so that a dictionary does not read words back from what spaCy
# leaves in a part that was cut. In memory a block knows the whole hashes (`Block.words`, `Block.texts`).
LOW_BITS, TEXT_BITS, TEXT = (1 << 32) - 1, (1 << 8) - 1, np.uint8
UNIT, ENTRY, BOUND = "unit", "entry", "bound"


class BlockColumn(NamedTuple):
    """A column of a block: `numpy.dtype.kind`, what each value belongs to (BOUND: first entry of each row, and their number), and
    whether every block has it. has_extra (bool): Whether values of entries below the threshold follow.
    """

    kind: str
    per: str
    is_required: bool = False
    has_extra: bool = False


# start, word: first character of a unit, and TEXT_BITS of the hash of its text (for a whole Doc LOW_BITS). head: offset to its partner. carried: low bits of the
# hash of its predicted label. flag, accept: 1, 0, or -1 without cut-off.
# tag: index in the labels of the block. column: column of the source, for lemmas.
COLUMNS = {
    "start": BlockColumn("u", UNIT, True), "word": BlockColumn("u", UNIT, True), "head": BlockColumn("i", UNIT),
    "carried": BlockColumn("u", UNIT), "flag": BlockColumn("i", UNIT),
    "accept": BlockColumn("i", UNIT), "indptr": BlockColumn("u", BOUND, True), "tag": BlockColumn("u", ENTRY, True),
    "raw": BlockColumn("f", ENTRY, True, has_extra=True), "calibrated": BlockColumn("f", ENTRY, True, has_extra=True),
    "column": BlockColumn("u", ENTRY),
}  # fmt: skip
_EXTRA_COLUMNS = {"row": "u", "raw": "f", "calibrated": "f"}
_SPAN_COLUMNS = dict(start="u", end="u", text="u", raw="f", calibrated="f", accept="i", chosen="b", said="u")


class TokenValues(NamedTuple):
    """Raw and calibrated probability of a unit's label."""

    raw: float
    calibrated: float


class SpanValues(NamedTuple):
    """The scores of one span, and whether it reaches its cut-off (accept: 1 or 0, -1 without cut-offs).

    on_doc (bool): False for a candidate. text (int): Hash of its text, or its TEXT_BITS (mask). layer (str), said (int): Annotation and checksum
    of the token labels that the probability depends on; "" and 0 if none.
    """

    raw: float
    calibrated: float
    accept: int
    on_doc: bool
    text: int = 0
    layer: str = ""
    said: int = 0
    mask: int = TEXT_BITS

    @property
    def is_accepted(self) -> bool | None:
        """Whether it reaches its cut-off; None without cut-offs, and for candidates."""
        return None if self.accept < 0 or not self.on_doc else bool(self.accept)

    def agrees(self, span: Span) -> bool:
        """Return whether the span still has the text, and the token labels if they count, that were scored."""
        if get_string_id(span.text) & self.mask != self.text:
            return False
        return not self.layer or _labels_said(get_annotation(self.layer), span) == self.said


def _items(array: NDArray[Any]) -> Any:
    """Return an array as a sequence whose items are Python numbers; nothing is copied, and they are read faster than from the array."""
    kind = np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
    values: Any = array.astype(kind, copy=False)
    return memoryview(values)


@lru_cache(maxsize=4096)
def _low_bits(label: str) -> int:
    return get_string_id(label) & LOW_BITS if label else 0


class Block(BlockData):
    """What one pipe wrote on one Doc: the stored arrays as a dict, and, once `parse` was called, COLUMNS as attributes.

    words, texts (NDArray | None): Whole hashes of its units and spans; None for one from a file, which does not have them.
    In `doc.user_data` it replaces the plain dict that files and copies hold; msgpack and pickle write it as one.
    key (tuple | None): Its key; None until it is opened. annotation (Annotation): Annotation of its labels. spans (dict): Span of the
    Doc -> its values. token_scores (bool): Whether tokens show their scores. After `parse`: COLUMNS as sequences, the scores with those of
    entries below the threshold at the end, `start` as characters of the Doc; extra_entries (dict): Row -> its entry below the threshold.
    """

    __slots__ = (
        "key", "words", "texts", "annotation", "spans", "token_scores", *COLUMNS, "extra_entries", "mask", "_doc", "_is_whole",
        "_is_parsed",
    )  # fmt: skip
    annotation: Annotation
    token_scores: bool
    start: Sequence[int]
    word: Sequence[int]
    head: Sequence[int] | None
    carried: Sequence[int] | None
    flag: Sequence[int] | None
    accept: Sequence[int] | None
    indptr: Sequence[int]
    tag: Sequence[int]
    raw: Sequence[float]
    calibrated: Sequence[float]
    column: Sequence[int] | None
    extra_entries: dict[int, int]
    mask: int

    def __init__(self, data: BlockData, words: Hashes | None = None, texts: Sequence[int] | None = None):
        super().__init__(data)
        self.words, self.texts = words, texts
        self.key: tuple[Any, ...] | None = None
        self._doc: Any = None
        self._is_parsed = False

    def __copy__(self) -> Block:
        return Block(self, self.words, self.texts)

    def __reduce__(self) -> tuple[type[BlockData], tuple[BlockData]]:
        return dict, (dict(self),)

    def open(self, key: tuple[Any, ...]) -> Block:
        self.annotation, self.spans = get_annotation(self["layer"]), _read_spans(self, key[2], self.texts)
        self.token_scores = bool(self.get("token_scores", True))
        self.key = key
        return self

    def parse(self) -> Block:
        """Make the columns readable item by item, on the first call only."""
        if not self._is_parsed:
            begin, extra = self.key[2], self.get("extra", {"row": (), "tags": ()})  # type: ignore[index]
            for name, column in COLUMNS.items():
                values = self.get(name)
                if column.has_extra and "extra" in self:
                    values = np.concatenate([values, extra[name]])
                setattr(self, name, None if values is None else _items(values))
            if begin:
                self.start = _items(self["start"].astype(np.int64) + begin)
            self.word, self.mask = (self.word, TEXT_BITS) if self.words is None else (_items(self.words), -1)
            self.extra_entries = {row: i for i, row in enumerate(map(int, extra["row"]), len(self.tag))}
            self._is_parsed = True
        return self

    def label_of(self, entry: int) -> str:
        n = len(self.tag)
        return str(self["tags"][self.tag[entry]] if entry < n else self["extra"]["tags"][entry - n])

    # Rows of tokens

    def matches(self, doc: Doc) -> bool:
        """Return whether the rows are exactly the units of a Doc, with the heads that they had."""
        units, partners = self.annotation.unit_positions(doc), self.annotation.partners
        return (
            len(units) == len(self["start"])
            and np.array_equal(units[:, 0].astype(np.int64), self["start"].astype(np.int64) + self.key[2])  # type: ignore[index]
            and np.array_equal(
                units[:, 1].astype(self["word"].dtype) if self.words is None else units[:, 1],
                self["word"] if self.words is None else self.words,
            )
            and ("head" not in self or (partners is not None and np.array_equal(partners(doc), self["head"])))
        )

    def is_of(self, doc: Doc) -> bool:
        """Return whether the rows were the tokens of this Doc when it was first asked for, and are as many now."""
        if self._doc is None or self._doc() is not doc:
            self._is_whole = self.annotation.unit == TOKEN and self.matches(doc)
            self._doc = ref(doc)
            self.parse()
            if self._is_whole and self.words is None:  # from a file: from now on only these words have its rows
                self.words = self.annotation.unit_positions(doc)[:, 1]
                self.word, self.mask = _items(self.words), -1
        return self._is_whole and len(self.start) == len(doc)

    def row_of(self, token: Token) -> int | None:
        """Return the row of a token, by its first character and word, or None."""
        row = bisect_left(self.parse().start, token.idx)
        if row == len(self.start) or self.start[row] != token.idx or self.word[row] != token.orth & self.mask:
            return None
        if self.words is None and row + 1 < len(self.start) and self.start[row + 1] - token.idx - len(token) not in (0, 1):
            return None  # of another width
        return row

    def has_head(self, row: int, token: Token) -> bool:
        """Return whether the token still has the head (or last token of its entity) of its row; True for rows without heads."""
        if self.head is None:
            return True
        head = self.annotation.partner(token)
        if head is None:
            return bool(self.head[row] == NO_PARTNER)
        return head.idx - token.idx == self.head[row] and self.row_of(head) is not None

    def had_label(self, row: int, label: str) -> bool:
        """Return whether the unit had this label ("" for none) when the pipe ran; True if unknown."""
        return self.carried is None or self.carried[row] == _low_bits(label)

    def belongs(self, row: int, token: Token) -> bool:
        """Return whether neighbours, label and head agree that the row is the token's, by the rule in the module's docstring."""
        doc, i = token.doc, token.i
        if not self.has_head(row, token):
            return False
        follows = i == 0 or (row > 0 and self.row_of(doc[i - 1]) == row - 1)
        carries = self.had_label(row, self.annotation.label(token))
        if follows and carries:
            return True
        return (follows or carries) and (i + 1 == len(doc) or self.row_of(doc[i + 1]) == row + 1)

    # Values of a row

    def entry_of(self, row: int, label: str) -> int | None:
        """Return the entry of a label in a row, or None."""
        tags, tag = self["tags"], self.tag
        for i in range(self.indptr[row], self.indptr[row + 1]):
            if tags[tag[i]] == label:
                return i
        i = self.extra_entries.get(row, -1)
        return i if i >= 0 and self.label_of(i) == label else None

    def values_of(self, row: int, label: str) -> TokenValues | None:
        """Return the probabilities of a label in a row, or None."""
        i = self.entry_of(row, label)
        return None if i is None else TokenValues(self.raw[i], self.calibrated[i])

    def _best_first(self, row: int) -> list[int]:
        """Return the entries of a row by falling calibrated score, ties by raw score."""
        return sorted(range(self.indptr[row], self.indptr[row + 1]), key=lambda i: (-self.calibrated[i], -self.raw[i]))

    def scores_of(self, row: int) -> dict[str, float]:
        """Return label -> calibrated probability of a row, highest first."""
        return {self.label_of(i): self.calibrated[i] for i in self._best_first(row)}

    def raw_of(self, row: int) -> dict[str, float]:
        """Return label -> raw probability of a row, in the order of `scores_of`."""
        return {self.label_of(i): self.raw[i] for i in self._best_first(row)}


# Writing


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


def add_block(user_data: UserData, attr: str, block: BlockData) -> None:
    """Store a block in the user data of the Doc that it was made for."""
    key = ("._.", f"_{attr}", 0, checksum_of(block))
    if "layer" in block:  # a plug-in may have a form of its own
        block = (block if type(block) is Block else Block(block)).open(key)
    user_data[key] = block


def find_blocks(user_data: UserData, attr: str) -> list[tuple[Any, BlockData]]:
    """Return (key, value) of everything under keys of an attribute, valid or not."""
    name = f"_{attr}"
    return [
        (key, value)
        for key, value in list(user_data.items())
        if type(key) is tuple and len(key) == 4 and key[1] == name and key[0] == "._."
    ]


def delete_blocks(user_data: UserData, attr: str) -> None:
    """Remove every block of an attribute."""
    for key, _ in find_blocks(user_data, attr):
        user_data.pop(key, None)


def labels_said(annotation: Annotation, doc: Doc) -> NDArray[np.uint64]:
    """Return what a checksum of token labels is made of, a row per token: label hash; for arcs also offset and word of the head."""
    columns = [annotation.hashes(doc)]
    if annotation.arcs:
        offsets = head_offsets(doc)
        positions = doc.to_array(["IDX", "ORTH"]).astype(np.uint64, copy=False).reshape(-1, 2)
        heads = positions[np.searchsorted(positions[:, 0], positions[:, 0] + offsets.astype(np.uint64))]
        columns += [offsets.astype(np.uint64), heads[:, 1]]
    return np.column_stack(columns)


def _labels_said(annotation: Annotation, span: Span) -> int:
    """Return the checksum of the labels of a span's tokens, as they are now."""
    rows = []
    for token in span:
        label, head = annotation.label(token), token.head
        arc = [(head.idx - token.idx) & 0xFFFFFFFFFFFFFFFF, head.orth] if annotation.arcs else []
        rows.append([get_string_id(label) if label else 0, *arc])
    return zlib.crc32(np.array(rows, dtype=np.uint64).tobytes())


# Reading


def blocks_of(user_data: UserData, attr: str) -> list[Block]:
    """Return the valid blocks of an attribute; those from files and copies are checked and opened once."""
    name, blocks = f"_{attr}", list[Block]()
    for key, value in list(user_data.items()):  # in one step: another thread may be writing on the Doc
        if type(key) is tuple and len(key) == 4 and key[1] == name and key[0] == "._.":
            block = value if type(value) is Block and value.key == key else _opened(user_data, key, value)
            if block is not None:
                blocks += (block,)
    return blocks


def _opened(user_data: UserData, key: tuple[Any, ...], data: Any) -> Block | None:
    """Open a block in place; None if it is not valid: user data may be damaged or forged, and then may be anything."""
    with contextlib.suppress(Exception):
        is_copy = type(data) is Block and data.key is None  # by spaCy, in this process
        if is_copy or (checksum_of(data) == key[3] - key[2] and _is_valid(data)):
            block = (data if is_copy else Block(data)).open(key)
            get_annotation(data.get("spans", {}).get("layer") or data["layer"])  # raises if there is no such annotation
            user_data[key] = block
            return block
    return None


def _is_valid(data: BlockData) -> bool:
    """Return whether the parts fit each other and the scores are probabilities; may RAISE any exception if they do not."""
    bounds, tags, extra, spans = data["indptr"].tolist(), data["tags"], data.get("extra", {}), data.get("spans", {})
    size = {UNIT: len(bounds) - 1, ENTRY: bounds[-1], BOUND: len(bounds)}
    texts = [*tags, *extra.get("tags", ()), *spans.get("labels", ()), spans.get("event", ""), spans.get("layer", "")]
    if (
        bounds[0] != 0
        or bounds != sorted(bounds)
        or {*map(type, texts)} != {str}
        or any(value is None for value in data.values())
    ):
        return False
    columns = [(data.get(name), column.kind, size[column.per], column.is_required) for name, column in COLUMNS.items()]
    columns += [(spans.get(name), kind, len(spans["labels"]), name != "said") for name, kind in _SPAN_COLUMNS.items() if spans]
    columns += [(extra[name], kind, len(extra["tags"]), True) for name, kind in _EXTRA_COLUMNS.items() if extra]
    for column, kind, length, is_required in columns:
        if is_required if column is None else (column.dtype.kind != kind or column.shape != (length,)):
            return False
    scores = np.concatenate([part[name] for part in (data, extra) if part for name in ("raw", "calibrated")])
    in_range = not len(scores) or (np.minimum.reduce(scores) >= 0 and np.maximum.reduce(scores) <= 1 + ROUNDING)
    tags_exist = not size[ENTRY] or int(np.maximum.reduce(data["tag"])) < len(tags)
    return bool(
        in_range
        and tags_exist
        and data["version"] == BLOCK_VERSION
        and ("spans" in data) == bool(spans)
        and extra.keys() <= {*_EXTRA_COLUMNS, "tags"}
        and spans.keys() <= {*_SPAN_COLUMNS, "labels", "event", "layer"}
        and type(data.get("token_scores", True)) is bool
    )


def _read_spans(data: BlockData, begin: int, texts: Sequence[int] | None) -> dict[SpanKey, SpanValues]:
    """Return the values of each span of the Doc. begin (int): Character of the Doc where the text of the block begins."""
    if "spans" not in data:
        return {}
    part = data["spans"]
    starts, ends = ((part[name].astype(np.int64) + begin).tolist() for name in ("start", "end"))
    columns = [part[name].tolist() for name in ("raw", "calibrated", "accept", "chosen")]
    said = part["said"].tolist() if "said" in part else [0] * len(starts)
    layers, masks = [part.get("layer", "")] * len(starts), [TEXT_BITS if texts is None else -1] * len(starts)
    values = map(SpanValues, *columns, part["text"].tolist() if texts is None else texts, layers, said, masks)
    return dict(zip(zip(starts, ends, part["labels"], strict=True), values, strict=True))


def find_row(token: Token, attr: str) -> tuple[Block, int] | None:
    """Return the block and row of a token; None if no block or more than one claims it."""
    doc, i = token.doc, token.i
    blocks = blocks_of(doc.user_data, attr)
    if len(blocks) == 1:
        block = blocks[0]
        if block.is_of(doc) and block.start[i] == token.idx and block.word[i] == token.orth:
            return (block, i) if block.head is None or block.has_head(i, token) else None
    rows = ((block, block.row_of(token)) for block in blocks if block.annotation.unit == TOKEN)
    claims = [(block, row) for block, row in rows if row is not None]
    return claims[0] if len(claims) == 1 and claims[0][0].belongs(claims[0][1], token) else None


def rows_of(doc: Doc, attr: str) -> list[tuple[Block, Ints, Ints]]:
    """Return (block, tokens, rows) of each block: `find_row` for all tokens, in one step if the only block fits the Doc."""
    blocks = [block for block in blocks_of(doc.user_data, attr) if block.annotation.unit == TOKEN]
    if len(blocks) == 1 and blocks[0].matches(doc):
        tokens = np.arange(len(doc))
        return [(blocks[0], tokens, tokens)]
    claims = [(claim, token.i) for token in (doc if blocks else ()) if (claim := find_row(token, attr)) is not None]
    found = []
    for block in blocks:
        pairs = np.array([(i, row) for (owner, row), i in claims if owner is block], dtype=np.intp).reshape(-1, 2)
        found.append((block, *pairs.T))
    return found


def find_span(span: Span, attr: str) -> SpanValues | None:
    """Return the values of a span; None if no block or more than one has it."""
    key = (span.start_char, span.end_char, span.label_)
    values = (block.spans.get(key) for block in blocks_of(span.doc.user_data, attr))
    claims = [value for value in values if value is not None and value.agrees(span)]
    return claims[0] if len(claims) == 1 and _matches_characters(span) else None


def _matches_characters(span: Span) -> bool:
    """Return whether a span's tokens are at its characters: spaCy does not update span groups when tokens are merged."""
    doc, last = span.doc, span.end - 1
    return last < len(doc) and (doc[span.start].idx, doc[last].idx + len(doc[last])) == (span.start_char, span.end_char)


def find_spans(user_data: UserData, attr: str, layer: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """Return (key, values, event) of an annotation's spans, in text order, without those that two blocks claim."""
    by_key: dict[SpanKey, list[tuple[SpanValues, str]]] = {}
    for block in blocks_of(user_data, attr):
        for key, values in block.spans.items() if block["layer"] == layer else ():
            by_key.setdefault(key, []).append((values, block["spans"]["event"]))
    return [(key, *by_key[key][0]) for key in sorted(by_key) if len(by_key[key]) == 1]


def row_of_span(span: Span, attr: str) -> tuple[Block, int] | None:
    """Return the block and row of a span that has its own row, as links do, or None."""
    claim = find_row(span[0], attr) if len(span) and span[0].ent_iob_ == "B" else None
    last = None if claim is None or not claim[0].annotation.spans_are_units else claim[0].annotation.partner(span[0])
    return claim if last is not None and last.i + 1 == span.end else None


def link_values(span: Span, attr: str) -> SpanValues | None:
    """Return the values of an entity's predicted identity, or None."""
    block, row = row_of_span(span, attr) or (None, 0)
    entry = None if block is None else block.entry_of(row, span.kb_id_)
    if block is None or entry is None:
        return None
    accept = block.accept[row] if block.accept is not None and block.had_label(row, span.kb_id_) else -1
    return SpanValues(block.raw[entry], block.calibrated[entry], accept, True)


def annotations_of(doc: Doc, attr: str) -> list[Annotation]:
    """Return the annotations that the blocks of a Doc have scores of."""
    return list({block.annotation.name: block.annotation for block in blocks_of(doc.user_data, attr)}.values())


def has_labelled_spans(doc: Doc, attr: str) -> bool:
    """Return whether a pipe scored labelled spans or links on this Doc; sentences do not count."""
    return any(
        block.annotation.spans_are_units or ("spans" in block and not block.annotation.arcs)
        for block in blocks_of(doc.user_data, attr)
    )


def document_block(doc: Doc, attr: str) -> Block | None:
    """Return the block of this Doc as a whole; None if no block or more than one claims it."""
    blocks = [block for block in blocks_of(doc.user_data, attr) if block.annotation.unit != TOKEN]
    text = get_string_id(doc.text) if blocks else 0
    claims = [block for block in blocks if is_whole(block, block.key[2], text)]  # type: ignore[index]
    return claims[0].parse() if len(claims) == 1 else None


def is_whole(block: BlockData, begin: int, text: int) -> bool:
    """Return whether a block at character `begin` belongs to a whole Doc with this text. text (int): Hash of the text."""
    starts = block["start"].astype(np.int64)
    return len(starts) == 1 and bool(starts[0] + begin == 0 and block["word"][0] == text & LOW_BITS)
