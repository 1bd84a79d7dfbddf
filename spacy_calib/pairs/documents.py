"""Which document of the source a text belongs to, and folds of whole documents or runs of sentences. Knows numbers, never Docs.

Parts of one document are alike: resampled as if each were a document, they would make intervals too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..types import Floats, Ints
from .progress import UNREPORTED, Progress

# What a source gives a row of probabilities for: a token or a document.
TOKEN = "token"
# What a text may be a part of, from the best known to the least.
DOCUMENT, SENTENCE, TEXT, DOC = "document", "sentence", "text", "Doc of the file"
# The word for a label of each, one and several.
LABEL_WORDS = {TOKEN: ("tag", "tags"), DOCUMENT: ("category", "categories")}


class SourceDocument(NamedTuple):
    """A document by its unit (DOCUMENT, SENTENCE, TEXT or DOC), a key within unit and file, and the number of its gold file."""

    unit: str
    key: Hashable
    file: int = 0


class DocumentNumbers:
    """Documents as numbers, in the order in which they are met; parts of one need not follow one another."""

    def __init__(self) -> None:
        self._numbers: dict[SourceDocument, int] = {}
        self._units: set[str] = set()
        self._n_texts = 0

    def __len__(self) -> int:
        return len(self._numbers) + self._n_texts

    def number(self, document: SourceDocument) -> int:
        """The number of a document, new where it was not met. A text is met once, so it is not remembered."""
        self._units.add(document.unit)
        if document.unit != TEXT:
            return self._numbers.setdefault(document, len(self._numbers) + self._n_texts)
        self._n_texts += 1
        return len(self._numbers) + self._n_texts - 1

    @property
    def unit(self) -> str:
        """What the documents met are together. Docs of a file, some of one sentence alone, are no sentences."""
        units = self._units - ({SENTENCE} if DOC in self._units else set())
        return " or ".join(sorted(units)) or DOC


def counted(unit: str, n: int) -> str:
    """How many, in words: "1 document", "208 Docs of the file"."""
    return f"{n:,} {unit if n == 1 else several(unit)}"


def several(unit: str) -> str:
    """The word for more than one: "entities", "Docs of the file"."""
    first, *ending = unit.split(" ")
    return " ".join([first[:-1] + "ies" if first.endswith("y") else first + "s", *ending])


def extent(unit: str, n: int, row_unit: str, n_rows: int) -> str:
    """How much was read: "20 documents, 4,180 tokens", or "20 documents" where a row is one."""
    return counted(row_unit, n_rows) if row_unit == DOCUMENT else f"{counted(unit, n)}, {n_rows:,} {row_unit}s"


def by_unit(unit: str, n: int) -> str:
    """How a table names what its intervals resample: "by document (20)"."""
    return f"by {unit} ({n:,})"


def document_codes(documents: ArrayLike, n: int) -> tuple[Ints, int]:
    """(number of each pair's document from 0, how many there are). RAISES C002: not one document per pair."""
    names, what = np.asarray(documents), "A bootstrap over documents"
    if names.shape != (n,):
        raise calib_error("C002", what=what, first="pair", second="document", n_first=n, n_second=names.size)
    distinct, codes = np.unique(names, return_inverse=True)
    return codes.astype(np.intp), len(distinct)


def folds_of(documents: Ints, n_folds: int) -> Ints:
    """The fold of each pair: documents with neighbouring numbers share a fold, and folds hold about equally many pairs.

    So parts of one text that a converter cut into several documents seldom stand on both sides. No more folds than documents.
    documents (Ints): Of the pairs.
    """
    _, codes = np.unique(documents, return_inverse=True)
    counts = np.bincount(codes)
    n_folds = min(n_folds, len(counts))
    middle = np.cumsum(counts) - counts / 2
    of_document = np.minimum((middle * n_folds / max(1, counts.sum())).astype(np.intp), n_folds - 1)
    _, of_document = np.unique(of_document, return_inverse=True)  # a very long document leaves folds beside it empty
    return of_document[codes]


def cross_fit(folds: Ints, score: Callable[[Ints, Ints], Floats], progress: Progress = UNREPORTED) -> Floats:
    """The score of each pair by a model that did not see its fold.

    folds (Ints): Of n pairs, n > 0: 0 up to the number of folds, each with a pair.
    score (Callable): (index of the pairs to learn from; index of those of the fold) -> scores of the latter, shape
        (..., their number).
    RETURNS (Floats): Shape (..., n).
    """
    scores = np.empty(0)
    for fold in progress.over(range(int(folds.max(initial=-1)) + 1)):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        fold_scores = score(train, test)
        if fold == 0:
            scores = np.empty((*fold_scores.shape[:-1], len(folds)))
        scores[..., test] = fold_scores
    return scores


def thin_out(documents: Ints, n_most: float) -> Ints:
    """Index of about this many pairs: whole documents (two at least) at equal distances. documents (Ints): Of the pairs."""
    if len(documents) <= n_most:
        return np.arange(len(documents))
    _, codes = np.unique(documents, return_inverse=True)
    n = int(codes.max()) + 1
    is_kept = min(n, max(2, int(n * n_most / len(documents))))  # two are the fewest that can be compared
    n_wanted = np.zeros(n, dtype=bool)
    n_wanted[np.arange(is_kept) * n // is_kept] = True
    return np.flatnonzero(n_wanted[codes])


# Few long documents, cut into runs of sentences

# What a document is called that is a part of a longer one.
RUN = "run of sentences"
# With fewer documents too little is left when one of them is held out: methods are not compared by them.
DOCUMENTS_TO_CHOOSE = 10
# Least tokens of a run on average, and the greatest number of runs.
_TOKENS, _MOST = 200, 100


def runs_of(documents: Ints, starts: NDArray[np.bool_]) -> Ints | None:
    """The run of each token, from 0; None where documents are enough, or together too short for `DOCUMENTS_TO_CHOOSE` runs.

    documents (Ints): Of each token. starts (NDArray[bool]): Whether a token begins a sentence. A document without known sentences is cut anywhere.
    """
    names = np.unique(documents)
    if len(names) >= DOCUMENTS_TO_CHOOSE or len(documents) < _TOKENS * DOCUMENTS_TO_CHOOSE:
        return None
    size = max(_TOKENS, len(documents) / _MOST)
    runs, n_runs = np.zeros(len(documents), dtype=np.intp), 0
    for name in names.tolist():
        index = np.flatnonzero(documents == name)
        begins = np.flatnonzero(starts[index])
        begins = begins if begins.max(initial=0) else np.arange(len(index))
        n_parts = max(1, round(len(index) / size))
        targets = np.arange(1, n_parts) * len(index) / n_parts
        cuts = np.unique(begins[np.minimum(np.searchsorted(begins, targets), len(begins) - 1)])
        runs[index] = n_runs + np.searchsorted(cuts[cuts > 0], np.arange(len(index)), side="right")
        n_runs = int(runs[index[-1]]) + 1
    return runs


def caveat_of(unit: str, n: int) -> str:
    """Why intervals by such documents are too narrow, in a sentence; "" where they need not be. unit (str), n (int): What the documents are, and how many."""
    if unit == RUN:
        return (
            f"Fewer than {DOCUMENTS_TO_CHOOSE} documents, but long ones: they were cut into {counted(RUN, n)}, so that parts can be held out. Runs of one document "
            "are alike, so intervals made from them are too narrow"
        )
    if SENTENCE in unit.split(" or "):
        return (
            f"{counted(unit, n)} stand for documents, as nothing tells which document each is from (# newdoc lines, --doc-key): neighbours are alike, so intervals "
            "made from them are too narrow"
        )
    return ""
