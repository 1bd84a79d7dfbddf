"""The source documents of texts, and folds of whole documents or of runs of sentences. No Docs are needed.

Parts of one document are alike: if each were resampled as if it were a document, intervals would be too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..types import Floats, Ints
from .progress import UNREPORTED, Progress

# The unit of a row of probabilities: a token, or a document (DOCUMENT).
TOKEN = "token"
# What counts as a document, by what the gold tells about its source, the most reliable first.
DOCUMENT, SENTENCE, TEXT, DOC = "document", "sentence", "text", "Doc of the file"
RUN = "run of sentences"  # the unit if few long documents are cut into parts
# With fewer documents cross-validation over documents leaves too little to fit on: methods are not compared by it.
DOCUMENTS_TO_CHOOSE = 10
_TOKENS, _MOST = 200, 100  # minimum of the mean number of tokens in a run, and maximum number of runs


class SourceDocument(NamedTuple):
    """A source document. unit: DOCUMENT, SENTENCE, TEXT or DOC. key: Unique in its unit and file. file: Number of the file."""

    unit: str
    key: Hashable
    file: int = 0


class DocumentNumbers:
    """Numbers documents in the order of their first occurrence; parts of one document need not be consecutive."""

    def __init__(self) -> None:
        self._numbers: dict[SourceDocument, int] = {}
        self._units: set[str] = set()
        self._n_texts = 0  # number of documents of the unit TEXT, which have no entry in `_numbers`

    def __len__(self) -> int:
        return len(self._numbers) + self._n_texts

    def number(self, document: SourceDocument) -> int:
        """Return the number of a document: the next free number if it is new, as documents of the unit TEXT always are."""
        self._units.add(document.unit)
        if document.unit != TEXT:
            return self._numbers.setdefault(document, len(self._numbers) + self._n_texts)
        self._n_texts += 1
        return len(self._numbers) + self._n_texts - 1

    @property
    def unit(self) -> str:
        """The units of all documents in words, such as "document or text". With both DOC and SENTENCE, only DOC is named."""
        units = self._units - ({SENTENCE} if DOC in self._units else set())
        return " or ".join(sorted(units)) or DOC


def count_in_words(unit: str, n: int) -> str:
    """Return a number with its unit: "1 document", "208 Docs of the file"."""
    return f"{n:,} {unit if n == 1 else pluralize(unit)}"


def pluralize(unit: str) -> str:
    """Return the plural of a unit, in which the first word changes: "Docs of the file" for "Doc of the file"."""
    first, *ending = unit.split(" ")
    return " ".join([first[:-1] + "ies" if first.endswith("y") else first + "s", *ending])


def extent_in_words(unit: str, n: int, row_unit: str, n_rows: int) -> str:
    """Return the size of data, n units and n_rows row units: "20 documents, 4,180 tokens"; "20 documents" if rows are these."""
    if row_unit == DOCUMENT:
        return count_in_words(row_unit, n_rows)
    return f"{count_in_words(unit, n)}, {n_rows:,} {pluralize(row_unit)}"


def by_unit(unit: str, n: int) -> str:
    """Return a table's note on its intervals: what was resampled (`unit`), and how many there were (n): "by document (20)"."""
    return f"by {unit} ({n:,})"


def document_codes(documents: ArrayLike, n: int) -> tuple[Ints, int]:
    """Return (number of each pair's document from 0, number of documents). documents: n names. RAISES C002: other length."""
    names = np.asarray(documents)
    if names.shape != (n,):
        what = "A bootstrap over documents"
        raise calib_error("C002", what=what, first="pair", second="document", n_first=n, n_second=names.size)
    distinct, codes = np.unique(names, return_inverse=True)
    return codes.astype(np.intp), len(distinct)


def folds_of(documents: Ints, n_folds: int) -> Ints:
    """Return the fold of each of n pairs, from 0, (n,); folds are runs of documents with about equally many pairs.

    Documents with neighbouring numbers share a fold, since a converter may have cut one text into several of them.
    documents (Ints): Number of each pair's document, (n,). n_folds (int): Maximum number of folds: few documents have fewer.
    """
    _, codes = np.unique(documents, return_inverse=True)
    counts = np.bincount(codes)
    n_folds = min(n_folds, len(counts))
    middle = np.cumsum(counts) - counts / 2  # number of pairs before the middle of each document
    fold_of_document = np.minimum((middle * n_folds / max(1, counts.sum())).astype(np.intp), n_folds - 1)
    _, fold_of_document = np.unique(fold_of_document, return_inverse=True)  # a very long document leaves folds next to it empty
    return fold_of_document[codes]


def cross_fit(folds: Ints, score: Callable[[Ints, Ints], Floats], progress: Progress = UNREPORTED) -> Floats:
    """Score each pair by a model that was fitted on the other folds.

    folds (Ints): Fold of each of n > 0 pairs, from 0; each fold has a pair. RETURNS (Floats): The scores, shape (..., n).
    score (Callable): (train, test) -> scores of the test pairs, shape (..., n_test). Both are indices of pairs.
    """
    scores = np.empty(0)
    for fold in progress.track(range(int(folds.max(initial=-1)) + 1)):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        fold_scores = score(train, test)
        if fold == 0:  # the first scores show the other dimensions
            scores = np.empty((*fold_scores.shape[:-1], len(folds)))
        scores[..., test] = fold_scores
    return scores


def thin_out(documents: Ints, n_most: float) -> Ints:
    """Select about n_most pairs: all pairs of some documents, at least two, which are evenly spaced in the order of documents.

    documents (Ints): The document of each pair. RETURNS (Ints): Indices of pairs, ascending; all, if there are at most n_most.
    """
    if len(documents) <= n_most:
        return np.arange(len(documents))
    _, codes = np.unique(documents, return_inverse=True)
    n_documents = int(codes.max()) + 1
    n_kept = min(n_documents, max(2, int(n_documents * n_most / len(documents))))  # two are the fewest that can be compared
    is_kept = np.zeros(n_documents, dtype=bool)
    is_kept[np.arange(n_kept) * n_documents // n_kept] = True
    return np.flatnonzero(is_kept[codes])


def runs_of(documents: Ints, starts: NDArray[np.bool_]) -> Ints | None:
    """Cut documents, if they are few but long, into runs of sentences, which then count as documents.

    documents (Ints): The document of each token. starts (NDArray[bool]): Whether a token begins a sentence; a document
        without known sentences is cut anywhere.
    RETURNS (Ints | None): Run of each token, from 0; None for DOCUMENTS_TO_CHOOSE documents or more, or too few tokens.
    """
    numbers = np.unique(documents)
    if len(numbers) >= DOCUMENTS_TO_CHOOSE or len(documents) < _TOKENS * DOCUMENTS_TO_CHOOSE:
        return None
    size = max(_TOKENS, len(documents) / _MOST)  # mean number of tokens in a run
    runs, n_runs = np.zeros(len(documents), dtype=np.intp), 0
    for number in numbers.tolist():
        tokens = np.flatnonzero(documents == number)
        allowed_cuts = np.flatnonzero(starts[tokens])  # the document may be cut before these of its tokens
        if not allowed_cuts.max(initial=0):  # no sentence begins after the first token: it may be cut anywhere
            allowed_cuts = np.arange(len(tokens))
        n_parts = max(1, round(len(tokens) / size))
        equal_cuts = np.arange(1, n_parts) * len(tokens) / n_parts  # into equal parts; each moves to the next allowed cut
        next_allowed = np.minimum(np.searchsorted(allowed_cuts, equal_cuts), len(allowed_cuts) - 1)
        cuts = np.unique(allowed_cuts[next_allowed])
        runs[tokens] = n_runs + np.searchsorted(cuts[cuts > 0], np.arange(len(tokens)), side="right")
        n_runs = int(runs[tokens[-1]]) + 1
    return runs


def caveat_of(unit: str, n: int) -> str:
    """Return a sentence on why intervals are too narrow if n sentences or runs (unit) stand for documents, else ""."""
    if unit == RUN:
        return (
            f"Fewer than {DOCUMENTS_TO_CHOOSE} documents, but long ones: they were cut into {count_in_words(RUN, n)}, so that "
            "parts can be held out. Runs of one document are alike, so intervals made from them are too narrow"
        )
    if SENTENCE in unit.split(" or "):
        return (
            f"{count_in_words(unit, n)} stand for documents, as nothing tells which document each is from (# newdoc lines, "
            "calib_document in Doc.user_data): neighbours are alike, so intervals made from them are too narrow"
        )
    return ""
