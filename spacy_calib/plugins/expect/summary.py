"""Estimate the quality of a scored corpus from the record of the fit, and check whether to trust the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ...pairs.scored_corpus import ScoredCorpus
from ...pipe.record.drift import OTHER_WEIGHTS, TOO_FEW, Drift, DriftSums, UnitScores
from ...pipe.record.estimates import EntityModel, EventSums, entity_estimates, expected_accuracy, token_sums
from ...pipe.record.fit_record import FitRecord, entity_sums
from ...types import FieldwiseSum


@dataclass(frozen=True)
class TextSums(FieldwiseSum):
    """Sums over some texts, from which their quality is estimated. Two TextSums can be added with `+`.

    tokens (int): Number of tokens with a score. scores (float): Sum of their calibrated scores. right (EventSums | None): Sums
    for the number of right tokens. entities (EventSums | None): Sums for the numbers of right and of missed entities.
    n_predicted (float): Number of predicted entities. drift (DriftSums | None): Sums to compare with the fit data. A field
    whose counterpart the record of the fit lacks is None or 0.
    """

    tokens: int
    scores: float
    right: EventSums | None = None
    entities: EventSums | None = None
    n_predicted: float = 0.0
    drift: DriftSums | None = None

    @classmethod
    def from_labels(cls, tokens: UnitScores, spans: UnitScores, record: FitRecord | None) -> TextSums:
        """Sum the scores of some texts, which are of predicted token labels (`tokens`) and of predicted entities (`spans`).

        record (FitRecord | None): Statistics of the fit documents. Without it only `tokens` and `scores` are set. If it
        lacks `entities` (or `profile`), the fields of entities (or of drift) are not set.
        """
        n_tokens, scores = len(tokens.calibrated), float(tokens.calibrated.sum())
        if record is None:
            return cls(n_tokens, scores)
        right = token_sums(tokens.calibrated, tokens.documents, tokens.n_docs).total()
        scored_spans = None if record.entities is None else spans
        drift = None if record.profile is None else record.profile.sums_of(tokens, scored_spans)
        if record.entities is None:
            return cls(n_tokens, scores, right, drift=drift)
        sums = entity_sums(tokens, spans)
        return cls(n_tokens, scores, right, record.entities.sums(sums).total(), float(sums.predicted.sum()), drift)


def estimate_quality(sums: TextSums, record: FitRecord | None, event: str, confidence: float) -> dict[str, Any]:
    """Estimate the quality of texts from their sums, and compare them with the fit data.

    record (FitRecord | None): Statistics of the fit documents. event (str): When an entity is right ("exact": bounds and
        label). confidence (float): Confidence level of the intervals.
    RETURNS (dict): "accuracy": {"expected", "low", "high", "mean_score" (mean calibrated score), "fit" (accuracy on the fit
        data)}; "entities": numbers "predicted", "right", "gold", and "precision", "recall", "f" with intervals, or None;
        "drift": "verdict", and "checks" (a dict for each figure that was compared: "name", "value", "limit", "chance",
        "differs"); "trusted": whether the texts are like the fit data. Without a record "low", "high", "fit", "drift" and
        "entities" are None.
    """
    mean = sums.scores / sums.tokens
    if record is None or sums.right is None:
        accuracy = {"expected": mean, "low": None, "high": None, "mean_score": mean, "fit": None}
        return {"accuracy": accuracy, "entities": None, "drift": None, "trusted": False}
    estimate = expected_accuracy(record.tokens, sums.right, confidence, record.source_variance)
    drift, entities = Drift(TOO_FEW), None
    if record.profile is not None and sums.drift is not None:  # the fit had enough documents
        drift = record.profile.compare(sums.drift)
    if record.entities is not None and sums.entities is not None:
        entities = _estimate_entities(record.entities, sums.entities, sums.n_predicted, event, confidence)
    checks = [{**asdict(check), "differs": check.differs} for check in drift.checks]
    return {
        "accuracy": {**estimate._asdict(), "mean_score": mean, "fit": record.accuracy},
        "entities": entities,
        "drift": {"verdict": drift.verdict, "checks": checks},
        "trusted": drift.is_trusted,
    }


@dataclass
class CorpusSummary:
    """Sums over texts, added in batches, and the estimates from them.

    labels (Sequence[str]): Labels of the source. record (FitRecord | None): That of the fit. event (str): When an entity
    is right ("exact": bounds and label). confidence (float): Confidence level of the intervals. has_changed (bool): Whether the
    component was trained after the fit. total (TextSums | None): Sums over all texts so far. n_documents (int): Number of their
    documents. slices (dict): Name of a slice -> (number of documents, sums).
    """

    labels: Sequence[str]
    record: FitRecord | None
    event: str
    confidence: float
    has_changed: bool
    total: TextSums | None = None
    n_documents: int = 0
    slices: dict[str, tuple[int, TextSums]] = field(default_factory=dict)

    def add(self, corpus: ScoredCorpus, names: Sequence[str | None]) -> None:
        """Add the scored texts of a batch to `total`, and those of each slice (group of documents) to `slices`.

        names (Sequence[str | None]): Name of each Doc's slice, None for none; () without slices.
        """
        tokens, spans = UnitScores.from_tokens(corpus, self.labels), UnitScores.from_spans(corpus)
        for slice_name in sorted({name for name in names if name is not None}):
            doc_indices = np.flatnonzero([name == slice_name for name in names])
            documents = np.unique(corpus.documents_of(doc_indices))  # several Docs may be parts of one document
            sums = TextSums.from_labels(tokens.of_documents(documents), spans.of_documents(documents), self.record)
            if sums.tokens:
                n_before, sums_before = self.slices.get(slice_name, (0, None))
                new_sums = sums if sums_before is None else sums_before + sums
                self.slices[slice_name] = (n_before + len(documents), new_sums)
        sums = TextSums.from_labels(tokens, spans, self.record)
        self.total = sums if self.total is None else self.total + sums
        self.n_documents += corpus.n_documents

    def estimate(self, sums: TextSums) -> dict[str, Any]:
        """Return what `estimate_quality` does for these sums; not "trusted" if the component was trained after the fit."""
        result = estimate_quality(sums, self.record, self.event, self.confidence)
        if not self.has_changed:
            return result
        drift = None if result["drift"] is None else {**result["drift"], "verdict": OTHER_WEIGHTS}
        return {**result, "drift": drift, "trusted": False}

    def estimate_slices(self) -> list[dict[str, Any]]:
        """Return a dict per slice, lowest accuracy first: "slice" (name), its "documents" and "tokens", and its estimates."""
        slices = [(name, n, sums) for name, (n, sums) in self.slices.items()]
        rows = [{"slice": name, "documents": n, "tokens": sums.tokens, **self.estimate(sums)} for name, n, sums in slices]
        return sorted(rows, key=lambda row: row["accuracy"]["expected"])


def _estimate_entities(
    model: EntityModel, sums: EventSums, n_predicted: float, event: str, confidence: float
) -> dict[str, Any]:
    """Return {"event", numbers of "predicted", "right" and "gold" entities, "precision", "recall", "f"} as plain data.

    Precision, recall and F are dicts of "expected", "low" and "high" (bounds of the interval). "gold", "recall" and "f" are
    None unless the event is "exact". sums: Expected right and missed entities. confidence: Level of the intervals.
    """
    estimates = entity_estimates(model, sums, n_predicted, confidence)
    is_exact = event == "exact"  # by other events one gold entity may make several predicted ones right
    recall, f = (estimates.recall, estimates.f) if is_exact else (None, None)
    shares = {"precision": estimates.precision, "recall": recall, "f": f}
    return {
        "event": event,
        "predicted": estimates.predicted,
        "right": estimates.right,
        "gold": estimates.gold if is_exact else None,
        **{name: None if share is None else share._asdict() for name, share in shares.items()},
    }
