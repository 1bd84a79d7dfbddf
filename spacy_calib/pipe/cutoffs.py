"""Cut-offs found on the scores of a pipe with gold: for a precision, for a recall, and what is left to review."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from ..annotations import Annotation
from ..calibration.cutoffs import Cutoffs, RecallCutoffs, keys_of
from ..calibration.missed import EntityTokens, GoldEntities, review_of
from ..calibration.thresholds import Threshold, find_thresholds, highest_reached
from ..errors import calib_error
from ..pairs.scored_corpus import ScoredCorpus
from ..types import OUTSIDE

if TYPE_CHECKING:
    from .component import Calibrator


def entity_tokens(pipe: Calibrator, examples: Sequence[Example], corpus: ScoredCorpus) -> EntityTokens:
    """Return the tokens of gold examples with their entities, for recall cut-offs. RAISES C308: the pipe gives no P(O)."""
    labels = pipe.lookup.labels()
    if OUTSIDE not in labels or not pipe.source.distributions:
        raise calib_error("C308", name=pipe.name, component=pipe.source.component or "the source")
    gold = gold_entities(examples, pipe.annotation)
    return EntityTokens.from_corpus(corpus, labels, pipe.annotation.has_prefixes, pipe.threshold, gold)


def gold_entities(examples: Iterable[Example], annotation: Annotation) -> GoldEntities:
    """Return the gold entities (or spans) by predicted token, numbered across Docs; those without a token are left out."""
    starts, ends, labels, first = [], [], [], 0
    for example in examples:
        alignment = example.alignment.y2x
        for span in annotation.gold.spans_on(example.reference):
            tokens = alignment[span.start : span.end]
            if len(tokens):
                starts.append(first + int(tokens.min()))
                ends.append(first + int(tokens.max()) + 1)
                labels.append(span.label_)
        first += len(example.predicted)
    return GoldEntities(np.array(starts, dtype=np.intp), np.array(ends, dtype=np.intp), labels)


def precision_cutoffs(
    pipe: Calibrator, corpus: ScoredCorpus, precision: float, confidence: float, per: str
) -> tuple[Cutoffs, dict[str, Any]]:
    """Find the cut-offs for a precision: of documents or links if the pipe has a row for each, else of entities.

    RETURNS (tuple): The cut-offs; a dict with "event" (None for documents), the fields of `Cutoffs.state`, and "rows": for each
        key the accepted predictions and, if the precision is not reached, the "highest" one that is.
    """
    entities = pipe.spans.groups is not None
    event = None if pipe.annotation.of_documents else pipe.span_event
    groups = pipe.spans.groups or pipe.groups
    assert groups is not None
    labels = pipe.lookup.span_labels() if entities else pipe.lookup.labels()
    judged_pairs = corpus.span_pairs(labels) if entities else corpus.predicted_pairs()
    keys = keys_of(per, judged_pairs.pairs.tags, labels, groups)
    scores, hits, documents = judged_pairs.calibrated, judged_pairs.pairs.hits, judged_pairs.documents
    thresholds = find_thresholds(scores, hits, documents, keys, precision, confidence)
    row_keys: Sequence[str] = {"all": ["all"], "label": labels, "group": groups.names}[per]
    rows: dict[str, dict[str, Any]] = {}
    key_of_pair = np.array(keys, dtype=object)
    for key in dict.fromkeys([*row_keys, *thresholds]):
        threshold, highest = thresholds.get(key, Threshold(None, 0)), None
        if threshold.cutoff is None:
            index = np.flatnonzero(key_of_pair == key)
            best = highest_reached(scores[index], hits[index], documents[index], precision, confidence)
            highest = best and {"precision": best[0], "kept": best[1].kept, "share": best[1].share}
        figures = {name: getattr(threshold, name) for name in ("kept", "share", "precision", "low", "high")}
        unit = "entities" if event else "documents"
        rows[key] = {"key": key, "cutoff": threshold.cutoff, unit: threshold.spans, **figures, "highest": highest}
    cutoffs = Cutoffs(precision, confidence, per, {key: row["cutoff"] for key, row in rows.items()})
    return cutoffs, {"event": event, **cutoffs.state(), "rows": list(rows.values())}


def parts_for_review(
    pipe: Calibrator, corpus: ScoredCorpus, tokens: EntityTokens, accepting: Cutoffs, flagging: RecallCutoffs
) -> dict[str, Any]:
    """Split the tokens of a corpus into accepted, reviewed and dropped ones, as `calibration.missed.review_of` returns them.

    "accept" also has the number of accepted "entities" with gold, and of "right" ones.
    """
    labels, spans = pipe.lookup.span_labels(), corpus.spans
    assert pipe.spans.groups is not None
    column = {label: i for i, label in enumerate(labels)}
    columns = np.array([column.get(name, -1) for name in corpus.names], dtype=np.intp)[spans.labels]
    index = np.flatnonzero(accepting.accepts(spans.calibrated, columns, labels, pipe.spans.groups))
    is_accepted, first = np.zeros(len(corpus), dtype=bool), corpus.doc_starts[spans.docs[index]]
    for start, end in zip((first + spans.starts[index]).tolist(), (first + spans.ends[index]).tolist(), strict=True):
        is_accepted[start:end] = True
    is_flagged = np.any(list(tokens.flag(flagging).values()), axis=0)
    right = spans.right[index][spans.right[index] >= 0]
    parts: dict[str, Any] = review_of(tokens, is_flagged, is_accepted)
    parts["accept"] |= {"entities": len(right), "right": int(right.sum())}
    return parts
