"""Select Docs of a scored corpus, join corpora, and keep only the useful Docs of a stream of corpora."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...pairs.scored_corpus import ScoredCorpus, ScoredSpans
from ...types import Ints

# Columns with a row for each token, each score and each span.
TOKEN_COLUMNS = ("docs", "words", "spaces", "starts", "labels", "raw", "calibrated", "gold", "right")
SCORE_COLUMNS = ("rows", "tags", "columns", "tag_raw", "tag_calibrated", "hits")
SPAN_COLUMNS = tuple(column.name for column in fields(ScoredSpans))
# The columns whose values are indices into the names.
_NAME_INDICES = ("labels", "gold", "tags")


def select_docs(corpus: ScoredCorpus, docs: Ints) -> ScoredCorpus:
    """Return a corpus of some of the Docs, each of which is a document. docs (Ints): Their indices, ascending."""
    new_docs = np.full(corpus.n_docs, -1)
    new_docs[docs] = np.arange(len(docs))
    token_index = np.flatnonzero(new_docs[corpus.docs] >= 0)
    new_rows = np.full(len(corpus), -1)
    new_rows[token_index] = np.arange(len(token_index))
    scores = np.flatnonzero(new_rows[corpus.rows] >= 0)
    spans = np.flatnonzero(new_docs[corpus.spans.docs] >= 0)
    columns: dict[str, Any] = {name: getattr(corpus, name)[token_index] for name in TOKEN_COLUMNS}
    columns |= {name: getattr(corpus, name)[scores] for name in SCORE_COLUMNS}
    span_columns = {name: getattr(corpus.spans, name)[spans] for name in SPAN_COLUMNS}
    return ScoredCorpus(
        names=corpus.names,
        n_docs=len(docs),
        spans=ScoredSpans(**{**span_columns, "docs": new_docs[span_columns["docs"]]}),
        origins=tuple(corpus.origins[doc] for doc in docs.tolist()) if corpus.origins else (),
        unit=corpus.unit,
        row_unit=corpus.row_unit,
        numbers=corpus.numbers_of_docs[docs],
        **{**columns, "docs": new_docs[columns["docs"]], "rows": new_rows[columns["rows"]]},
    )


def join_corpora(a: ScoredCorpus, b: ScoredCorpus) -> ScoredCorpus:
    """Return two corpora of one pipe as one, in which each Doc is a document and keeps its number."""
    names = dict.fromkeys((*a.names, *b.names))
    indices = {name: i for i, name in enumerate(names)}
    index_map = np.array([indices[name] for name in b.names] + [-1])  # -1, for no label, stays -1

    def join_column(name: str, first: Any = a, second: Any = b, shift: int = 0) -> NDArray[Any]:
        values = getattr(second, name)
        values = index_map[values] if name in _NAME_INDICES else values + shift if shift else values
        return np.concatenate([getattr(first, name), values])

    spans = {name: join_column(name, a.spans, b.spans, a.n_docs if name == "docs" else 0) for name in SPAN_COLUMNS}
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
        **{name: join_column(name, shift=shifts.get(name, 0)) for name in (*TOKEN_COLUMNS, *SCORE_COLUMNS)},
    )


def number_docs(corpora: Iterable[ScoredCorpus]) -> Iterator[ScoredCorpus]:
    """Number the Docs of successive corpora throughout; a single corpus is left as it is."""
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
class UsefulDocs:
    """The useful Docs of the corpora added so far, as one corpus; a single corpus is kept whole.

    select (Callable): (corpus) -> indices of its useful Docs, ascending. count (Callable): Called once with each corpus if
    there are several. n_blocks (int): Number of corpora added.
    """

    select: Callable[[ScoredCorpus], Ints]
    count: Callable[[ScoredCorpus], None]
    n_blocks: int = 0
    _corpora: list[ScoredCorpus] = field(default_factory=list)

    def add(self, corpus: ScoredCorpus) -> None:
        """Join a corpus to the earlier ones and keep the useful Docs of all; keep all Docs of the first corpus until the second."""
        self.n_blocks += 1
        if self.n_blocks == 1:
            self._corpora = [corpus]
            return
        if self.n_blocks == 2:
            self.count(self._corpora[0])
        self.count(corpus)
        joint_corpus = join_corpora(select_docs(self.corpus, self.select(self.corpus)), corpus)
        self._corpora = [select_docs(joint_corpus, self.select(joint_corpus))]

    @property
    def corpus(self) -> ScoredCorpus:
        return self._corpora[0]
