"""What a source and the gold say of Docs, as arrays from which single Docs can be taken. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..context.words import SHAPES, Words
from ..pairs.keyed import STEP, Key, keyed, splitmix64
from ..schema import FAR, MOST, Misfit
from ..types import ROUNDING, Floats, Ints, Pairs, Spans, stack_spans
from .file import check_length, check_within, column_of

Flags = NDArray[np.bool_]
Digests = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class FoundSpans:
    """The spans of some Docs. hits (Ints): 1 right, 0 wrong, -1 gold not known. gold (Ints): Gold spans of each Doc."""

    spans: Spans
    hits: Ints
    gold: Ints


@dataclass(frozen=True, eq=False)
class Readings:
    """n Docs that follow one another. A row is a token, or a document where each has one row.

    documents (Ints), digests (Digests): Number and digest of each Doc's document. n_rows (Ints): Rows of each Doc.
    gold (Ints): Column of each row's gold label; -1: the component does not know it, -2: no gold, or no score.
    unjudged (Flags): Of each row, whether it could have gold and has none.
    rows, tags (Ints), scores (Floats): The entries, row by row. hits (Flags): Whether each is a gold label.
    known (Flags): Whether the gold of each is known. spans (FoundSpans | None): None for a source of row labels alone.
    words (Words | None): What stands in the tokens; None where it was not asked for.
    """

    documents: Ints
    digests: Digests
    n_rows: Ints
    gold: Ints
    unjudged: Flags
    rows: Ints
    tags: Ints
    scores: Floats
    hits: Flags
    known: Flags
    spans: FoundSpans | None
    words: Words | None

    def __len__(self) -> int:
        return len(self.n_rows)

    @cached_property
    def starts(self) -> Ints:
        """First row of each Doc, and the end of the last."""
        return _starts_of(self.n_rows)

    @cached_property
    def entry_starts(self) -> Ints:
        """First entry of each Doc, and the end of the last."""
        return np.searchsorted(self.rows, self.starts)

    @cached_property
    def sizes(self) -> Ints:
        """Of each Doc the entries with gold or that could have it, at least 1: what a sample of Docs is measured by."""
        taken = self.known | self.unjudged[self.rows]
        sums = np.concatenate([[0], np.cumsum(taken)])
        return np.maximum(1, np.diff(sums[self.entry_starts]))

    # Looking at all Docs

    @cached_property
    def of_rows(self) -> Ints:
        """The document of each row."""
        return np.repeat(self.documents, self.n_rows)

    @property
    def n_documents(self) -> int:
        return int(self.documents.max(initial=-1)) + 1

    def pairs(self, n_units: int) -> Pairs:
        """The entries with gold. n_units (int): Rows with gold."""
        index = np.flatnonzero(self.known)
        return Pairs(self.rows[index], self.tags[index], self.scores[index], self.hits[index], n_units)

    def pairs_without_gold(self) -> Pairs:
        """The entries of rows that could have gold and have none; their hits mean nothing."""
        index = np.flatnonzero(self.unjudged[self.rows])
        none = np.zeros(len(index), dtype=bool)
        return Pairs(self.rows[index], self.tags[index], self.scores[index], none, len(self.gold))

    # Parts and wholes

    @classmethod
    def joined(cls, parts: Sequence[Readings]) -> Readings:
        """The Docs of all parts, one after the other; spans and words are in all parts or in none."""
        offsets = np.cumsum([0, *(len(part.gold) for part in parts)])
        plain = {key: _join((getattr(part, key) for part in parts), kind) for key, kind in _PLAIN.items() if key != "rows"}
        found = [part.spans for part in parts if part.spans is not None]
        spans = None
        if found:
            stacked = stack_spans([one.spans for one in found], [len(part.gold) for part in parts])
            spans = FoundSpans(stacked, *(_join((getattr(one, key) for one in found), np.intp) for key in ("hits", "gold")))
        read = [part.words for part in parts if part.words is not None]
        return cls(
            documents=_join((part.documents for part in parts), np.intp),
            rows=_join((part.rows + offset for part, offset in zip(parts, offsets, strict=False)), np.intp),
            spans=spans,
            words=Words.joined(read) if read else None,
            **plain,
        )

    def take(self, docs: Ints) -> Readings:
        """Some of the Docs, in this order."""
        rows, entries = _ranges(self.starts, docs), _ranges(self.entry_starts, docs)
        moved = np.repeat(_starts_of(self.n_rows[docs])[:-1] - self.starts[docs], np.diff(self.entry_starts)[docs])
        places = {**dict.fromkeys(("documents", "digests", *_OF_DOCS), docs), **dict.fromkeys(_OF_ROWS, rows)}
        places |= dict.fromkeys(_OF_ENTRIES, entries)
        return Readings(
            rows=self.rows[entries] + moved,
            spans=None if self.spans is None else self._take_spans(self.spans, docs),
            words=None if self.words is None else _words_at(self.words, docs, _ranges(self.words.starts, docs)),
            **{key: getattr(self, key)[place] for key, place in places.items()},
        )

    def above(self, lowest: float) -> Readings:
        """The same without the entries below a score."""
        kept = np.flatnonzero(self.scores >= lowest)
        return replace(self, **{key: getattr(self, key)[kept] for key in ("rows", *_OF_ENTRIES)})

    def _take_spans(self, found: FoundSpans, docs: Ints) -> FoundSpans:
        of_doc = np.searchsorted(self.starts, found.spans.starts, side="right") - 1
        counts = np.bincount(of_doc, minlength=len(self))
        index = np.argsort(of_doc, kind="stable")[_ranges(_starts_of(counts), docs)]
        moved = np.repeat(_starts_of(self.n_rows[docs])[:-1] - self.starts[docs], counts[docs])
        spans = found.spans.take(index)
        shifted = replace(spans, starts=spans.starts + moved, ends=spans.ends + moved)
        return FoundSpans(shifted, found.hits[index], found.gold[docs])

    def hidden(self, key: Key | None, shard: str) -> Readings:
        """The same for a file: documents get digests by the key, or by the shard's name and their number in it."""
        digests = keyed(self.documents.astype(np.uint64), shard) if key is None else keyed(self.digests, key.of_documents)
        return replace(self, digests=digests, words=None if self.words is None else self.words.hidden(key))

    def with_spans_in_order(self) -> Readings:
        """The same with the spans of each Doc in a fixed order, those on the Doc first."""
        if self.spans is None:
            return self
        held = self.spans.spans
        of_doc = np.searchsorted(self.starts, held.starts, side="right")
        order = np.lexsort((held.own, held.labels, held.ends, held.starts, ~held.chosen, of_doc))
        return replace(self, spans=FoundSpans(held.take(order), self.spans.hits[order], self.spans.gold))

    def digests_of_docs(self) -> Digests:
        """A digest of all that is held of each Doc but its document; spans must be in order (`with_spans_in_order`)."""
        firsts, n_entries = self.starts[:-1], np.diff(self.entry_starts)
        entries = [self.rows - np.repeat(firsts, n_entries), *(getattr(self, key) for key in _OF_ENTRIES)]
        parts = [(self.n_rows, [self.gold, self.unjudged]), (n_entries, entries)]
        if self.spans is not None:
            held = self.spans.spans
            of_span = np.searchsorted(self.starts, held.starts, side="right") - 1
            places = [held.starts - firsts[of_span], held.ends - firsts[of_span]]
            more = [held.labels, held.own, held.chosen, self.spans.hits, held.beside]
            of_token = np.repeat(of_span, held.ends - held.starts)
            parts += [(np.bincount(of_span, minlength=len(self)), [*places, *more])]
            parts += [(np.bincount(of_token, minlength=len(self)), [held.token_scores])]
            parts += [(np.ones(len(self), dtype=np.intp), [self.spans.gold])]
        if self.words is not None:
            named = [column for held in _OF_WORDS_BY_NAME for _, column in sorted(getattr(self.words, held).items())]
            parts += [(np.diff(self.words.starts), [*(getattr(self.words, key) for key in _OF_WORDS), *named])]
        found = np.zeros(len(self), dtype=np.uint64)
        for lengths, columns in parts:
            found = _mixed(found, _digests_of_parts(lengths, columns))
        return found

    # Saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name, but for the numbers of documents."""
        made = {key: getattr(self, key) for key in ("digests", *_OF_DOCS, *_OF_ROWS, "rows", *_OF_ENTRIES)}
        if self.spans is not None:
            made |= {f"spans.{key}": getattr(self.spans.spans, key) for key in _OF_SPANS}
            made |= {"spans.hits": self.spans.hits, "spans.gold": self.spans.gold}
            made |= {"spans.beside": self.spans.spans.beside} if self.spans.spans.beside.shape[1] else {}
        if self.words is not None:
            kept = _NOT_HIDDEN if self.words.seals is None else {**_NOT_HIDDEN, **_HIDDEN}
            made |= {f"words.{key}": getattr(self.words, key) for key in kept}
            for held in _OF_WORDS_BY_NAME:
                made |= {f"words.{held}.{name}": column for name, column in sorted(getattr(self.words, held).items())}
        return made

    @classmethod
    def of_arrays(cls, held: Mapping[str, NDArray[Any]]) -> Readings:
        """The readings in `arrays`. RAISES Misfit: an array is missing, or of the wrong type or length."""
        plain = {key: _held(held, key, kind) for key, kind in _PLAIN.items()}
        spans = words = None
        if "spans.hits" in held:
            spans = _spans_of(held, len(plain["gold"]))
        if "words.starts" in held:
            more: dict[str, Any] = {
                part: {key.split(".", 2)[2]: column for key, column in held.items() if key.startswith(f"words.{part}.")}
                for part in _OF_WORDS_BY_NAME
            }
            kinds = {**_NOT_HIDDEN, **_HIDDEN} if "words.seals" in held else _NOT_HIDDEN
            fixed: dict[str, Any] = {key: _held(held, f"words.{key}", kind) for key, kind in kinds.items()}
            nothing = np.zeros(len(fixed["counts"]), dtype=np.uint64)
            words = Words(**{"forms": nothing, "endings": nothing, **fixed, **more})
        made = cls(documents=numbered(plain["digests"]), spans=spans, words=words, **plain)
        _check(made)
        return made

    def check_labels(self, n_labels: int, n_span_labels: int) -> None:
        """RAISES Misfit: a label is out of range. Gold may be one label more: it stands for all others."""
        check_within("tags", self.tags, 0, n_labels - 1)
        check_within("gold", self.gold, -2, n_labels)
        if self.spans is not None:
            check_within("spans.labels", self.spans.spans.labels, 0, n_span_labels - 1)


def numbered(digests: Digests) -> Ints:
    """The number of each document among the distinct ones, in the order of their digests."""
    return np.unique(digests, return_inverse=True)[1].astype(np.intp)


# Name of an array -> its type.
_OF_DOCS = {"n_rows": np.intp}
_OF_ROWS = {"gold": np.intp, "unjudged": np.bool_}
_OF_ENTRIES = {"tags": np.intp, "scores": np.float64, "hits": np.bool_, "known": np.bool_}
_PLAIN = {"digests": np.uint64, **_OF_DOCS, **_OF_ROWS, "rows": np.intp, **_OF_ENTRIES}
_OF_SPANS = {
    "starts": np.intp, "ends": np.intp, "labels": np.intp, "token_scores": np.float64, "own": np.float64, "chosen": np.bool_,
}  # fmt: skip
_NOT_HIDDEN = {"starts": np.intp, "counts": np.bool_}
# In no file without a key.
_HIDDEN = {"forms": np.uint64, "endings": np.uint64, "seals": np.uint64}
_OF_WORDS = ("forms", "endings", "counts")
_OF_WORDS_BY_NAME = ("shapes", "columns", "hints")


def _held(held: Mapping[str, NDArray[Any]], key: str, kind: Any) -> NDArray[Any]:
    return column_of(held, key, np.dtype(kind).kind).astype(kind, copy=False)


def _check(made: Readings) -> None:
    """RAISES Misfit: lengths differ, rows or spans point nowhere, or a number is out of range."""
    n_docs, n_rows = len(made.n_rows), len(made.gold)
    check_length({"digests": made.digests}, n_docs)
    check_length({"unjudged": made.unjudged}, n_rows)
    check_length({key: getattr(made, key) for key in _OF_ENTRIES}, len(made.rows))
    check_within("n_rows", made.n_rows, 0, n_rows)
    check_within("rows", made.rows, 0, n_rows - 1)
    if (np.diff(made.rows) < 0).any() or int(made.n_rows.sum()) != n_rows:
        raise Misfit("rows", "an array that never falls, within the Docs")
    _check_scores("scores", made.scores)
    if (made.gold[made.rows[made.known]] == -2).any():
        raise Misfit("known", "an array of entries whose rows have gold")
    if made.spans is not None:
        check_length({"spans.gold": made.spans.gold}, n_docs)
    if made.words is not None:
        _check_words(made.words, n_docs)


def _spans_of(held: Mapping[str, NDArray[Any]], n_rows: int) -> FoundSpans:
    """The spans of such arrays. RAISES Misfit: as `_check`."""
    read = {key: _held(held, f"spans.{key}", kind) for key, kind in {**_OF_SPANS, "hits": np.intp, "gold": np.intp}.items()}
    starts, ends = read["starts"], read["ends"]
    check_length({f"spans.{key}": read[key] for key in ("ends", "labels", "own", "chosen", "hits")}, len(starts))
    check_within("spans.starts", starts, 0, n_rows - 1)
    check_within("spans.ends", ends, 1, n_rows)
    if (starts >= ends).any():
        raise Misfit("spans.starts", "an array of rows before those of 'spans.ends'")
    check_length({"spans.token_scores": read["token_scores"]}, int((ends - starts).sum()))
    _check_scores("spans.token_scores", read["token_scores"])
    _check_scores("spans.own", read["own"])
    check_within("spans.hits", read["hits"], -1, 1)
    check_within("spans.gold", read["gold"], 0, MOST)
    beside = column_of(held, "spans.beside", "f", 2) if "spans.beside" in held else np.zeros((len(starts), 0))
    check_length({"spans.beside": beside}, len(starts))
    _check_scores("spans.beside", beside)
    return FoundSpans(Spans(**{key: read[key] for key in _OF_SPANS}, beside=beside), read["hits"], read["gold"])


def _check_words(words: Words, n_docs: int) -> None:
    """RAISES Misfit: as `_check`."""
    named = {name: array for part in _OF_WORDS_BY_NAME for name, array in getattr(words, part).items()}
    check_length({"words.starts": words.starts}, n_docs + 1)
    if words.seals is not None:
        check_length({"words.seals": words.seals}, n_docs)
    check_length({f"words.{key}": getattr(words, key) for key in _OF_WORDS} | named, len(words))
    if words.starts[0] != 0 or words.starts[-1] != len(words) or (np.diff(words.starts) < 0).any():
        raise Misfit("words.starts", "an array that never falls, from 0 to the number of words")
    if set(words.shapes) != set(SHAPES) or any(flags.dtype != np.bool_ or flags.ndim != 1 for flags in words.shapes.values()):
        raise Misfit("words.shapes", f"yes and no for {' and '.join(SHAPES)}")
    for held, ndim in ((words.columns, 2), (words.hints, 1)):
        for name in held:
            check_within(name, column_of(held, name, "f", ndim), -FAR, FAR)


def _check_scores(name: str, scores: Floats) -> None:
    check_within(name, scores, -ROUNDING, 1 + ROUNDING)


def _join(arrays: Iterable[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=kind), *arrays])


def _starts_of(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(counts)])


def _ranges(starts: Ints, parts: Ints) -> Ints:
    """The indices from starts[i] to before starts[i + 1] of each of these parts, one after the other."""
    lengths = np.diff(starts)[parts]
    ends = np.cumsum(lengths)
    return np.repeat(starts[parts] - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)


def _words_at(words: Words, docs: Ints, tokens: Ints) -> Words:
    by_name = ({name: column[tokens] for name, column in getattr(words, held).items()} for held in _OF_WORDS_BY_NAME)
    shapes, columns, hints = by_name
    starts, seals = _starts_of(np.diff(words.starts)[docs]), None if words.seals is None else words.seals[docs]
    sources = None if words.sources is None else words.sources[docs]
    return Words(
        starts, words.forms[tokens], words.endings[tokens], shapes, words.counts[tokens], columns, hints, seals, sources
    )


def _digests_of_parts(lengths: Ints, columns: Sequence[NDArray[Any]]) -> Digests:
    """A digest of each part of the columns: the sum of digests of rows and their places. lengths (Ints): Of parts."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    rows = np.arange(lengths.sum(), dtype=np.uint64) - np.repeat(starts, lengths).astype(np.uint64)
    for column in columns:
        for values in column.T if column.ndim == 2 else [column]:
            bits = np.ascontiguousarray(values, np.float64).view(np.uint64) if values.dtype.kind == "f" else values
            rows = _mixed(rows, bits.astype(np.uint64))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(rows)])
    return sums[ends] - sums[starts]


def _mixed(digests: Digests, values: Digests) -> Digests:
    """Other digests, of these and of what comes behind."""
    return splitmix64((digests ^ values) + STEP)
