"""Parts of scored corpora: some of the Docs, several corpora as one, and the useful Docs of a stream of corpora."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Ints
from .scored import ScoredCorpus, ScoredSpans

# Columns with a row for each token, each score, and each span.
OF_TOKENS = ("docs", "words", "spaces", "starts", "labels", "raw", "calibrated", "gold", "right")
OF_SCORES = ("rows", "tags", "columns", "tag_raw", "tag_calibrated", "hits")
OF_SPANS = tuple(one.name for one in fields(ScoredSpans))
# Those of them that are places in the names.
_NAMED, _NAMED_SCORES = ("labels", "gold"), ("tags",)


def some_docs(corpus: ScoredCorpus, docs: Ints) -> ScoredCorpus:
    """Some of the Docs, each a document by itself. docs (Ints): Their places in the corpus, ascending."""
    place = np.full(corpus.n_docs, -1)
    place[docs] = np.arange(len(docs))
    own = np.flatnonzero(place[corpus.docs] >= 0)
    row = np.full(len(corpus), -1)
    row[own] = np.arange(len(own))
    scores = np.flatnonzero(row[corpus.rows] >= 0)
    spans = np.flatnonzero(place[corpus.spans.docs] >= 0)
    changed: dict[str, Any] = {name: getattr(corpus, name)[own] for name in OF_TOKENS}
    changed |= {name: getattr(corpus, name)[scores] for name in OF_SCORES}
    kept = {name: getattr(corpus.spans, name)[spans] for name in OF_SPANS}
    return ScoredCorpus(
        names=corpus.names,
        n_docs=len(docs),
        spans=ScoredSpans(**{**kept, "docs": place[kept["docs"]]}),
        origins=tuple(corpus.origins[doc] for doc in docs.tolist()) if corpus.origins else (),
        unit=corpus.unit,
        row_unit=corpus.row_unit,
        numbers=corpus.numbers_of_docs[docs],
        **{**changed, "docs": place[changed["docs"]], "rows": row[changed["rows"]]},
    )


def joined(one: ScoredCorpus, other: ScoredCorpus) -> ScoredCorpus:
    """Two corpora of one pipe as one, each of whose Docs is a document by itself; the numbers of the Docs stay."""
    names = dict.fromkeys((*one.names, *other.names))
    places = {name: place for place, name in enumerate(names)}
    moved = np.array([places[name] for name in other.names] + [-1])  # the place -1 is that of no label

    def both(name: str, held: Any = one, added: Any = other, shift: int = 0) -> NDArray[Any]:
        more = getattr(added, name)
        return np.concatenate(
            [getattr(held, name), moved[more] if name in (*_NAMED, *_NAMED_SCORES) else more + shift if shift else more]
        )

    spans = {name: both(name, one.spans, other.spans, one.n_docs if name == "docs" else 0) for name in OF_SPANS}
    shifts = {"docs": one.n_docs, "rows": len(one)}
    has_origins = one.origins or other.origins
    return ScoredCorpus(
        names=tuple(names),
        n_docs=one.n_docs + other.n_docs,
        spans=ScoredSpans(**spans),
        origins=tuple(part.origin(doc) for part in (one, other) for doc in range(part.n_docs)) if has_origins else (),
        unit=one.unit,
        row_unit=one.row_unit,
        numbers=np.concatenate([one.numbers_of_docs, other.numbers_of_docs]),
        **{name: both(name, shift=shifts.get(name, 0)) for name in (*OF_TOKENS, *OF_SCORES)},
    )


def numbered(corpora: Iterable[ScoredCorpus]) -> Iterator[ScoredCorpus]:
    """Successive corpora of one pipe; where there are several, each knows the numbers of its Docs in the data."""
    rest, n_docs = iter(corpora), 0
    ahead = list(islice(rest, 2))
    if len(ahead) < 2:
        yield from ahead
        return
    while ahead:
        yield replace(ahead[0], numbers=n_docs + np.arange(ahead[0].n_docs))
        n_docs += ahead.pop(0).n_docs
        ahead += islice(rest, 1 - len(ahead))


@dataclass(eq=False)
class Kept:
    """The Docs of successive corpora that are still useful; all of them while there is one corpus.

    wanted (Callable): Corpus -> places of its useful Docs, ascending, whatever other Docs there are. count (Callable):
    Called with each of several corpora before any of its Docs is left out. n_blocks (int): How many corpora came.
    """

    wanted: Callable[[ScoredCorpus], Ints]
    count: Callable[[ScoredCorpus], None]
    n_blocks: int = 0
    _held: list[ScoredCorpus] = field(default_factory=list)

    def add(self, corpus: ScoredCorpus) -> None:
        """Add the next corpus, see `numbered`."""
        self.n_blocks += 1
        if self.n_blocks == 1:
            self._held = [corpus]
            return
        if self.n_blocks == 2:
            self.count(self._held[0])
        self.count(corpus)
        both = joined(some_docs(self.corpus, self.wanted(self.corpus)), corpus)
        self._held = [some_docs(both, self.wanted(both))]

    @property
    def corpus(self) -> ScoredCorpus:
        return self._held[0]
