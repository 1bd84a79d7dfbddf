"""Few long documents, cut into runs of sentences: what a fit holds out in place of whole documents. Knows arrays, never Docs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..types import Ints
from .documents import SENTENCE, counted

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
