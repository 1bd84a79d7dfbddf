"""Finds and tests cut-offs of a calib pipe on gold: scores from which to accept predictions, or to flag tokens for review."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from ..annotations import Annotation
from ..calibration.cutoffs import Cutoffs, RecallCutoffs, keys_of
from ..calibration.missed import EntityTokens, GoldEntities, review_of
from ..calibration.promise import BROKEN, HOLDS, UNCLEAR, check_promise
from ..calibration.thresholds import Threshold, find_thresholds
from ..errors import calib_error
from ..gold.sampled_answers import SampledAnswers
from ..pairs.pairing import JudgedPairs
from ..pairs.scored_corpus import ScoredCorpus
from ..types import OUTSIDE, Ints

if TYPE_CHECKING:
    from .component import Calibrator


def entity_tokens(pipe: Calibrator, examples: Sequence[Example], corpus: ScoredCorpus) -> EntityTokens:
    """Return scored tokens (`corpus`) with gold entities (`examples`), for recall cut-offs. RAISES C308: P(O) is not read."""
    labels = pipe.lookup.labels()
    if OUTSIDE not in labels or not pipe.source.distributions:
        raise calib_error("C308", name=pipe.name, component=pipe.source.component or "the source")
    gold = gold_entities(examples, pipe.annotation)
    return EntityTokens.from_corpus(corpus, labels, pipe.annotation.kind.has_prefixes, pipe.threshold, gold)


def gold_entities(examples: Iterable[Example], annotation: Annotation) -> GoldEntities:
    """Return the gold entities (or spans) as ranges of the predicted tokens that they align with, counted through all Docs."""
    starts, ends, labels, doc_start = [], [], [], 0  # doc_start: number of the Doc's first token
    for example in examples:
        alignment = example.alignment.y2x  # spaCy compares all words at each access
        for span in annotation.gold.spans_on(example.reference):
            tokens = alignment[span.start : span.end]  # the predicted tokens of these gold tokens
            if len(tokens):
                starts.append(doc_start + int(tokens.min()))
                ends.append(doc_start + int(tokens.max()) + 1)
                labels.append(span.label_)
        doc_start += len(example.predicted)
    return GoldEntities(np.array(starts, dtype=np.intp), np.array(ends, dtype=np.intp), labels)


def gold_pairs(pipe: Calibrator, corpus: ScoredCorpus) -> JudgedPairs:
    """Return the predictions in `corpus` with gold, for precision cut-offs: spans if the pipe calibrates them, else labels."""
    return corpus.predicted_pairs() if pipe.spans.groups is None else corpus.span_pairs(pipe.lookup.span_labels())


def precision_cutoffs(
    pipe: Calibrator, pairs: JudgedPairs, precision: Any, confidence: float, per: str, sample: SampledAnswers | None = None
) -> tuple[Cutoffs, dict[str, Any]]:
    """Find the lowest scores from which predictions are accepted so that a share `precision` of them is right.

    pairs (JudgedPairs): Predictions with gold. precision (float | Mapping): One for all, or label -> precision.
    confidence (float): Confidence that the precision is reached, in (0, 1).
    per (str): "all": one cut-off, under the key "all"; "label" or "group": one for each label or group, under its name.
    sample (SampledAnswers | None): The random sample that gave `pairs`; None for other gold. If it was drawn above former
        cut-offs, each key uses only answers that reach the highest one among its answers. If all answers used may be
        accepted, the key keeps this former cut-off, as lower scores are unknown; else it gets a higher one, or none.
    RETURNS (tuple): The cut-offs; a dict with "event" (when a span is right, None for documents), the fields of the saved
        cut-offs, and "rows": per "key" the "cutoff", number of "entities" (or "documents"), number "kept" (accepted), "share"
        (kept / all), "precision" (right / kept), and "low" and "high", the prediction interval of the precision.
    """
    event = None if pipe.annotation.kind.of_documents else pipe.span_event
    labels = pipe.lookup.labels() if pipe.spans.groups is None else pipe.lookup.span_labels()
    groups = pipe.spans.groups or pipe.groups
    assert groups is not None
    keys = np.array(keys_of(per, pairs.pairs.tags, labels, groups), dtype=object)  # key of the cut-off of each prediction
    # Key -> the highest former cut-off among its answers, above which they are a fair sample; 0 for gold that is no sample.
    former_cutoffs = {key: 0.0 if sample is None else float(sample.cutoffs[keys == key].max()) for key in dict.fromkeys(keys)}
    index = np.flatnonzero(pairs.calibrated >= [former_cutoffs[key] for key in keys])
    keys, scores = keys[index], pairs.calibrated[index]
    hits, documents = pairs.pairs.hits[index], pairs.documents[index]
    targets = precision if isinstance(precision, Mapping) else None  # label -> precision
    all_keys: Sequence[str] = {"all": ["all"], "label": labels, "group": groups.names}[per]
    required = targets or dict.fromkeys([*all_keys, *keys], precision)  # key -> required precision
    cutoffs = Cutoffs(min(required.values()), confidence, per, values={}, targets=targets)  # `level` needs no values yet
    thresholds = find_thresholds(scores, hits, documents, keys.tolist(), required, cutoffs.level)
    unit = "entities" if event else "documents"  # what a Threshold counts as spans
    rows: dict[str, dict[str, Any]] = {}
    for key in required:
        threshold, former_cutoff = thresholds.get(key, Threshold(None, 0)), former_cutoffs.get(key)
        # If all answers may be accepted, the former cut-off stays: lower scores were not sampled.
        accepts_all = threshold.kept == threshold.spans
        cutoff = former_cutoff if former_cutoff and accepts_all else threshold.cutoff
        figures = {name: getattr(threshold, name) for name in ("kept", "share", "precision", "low", "high")}
        rows[key] = {"key": key, "cutoff": cutoff, unit: threshold.spans, **figures}
    basis = None if sample is None else _describe_sample(sample, documents, sum(row["kept"] for row in rows.values()))
    cutoffs = replace(cutoffs, values={key: row["cutoff"] for key, row in rows.items()}, sample=basis)
    return cutoffs, {"event": event, **cutoffs.state(), "rows": list(rows.values())}


def _describe_sample(sample: SampledAnswers, documents: Ints, n_accepted: int) -> dict[str, Any]:
    """Return what cut-offs save of their sample: the numbers of "answers", of their "documents", and of documents "drawn_from".

    "accepted" is the share of the entities in these documents that the cut-offs accept, estimated from the answers.
    documents (Ints): Document of each answer that was used, (n,). n_accepted (int): Number of answers that cut-offs accept.
    """
    accepted = sample.accepted * n_accepted / max(1, len(documents))
    counts = {"answers": len(documents), "documents": len(np.unique(documents)), "drawn_from": sample.drawn_from}
    return {**counts, "accepted": accepted}


def check_cutoffs_by(pipe: Calibrator, sample: SampledAnswers, data: Path, confidence: float) -> dict[str, Any]:
    """Test whether the predictions that a pipe accepts still reach the promised precision, on a random sample of new answers.

    data (Path): Origin of the sample, for messages. confidence (float): Confidence of the tests, in (0, 1).
    RETURNS (dict): "verdict" (HOLDS, BROKEN or UNCLEAR) of all cut-offs, and "rows": for each "key" of a cut-off the "wanted"
        precision, the numbers of "answers" about accepted predictions and of "right" ones, and its own "verdict".
    RAISES C531: the pipe has no cut-offs. C534: it accepts lower scores than the sample was drawn from.
    """
    if pipe.spans.cutoffs is None or pipe.spans.groups is None:
        raise calib_error("C531", name=pipe.name)
    cutoffs, pairs = replace(pipe.spans.cutoffs, confidence=confidence), sample.pairs.pairs
    label_args = (pairs.tags, pipe.lookup.span_labels(), pipe.spans.groups)
    key_of_answer, cutoff_of_answer = np.array(keys_of(cutoffs.per, *label_args)), cutoffs.get_cutoffs(*label_args)
    too_low = np.flatnonzero(cutoff_of_answer < sample.cutoffs)  # cut-offs that accept scores which were not sampled
    if len(too_low):
        i = too_low[0]
        raise calib_error("C534", path=data, drawn=sample.cutoffs[i], name=pipe.name, accepts=cutoff_of_answer[i])
    rows = []
    for key in (key for key, value in cutoffs.values.items() if value is not None):
        index = np.flatnonzero((key_of_answer == key) & (pairs.scores >= cutoff_of_answer))
        hits, wanted = pairs.hits[index], (cutoffs.targets or {}).get(key, cutoffs.precision)
        verdict = check_promise(hits, sample.pairs.documents[index], wanted, cutoffs.level)
        rows.append({"key": key, "wanted": wanted, "answers": len(hits), "right": int(hits.sum()), "verdict": verdict})
    verdicts = {row["verdict"] for row in rows}
    verdict_unless_broken = HOLDS if verdicts == {HOLDS} else UNCLEAR
    return {"verdict": BROKEN if BROKEN in verdicts else verdict_unless_broken, "rows": rows}


def parts_for_review(
    pipe: Calibrator, corpus: ScoredCorpus, tokens: EntityTokens, accepting: Cutoffs, flagging: RecallCutoffs
) -> dict[str, Any]:
    """Split the tokens of a corpus into those of accepted entities, those to review, and those dropped without review.

    tokens (EntityTokens): The tokens of `corpus`. accepting (Cutoffs): From which scores entities are accepted. flagging
        (RecallCutoffs): From which probabilities tokens are flagged for review.
    RETURNS (dict): Part ("accept", "look": to review, "drop") -> number of its "tokens", their "share" of all scored tokens,
        the number with "gold", the number "inside" gold entities, and "inside_share" (inside / gold). "accept" also has the
        number of accepted "entities" with gold, and the number of right ones ("right").
    """
    labels, spans = pipe.lookup.span_labels(), corpus.spans
    assert pipe.spans.groups is not None
    column_by_label = {label: i for i, label in enumerate(labels)}  # a corpus numbers labels in another order: by its names
    columns = np.array([column_by_label.get(name, -1) for name in corpus.names], dtype=np.intp)[spans.labels]
    index = np.flatnonzero(accepting.accepts(spans.calibrated, columns, labels, pipe.spans.groups))
    doc_starts = corpus.doc_starts[spans.docs[index]]  # tokens are numbered through the corpus, those of spans in their Doc
    starts, ends = doc_starts + spans.starts[index], doc_starts + spans.ends[index]
    is_accepted = np.zeros(len(corpus), dtype=bool)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        is_accepted[start:end] = True
    is_flagged = np.any(list(tokens.flag(flagging).values()), axis=0)  # by any of the cut-offs
    hits = spans.right[index][spans.right[index] >= 0]  # -1: without gold
    parts: dict[str, Any] = review_of(tokens, is_flagged, is_accepted)
    parts["accept"] |= {"entities": len(hits), "right": int(hits.sum())}
    return parts
