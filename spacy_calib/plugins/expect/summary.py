"""A scored corpus and the record of the fit -> what quality to expect, whether to trust it, and the gold beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ...pairs.scored_corpus import RIGHT, UNKNOWN, ScoredCorpus
from ...pipe.record.drift import OTHER_WEIGHTS, Drift, DriftSums, Labelled
from ...pipe.record.estimates import EntityModel, Estimate, Sums, entity_estimates, expected_accuracy, token_sums
from ...pipe.record.fit_record import FitRecord, entity_sums
from ...types import Adds

# How much of a document is shown.
_FIRST_WORDS = 6


@dataclass(frozen=True)
class TextSums(Adds):
    """The sums that expectations are made of.

    tokens (int): Counted ones. scores (float): Sum of their calibrated scores. Of the record, if there is one: right
    (Sums): Right tokens. entities (Sums | None): Right and missed ones. predicted (float): Found ones. drift: DriftSums.
    """

    tokens: int
    scores: float
    right: Sums | None = None
    entities: Sums | None = None
    predicted: float = 0.0
    drift: DriftSums | None = None

    @classmethod
    def of(cls, tokens: Labelled, spans: Labelled, record: FitRecord | None) -> TextSums:
        """The sums over all tokens and entities of some texts."""
        n, scores = len(tokens.calibrated), float(tokens.calibrated.sum())
        if record is None:
            return cls(n, scores)
        right, model = token_sums(tokens.calibrated, tokens.documents, tokens.n_docs).total(), record.entities
        if model is None:
            return cls(n, scores, right, drift=record.profile.sums_of(tokens))
        sums = entity_sums(tokens, spans)
        predicted = float(sums.predicted.sum())
        return cls(n, scores, right, model.sums(sums).total(), predicted, record.profile.sums_of(tokens, spans))


def expected_of(
    sums: TextSums, record: FitRecord | None, event: str, confidence: float = 0.95, seed: int = 0
) -> dict[str, Any]:
    """What to expect, and whether to trust it. event (str): When an entity counts as right.

    RETURNS (dict): "accuracy": {"expected", "low", "high"}, the mean calibrated score and the accuracy on the fit data;
        "entities": numbers, and "precision", "recall" and "f" (None for a source without entities; no recall and F for
        an event but exact); "drift": "verdict", "checks" and "stretch", see `Drift`; "trusted": whether texts are like
        the fit data. Without a record "low", "high", "drift" and "entities" are None.
    """
    mean = sums.scores / sums.tokens
    if record is None or sums.right is None or sums.drift is None:
        accuracy = {"expected": mean, "low": None, "high": None, "mean_score": mean, "fit": None}
        return {"accuracy": accuracy, "entities": None, "drift": None, "trusted": False}
    estimate = expected_accuracy(record.tokens, sums.right, confidence, record.source_variance)
    drift, entities = record.profile.judge(sums.drift, seed), None
    if record.entities is not None and sums.entities is not None:
        entities = _entities(record.entities, sums.entities, sums.predicted, event, confidence)
    return {
        "accuracy": {**estimate._asdict(), "mean_score": mean, "fit": record.accuracy},
        "entities": entities,
        "drift": told_of_drift(drift),
        "trusted": drift.trusted,
    }


@dataclass
class Summed:
    """Texts summed up, part by part. labels (Sequence[str]): Of the source. record (FitRecord | None): Of the fit.

    n_documents (int): So far. rows (list): What `documents_of` gave for the parts in `add_documents`. slices (dict): Name -> (documents, sums) of the
        texts that have it.
    """

    labels: Sequence[str]
    record: FitRecord | None
    n_documents: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    slices: dict[str, tuple[int, TextSums]] = field(default_factory=dict)
    _parts: list[TextSums] = field(default_factory=list)

    def add(self, corpus: ScoredCorpus, names: Sequence[str | None] = ()) -> None:
        """Add texts. names (Sequence): The slice of each Doc; None for none, () where there are no slices."""
        tokens, spans = Labelled.from_tokens(corpus, self.labels), Labelled.from_spans(corpus)
        for name in sorted({name for name in names if name is not None}):
            documents = np.unique(corpus.documents_of(np.flatnonzero([other_name == name for other_name in names])))
            sums = TextSums.of(tokens.of_documents(documents), spans.of_documents(documents), self.record)
            if sums.tokens:
                n, sums_before = self.slices.get(name, (0, None))
                self.slices[name] = n + len(documents), sums if sums_before is None else sums_before + sums
        self._parts.append(TextSums.of(tokens, spans, self.record))
        self._parts = [self.sums]
        self.n_documents += corpus.n_documents

    def add_documents(self, corpus: ScoredCorpus, record: FitRecord | None, confidence: float, check: bool) -> None:
        """Add a row for each document of the texts that are added next. The arguments are those of `documents_of`."""
        rows = documents_of(corpus, record, confidence, check)
        self.rows += [{**row, "doc": row["doc"] + self.n_documents} for row in rows]

    @property
    def sums(self) -> TextSums:
        """The sums over all texts, at least one."""
        return reduce(add, self._parts)

    def expected(self, event: str, confidence: float = 0.95) -> dict[str, Any]:
        """`expected_of` these texts."""
        return expected_of(self.sums, self.record, event, confidence)

    def expected_by_slice(self, event: str, confidence: float = 0.95, trusted: bool = True) -> list[dict[str, Any]]:
        """`expected_of` the texts of each slice, with "slice", "documents" and "tokens"; the least accuracy first. trusted (bool): False where the
        component was trained since the fit.
        """
        rows = []
        for name, (n, sums) in self.slices.items():
            result = expected_of(sums, self.record, event, confidence)
            trusted_result = result if trusted else without_trust(result)
            rows.append({"slice": name, "documents": n, "tokens": sums.tokens, **trusted_result})
        return sorted(rows, key=lambda row: row["accuracy"]["expected"])


def told_of_drift(drift: Drift) -> dict[str, Any]:
    """ "verdict", "checks" and "stretch", see `Drift`."""
    checks = [{**asdict(check), "differs": check.differs} for check in drift.checks]
    return {"verdict": drift.verdict, "stretch": drift.stretch, "checks": checks}


def without_trust(result: dict[str, Any]) -> dict[str, Any]:
    """What `expected_of` gave, with the verdict that the component was trained since the fit."""
    drift = None if result["drift"] is None else {**result["drift"], "verdict": OTHER_WEIGHTS}
    return {**result, "drift": drift, "trusted": False}


def _entities(model: EntityModel, sums: Sums, predicted: float, event: str, confidence: float) -> dict[str, Any]:
    estimates = entity_estimates(model, sums, predicted, confidence)
    exact = event == "exact"  # otherwise one gold entity may make several right
    return {
        "event": event,
        "predicted": estimates.predicted,
        "right": estimates.right,
        "gold": estimates.gold if exact else None,
        "precision": _plain(estimates.precision),
        "recall": _plain(estimates.recall if exact else None),
        "f": _plain(estimates.f if exact else None),
    }


def _plain(estimate: Estimate | None) -> dict[str, float] | None:
    return None if estimate is None else estimate._asdict()


def true_values(corpus: ScoredCorpus, gold: int, result: dict[str, Any]) -> dict[str, Any]:
    """The true values, and whether the intervals hold them: None if some documents have no gold.

    gold (int): Gold entities. result (dict): What is expected, and `checked_documents`.
    RETURNS (dict): "accuracy", "precision", "recall", "f": {"value", "inside"} each, left out where undefined.
    """
    with_gold = corpus.is_counted & (corpus.right != UNKNOWN)
    rights = corpus.right[with_gold]
    spans = corpus.spans.right[corpus.spans.right != UNKNOWN]
    right, predicted = int((spans == RIGHT).sum()), len(spans)
    whole = result["checked"] == result["checkable"]
    true = {
        "accuracy": _share(int((rights == RIGHT).sum()), len(rights)),
        "precision": _share(right, predicted),
        "recall": _share(right, gold),
        "f": _share(2 * right, predicted + gold),
    }
    estimates = {"accuracy": result["accuracy"], **(result["entities"] or {})}
    return {
        name: {"value": value, "inside": _is_inside(value, estimates[name]) if whole else None}
        for name, value in true.items()
        if value is not None and estimates.get(name) is not None
    }


def checked_documents(corpus: ScoredCorpus) -> dict[str, int]:
    """ "checkable": documents with scores; "checked": those of them with gold."""
    is_counted = corpus.is_counted
    return {
        "checkable": len(np.unique(corpus.docs[is_counted])),
        "checked": len(np.unique(corpus.docs[is_counted & (corpus.right != UNKNOWN)])),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _is_inside(value: float, estimate: dict[str, Any]) -> bool | None:
    return None if estimate["low"] is None else estimate["low"] <= value <= estimate["high"]


def documents_of(corpus: ScoredCorpus, record: FitRecord | None, confidence: float, check: bool) -> list[dict[str, Any]]:
    """A row for each document with tokens: "doc" (number, from 0), "text" (first words), "tokens", "expected", "low"
    and "high" (None without a record), "true" (accuracy; None without gold, or where it is not to be checked).
    """
    sums = token_sums(corpus.calibrated[corpus.is_counted], corpus.docs[corpus.is_counted], corpus.n_docs)
    with_gold = corpus.is_counted & (corpus.right != UNKNOWN)
    n_known, n_right = (
        np.bincount(corpus.docs[mask], minlength=corpus.n_docs) for mask in (with_gold, with_gold & (corpus.right == RIGHT))
    )
    rows = []
    for doc in np.flatnonzero(sums.units > 0).tolist():
        mask = Sums(sums.expected[doc : doc + 1], sums.independent[doc : doc + 1], sums.units[doc : doc + 1])
        mean: dict[str, Any] = {"expected": _in_range(mask.expected.sum() / mask.units.sum()), "low": None, "high": None}
        first, last = int(corpus.doc_starts[doc]), int(corpus.doc_starts[doc + 1])
        rows.append(
            {
                "doc": doc,
                "text": " ".join(corpus.text(first, min(last, first + _FIRST_WORDS)).split()),
                "tokens": int(mask.units[0]),
                **(
                    mean
                    if record is None
                    else expected_accuracy(record.tokens, mask, confidence, record.source_variance)._asdict()
                ),
                "true": _share(int(n_right[doc]), int(n_known[doc])) if check else None,
            }
        )
    return rows


def corrected(rows: Sequence[dict[str, Any]], correction: float) -> list[dict[str, Any]]:
    """Rows of `documents_of` without a record, corrected. correction (float): To be added to each expectation."""
    return [{**row, "expected": _in_range(row["expected"] + correction)} for row in rows]


def _in_range(share: float) -> float:
    return float(np.clip(share, 0.0, 1.0))
