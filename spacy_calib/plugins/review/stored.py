"""Scored corpora in a temporary file, and sequences that make an item when it is read: both keep little in memory."""

from __future__ import annotations

import json
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ...pairs.scored_corpus import ScoredCorpus, ScoredSpans
from ...types import Ints
from .corpus_parts import SCORE_COLUMNS, SPAN_COLUMNS, TOKEN_COLUMNS, join_corpora, select_docs
from .digest_counts import report_file_errors

_NUMERIC = tuple(name for name in TOKEN_COLUMNS if name != "words")


class CorpusFile:
    """Successive corpora of one pipe, with numbered Docs, in a temporary file. RAISES C468: the file cannot be written."""

    def __init__(self) -> None:
        with report_file_errors("C468"):
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as this object is there)
        weakref.finalize(self, self._file.close)
        # The number of the first Doc of each corpus, and where the corpus begins in the file.
        self._first_docs: list[int] = []
        self._offsets: list[int] = []

    def add(self, corpus: ScoredCorpus) -> None:
        """Append a block of the corpus to the file; `_read` reads the parts in the same order."""
        with report_file_errors("C468"):
            self._first_docs.append(int(corpus.numbers_of_docs[0]))
            self._offsets.append(self._file.seek(0, 2))
            words = corpus.words.tolist()
            about = {"names": corpus.names, "origins": corpus.origins, "unit": corpus.unit, "row_unit": corpus.row_unit}
            self._write(_bytes_of(json.dumps(about)))
            self._write(_bytes_of("".join(words)))
            self._write(np.array([len(word) for word in words], dtype=np.int32))
            self._write(corpus.numbers_of_docs)
            for name in (*_NUMERIC, *SCORE_COLUMNS):
                self._write(getattr(corpus, name))
            for name in SPAN_COLUMNS:
                self._write(getattr(corpus.spans, name))

    def read_docs(self, numbers: Ints) -> ScoredCorpus:
        """Read some Docs as one corpus. numbers (Ints): Numbers of the Docs, ascending; at least one."""
        bounds = [*np.searchsorted(numbers, self._first_docs).tolist(), len(numbers)]
        parts = [
            select_docs(self._read(offset), numbers[start:end] - first)
            for offset, first, start, end in zip(self._offsets, self._first_docs, bounds, bounds[1:], strict=False)
            if end > start
        ]
        return reduce(join_corpora, parts)

    def _write(self, array: NDArray[np.generic]) -> None:
        np.save(self._file, array, allow_pickle=False)

    def _load(self) -> NDArray[np.generic]:
        return np.asarray(np.load(self._file, allow_pickle=False))

    def _read(self, offset: int) -> ScoredCorpus:
        with report_file_errors("C468"):
            self._file.seek(offset)
            about, text, lengths = json.loads(_text_of(self._load())), _text_of(self._load()), self._load()
            numbers = self._load()
            columns = {name: self._load() for name in (*_NUMERIC, *SCORE_COLUMNS)}
            spans = {name: self._load() for name in SPAN_COLUMNS}
        ends = np.cumsum(lengths).tolist()
        words = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return ScoredCorpus(
            names=tuple(about["names"]),
            n_docs=len(numbers),
            words=np.array([*words, None], dtype=object)[:-1],
            spans=ScoredSpans(**spans),  # type: ignore[arg-type]  # as they were written
            origins=tuple(about["origins"]),
            unit=about["unit"],
            row_unit=about["row_unit"],
            numbers=numbers,  # type: ignore[arg-type]
            **columns,  # type: ignore[arg-type]
        )


def _bytes_of(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _text_of(array: NDArray[np.generic]) -> str:
    return array.tobytes().decode("utf-8", "surrogatepass")


Item = TypeVar("Item")


class LazySequence(Sequence[Item], Generic[Item]):
    """A sequence that makes each of its n items when it is read. make (Callable): (index) -> item."""

    def __init__(self, n: int, make: Callable[[int], Item]):
        self._indices = range(n)
        self._make = make

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: Any) -> Any:
        selection = self._indices[index]
        return [self._make(i) for i in selection] if isinstance(index, slice) else self._make(selection)

    def __iter__(self) -> Iterator[Item]:
        """Iterate by index, as Sequence's own method takes an IndexError of `make` for the end."""
        return map(self._make, self._indices)
