"""Parts of scored corpora: some of the Docs, several corpora as one, and the useful Docs of a stream of corpora."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...pairs.scored_corpus import ScoredCorpus, ScoredSpans
from ...types import Ints

# Columns with a row for each token, each score, and each span.
OF_TOKENS = ("docs", "words", "spaces", "starts", "labels", "raw", "calibrated", "gold", "right")
OF_SCORES = ("rows", "tags", "columns", "tag_raw", "tag_calibrated", "hits")
OF_SPANS = tuple(column.name for column in fields(ScoredSpans))
# Those of them that are places in the names.
_NAMED, _NAMED_SCORES = ("labels", "gold"), ("tags",)


def some_docs(corpus: ScoredCorpus, docs: Ints) -> ScoredCorpus:
    """Select Docs, each a document by itself. docs (Ints): Their places in the corpus, ascending."""
    place = np.full(corpus.n_docs, -1)
    place[docs] = np.arange(len(docs))
    token_index = np.flatnonzero(place[corpus.docs] >= 0)
    row = np.full(len(corpus), -1)
    row[token_index] = np.arange(len(token_index))
    scores = np.flatnonzero(row[corpus.rows] >= 0)
    spans = np.flatnonzero(place[corpus.spans.docs] >= 0)
    columns: dict[str, Any] = {name: getattr(corpus, name)[token_index] for name in OF_TOKENS}
    columns |= {name: getattr(corpus, name)[scores] for name in OF_SCORES}
    span_columns = {name: getattr(corpus.spans, name)[spans] for name in OF_SPANS}
    return ScoredCorpus(
        names=corpus.names,
        n_docs=len(docs),
        spans=ScoredSpans(**{**span_columns, "docs": place[span_columns["docs"]]}),
        origins=tuple(corpus.origins[doc] for doc in docs.tolist()) if corpus.origins else (),
        unit=corpus.unit,
        row_unit=corpus.row_unit,
        numbers=corpus.numbers_of_docs[docs],
        **{**columns, "docs": place[columns["docs"]], "rows": row[columns["rows"]]},
    )


def joined(a: ScoredCorpus, b: ScoredCorpus) -> ScoredCorpus:
    """Join two corpora of one pipe; each Doc is a document by itself and keeps its number."""
    names = dict.fromkeys((*a.names, *b.names))
    places = {name: place for place, name in enumerate(names)}
    name_map = np.array([places[name] for name in b.names] + [-1])  # the place -1 is that of no label

    def both(name: str, first: Any = a, second: Any = b, shift: int = 0) -> NDArray[Any]:
        values = getattr(second, name)
        return np.concatenate(
            [
                getattr(first, name),
                name_map[values] if name in (*_NAMED, *_NAMED_SCORES) else values + shift if shift else values,
            ]
        )

    spans = {name: both(name, a.spans, b.spans, a.n_docs if name == "docs" else 0) for name in OF_SPANS}
    shifts = {"docs": a.n_docs, "rows": len(a)}
    has_origins = a.origins or b.origins
    return ScoredCorpus(
        names=tuple(names),
        n_docs=a.n_docs + b.n_docs,
        spans=ScoredSpans(**spans),
        origins=tuple(part.origin(doc) for part in (a, b) for doc in range(part.n_docs)) if has_origins else (),
        unit=a.unit,
        row_unit=a.row_unit,
        numbers=np.concatenate([a.numbers_of_docs, b.numbers_of_docs]),
        **{name: both(name, shift=shifts.get(name, 0)) for name in (*OF_TOKENS, *OF_SCORES)},
    )


def numbered(corpora: Iterable[ScoredCorpus]) -> Iterator[ScoredCorpus]:
    """Number the Docs of successive corpora in the data, if there are several."""
    remaining, n_docs = iter(corpora), 0
    next_corpora = list(islice(remaining, 2))
    if len(next_corpora) < 2:
        yield from next_corpora
        return
    while next_corpora:
        yield replace(next_corpora[0], numbers=n_docs + np.arange(next_corpora[0].n_docs))
        n_docs += next_corpora.pop(0).n_docs
        next_corpora += islice(remaining, 1 - len(next_corpora))


@dataclass(eq=False)
class Kept:
    """The Docs of successive corpora that are still useful; all of them while there is one corpus.

    wanted (Callable): Corpus -> places of its useful Docs, ascending. count (Callable): Sees each of several corpora first.
    n_blocks (int): Corpora so far.
    """

    wanted: Callable[[ScoredCorpus], Ints]
    count: Callable[[ScoredCorpus], None]
    n_blocks: int = 0
    _corpora: list[ScoredCorpus] = field(default_factory=list)

    def add(self, corpus: ScoredCorpus) -> None:
        """Add the next corpus, see `numbered`."""
        self.n_blocks += 1
        if self.n_blocks == 1:
            self._corpora = [corpus]
            return
        if self.n_blocks == 2:
            self.count(self._corpora[0])
        self.count(corpus)
        joint_corpus = joined(some_docs(self.corpus, self.wanted(self.corpus)), corpus)
        self._corpora = [some_docs(joint_corpus, self.wanted(joint_corpus))]

    @property
    def corpus(self) -> ScoredCorpus:
        return self._corpora[0]
