"""The cut-offs that a fitted pipe needs on scored gold: for a precision of what is accepted, and what is left for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..annotations import get_annotation
from ..calibration.cutoffs import Cutoffs, RecallCutoffs, keys_of
from ..calibration.missed import EntityTokens, review_of
from ..calibration.thresholds import Threshold, find_thresholds, highest_reached
from ..pairs.scored_corpus import ScoredCorpus
from .component import Calibrator


def precision_cutoffs(
    pipe: Calibrator, corpus: ScoredCorpus, precision: float, confidence: float, per: str
) -> tuple[Cutoffs, dict[str, Any]]:
    """(the cut-offs, what is said of them: "event", what `Cutoffs.to_dict` gives, and "rows": for each key what it keeps, and the
    "highest" precision that can be had where that is not reached). Of what has rows (documents, and entities with links) they are of these; documents
    have no event.
    """
    entities = pipe.spans.groups is not None
    event = pipe.fit_info.span_event or get_annotation(pipe.fit_info.layer).span_event or None
    groups = pipe.spans.groups or pipe.groups
    assert groups is not None
    labels = pipe.lookup.span_labels() if entities else pipe.lookup.labels()
    judged = corpus.span_pairs(labels) if entities else corpus.predicted_pairs()
    keys = keys_of(per, judged.pairs.tags, labels, groups)
    scores, hits, documents = judged.calibrated, judged.pairs.hits, judged.documents
    found = find_thresholds(scores, hits, documents, keys, precision, confidence)
    wanted: Sequence[str] = {"all": ["all"], "label": labels, "group": groups.names}[per]
    rows: dict[str, dict[str, Any]] = {}
    of_key = np.array(keys, dtype=object)
    for key in dict.fromkeys([*wanted, *found]):
        one, highest = found.get(key, Threshold(None, 0)), None
        if one.cutoff is None:
            own = np.flatnonzero(of_key == key)
            other = highest_reached(scores[own], hits[own], documents[own], precision, confidence)
            highest = other and {"precision": other[0], "kept": other[1].kept, "share": other[1].share}
        kept = {"kept": one.kept, "share": one.share, "precision": one.precision, "low": one.low, "high": one.high}
        unit = "entities" if event else "documents"
        rows[key] = {"key": key, "cutoff": one.cutoff, unit: one.spans, **kept, "highest": highest}
    cutoffs = Cutoffs(precision, confidence, per, {key: row["cutoff"] for key, row in rows.items()})
    return cutoffs, {"event": event, **cutoffs.state(), "rows": list(rows.values())}


def parts_for_review(
    pipe: Calibrator, corpus: ScoredCorpus, tokens: EntityTokens, accepting: Cutoffs, flagging: RecallCutoffs
) -> dict[str, Any]:
    """The parts of a corpus, see `calibration.missed.review_of`; and of what is accepted, the "entities" with gold, and how many are "right"."""
    labels, spans = pipe.lookup.span_labels(), corpus.spans
    assert pipe.spans.groups is not None
    column = {label: i for i, label in enumerate(labels)}
    columns = np.array([column.get(name, -1) for name in corpus.names], dtype=np.intp)[spans.labels]
    kept = np.flatnonzero(accepting.accepts(spans.calibrated, columns, labels, pipe.spans.groups))
    accepted, first = np.zeros(len(corpus), dtype=bool), corpus.doc_starts[spans.docs[kept]]
    for start, end in zip((first + spans.starts[kept]).tolist(), (first + spans.ends[kept]).tolist(), strict=True):
        accepted[start:end] = True
    flagged = np.any(list(tokens.flag(flagging).values()), axis=0)
    judged = spans.right[kept][spans.right[kept] >= 0]
    parts: dict[str, Any] = review_of(tokens, flagged, accepted)
    parts["accept"] |= {"entities": len(judged), "right": int(judged.sum())}
    return parts
