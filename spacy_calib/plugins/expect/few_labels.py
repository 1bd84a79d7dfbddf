"""Corrects shares of right labels and entities, estimated from the scores of many texts, by the gold of a few.

Prediction-powered inference (Angelopoulos et al. 2023) for a finite number of texts. Scores may be anything; labelled documents
must be a random sample. A document is the unit, as its tokens are alike. The weight of the scores is 1, not tuned (PPI++,
Angelopoulos, Duchi and Zrnic 2023): with few documents a tuned interval is at most a hundredth narrower where it holds, and
holds less often.
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
from ...pipe.record.drift import Labelled
from ...pipe.record.estimates import EntityModel, Estimate, sum_by, token_sums
from ...pipe.record.fit_record import entity_sums
from ...types import Adds, Floats, Ints
from .survey import Known, Survey, accuracy, entities

Chosen = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Read:
    """A corpus; gold (Ints): gold entities of each Doc, digests (Sequence[int]): its `seen.digest`."""

    corpus: ScoredCorpus
    gold: Ints
    digests: Sequence[int]

    def labelled(self) -> Chosen:
        """Return which Docs have gold."""
        tokens = self.corpus.docs[self.corpus.is_counted & (self.corpus.right != UNKNOWN)]
        return np.asarray(np.bincount(tokens, minlength=self.corpus.n_docs) > 0)


@dataclass(frozen=True, eq=False)
class UnlabelledSums(Adds):
    """Sums over texts without gold. expected, units (Floats): As in `Survey`, shape (1, k)."""

    expected: Floats
    units: Floats
    squares: float


@dataclass(eq=False)
class Beside:
    """Texts, of which only sums are kept, and a few labelled documents (`few`). model (EntityModel | None): Of the fit."""

    few: Read
    labels: Sequence[str]
    model: EntityModel | None
    _rest: list[UnlabelledSums] = field(default_factory=list)
    _used: Counter[int] = field(default_factory=Counter)

    def add(self, texts: Read) -> None:
        """Add texts; no document may be split between calls."""
        is_new = ~self.met(texts.digests)
        documents = _documents(texts.corpus)[is_new]
        sums = []
        for labelled_sums in _by_doc(texts, self.labels, self.model):
            expected_sums, units = (
                _sum_by_document(labelled_sums.expected[is_new], documents),
                _sum_by_document(labelled_sums.units[is_new], documents),
            )
            squares = float(np.square(units[:, -1]).sum())
            sums.append(UnlabelledSums(expected_sums.sum(axis=0, keepdims=True), units.sum(axis=0, keepdims=True), squares))
        self._rest = [a + b for a, b in zip(self._rest, sums, strict=True)] if self._rest else sums

    def met(self, digests: Sequence[int]) -> Chosen:
        """Return which texts, by their digests, are labelled ones; each labelled text matches one text at most."""
        is_labelled = np.zeros(len(digests), dtype=bool)
        for i, digest in enumerate(digests):
            if self._used[digest] < self._labelled[digest]:
                self._used[digest] += 1
                is_labelled[i] = True
        return is_labelled

    @cached_property
    def _labelled(self) -> Counter[int]:
        """Digest -> number of labelled documents with it."""
        gold_docs = self.few
        return Counter(digest for digest, has in zip(gold_docs.digests, gold_docs.labelled().tolist(), strict=True) if has)

    def among(self) -> Chosen:
        """Return which of the labelled documents are among the texts."""
        is_among, remaining = np.zeros(len(self.few.digests), dtype=bool), Counter(self._used)
        for i in np.flatnonzero(self.few.labelled()).tolist():
            is_among[i] = remaining[self.few.digests[i]] > 0
            remaining[self.few.digests[i]] -= is_among[i]
        return is_among

    def surveys(self) -> list[Survey]:
        """Return the survey of right tokens, and with a model of right and missed entities; by documents with tokens."""
        among, documents, surveys = self.among(), _documents(self.few.corpus), []
        for sums, doc_sums in zip(self._rest, _by_doc(self.few, self.labels, self.model, only_gold=True), strict=True):
            whole = Known(*(_sum_by_document(part, documents) for part in doc_sums))
            has_units = whole.units[:, -1] > 0
            sums_among = doc_sums.observed[among].sum(axis=0), doc_sums.units[among].sum(axis=0)
            surveys.append(
                Survey(Known(*(part[has_units] for part in whole)), *sums_among, sums.expected, sums.units, sums.squares)
            )
        return surveys


def with_gold(result: dict[str, Any], texts: Beside, confidence: float) -> dict[str, Any]:
    """Return the result of `expected_of` with the numbers from the labelled documents in place of those from the fit data.

    RETURNS (dict): "trusted" is true, as labelled documents are like the texts. New is "gold": "documents" and what they are
    ("by"), "tokens", "among" (labelled Docs among the texts), "correction" (of the accuracy), and "shares", each with
    "scores_alone" (without labels), "classical" (from labelled documents alone) and "narrower" (share of its width that is
    saved). RAISES C001: confidence out of range. C226: fewer than two documents have labels.
    """
    parts, gold_docs = texts.surveys(), texts.few
    n = len(parts[0].known.units)
    if n < 2:
        raise calib_error("C226", n=n, by=gold_docs.corpus.unit)
    shares = {"accuracy": accuracy(parts[0], confidence)}
    old_shares: dict[str, Any] = {"accuracy": result["accuracy"], **(result["entities"] or {})}
    new_result = {**result, "accuracy": {**result["accuracy"], **shares["accuracy"][0]._asdict()}, "trusted": True}
    if result["entities"] is not None:
        right, gold, shares_by_name = entities(parts[1], confidence)
        exact = result["entities"]["gold"] is not None
        shares |= {name: estimates for name, estimates in shares_by_name.items() if exact or name == "precision"}
        numbers = {name: shares[name][0]._asdict() if name in shares else None for name in ("precision", "recall", "f")}
        new_result["entities"] = {**result["entities"], "right": right, "gold": gold if exact else None, **numbers}
    return new_result | {
        "gold": {
            "documents": n,
            "by": gold_docs.corpus.unit,
            "tokens": int(parts[0].known.units.sum()),
            "among": int(texts.among().sum()),
            "correction": float(parts[0].correction()[0]),
            "shares": {name: _compare_estimates(old_shares[name], *estimates) for name, estimates in shares.items()},
        }
    }


def _compare_estimates(scores_alone: dict[str, Any] | None, estimate: Estimate, classical: Estimate) -> dict[str, Any]:
    width = classical.high - classical.low
    scores_only = None if scores_alone is None else {name: scores_alone[name] for name in Estimate._fields}
    narrower = 1 - (estimate.high - estimate.low) / width if width else None
    return {"scores_alone": scores_only, "classical": classical._asdict(), "narrower": narrower}


def known_of(
    tokens: Labelled, right: NDArray[Any], spans: Labelled, spans_right: NDArray[Any], gold: Ints, model: EntityModel | None
) -> list[Known]:
    """Return scores and gold of each document: of right tokens; with a model also of right and missed entities."""
    n = tokens.n_docs
    sums = token_sums(tokens.calibrated, tokens.documents, n)
    sums_by_kind = [
        Known(sum_by(tokens.documents, right == RIGHT, n)[:, None], sums.expected, sums.independent, sums.units[:, None])
    ]
    if model is not None:
        sums_of_entities, n_right = entity_sums(tokens, spans), sum_by(spans.documents, spans_right == RIGHT, n)
        sums, events = model.sums(sums_of_entities), np.stack([n_right, gold - n_right], axis=1)
        sums_by_kind.append(
            Known(
                events, sums.expected, sums.independent, np.stack([sums_of_entities.predicted, sums_of_entities.units], axis=1)
            )
        )
    return sums_by_kind


def _by_doc(read: Read, labels: Sequence[str], model: EntityModel | None, only_gold: bool = False) -> list[Known]:
    """Return `known_of` by Doc. only_gold (bool): Whether to take only tokens and entities with gold."""
    corpus = read.corpus
    right, spans_right = corpus.right[corpus.is_counted], corpus.spans.right
    tokens = replace(Labelled.from_tokens(corpus, labels), documents=corpus.docs[corpus.is_counted], n_docs=corpus.n_docs)
    spans = replace(Labelled.from_spans(corpus), documents=corpus.spans.docs, n_docs=corpus.n_docs)
    if only_gold:
        index, own_spans = (np.flatnonzero(column != UNKNOWN) for column in (right, spans_right))
        tokens, spans, right, spans_right = tokens.take(index), spans.take(own_spans), right[index], spans_right[own_spans]
    return known_of(tokens, right, spans, spans_right, read.gold, model)


def _documents(corpus: ScoredCorpus) -> Ints:
    return corpus.documents_of(np.arange(corpus.n_docs))


def _sum_by_document(values: Floats, documents: Ints) -> Floats:
    """Sum the rows of each document."""
    n = int(documents.max(initial=-1)) + 1
    return np.stack([sum_by(documents, column, n) for column in values.T], axis=1)
