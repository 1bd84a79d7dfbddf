"""A chosen batch -> the tasks of a review queue, for annotation tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...pairs.documents import DOCUMENT
from ...types import Floats, Ints
from ..made import MadeOnDemand
from ..review.tasks import Task, tasks_of
from ..review.units import Units
from ..scored import UNKNOWN, ScoredCorpus
from .pieces import Pieces


def batch_tasks(corpus: ScoredCorpus, pieces: Pieces, chosen: Ints, rows: Sequence[dict[str, Any]]) -> MadeOnDemand[Task]:
    """A task for each chosen piece, in its order. In focus is the word that was the reason; its tags are the alternatives.

    rows (Sequence[dict]): See `records.batch_rows`.
    """
    units = _units_of(corpus, pieces, chosen)
    tasks = tasks_of(corpus, units, np.array([row["score"] for row in rows]), np.arange(len(rows)))

    def make(place: int) -> Task:
        reason = rows[place]["reason"]
        if reason["word"] is None:
            return tasks[place]
        told = {reason["tag"]: reason["probability"], **reason["alternatives"]}
        return replace(tasks[place], focus=reason["word"], alternatives=told)

    return MadeOnDemand(len(rows), make)


def _units_of(corpus: ScoredCorpus, pieces: Pieces, chosen: Ints) -> Units:
    """The chosen pieces as units: each with all labels in it, a document with labels of its own with that one."""
    first, last = pieces.first[chosen], pieces.last[chosen]
    if corpus.row_unit == DOCUMENT:
        scores = corpus.raw[first], corpus.calibrated[first]
        return Units(DOCUMENT, first, last, corpus.labels[first], *scores, corpus.right[first])
    scores = _all_right(corpus, pieces, corpus.raw)[chosen], _all_right(corpus, pieces, corpus.calibrated)[chosen]
    return Units("sentence", first, last, np.full(len(chosen), -1), *scores, np.full(len(chosen), UNKNOWN, dtype=np.int8))


def _all_right(corpus: ScoredCorpus, pieces: Pieces, scores: Floats) -> Floats:
    """P(no label of a piece is wrong), as if its tokens were independent."""
    return np.exp(pieces.sums(np.where(corpus.counted, np.log(np.maximum(scores, np.finfo(float).tiny)), np.nan)))
