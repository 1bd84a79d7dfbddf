"""The scores on a Doc: each run of a pipe stores one *block* of arrays in `doc.user_data`, for one *stretch* of the text.

The key of a block is (EXTENSION_KEY, "_<attr>", start, start + checksum). `Span.as_doc` and `Doc.from_docs` move both numbers,
so `start`, 0 when written, is always the character of the Doc where the stretch begins. The checksum reveals damage, and keeps
blocks with one start apart. A block is read only if the Doc still has all its text there, and no other block of the pipe
overlaps the stretch (even one that reaches beyond the Doc, left by a cut). A row of the block belongs to a token if start,
length and, for arcs, head agree. If the Doc has more text than the stretch, the label must agree, too, since text that a cut
removed may by chance have been joined on again. The row of a document belongs to the whole stretch.
"""

from __future__ import annotations

import contextlib
import zlib
from bisect import bisect_left
from collections.abc import MutableMapping
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import Annotation, Hashes, get_annotation, head_offsets
from ..annotations.annotation import NO_PARTNER
from ..spacy_private import EXTENSION_KEY
from ..types import ROUNDING, Ints

UserData = MutableMapping[Any, Any]
BlockData = dict[str, Any]
# A span: (first character, last character + 1, label).
SpanKey = tuple[int, int, str]

BLOCK_VERSION = 8  # blocks of another version are ignored
# Bits that a block keeps of a label's hash, and of its text's hash: few, so that nobody can confirm a guess of text that a cut
# removed. Of a word it keeps none. In memory a block has the whole hash of its text (`Block.text`).
LOW_BITS, TEXT_BITS = (1 << 32) - 1, (1 << 8) - 1
UNIT, ENTRY, BOUND, SPAN = "unit", "entry", "bound", "span"

# Column -> (`numpy.dtype.kind`, what each value belongs to, whether every block has it). start, length: of a unit (a token or
# document, one row each), in characters from the start of the stretch. head: offset in characters to its partner (head, or last
# token of its entity). carried: low bits of the hash of its predicted label. flag, accept: 1, 0, or -1 without cut-offs.
# indptr: first entry of each row, and number of entries. tag: index in the labels of the block. above: whether an entry reaches
# the threshold; missing if all do. column: column of the source, for lemmas.
COLUMNS = {
    "start": ("u", UNIT, True), "length": ("u", UNIT, True), "head": ("i", UNIT, False), "carried": ("u", UNIT, False),
    "flag": ("i", UNIT, False), "accept": ("i", UNIT, False), "indptr": ("u", BOUND, True), "tag": ("u", ENTRY, True),
    "raw": ("f", ENTRY, True), "calibrated": ("f", ENTRY, True), "above": ("b", ENTRY, False), "column": ("u", ENTRY, False),
}  # fmt: skip
# chosen: whether a span was on the Doc. checksum: of its tokens' labels, if its probability is that they are right.
_SPAN_COLUMNS = {
    "start": ("u", SPAN, True), "end": ("u", SPAN, True), "raw": ("f", SPAN, True), "calibrated": ("f", SPAN, True),
    "accept": ("i", SPAN, True), "chosen": ("b", SPAN, True), "checksum": ("u", SPAN, False),
}  # fmt: skip


class TokenValues(NamedTuple):
    """The raw and the calibrated probability that the label of a token (or of a document) is right."""

    raw: float
    calibrated: float


class SpanValues(NamedTuple):
    """The scores of one span, and whether it reaches its cut-off (accept: 1 or 0, -1 without cut-offs).

    on_doc (bool): Whether the span was on the Doc; False for a candidate. layer (str), checksum (int): Annotation and
    checksum of the token labels that the probability depends on; "" and 0 if it depends on none.
    """

    raw: float
    calibrated: float
    accept: int
    on_doc: bool
    layer: str = ""
    checksum: int = 0

    @property
    def is_accepted(self) -> bool | None:
        """Whether the span reaches its cut-off; None without cut-offs, and for candidates."""
        return None if self.accept < 0 or not self.on_doc else bool(self.accept)

    def agrees(self, span: Span) -> bool:
        """Return whether the token labels that the probability depends on are still those that were scored."""
        if not self.layer:  # it depends on none
            return True
        return label_checksum(label_rows(get_annotation(self.layer), span.doc), span.start, span.end) == self.checksum


@lru_cache(maxsize=4096)
def _low_bits(label: str) -> int:
    """Return the part of a label's hash that a block stores to recognize the label (why: see LOW_BITS); 0 for no label."""
    return get_string_id(label) & LOW_BITS if label else 0


class Block(BlockData):
    """The scores that one pipe stored on one Doc: a dict of arrays (see COLUMNS), with a row for each token, or for the Doc.

    In `doc.user_data` a Block replaces the plain dict that was read from a file; msgpack and pickle write it as a plain dict.
    data (dict): The arrays. annotation (Annotation): Reads the labels that were scored. text (int | None): Whole hash of the
    scored text; None for a block from a file, which has only TEXT_BITS of it. key (tuple | None): Key in `doc.user_data`; None
    for a copy that spaCy made with the Doc, until scores of the copied Doc are read. begin, end (int): The stretch of the Doc's
    text that was scored, in characters. The method `fits` sets three more attributes. is_whole (bool): Whether the stretch is
    the whole Doc. columns (dict): Name in COLUMNS -> sequence of values, None if missing. spans (dict): (start, end, label) of
    a span, in characters from `begin` -> its scores.
    """

    __slots__ = ("annotation", "begin", "columns", "end", "is_whole", "key", "spans", "text", "_last_fit")
    begin: int
    end: int
    is_whole: bool
    columns: dict[str, Any]
    spans: dict[SpanKey, SpanValues]

    def __init__(self, data: BlockData, annotation: Annotation, text: int | None = None):
        super().__init__(data)
        self.annotation, self.text = annotation, text
        self.key: tuple[Any, ...] | None = None
        self._last_fit: tuple[Any, bool] | None = None  # (weak reference to the Doc that `fits` saw last, its answer)

    def __copy__(self) -> Block:
        return Block(self, self.annotation, self.text)

    def __reduce__(self) -> tuple[type[BlockData], tuple[BlockData]]:
        return dict, (dict(self),)

    def place_at(self, key: tuple[Any, ...]) -> Block:
        """Set the block's key, and the bounds of its text, which follow from the key; return the block."""
        begin = key[2]  # key: (EXTENSION_KEY, "_<attr>", begin, begin + checksum)
        self.key, self.begin, self.end = key, begin, begin + self["size"]
        return self

    def fits(self, doc: Doc) -> bool:
        """Return whether the Doc has the block's text in its stretch. The answer for a Doc is kept: its text never changes.

        Threads may call it at once: they get the same answer, and each attribute is set in one step.
        """
        last_fit = self._last_fit
        if last_fit is None or last_fit[0]() is not doc:
            self._last_fit = last_fit = (ref(doc), self._has_text_in(doc))
        return last_fit[1]

    def _has_text_in(self, doc: Doc) -> bool:
        """Return whether the Doc has the block's text in its stretch; if so, set `columns`, `spans`, `text`, `is_whole`."""
        text = doc.text[self.begin : self.end] if 0 <= self.begin < self.end else ""
        if not text or len(text) != self["size"]:
            return False
        starts = self["start"].tolist()
        ends = [start + length for start, length in zip(starts, self["length"].tolist(), strict=True)]
        word_hashes = [get_string_id(text[start:end]) for start, end in zip(starts, ends, strict=True)]
        whole_hash = text_hash(np.array(word_hashes, dtype="<u8"))
        gaps = {text[end:start] for end, start in zip([0, *ends], [*starts, len(text)], strict=True)}  # between units
        has_same_hash = whole_hash & TEXT_BITS == self["text"] and self.text in (None, whole_hash)
        if not (has_same_hash and gaps <= {"", " "}):  # the hash is of the units alone: no other text may be between them
            return False
        self.columns = {name: _as_items(self[name]) if name in self else None for name in COLUMNS}
        self.spans = _read_spans(self["spans"]) if "spans" in self else {}
        self.text, self.is_whole = whole_hash, self.begin == 0 and self.end == doc[-1].idx + len(doc[-1])
        return True

    def row_of(self, token: Token) -> int | None:
        """Return the row that belongs to a token, or None. The block must fit the token's Doc."""
        starts, start, row = self.columns["start"], token.idx - self.begin, token.i
        if row >= len(starts) or starts[row] != start:  # the Doc was joined or retokenized: the row is not the token's index
            row = bisect_left(starts, start)
            if row == len(starts) or starts[row] != start:
                return None
        if self.columns["length"][row] != len(token) or self.annotation.kind.of_documents:  # a document's row is of no token
            return None
        if self.columns["head"] is not None and not self._has_head(row, token):
            return None
        # A Doc with more text than the block may have got the token's text from elsewhere: then its label must agree, too.
        return row if self.is_whole or self.had_label(row, self.annotation.label(token)) else None

    def _has_head(self, row: int, token: Token) -> bool:
        """Return whether a token's partner (head, or last token of its entity) is that of its row, with the same length."""
        partner, offset, starts = self.annotation.partner(token), self.columns["head"][row], self.columns["start"]
        if partner is None:
            return bool(offset == NO_PARTNER)
        partner_row = bisect_left(starts, partner.idx - self.begin)
        is_unchanged = partner_row < len(starts) and self.columns["length"][partner_row] == len(partner)
        return is_unchanged and partner.idx - token.idx == offset

    def rows_on(self, doc: Doc) -> tuple[Ints, Ints]:
        """Return (indices of the Doc's units that have a row, the row of each): the results of `row_of`, for all units at once.

        A unit is a token, or the whole document. It agrees with its row in start, length, (for arcs) head and, on a Doc with
        more text than the block, predicted label.
        """
        starts, lengths = self.annotation.unit_texts(doc).astype(np.int64).T[:2]
        rows = np.searchsorted(self["start"], starts - self.begin) % max(1, len(self["start"]))  # past the end: row 0
        agrees = (self["start"][rows] == starts - self.begin) & (self["length"][rows] == lengths)
        if "head" in self and self.annotation.partners is not None:
            offsets = self.annotation.partners(doc)
            partners = np.searchsorted(starts, starts + offsets)  # index of each unit's partner (head) among the units
            agrees &= (self["head"][rows] == offsets) & agrees[partners]
        if "carried" in self and not self.is_whole:
            agrees &= self["carried"][rows] == self.annotation.hashes(doc).astype(np.uint32)
        units = np.flatnonzero(agrees)
        return units, rows[units]

    def had_label(self, row: int, label: str) -> bool:
        """Return whether the unit of a row had this label ("" for none) when the pipe ran; True if unknown."""
        predicted = self.columns["carried"]
        return predicted is None or predicted[row] == _low_bits(label)

    def flag_of(self, row: int, name: str) -> bool | None:
        """Return the value of a row in the column "flag" or "accept"; None if the column or the value is missing (-1)."""
        flags = self.columns[name]
        return None if flags is None or flags[row] < 0 else bool(flags[row])

    def entry_of(self, row: int, label: str) -> int | None:
        """Return the index of the entry of a label in a row; None if it has none."""
        labels, tags, bounds = self["tags"], self.columns["tag"], self.columns["indptr"]
        for entry in range(bounds[row], bounds[row + 1]):
            if labels[tags[entry]] == label:
                return entry
        return None

    def values_of(self, row: int, label: str) -> TokenValues | None:
        """Return the raw and calibrated probability of a label in a row; None if the row has no entry for it."""
        entry = self.entry_of(row, label)
        return None if entry is None else TokenValues(self.columns["raw"][entry], self.columns["calibrated"][entry])

    def scores_of(self, row: int, raw: bool = False) -> dict[str, float]:
        """Return label -> calibrated (or raw) probability of a row, above the threshold, by falling (calibrated, raw) score."""
        labels, columns = self["tags"], self.columns
        tags, bounds, is_above = columns["tag"], columns["indptr"], columns["above"]
        raw_scores, scores = columns["raw"], columns["calibrated"]
        entries = [entry for entry in range(bounds[row], bounds[row + 1]) if is_above is None or is_above[entry]]
        if len(entries) > 1:
            entries.sort(key=lambda entry: (-scores[entry], -raw_scores[entry]))
        return {labels[tags[entry]]: (raw_scores if raw else scores)[entry] for entry in entries}


def _as_items(array: NDArray[Any]) -> Any:
    """Return a view of an array that yields Python numbers; reading single values is faster than from the array."""
    dtype: Any = np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")  # what memoryview can read
    values: Any = array.astype(dtype, copy=False)
    return memoryview(values)


def _read_spans(spans: BlockData) -> dict[SpanKey, SpanValues]:
    """Return (start, end, label) -> scores of each span of a block. spans: The block's entry "spans"."""
    starts, ends, *columns = (spans[name].tolist() for name in ("start", "end", "raw", "calibrated", "accept", "chosen"))
    checksums = spans["checksum"].tolist() if "checksum" in spans else [0] * len(starts)
    values = map(SpanValues, *columns, [spans.get("layer", "")] * len(starts), checksums)  # in the order of its fields
    return dict(zip(zip(starts, ends, spans["labels"], strict=True), values, strict=True))


def checksum_of(data: BlockData) -> int:
    """Return the CRC-32 of all values of a block, or of its entry "spans": arrays, labels, texts and numbers."""
    contents: list[Any] = []
    for value in data.values():
        if isinstance(value, np.ndarray):  # most are arrays
            contents.append(value)
        elif isinstance(value, dict):  # the entry "spans"
            contents.append(b"%d" % checksum_of(value))
        else:  # `Doc.from_bytes` turns lists into tuples
            text = "\0".join(value) if isinstance(value, (list, tuple)) else str(value)
            contents.append(text.encode("utf-8", "surrogatepass"))
    return zlib.crc32(b"".join(contents))


def text_hash(units: Hashes) -> int:
    """Return a 64-bit hash of a text. units: spaCy's hash of the text of each of its units (tokens, or the document), (n,)."""
    return int.from_bytes(blake2b(units.tobytes(), digest_size=8).digest(), "little")


def add_block(user_data: UserData, attr: str, block: Block) -> None:
    """Store a block of prefix `attr` in a Doc's user data, by a key that follows the text if spaCy cuts or joins Docs."""
    # spaCy takes the last two parts of such a key for the start and end of a span, and moves both by the same number. Here they
    # are the start of the block's text, 0 when written, and start + checksum: their difference always is the checksum.
    key = (EXTENSION_KEY, f"_{attr}", 0, checksum_of(block))
    user_data[key] = block.place_at(key)


def delete_blocks(user_data: UserData, attr: str) -> None:
    """Remove every block of the prefix `attr` from a Doc's user data, valid or not."""
    for key in [*user_data]:
        if _is_block_key(key, attr):
            user_data.pop(key, None)


def label_rows(annotation: Annotation, doc: Doc) -> NDArray[np.uint64]:
    """Return a row per token for `label_checksum`: the label's hash and, for arcs, offset and length of the head."""
    columns: list[NDArray[Any]] = [annotation.hashes(doc)]
    if annotation.kind.of_arcs:
        offsets, (starts, lengths) = head_offsets(doc), annotation.unit_texts(doc).astype(np.int64).T[:2]
        columns += [offsets, lengths[np.searchsorted(starts, starts + offsets)]]
    return np.column_stack([column.astype(np.uint64) for column in columns])


def label_checksum(rows: NDArray[np.uint64], start: int, end: int) -> int:
    """Return the CRC-32 of the labels of the tokens with indices from start to end - 1. rows: Of the Doc, from `label_rows`."""
    return zlib.crc32(rows[start:end].tobytes())


# Prefix -> (the Doc that was read last; id, number of entries and newest key of its user data then; its blocks).
_LAST_READ: dict[str, tuple[ref[Doc], int, int, Any, list[Block]]] = {}


def _blocks_of_doc(doc: Doc, attr: str) -> list[Block]:
    """Return a Doc's blocks of prefix `attr`. If the last read was of this Doc, search only data that were added since."""
    # A loop that reads each token's score and sets an extension would otherwise search all values that it has set before.
    user_data: Any = doc.user_data
    last_read = _LAST_READ.get(attr)
    if last_read is not None and last_read[0]() is doc and last_read[1] == id(user_data):
        doc_ref, data_id, old_size, newest_key, blocks = last_read
        new_keys: list[Any] = []  # added since then, the newest first
        try:
            if (n_new := len(user_data) - old_size) == 0:
                is_current = next(reversed(user_data)) is newest_key
            else:  # before the new keys comes the newest key of the last read, unless keys were removed since then
                *new_keys, previous_key = islice(reversed(user_data), n_new + 1)
                is_current = previous_key is newest_key and not any(_is_block_key(key, attr) for key in new_keys)
        except (RuntimeError, ValueError):  # another thread added a key; n_new is below 0
            is_current = False
        for block in blocks:  # a loop: `all` with a generator takes twice as long, at each read
            is_current = is_current and user_data.get(block.key) is block
        if is_current:
            if new_keys:
                _LAST_READ[attr] = doc_ref, data_id, old_size + len(new_keys), new_keys[0], blocks
            return blocks
    keys = [*user_data]
    blocks = blocks_of(user_data, attr)
    if blocks and isinstance(user_data, dict):
        _LAST_READ[attr] = ref(doc, lambda _: _LAST_READ.pop(attr, None)), id(user_data), len(keys), keys[-1], blocks
    return blocks


def _is_block_key(key: Any, attr: str) -> bool:
    """Return whether a key of user data is that of a block of the prefix `attr`."""
    return key.__class__ is tuple and key[:2] == (EXTENSION_KEY, "_" + attr)


def blocks_of(user_data: UserData, attr: str) -> list[Block]:
    """Return the undamaged blocks of prefix `attr` in user data; only `Block.fits` checks the text. Dicts become Blocks."""
    blocks: list[Block] = []
    for key, data in [*user_data.items()]:  # copied in one step: another thread may be writing on the Doc
        if _is_block_key(key, attr):
            is_open = data.__class__ is Block and data.key is key  # checked before; others were copied, or read from a file
            block = data if is_open else _opened(user_data, key, data)
            if block is not None:
                blocks.append(block)
    return blocks


def _opened(user_data: UserData, key: tuple[Any, ...], data: Any) -> Block | None:
    """Return `data`, the user data at `key`, as a Block, which replaces it there; None if not valid (damaged or forged)."""
    with contextlib.suppress(Exception):
        if type(data) is Block:  # copied by spaCy in this process
            block = data if data.key is None else data.__copy__()  # with a key, it is on another Doc, too
        elif checksum_of(data) == key[3] - key[2] and _is_valid(data):  # key: (..., start, start + checksum)
            block = Block(data, get_annotation(data["layer"]))
        else:
            return None
        block.place_at(key)
        if user_data.get(key) is data:  # no other thread has opened or removed it
            user_data[key] = block
        return block
    return None


def _is_valid(data: BlockData) -> bool:
    """Return whether the arrays of a block fit together and scores are probabilities. RAISES Exception: it is no block."""
    bounds, tags, spans = data["indptr"].tolist(), data["tags"], data.get("spans", {})
    texts = [*tags, *spans.get("labels", ()), spans.get("event", ""), spans.get("layer", "")]
    sizes = {UNIT: len(bounds) - 1, ENTRY: bounds[-1], BOUND: len(bounds), SPAN: len(spans.get("labels", ()))}
    columns = [(data, name, *properties) for name, properties in COLUMNS.items()]
    columns += [(spans, name, *properties) for name, properties in _SPAN_COLUMNS.items() if "spans" in data]
    for arrays, name, dtype_kind, axis, is_required in columns:
        if is_required or name in arrays:
            column, size = arrays[name], sizes[axis]
            in_range = dtype_kind != "f" or not size or (column.min() >= 0 and column.max() <= 1 + ROUNDING)
            if column.dtype.kind != dtype_kind or column.shape != (size,) or not in_range:
                return False
    get_annotation(spans.get("layer") or data["layer"])  # raises if there is no such annotation
    return bool(
        data["version"] == BLOCK_VERSION
        and bounds[0] == 0
        and bounds == sorted(bounds)
        and sizes[UNIT]
        and (not sizes[ENTRY] or data["tag"].max() < len(tags))
        and {*map(type, texts)} == {str}
        and type(data["size"]) is int
        and type(data["text"]) is int
        and spans.keys() <= {*_SPAN_COLUMNS, "labels", "event", "layer"}
    )


def _overlapping(blocks: list[Block], begin: int, end: int) -> list[Block]:
    """Return the blocks whose stretches overlap the characters from begin to end - 1 of the Doc."""
    return [block for block in blocks if block.begin < end and begin < block.end]


def blocks_on(doc: Doc, attr: str, begin: int | None = None, end: int = 0) -> list[Block]:
    """Return the blocks of prefix `attr` that fit a Doc and overlap no other; with `begin`, only at characters begin to end."""
    blocks = _blocks_of_doc(doc, attr)
    if len(blocks) == 1:
        return blocks if blocks[0].fits(doc) else []
    needed = blocks if begin is None else _overlapping(blocks, begin, end)
    return [block for block in needed if len(_overlapping(blocks, block.begin, block.end)) == 1 and block.fits(doc)]


def find_row(token: Token, attr: str) -> tuple[Block, int] | None:
    """Return (the block of prefix `attr` with the scores of a token, the token's row in it); None if it has no scores."""
    start = token.idx
    for block in blocks_on(token.doc, attr, start, start + 1):  # at most one: they do not overlap
        row = block.row_of(token)
        return None if row is None else (block, row)
    return None


def rows_of(doc: Doc, attr: str) -> list[tuple[Block, Ints, Ints]]:
    """Return (block, indices of its units, their rows) for each block of prefix `attr` that has rows."""
    matches = [(block, *block.rows_on(doc)) for block in blocks_on(doc, attr)]
    return [(block, units, rows) for block, units, rows in matches if len(units)]


def document_block(doc: Doc, attr: str) -> Block | None:
    """Return the block of prefix `attr` with scores of the whole document (text categories); None if there is none."""
    return next((block for block, *_ in rows_of(doc, attr) if block.annotation.kind.of_documents), None)


def find_span(span: Span, attr: str) -> SpanValues | None:
    """Return a span's scores of prefix `attr`; None if it has none, or its tokens or their labels changed after the scoring."""
    start, end = span.start_char, span.end_char
    for block in blocks_on(span.doc, attr, start, end):
        values = block.spans.get((start - block.begin, end - block.begin, span.label_))
        if values is not None and _has_its_tokens(span) and values.agrees(span):
            return values
    return None


def _has_its_tokens(span: Span) -> bool:
    """Return whether a span's tokens are at its characters: not in a span group if tokens were merged since it was made."""
    doc, last = span.doc, span.end - 1
    return last < len(doc) and (doc[span.start].idx, doc[last].idx + len(doc[last])) == (span.start_char, span.end_char)


def find_spans(doc: Doc, attr: str, layer: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """Return (key, scores, rule for when it is right) of each scored span of prefix `attr` and annotation `layer`, in order."""
    return sorted(
        ((start + block.begin, end + block.begin, label), values, block["spans"]["event"])
        for block in blocks_on(doc, attr)
        if block.annotation.name == layer
        for (start, end, label), values in block.spans.items()
    )


def row_of_span(span: Span, attr: str) -> tuple[Block, int] | None:
    """Return (block, row) with an entity's identity scores (prefix `attr`), stored for its first token; None if it has none."""
    if not len(span) or span[0].ent_iob_ != "B":  # no entity begins here
        return None
    block, row = find_row(span[0], attr) or (None, 0)
    if block is None or not block.annotation.kind.of_links:
        return None
    last_token = block.annotation.partner(span[0])  # of the entity that begins at this token
    return (block, row) if last_token is not None and last_token.i + 1 == span.end else None


def link_values(span: Span, attr: str) -> SpanValues | None:
    """Return the scores (prefix `attr`) of an entity's current identity (`kb_id_`); None if it has none."""
    block, row = row_of_span(span, attr) or (None, 0)
    values = None if block is None else block.values_of(row, span.kb_id_)
    if block is None or values is None:
        return None
    # The cut-off was applied to the identity that the entity had when the pipe ran. An identity always is on the Doc.
    is_accepted = block.flag_of(row, "accept") if block.had_label(row, span.kb_id_) else None
    return SpanValues(*values, accept=-1 if is_accepted is None else int(is_accepted), on_doc=True)


def annotations_of(doc: Doc, attr: str) -> list[Annotation]:
    """Return the annotations of all valid blocks of the prefix `attr` on a Doc."""
    return list({block.annotation.name: block.annotation for block in blocks_of(doc.user_data, attr)}.values())


def has_labelled_spans(doc: Doc, attr: str) -> bool:
    """Return whether a pipe with the prefix `attr` scored labelled spans or links on this Doc; sentences do not count."""
    kinds = ((block.annotation.kind, "spans" in block) for block in blocks_of(doc.user_data, attr))
    return any(kind.of_links or (has_spans and not kind.of_arcs) for kind, has_spans in kinds)  # of_arcs: sentences
