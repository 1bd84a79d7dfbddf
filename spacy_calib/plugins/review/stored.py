"""Scored corpora in a temporary file, and sequences whose items are made when they are read: little stays in memory."""

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
from .corpus_parts import OF_SCORES, OF_SPANS, OF_TOKENS, joined, some_docs
from .digest_counts import file_faults

_NUMERIC = tuple(name for name in OF_TOKENS if name != "words")


class Stored:
    """Successive corpora of one pipe (see `parts.numbered`) in a temporary file. RAISES C468: no folder or room for it."""

    def __init__(self) -> None:
        with file_faults("C468"):
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as this object is there)
        weakref.finalize(self, self._file.close)
        # Of each corpus the number of its first Doc, and the place in the file.
        self._firsts: list[int] = []
        self._places: list[int] = []

    def add(self, corpus: ScoredCorpus) -> None:
        """Add the next corpus."""
        with file_faults("C468"):
            self._firsts.append(int(corpus.numbers_of_docs[0]))
            self._places.append(self._file.seek(0, 2))
            words = corpus.words.tolist()
            about = {"names": corpus.names, "origins": corpus.origins, "unit": corpus.unit, "row_unit": corpus.row_unit}
            self._write(_bytes_of(json.dumps(about)))
            self._write(_bytes_of("".join(words)))
            self._write(np.array([len(word) for word in words], dtype=np.int32))
            self._write(corpus.numbers_of_docs)
            for name in (*_NUMERIC, *OF_SCORES):
                self._write(getattr(corpus, name))
            for name in OF_SPANS:
                self._write(getattr(corpus.spans, name))

    def some(self, numbers: Ints) -> ScoredCorpus:
        """Read some Docs. numbers (Ints): Their numbers in the data, ascending; at least one."""
        bounds = [*np.searchsorted(numbers, self._firsts).tolist(), len(numbers)]
        parts = [
            some_docs(self._read(place), numbers[start:end] - first)
            for place, first, start, end in zip(self._places, self._firsts, bounds, bounds[1:], strict=False)
            if end > start
        ]
        return reduce(joined, parts)

    def _write(self, array: NDArray[np.generic]) -> None:
        np.save(self._file, array, allow_pickle=False)

    def _load(self) -> NDArray[np.generic]:
        return np.asarray(np.load(self._file, allow_pickle=False))

    def _read(self, place: int) -> ScoredCorpus:
        with file_faults("C468"):
            self._file.seek(place)
            about, text, lengths = json.loads(_text_of(self._load())), _text_of(self._load()), self._load()
            numbers = self._load()
            columns = {name: self._load() for name in (*_NUMERIC, *OF_SCORES)}
            spans = {name: self._load() for name in OF_SPANS}
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


class MadeOnDemand(Sequence[Item], Generic[Item]):
    """A sequence of n items, each made when it is read. make (Callable): Index -> item."""

    def __init__(self, n: int, make: Callable[[int], Item]):
        self._places = range(n)
        self._make = make

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Item: ...

    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...

    def __getitem__(self, place: Any) -> Any:
        selection = self._places[place]
        return [self._make(index) for index in selection] if isinstance(place, slice) else self._make(selection)

    def __iter__(self) -> Iterator[Item]:
        """Iterate; Sequence's own would take an IndexError of `make` for the end."""
        return map(self._make, self._places)
