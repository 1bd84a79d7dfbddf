"""Correct the expected accuracy and entity scores of many texts by the gold of a few labelled documents.

Prediction-powered inference (Angelopoulos et al. 2023) for a finite number of texts. Scores need not be calibrated; the
labelled documents must be a random sample. The weight of the scores is 1, not tuned as in PPI++ (Angelopoulos, Duchi and
Zrnic 2023): with few documents tuning makes intervals at most a hundredth narrower, and they hold less often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...pairs.scored_corpus import RIGHT, UNKNOWN, ScoredCorpus
from ...pipe.record.drift import UnitScores
from ...pipe.record.estimates import EntityModel, ShareEstimate, sum_by, token_sums
from ...pipe.record.fit_record import entity_sums
from ...types import FieldwiseSum, Floats, Ints
from .survey import LabelledDocuments, Survey, estimate_accuracy, estimate_entities

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ScoredTexts:
    """A scored corpus, with the number of gold entities and the digest of the text of each Doc."""

    corpus: ScoredCorpus
    n_gold: Ints
    digests: Sequence[int]

    def has_gold(self) -> Mask:
        """Return which Docs have gold labels, shape (n_docs,)."""
        tokens = self.corpus.docs[self.corpus.is_counted & (self.corpus.right != UNKNOWN)]
        return np.asarray(np.bincount(tokens, minlength=self.corpus.n_docs) > 0)


@dataclass(frozen=True, eq=False)
class UnlabelledSums(FieldwiseSum):
    """Sums over texts without gold, which can be added. Fields: As in `Survey`, of shape (1, k)."""

    expected_events: Floats
    units: Floats
    squared_units: float


@dataclass(eq=False)
class SurveyBuilder:
    """Sums up texts batch by batch, for surveys with a few labelled documents.

    sample (ScoredTexts): The labelled documents. labels (Sequence[str]): Labels of the source. model (EntityModel | None):
    Model of missed entities from the fit; None surveys tokens only.
    """

    sample: ScoredTexts
    labels: Sequence[str]
    model: EntityModel | None
    _sums: list[UnlabelledSums] = field(default_factory=list)
    _n_matched: Counter[int] = field(default_factory=Counter)

    def add(self, texts: ScoredTexts) -> None:
        """Add a batch of texts; no document may be split between batches."""
        is_new = ~self.match_sample(texts.digests)
        documents = _number_documents(texts.corpus)[is_new]
        sums = []
        for doc_sums in _sum_docs(texts, self.labels, self.model):
            expected_events = _sum_by_document(doc_sums.expected_events[is_new], documents)
            units = _sum_by_document(doc_sums.units[is_new], documents)
            squares = float(np.square(units[:, -1]).sum())
            sums.append(UnlabelledSums(expected_events.sum(axis=0, keepdims=True), units.sum(axis=0, keepdims=True), squares))
        self._sums = [a + b for a, b in zip(self._sums, sums, strict=True)] if self._sums else sums

    def match_sample(self, digests: Sequence[int]) -> Mask:
        """Return which texts are labelled documents, by digest; a labelled document matches one text of all batches."""
        in_sample = np.zeros(len(digests), dtype=bool)
        for i, digest in enumerate(digests):
            if self._n_matched[digest] < self._n_labelled[digest]:
                self._n_matched[digest] += 1
                in_sample[i] = True
        return in_sample

    @cached_property
    def _n_labelled(self) -> Counter[int]:
        """Digest -> number of labelled documents with it."""
        has_gold = self.sample.has_gold().tolist()
        return Counter(digest for digest, is_labelled in zip(self.sample.digests, has_gold, strict=True) if is_labelled)

    def find_overlap(self) -> Mask:
        """Return which labelled documents are among the texts added so far."""
        in_texts, remaining = np.zeros(len(self.sample.digests), dtype=bool), Counter(self._n_matched)
        for i in np.flatnonzero(self.sample.has_gold()).tolist():
            in_texts[i] = remaining[self.sample.digests[i]] > 0
            remaining[self.sample.digests[i]] -= in_texts[i]
        return in_texts

    def build(self) -> list[Survey]:
        """Return a survey of right tokens and, with a model, one of right and missed entities."""
        in_texts, documents, surveys = self.find_overlap(), _number_documents(self.sample.corpus), []
        for sums, doc_sums in zip(self._sums, _sum_docs(self.sample, self.labels, self.model, only_gold=True), strict=True):
            sample = LabelledDocuments(*(_sum_by_document(column, documents) for column in doc_sums))
            has_units = sample.units[:, -1] > 0  # a document without tokens is no observation
            sample = LabelledDocuments(*(column[has_units] for column in sample))
            overlap = doc_sums.gold_events[in_texts].sum(axis=0), doc_sums.units[in_texts].sum(axis=0)
            surveys.append(Survey(sample, *overlap, sums.expected_events, sums.units, sums.squared_units))
        return surveys


def correct_by_gold(result: dict[str, Any], builder: SurveyBuilder, confidence: float) -> dict[str, Any]:
    """Return the result of `estimate_quality` with estimates corrected by the labelled documents.

    RETURNS (dict): "trusted" is true, as the labelled documents are a sample of the texts. New is "gold": "documents" and
    what they are ("by"), "tokens", "among" (labelled Docs among the texts), "correction" (of the accuracy), and "shares",
    each with "scores_alone" (the estimate without gold), "classical" (from labelled documents alone) and "narrower" (by which
    share the interval is narrower than the classical one). RAISES C001: confidence out of range. C226: fewer than two
    documents have gold.
    """
    surveys, corpus = builder.build(), builder.sample.corpus
    n = len(surveys[0].sample.units)
    if n < 2:
        raise calib_error("C226", n=n, by=corpus.unit)
    shares = {"accuracy": estimate_accuracy(surveys[0], confidence)}
    old_shares: dict[str, Any] = {"accuracy": result["accuracy"], **(result["entities"] or {})}
    new_result = {**result, "accuracy": {**result["accuracy"], **shares["accuracy"][0]._asdict()}, "trusted": True}
    if result["entities"] is not None:
        right, gold, entity_shares = estimate_entities(surveys[1], confidence)
        # By other events one gold entity may make several predicted ones right, so there is no recall.
        exact = result["entities"]["gold"] is not None
        shares |= {name: estimates for name, estimates in entity_shares.items() if exact or name == "precision"}
        numbers = {name: shares[name][0]._asdict() if name in shares else None for name in ("precision", "recall", "f")}
        new_result["entities"] = {**result["entities"], "right": right, "gold": gold if exact else None, **numbers}
    return new_result | {
        "gold": {
            "documents": n,
            "by": corpus.unit,
            "tokens": int(surveys[0].sample.units.sum()),
            "among": int(builder.find_overlap().sum()),
            "correction": float(surveys[0].correction()[0]),
            "shares": {name: _compare_estimates(old_shares[name], *estimates) for name, estimates in shares.items()},
        }
    }


def _compare_estimates(
    scores_alone: dict[str, Any] | None, estimate: ShareEstimate, classical: ShareEstimate
) -> dict[str, Any]:
    width = classical.high - classical.low
    scores_only = None if scores_alone is None else {name: scores_alone[name] for name in ShareEstimate._fields}
    narrower = 1 - (estimate.high - estimate.low) / width if width else None
    return {"scores_alone": scores_only, "classical": classical._asdict(), "narrower": narrower}


def _sum_docs(
    texts: ScoredTexts, labels: Sequence[str], model: EntityModel | None, only_gold: bool = False
) -> list[LabelledDocuments]:
    """Sum the scores and gold of each Doc: right tokens (k = 1) and, with a model, right and missed entities (k = 2).

    only_gold (bool): Whether to leave out tokens and entities without gold.
    """
    corpus, n = texts.corpus, texts.corpus.n_docs
    right, spans_right = corpus.right[corpus.is_counted], corpus.spans.right
    tokens = replace(UnitScores.from_tokens(corpus, labels), documents=corpus.docs[corpus.is_counted], n_docs=n)
    spans = replace(UnitScores.from_spans(corpus), documents=corpus.spans.docs, n_docs=n)
    if only_gold:
        index, spans_index = (np.flatnonzero(column != UNKNOWN) for column in (right, spans_right))
        tokens, right, spans, spans_right = tokens.take(index), right[index], spans.take(spans_index), spans_right[spans_index]
    sums, right_tokens = token_sums(tokens.calibrated, tokens.documents, n), sum_by(tokens.documents, right == RIGHT, n)
    doc_sums = [LabelledDocuments(right_tokens[:, None], sums.expected, sums.independent, sums.units[:, None])]
    if model is not None:
        of_entities, n_right = entity_sums(tokens, spans), sum_by(spans.documents, spans_right == RIGHT, n)
        sums, events = model.sums(of_entities), np.stack([n_right, texts.n_gold - n_right], axis=1)
        units = np.stack([of_entities.predicted, of_entities.units], axis=1)
        doc_sums.append(LabelledDocuments(events, sums.expected, sums.independent, units))
    return doc_sums


def _number_documents(corpus: ScoredCorpus) -> Ints:
    """Return the document number of each Doc."""
    return corpus.documents_of(np.arange(corpus.n_docs))


def _sum_by_document(values: Floats, documents: Ints) -> Floats:
    """Sum the rows of each document, shape (n_documents, k). values (Floats): A row for each Doc, shape (n_docs, k)."""
    n = int(documents.max(initial=-1)) + 1
    return np.stack([sum_by(documents, column, n) for column in values.T], axis=1)
