"""The scores on a Doc: a block of arrays in `doc.user_data` for each run of a pipe, and who may read it.

A block belongs to one stretch of text. Its key is (EXTENSION_KEY, "_<attr>", start, start + checksum): `Span.as_doc` and
`Doc.from_docs` move both offsets, so `start`, 0 when written, is the character of the Doc where the stretch begins. The
checksum shows damage and keeps apart blocks that come to one start. A block is read only if the Doc has its text there, whole,
and no other block of the pipe touches the stretch: one that reaches out of the Doc was left by a cut, and counts. In the
stretch, a row is a token's if start, length and, for arcs, head agree; in a Doc with other text around it also the label, since
what a cut left out may by chance have been joined on again, letter by letter. A document's row is that of the stretch.
"""

from __future__ import annotations

import contextlib
import zlib
from bisect import bisect_left
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import Annotation, get_annotation, head_offsets
from ..annotations.annotation import NO_PARTNER
from ..spacy_private import EXTENSION_KEY
from ..types import ROUNDING, Ints

UserData = MutableMapping[Any, Any]
BlockData = dict[str, Any]
# A span: (first character, last character + 1, label).
SpanKey = tuple[int, int, str]

# Blocks of another version are ignored.
BLOCK_VERSION = 7
# The bits that a block keeps of a label's hash; and of its text's: few, so that nobody confirms a guess of what a cut left out.
# Words have none. In memory a block knows the whole hash (`Block.text`).
LOW_BITS, TEXT_BITS = (1 << 32) - 1, (1 << 8) - 1
UNIT, ENTRY, BOUND, SPAN = "unit", "entry", "bound", "span"

# Column -> (`numpy.dtype.kind`, what each value belongs to, whether every block has it). start, length: characters of a unit,
# from the start of the stretch. head: offset to its partner. carried: low bits of the hash of its predicted label. flag,
# accept: 1, 0, or -1 without cut-off. indptr: first entry of each row, and their number. tag: index in the labels of the block.
# above: whether an entry reaches the threshold; missing if all do. column: column of the source, for lemmas.
COLUMNS = {
    "start": ("u", UNIT, True), "length": ("u", UNIT, True), "head": ("i", UNIT, False), "carried": ("u", UNIT, False),
    "flag": ("i", UNIT, False), "accept": ("i", UNIT, False), "indptr": ("u", BOUND, True), "tag": ("u", ENTRY, True),
    "raw": ("f", ENTRY, True), "calibrated": ("f", ENTRY, True), "above": ("b", ENTRY, False), "column": ("u", ENTRY, False),
}  # fmt: skip
# chosen: whether a span was on the Doc. said: checksum of the labels of its tokens, if it is right when they are.
_SPAN_COLUMNS = {
    "start": ("u", SPAN, True), "end": ("u", SPAN, True), "raw": ("f", SPAN, True), "calibrated": ("f", SPAN, True),
    "accept": ("i", SPAN, True), "chosen": ("b", SPAN, True), "said": ("u", SPAN, False),
}  # fmt: skip


class TokenValues(NamedTuple):
    """Raw and calibrated probability of a unit's label."""

    raw: float
    calibrated: float


class SpanValues(NamedTuple):
    """The scores of one span, and whether it reaches its cut-off (accept: 1 or 0, -1 without cut-offs).

    on_doc (bool): False for a candidate. layer (str), said (int): Annotation and checksum of the token labels that the
    probability depends on; "" and 0 if none.
    """

    raw: float
    calibrated: float
    accept: int
    on_doc: bool
    layer: str = ""
    said: int = 0

    @property
    def is_accepted(self) -> bool | None:
        """Whether it reaches its cut-off; None without cut-offs, and for candidates."""
        return None if self.accept < 0 or not self.on_doc else bool(self.accept)

    def agrees(self, span: Span) -> bool:
        """Return whether the token labels that count are those that were scored."""
        return (
            not self.layer
            or label_checksum(label_rows(get_annotation(self.layer), span.doc), span.start, span.end) == self.said
        )


@lru_cache(maxsize=4096)
def _low_bits(label: str) -> int:
    return get_string_id(label) & LOW_BITS if label else 0


class Block(BlockData):
    """What one pipe wrote on one Doc: the stored arrays, as a dict.

    In `doc.user_data` it replaces the plain dict that files and copies have; msgpack and pickle write it as one. A copy by
    spaCy has no key, and is opened where it is found.

    annotation (Annotation): Annotation of its labels. text (int | None): Whole hash of its text; None for one from a file,
    which has TEXT_BITS of it. key (tuple | None): Its key. begin, end (int): Its stretch of text, as characters of the Doc. Of
    a block that `fits` a Doc: is_whole (bool): Whether its text is all of the Doc. columns (dict): COLUMNS as sequences, None
    for one that it does not have. spans (dict): (start, end, label) of each span, in characters from `begin` -> its values.
    """

    __slots__ = ("annotation", "begin", "columns", "end", "is_whole", "key", "spans", "text", "_fit")
    begin: int
    end: int
    is_whole: bool
    columns: dict[str, Any]
    spans: dict[SpanKey, SpanValues]

    def __init__(self, data: BlockData, annotation: Annotation, text: int | None = None):
        super().__init__(data)
        self.annotation, self.text = annotation, text
        self.key: tuple[Any, ...] | None = None
        self._fit: tuple[Any, bool] | None = None

    def __copy__(self) -> Block:
        return Block(self, self.annotation, self.text)

    def __reduce__(self) -> tuple[type[BlockData], tuple[BlockData]]:
        return dict, (dict(self),)

    def open(self, key: tuple[Any, ...]) -> Block:
        """Place the block where its key says."""
        self.key, self.begin, self.end = key, key[2], key[2] + self["size"]
        return self

    def fits(self, doc: Doc) -> bool:
        """Return whether its text is in the Doc, in its stretch. It is asked once for each Doc, whose text never changes.

        Threads that ask at once find the same, and each part of the result is set in one step.
        """
        fit = self._fit
        if fit is None or fit[0]() is not doc:
            self._fit = fit = (ref(doc), self._has_text_in(doc))
        return fit[1]

    def _has_text_in(self, doc: Doc) -> bool:
        text = doc.text[self.begin : self.end] if 0 <= self.begin < self.end else ""
        key, spans = get_string_id(text), self.get("spans")
        if len(text) != self["size"] or not text or key & TEXT_BITS != self["text"] or self.text not in (None, key):
            return False
        self.columns = {name: _as_items(self[name]) if name in self else None for name in COLUMNS}
        self.spans = {} if spans is None else _read_spans(spans)
        self.text, self.is_whole = key, text == doc[:].text
        return True

    # Rows of units

    def row_of(self, token: Token) -> int | None:
        """Return the row of a token of the Doc that the block fits, or None."""
        columns, start, row = self.columns, token.idx - self.begin, token.i
        starts = columns["start"]
        if row >= len(starts) or starts[row] != start:  # the Doc was joined or retokenized
            row = bisect_left(starts, start)
            if row == len(starts) or starts[row] != start:
                return None
        if columns["length"][row] != len(token) or self.annotation.kind.of_documents:
            return None
        if columns["head"] is not None and not self._has_head(row, token):
            return None
        return row if self.is_whole or self.had_label(row, self.annotation.label(token)) else None

    def _has_head(self, row: int, token: Token) -> bool:
        """Return whether the token still has the head (or last token of its entity) of its row, which is unchanged itself."""
        head, offset, starts = self.annotation.partner(token), self.columns["head"][row], self.columns["start"]
        if head is None:
            return bool(offset == NO_PARTNER)
        partner = bisect_left(starts, head.idx - self.begin)
        return head.idx - token.idx == offset and partner < len(starts) and self.columns["length"][partner] == len(head)

    def rows_on(self, doc: Doc) -> tuple[Ints, Ints]:
        """Return the units of the Doc that have a row, and their rows: `row_of` for all tokens, or for the Doc, in one step."""
        places, lengths = self.annotation.unit_positions(doc).astype(np.int64).T
        rows = np.searchsorted(self["start"], places - self.begin) % max(1, len(self["start"]))
        is_own = (self["start"][rows] == places - self.begin) & (self["length"][rows] == lengths)
        if "head" in self and self.annotation.partners is not None:
            offsets = self.annotation.partners(doc)
            heads = np.searchsorted(places, places + offsets)
            is_own &= (self["head"][rows] == offsets) & is_own[heads]
        if "carried" in self and not self.is_whole:
            is_own &= self["carried"][rows] == self.annotation.hashes(doc).astype(np.uint32)
        units = np.flatnonzero(is_own)
        return units, rows[units]

    def had_label(self, row: int, label: str) -> bool:
        """Return whether the unit had this label ("" for none) when the pipe ran; True if unknown."""
        labels = self.columns["carried"]
        return labels is None or labels[row] == _low_bits(label)

    # Values of a row

    def flag_of(self, row: int, name: str) -> bool | None:
        """Return the flag of a row in a column ("flag", "accept"); None without one."""
        flags = self.columns[name]
        return None if flags is None or flags[row] < 0 else bool(flags[row])

    def entry_of(self, row: int, label: str) -> int | None:
        """Return the entry of a label in a row, or None."""
        tags, columns = self["tags"], self.columns
        tag, bounds = columns["tag"], columns["indptr"]
        for i in range(bounds[row], bounds[row + 1]):
            if tags[tag[i]] == label:
                return i
        return None

    def values_of(self, row: int, label: str) -> TokenValues | None:
        """Return the probabilities of a label in a row, or None."""
        i = self.entry_of(row, label)
        return None if i is None else TokenValues(self.columns["raw"][i], self.columns["calibrated"][i])

    def scores_of(self, row: int, raw: bool = False) -> dict[str, float]:
        """Return label -> calibrated (or raw) probability of a row, highest calibrated one first, ties by raw score."""
        tags, columns = self["tags"], self.columns
        tag, bounds, above = columns["tag"], columns["indptr"], columns["above"]
        raws, scores = columns["raw"], columns["calibrated"]
        entries = [i for i in range(bounds[row], bounds[row + 1]) if above is None or above[i]]
        if len(entries) > 1:
            entries.sort(key=lambda i: (-scores[i], -raws[i]))
        return {tags[tag[i]]: (raws if raw else scores)[i] for i in entries}


def _as_items(array: NDArray[Any]) -> Any:
    """Return an array as a sequence of Python numbers without a copy; they are read faster than from the array."""
    values: Any = array.astype(np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("="), copy=False)
    return memoryview(values)


def _read_spans(part: BlockData) -> dict[SpanKey, SpanValues]:
    start, end, *columns = (part[name].tolist() for name in ("start", "end", "raw", "calibrated", "accept", "chosen"))
    said = part["said"].tolist() if "said" in part else [0] * len(start)
    values = map(SpanValues, *columns, [part.get("layer", "")] * len(start), said)
    return dict(zip(zip(start, end, part["labels"], strict=True), values, strict=True))


# Writing


def checksum_of(part: BlockData) -> int:
    """Return a checksum of all values of a block, or of a part of one."""
    contents: list[Any] = [
        value
        if isinstance(value, np.ndarray)
        else b"%d" % checksum_of(value)
        if isinstance(value, dict)
        # Lists come back as tuples from `Doc.from_bytes`.
        else ("\0".join(value) if isinstance(value, (list, tuple)) else str(value)).encode("utf-8", "surrogatepass")
        for value in part.values()
    ]
    return zlib.crc32(b"".join(contents))


def add_block(user_data: UserData, attr: str, block: Block) -> None:
    """Store a block in the user data of the Doc that it was made for."""
    key = (EXTENSION_KEY, f"_{attr}", 0, checksum_of(block))
    user_data[key] = block.open(key)


def delete_blocks(user_data: UserData, attr: str) -> None:
    """Remove every block of an attribute, valid or not."""
    for key in [*user_data]:
        if key.__class__ is tuple and key[:2] == (EXTENSION_KEY, "_" + attr):
            user_data.pop(key, None)


def label_rows(annotation: Annotation, doc: Doc) -> NDArray[np.uint64]:
    """Return what a checksum of token labels covers, a row per token: label hash; for arcs offset and length of the head."""
    columns: list[NDArray[Any]] = [annotation.hashes(doc)]
    if annotation.kind.of_arcs:
        offsets, (places, lengths) = head_offsets(doc), annotation.unit_positions(doc).astype(np.int64).T
        columns += [offsets, lengths[np.searchsorted(places, places + offsets)]]
    return np.column_stack([column.astype(np.uint64) for column in columns])


def label_checksum(rows: NDArray[np.uint64], start: int, end: int) -> int:
    """Return the checksum of the labels of some tokens. rows: From `label_rows`."""
    return zlib.crc32(rows[start:end].tobytes())


# Reading


def blocks_of(user_data: UserData, attr: str) -> list[Block]:
    """Return the valid blocks of an attribute, wherever they lie; those from files and copies are checked and opened once."""
    prefix = EXTENSION_KEY, "_" + attr
    blocks: list[Block] = []
    for key, data in [*user_data.items()]:  # copied in one step: another thread may be writing on the Doc
        if key.__class__ is tuple and key[:2] == prefix:
            block = data if data.__class__ is Block and data.key is key else _opened(user_data, key, data)
            if block is not None:
                blocks += [block]
    return blocks


def _opened(user_data: UserData, key: tuple[Any, ...], data: Any) -> Block | None:
    """Open a block in place; None if it is not valid: user data may be damaged or forged, and then may be anything."""
    with contextlib.suppress(Exception):
        if type(data) is Block:  # copied by spaCy in this process
            block = data if data.key is None else data.__copy__()
        elif checksum_of(data) == key[3] - key[2] and _is_valid(data):
            block = Block(data, get_annotation(data["layer"]))
        else:
            return None
        block.open(key)
        if user_data.get(key) is data:  # no other thread has opened or removed it
            user_data[key] = block
        return block
    return None


def _is_valid(data: BlockData) -> bool:
    """Return whether the parts fit each other and the scores are probabilities; may RAISE any exception if they do not."""
    bounds, tags, spans = data["indptr"].tolist(), data["tags"], data.get("spans", {})
    texts = [*tags, *spans.get("labels", ()), spans.get("event", ""), spans.get("layer", "")]
    size = {UNIT: len(bounds) - 1, ENTRY: bounds[-1], BOUND: len(bounds), SPAN: len(spans.get("labels", ()))}
    columns = [(data, name, *form) for name, form in COLUMNS.items()]
    columns += [(spans, name, *form) for name, form in _SPAN_COLUMNS.items() if "spans" in data]
    for part, name, kind, per, is_required in columns:
        if is_required or name in part:
            column = part[name]
            in_range = kind != "f" or not size[per] or (column.min() >= 0 and column.max() <= 1 + ROUNDING)
            if column.dtype.kind != kind or column.shape != (size[per],) or not in_range:
                return False
    get_annotation(spans.get("layer") or data["layer"])  # raises if there is no such annotation
    return bool(
        data["version"] == BLOCK_VERSION
        and bounds[0] == 0
        and bounds == sorted(bounds)
        and size[UNIT]
        and (not size[ENTRY] or data["tag"].max() < len(tags))
        and {*map(type, texts)} == {str}
        and type(data["size"]) is type(data["text"]) is int
        and spans.keys() <= {*_SPAN_COLUMNS, "labels", "event", "layer"}
    )


def _touching(blocks: list[Block], begin: int, end: int) -> list[Block]:
    return [block for block in blocks if block.begin < end and begin < block.end]


def blocks_on(doc: Doc, attr: str, begin: int | None = None, end: int = 0) -> list[Block]:
    """Return the blocks that may be read on a Doc, by the rule above. begin, end (int): Those that touch these characters."""
    blocks = blocks_of(doc.user_data, attr)
    if len(blocks) == 1:
        return blocks if blocks[0].fits(doc) else []
    claims = blocks if begin is None else _touching(blocks, begin, end)
    return [block for block in claims if len(_touching(blocks, block.begin, block.end)) == 1 and block.fits(doc)]


def find_row(token: Token, attr: str) -> tuple[Block, int] | None:
    """Return the block and row of a token, or None."""
    start = token.idx
    for block in blocks_on(token.doc, attr, start, start + 1):
        row = block.row_of(token)
        return None if row is None else (block, row)
    return None


def rows_of(doc: Doc, attr: str) -> list[tuple[Block, Ints, Ints]]:
    """Return (block, units, rows) of each block with rows of units of the Doc: tokens, or the Doc as a whole."""
    return [(block, *rows) for block in blocks_on(doc, attr) if len((rows := block.rows_on(doc))[0])]


def document_block(doc: Doc, attr: str) -> Block | None:
    """Return the block of this Doc as a whole, or None."""
    return next((block for block, *_ in rows_of(doc, attr) if block.annotation.kind.of_documents), None)


def find_span(span: Span, attr: str) -> SpanValues | None:
    """Return the values of a span, or None."""
    first, last = span.start_char, span.end_char
    for block in blocks_on(span.doc, attr, first, last):
        values = block.spans.get((first - block.begin, last - block.begin, span.label_))
        if values is not None and _matches_characters(span) and values.agrees(span):
            return values
    return None


def _matches_characters(span: Span) -> bool:
    """Return whether a span's tokens are at its characters: spaCy does not update span groups when tokens are merged."""
    doc, last = span.doc, span.end - 1
    return last < len(doc) and (doc[span.start].idx, doc[last].idx + len(doc[last])) == (span.start_char, span.end_char)


def find_spans(doc: Doc, attr: str, layer: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """Return (key, values, event) of an annotation's spans, in text order."""
    return sorted(
        ((start + block.begin, end + block.begin, label), values, block["spans"]["event"])
        for block in blocks_on(doc, attr)
        if block.annotation.name == layer
        for (start, end, label), values in block.spans.items()
    )


def row_of_span(span: Span, attr: str) -> tuple[Block, int] | None:
    """Return the block and row of a span that has its own row, as links do, or None."""
    claim = find_row(span[0], attr) if len(span) and span[0].ent_iob_ == "B" else None
    last = None if claim is None or not claim[0].annotation.kind.of_links else claim[0].annotation.partner(span[0])
    return claim if last is not None and last.i + 1 == span.end else None


def link_values(span: Span, attr: str) -> SpanValues | None:
    """Return the values of an entity's predicted identity, or None."""
    block, row = row_of_span(span, attr) or (None, 0)
    values = None if block is None else block.values_of(row, span.kb_id_)
    if block is None or values is None:
        return None
    is_accepted = block.flag_of(row, "accept") if block.had_label(row, span.kb_id_) else None
    return SpanValues(*values, -1 if is_accepted is None else int(is_accepted), True)


def annotations_of(doc: Doc, attr: str) -> list[Annotation]:
    """Return the annotations that the blocks of a Doc have scores of."""
    return list({block.annotation.name: block.annotation for block in blocks_of(doc.user_data, attr)}.values())


def has_labelled_spans(doc: Doc, attr: str) -> bool:
    """Return whether a pipe scored labelled spans or links on this Doc; sentences do not count."""
    kinds = ((block.annotation, "spans" in block) for block in blocks_of(doc.user_data, attr))
    return any(annotation.kind.of_links or (has_spans and not annotation.kind.of_arcs) for annotation, has_spans in kinds)
