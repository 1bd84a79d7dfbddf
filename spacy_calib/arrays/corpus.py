"""A file of scores and its calibrator -> a scored corpus, as from a pipeline and Docs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..corpus.scored import RIGHT, UNKNOWN, WRONG, ScoredCorpus, ScoredSpans
from ..types import Floats, Marginals
from .files import ScoreUnits
from .inputs import document_numbers, likeliest

if TYPE_CHECKING:
    from .tag_calibrator import TagCalibrator


def scored_corpus(calibrator: TagCalibrator, found: ScoreUnits) -> ScoredCorpus:
    """The scores of a file as a corpus: units are tokens with their likeliest tag, documents Docs. Units without
    sentences are one each. RAISES C294: a tag that the calibrator does not know.
    """
    documents = document_numbers(found.groups, found.n_units)
    order = np.argsort(documents, kind="stable")
    labels = [str(label) for label in calibrator.classes_.tolist()]
    marginals, calibrated = _in_order(calibrator, found, order)
    rows, tags, raw = marginals.rows, marginals.tags, marginals.scores
    carried = likeliest(marginals, raw)
    own = np.flatnonzero(carried[rows] == tags)
    of_carried = np.full((2, found.n_units), np.nan)
    of_carried[:, rows[own]] = raw[own], calibrated[own]
    names, gold = labels, np.full(found.n_units, -1, dtype=np.intp)
    if found.gold is not None:
        names = list(dict.fromkeys([*labels, *found.gold.names]))
        place = {name: i for i, name in enumerate(names)}
        gold = np.array([*(place[name] for name in found.gold.names), -1], dtype=np.intp)[found.gold.codes][order]
    docs = documents[order]
    return ScoredCorpus(
        names=tuple(names),
        docs=docs,
        n_docs=int(docs[-1]) + 1,
        words=_words(found, order),
        spaces=np.ones(found.n_units, dtype=bool),
        starts=_starts(found, docs, order),
        labels=carried,
        raw=of_carried[0],
        calibrated=of_carried[1],
        gold=gold,
        right=np.where((gold < 0) | (carried < 0), UNKNOWN, np.where(carried == gold, RIGHT, WRONG)).astype(np.int8),
        rows=rows,
        tags=tags,
        columns=tags,
        tag_raw=raw,
        tag_calibrated=calibrated,
        hits=np.where(gold[rows] < 0, UNKNOWN, np.where(tags == gold[rows], RIGHT, WRONG)).astype(np.int8),
        spans=_no_spans(),
        origins=_origins(found, docs, order),
        unit=found.by,
    )


def _in_order(calibrator: TagCalibrator, found: ScoreUnits, order: np.ndarray) -> tuple[Marginals, Floats]:
    """(scores above the threshold, with units in this order; what the calibrator makes of them)."""
    given = calibrator.calibrated(found.scores_for(calibrator.classes_.tolist()))
    marginals, place = given.marginals, np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    by_row = np.argsort(place[marginals.rows], kind="stable")
    rows, tags, scores = place[marginals.rows][by_row], marginals.tags[by_row], marginals.scores[by_row]
    return Marginals(rows, tags, scores, found.n_units), given.scores[by_row]


def _words(found: ScoreUnits, order: np.ndarray) -> np.ndarray:
    """The word of each unit, or its name."""
    words = np.full(found.n_units, None) if found.words is None else found.words.values()
    named = [words[unit] or found.name_of(unit) for unit in order.tolist()]
    return np.array([*named, None], dtype=object)[:-1]


def _starts(found: ScoreUnits, docs: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Whether each unit begins a sentence."""
    if found.sentences is None:
        return np.ones(len(order), dtype=bool)
    sentences = found.sentences.codes[order]
    return np.append(True, (np.diff(sentences) != 0) | (np.diff(docs) != 0))


def _origins(found: ScoreUnits, docs: np.ndarray, order: np.ndarray) -> tuple[dict[str, str], ...]:
    """The name of each document."""
    if found.documents is None:
        return ()
    first = order[np.flatnonzero(np.append(True, np.diff(docs) != 0))]
    return tuple({"id": found.documents.at(unit)} for unit in first.tolist())


def _no_spans() -> ScoredSpans:
    none, no_scores, no_marks = np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0, dtype=np.int8)
    return ScoredSpans(none, none, none, none, no_scores, no_scores, no_marks, no_marks)
