"""Compares new documents with the fit data of a pipe (drift): by scores, labels and expected accuracy.

A saved profile of the fit data has means over all documents and their variances, but no value of a single document: anybody who
guessed a short text could confirm the guess by its scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...pairs.scored_corpus import ScoredCorpus
from ...schema import Serializable, floats, lengths, number, saved_field, text, tuple_of, whole
from ...types import FieldwiseSum, Floats, Ints
from .estimates import cross_sums, sum_by

LIKE, DIFFERENT, TOO_FEW = "like the fit data", "differs from the fit data", "too few texts to tell"
OTHER_WEIGHTS = "fitted with other weights"  # the component has other weights than at the fit
OTHER_WEIGHTS_SENTENCE = (
    "OTHER WEIGHTS: the component was trained or replaced after the fit, so the calibration belongs to its former scores. "
    "Fit the pipe again."
)
MIN_DOCUMENTS = 20  # fewer are not compared (their means are not normally distributed), and a mean over fewer is not saved
# Differences that matter: of the mean score, of the labels of tokens, of the mean score of entities (fewer, and more varied).
_SCORE_LIMIT, _LABEL_LIMIT, _ENTITY_LIMIT = 0.05, 0.05, 0.1
# A difference of expected accuracy that matters: this share of the fit data's error rate, within these bounds.
_ERROR_SHARE, _MIN_ERROR_LIMIT, _MAX_ERROR_LIMIT = 0.25, 0.005, 0.02
MAX_NOISE_RATIO = 2.0  # if sampling alone causes differences so many times larger than one that matters, it hides that one
_MAX_LABELS, _DIGITS = 30, 4  # maximum number of labels with a share of their own; significant digits of what is saved
_PARTS = 5  # number of consecutive parts of the fit data, whose differences raise the limits
_N_SAMPLES, _QUANTILE = 10_000, 0.995  # samples of chance differences, and their quantile; of four checks 1 in 50 alarms
_CHECKS = ("scores", "labels", "expected accuracy", "entity scores")  # names of the checks, in the order of all arrays


@dataclass(frozen=True)
class UnitScores:
    """The scores of n units in n_docs documents. The units are either tokens or entities.

    documents (Ints): Number of each unit's document, in [0, n_docs). labels (Sequence[str] | None): Label of each unit; None
    for entities. raw, calibrated (Floats): Score of each unit before and after calibration.
    """

    documents: Ints
    n_docs: int
    labels: Sequence[str] | None
    raw: Floats
    calibrated: Floats

    @classmethod
    def from_tokens(cls, corpus: ScoredCorpus, labels: Sequence[str]) -> UnitScores:
        """Take each token of a corpus that has a scored label and is not white space.

        labels (Sequence[str]): Label of each score column. The label of a lemma is its most probable edit tree.
        """
        rows = np.flatnonzero(corpus.is_counted)
        entries = np.flatnonzero(corpus.tags == corpus.labels[corpus.rows])  # the scores of predicted labels
        # Of several edit trees that yield one lemma, the most probable overwrites the others.
        entries = entries[np.argsort(corpus.tag_raw[entries], kind="stable")]
        columns = np.full(len(corpus), -1)  # column of each token's label; -1 if its score is below the threshold
        columns[corpus.rows[entries]] = corpus.columns[entries]
        columns_and_labels = zip(columns[rows].tolist(), corpus.labels[rows].tolist(), strict=True)
        names = [labels[column] if column >= 0 else corpus.names[label] for column, label in columns_and_labels]
        return cls(corpus.documents[rows], corpus.n_documents, names, corpus.raw[rows], corpus.calibrated[rows])

    @classmethod
    def from_spans(cls, corpus: ScoredCorpus) -> UnitScores:
        """Take the scored spans (entities) of a corpus, without labels."""
        documents = corpus.documents_of(corpus.spans.docs)
        return cls(documents, corpus.n_documents, None, corpus.spans.raw, corpus.spans.calibrated)

    def take(self, index: Ints) -> UnitScores:
        """Return the units with these indices; `n_docs` does not change."""
        labels = None if self.labels is None else [self.labels[i] for i in index.tolist()]
        return UnitScores(self.documents[index], self.n_docs, labels, self.raw[index], self.calibrated[index])

    def of_documents(self, documents: Ints) -> UnitScores:
        """Return the units of these documents (ascending indices), renumbered from 0."""
        subset = self.take(np.flatnonzero(np.isin(self.documents, documents)))
        return replace(subset, documents=np.searchsorted(documents, subset.documents), n_docs=len(documents))


@dataclass(frozen=True)
class Check:
    """One comparison with the fit data: "scores", "labels", "expected accuracy" or "entity scores".

    value (float): The difference. limit (float): The smallest difference that matters. chance (float): 99.5 % quantile of the
        differences that sampling alone causes, by a normal approximation.
    """

    name: str
    value: float
    limit: float
    chance: float

    @property
    def differs(self) -> bool:
        """Whether the difference matters and exceeds what sampling alone causes."""
        return self.value > max(self.limit, self.chance)

    @property
    def is_undecided(self) -> bool:
        """Whether sampling alone may explain a difference that matters (above `limit`), or hide one."""
        return self.limit < self.value <= self.chance or self.chance > MAX_NOISE_RATIO * self.limit


@dataclass(frozen=True)
class Drift:
    """The verdict on new documents, and the checks that led to it: () if nothing was compared.

    verdict (str): LIKE, DIFFERENT, TOO_FEW (documents to tell) or OTHER_WEIGHTS (the component was trained or replaced after
    the fit).
    """

    verdict: str
    checks: tuple[Check, ...] = ()

    @property
    def is_trusted(self) -> bool:
        """Whether expected accuracies hold, since the new documents are like the fit data."""
        return self.verdict == LIKE


@dataclass(frozen=True, eq=False)
class DriftSums(FieldwiseSum):
    """Sums over documents of what DriftProfile compares. The sums of several batches of documents can be added.

    Each document has K + 2 numbers (K = L + 4), in this order: the sums of the raw and of the calibrated scores of its tokens;
    its numbers of tokens with each of L labels, and with another label; the sum of the raw scores of its entities; and the
    numbers of its tokens and entities. documents (int): Number of documents with tokens. totals (Floats): Sum of each number,
    (K + 2,). moments (Floats): Sums of the products of each two of them, (K + 2, K + 2); a fit does not save these.
    """

    documents: int
    totals: Floats
    moments: Floats

    @classmethod
    def from_tables(cls, table: Floats) -> DriftSums:
        """Sum the rows of a table, which has the K + 2 columns of this class and a row for each document."""
        return cls(int((table[:, -2] > 0).sum()), table.sum(axis=0), table.T @ table)  # column -2: number of tokens

    @property
    def sizes(self) -> Floats:
        """Number of units that each column sums over, shape (K,): entities for the last column, tokens for the others."""
        return np.append(np.full(len(self.totals) - 3, self.totals[-2]), self.totals[-1])  # len(totals) - 3 is K - 1

    @property
    def means(self) -> Floats:
        """Mean of each of the first K columns, shape (K,): per entity for the last of them (0 without any), else per token."""
        return np.asarray(self.totals[:-2] / np.maximum(self.sizes, 1))

    def chances(self) -> Floats:
        """Return by how much sampling alone may change the means: the 99.5 % quantile of the change for each check, (4,)."""
        from scipy.stats import norm, t

        n_columns = len(self.means)
        # A matrix from a document's sums to its residuals: sum minus size (column -1: entities, -2: tokens) times the mean.
        to_residuals = np.eye(n_columns, n_columns + 2)
        to_residuals[:-1, -2], to_residuals[-1, -1] = -self.means[:-1], -self.means[-1]
        to_residuals /= np.maximum(self.sizes, 1)[:, None]
        # Sample normal errors of all means with the covariance of these residuals.
        covariance = to_residuals @ self.moments @ to_residuals.T * self.documents / (self.documents - 1)
        variances, axes = np.linalg.eigh(covariance)
        samples = np.random.default_rng(0).standard_normal((_N_SAMPLES, n_columns))
        errors = samples * np.sqrt(np.maximum(variances, 0.0)) @ axes.T
        quantiles = np.quantile(_differences(errors), _QUANTILE, axis=0)
        # Documents of unequal length are worth fewer of equal length (Kish 1965), and few widen the limits as in Student's t.
        n_effective = self.totals[-2] ** 2 / self.moments[-2, -2]
        tail = (1 + _QUANTILE) / 2
        return np.asarray(quantiles * t.ppf(tail, max(1.0, n_effective - 1)) / norm.ppf(tail))


@dataclass(frozen=True, eq=False)
class DriftProfile(Serializable):
    """Means over the fit documents, with which new documents are compared.

    documents (int): Number of documents with tokens. tokens, entities (float): Number of tokens, and of entities, in them; 0
        entities if fewer than MIN_DOCUMENTS documents have some. labels (tuple[str, ...]): The L labels that are compared one
        by one: the most frequent ones that occur in at least MIN_DOCUMENTS documents. The others are compared as one label.
    means (Floats): Mean raw and calibrated score, share of each label and of all others, mean raw score of entities, (L + 4,).
    chances (Floats): 99.5 % quantile of the difference that sampling alone causes, for each of the checks: of scores, labels,
        expected accuracy, entity scores, (4,). limits (Floats): The smallest difference that matters, for each check, (4,).
    """

    documents: int = saved_field(whole(MIN_DOCUMENTS))
    tokens: float = saved_field(number(1.0))
    entities: float = saved_field(number(0.0))
    labels: tuple[str, ...] = saved_field(tuple_of(text))
    means: Floats = saved_field(floats(0.0, 1.0))
    chances: Floats = saved_field(floats(0.0))
    limits: Floats = saved_field(floats(0.0))

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        """Return a sentence about fields (name -> value) whose lengths contradict each other, "" if none do."""
        return lengths({"means": len(fields["labels"]) + 4, "chances": 4, "limits": 4}, fields)

    @classmethod
    def from_units(cls, tokens: UnitScores, spans: UnitScores | None = None) -> DriftProfile | None:
        """Build the profile from out-of-fold scores of top labels and entities; None for fewer than MIN_DOCUMENTS documents."""
        if len(np.unique(tokens.documents)) < MIN_DOCUMENTS:
            return None
        if spans is not None and len(np.unique(spans.documents)) < MIN_DOCUMENTS:
            spans = None
        labels = _common_labels(tokens)
        table = _table(tokens, spans, labels)[np.unique(tokens.documents)]  # a row for each document with tokens
        sums = DriftSums.from_tables(table)
        expected_accuracy = sums.means[1]  # the mean calibrated score
        accuracy_limit = np.clip(_ERROR_SHARE * (1 - expected_accuracy), _MIN_ERROR_LIMIT, _MAX_ERROR_LIMIT)
        limits, chances = np.array([_SCORE_LIMIT, _LABEL_LIMIT, accuracy_limit, _ENTITY_LIMIT]), sums.chances()
        limits = _raised_limits(limits, chances, table, sums)
        numbers = (_rounded(values) for values in (sums.means, chances, limits))
        return cls(sums.documents, float(sums.totals[-2]), float(sums.totals[-1]), labels, *numbers)

    def sums_of(self, tokens: UnitScores, spans: UnitScores | None = None) -> DriftSums:
        """Sum the scores and labels of new documents, for `compare`. tokens, spans (UnitScores): Their tokens, and entities."""
        return DriftSums.from_tables(_table(tokens, spans if self.entities else None, self.labels))

    def compare(self, new: DriftSums) -> Drift:
        """Compare new documents with the fit data. new (DriftSums): From `sums_of`. Fewer than MIN_DOCUMENTS are TOO_FEW."""
        if new.documents < MIN_DOCUMENTS:
            return Drift(TOO_FEW)
        values = _differences(new.means - self.means)
        chances = np.hypot(self.chances, new.chances())  # the variances of fit data and new documents add up
        rows = zip(_CHECKS, values.tolist(), self.limits.tolist(), chances.tolist(), strict=True)
        checks = tuple(Check(*row) for row in rows)
        if not new.totals[-1]:  # the last check needs entities
            checks = checks[:-1]
        if any(check.differs for check in checks):
            return Drift(DIFFERENT, checks)
        return Drift(TOO_FEW if any(check.is_undecided for check in checks) else LIKE, checks)


def _common_labels(tokens: UnitScores) -> tuple[str, ...]:
    """Return the labels whose shares are saved, most frequent first. Labels of few documents are left out for privacy."""
    names, indices = np.unique(np.array(tokens.labels or (), dtype=str), return_inverse=True)
    counts = cross_sums(indices.reshape(-1), tokens.documents, (len(names), tokens.n_docs))  # by label and document
    is_common = (counts > 0).sum(axis=1) >= MIN_DOCUMENTS
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    chosen = order[is_common[order]][:_MAX_LABELS].tolist()
    while chosen:
        n_documents = np.count_nonzero(np.delete(counts, chosen, axis=0).sum(axis=0))  # documents with any of the other labels
        if n_documents == 0 or n_documents >= MIN_DOCUMENTS:  # then the joint share of the others, also saved, is private
            break
        chosen.pop()
    return tuple(str(names[i]) for i in chosen)


def _raised_limits(limits: Floats, chances: Floats, table: Floats, sums: DriftSums) -> Floats:
    """Return the limits, raised to differences between parts of the fit data if sampling does not explain these differences.

    limits, chances (Floats): As in DriftProfile, (4,). table (Floats): Result of `_table` for the fit data. sums: Its sums.
    """
    for part in np.array_split(np.arange(len(table)), _PARTS):
        of_part, of_rest = DriftSums.from_tables(table[part]), DriftSums.from_tables(np.delete(table, part, axis=0))
        if sums.totals[-1] and not (of_part.totals[-1] and of_rest.totals[-1]):
            continue  # only one of them has entities, so that their mean scores cannot be compared
        # Share of the units in this part, by check: three are about tokens, the last one about entities.
        share = (of_part.sizes / np.maximum(sums.sizes, 1))[[0, 0, 0, -1]]
        changes = _differences(of_part.means - of_rest.means)
        # The variances of both means, 1 / share and 1 / (1 - share) times that of all documents, add up.
        is_larger = changes > chances / np.sqrt(np.maximum(share * (1 - share), 1e-12))
        limits = np.where(is_larger, np.maximum(limits, changes), limits)
    return limits


def _table(tokens: UnitScores, spans: UnitScores | None, labels: Sequence[str]) -> Floats:
    """Return the columns that DriftSums describes, a row per document. spans: Entities. labels: Those to be counted singly."""
    n_docs, n_labels = tokens.n_docs, len(labels)
    column_by_label = {label: i for i, label in enumerate(labels)}
    label_columns = np.array([column_by_label.get(label, n_labels) for label in tokens.labels or ()], dtype=np.intp)
    label_counts = cross_sums(label_columns, tokens.documents, (n_labels + 1, n_docs))
    raw, calibrated = (sum_by(tokens.documents, scores, n_docs) for scores in (tokens.raw, tokens.calibrated))
    n_tokens = sum_by(tokens.documents, None, n_docs)
    raw_of_entities, n_entities = np.zeros(n_docs), np.zeros(n_docs)
    if spans is not None:
        raw_of_entities, n_entities = sum_by(spans.documents, spans.raw, n_docs), sum_by(spans.documents, None, n_docs)
    return np.stack([raw, calibrated, *label_counts, raw_of_entities, n_tokens, n_entities], axis=1)


def _differences(changes: Floats) -> Floats:
    """Return the absolute difference by check, (..., 4), for changes of K means, (..., K): for labels the total variation."""
    raw, calibrated, labels, entities = np.split(np.abs(changes), [1, 2, -1], axis=-1)
    return np.concatenate([raw, labels.sum(axis=-1, keepdims=True) / 2, calibrated, entities], axis=-1)


def _rounded(values: Floats) -> Floats:
    """Round to _DIGITS significant digits. By exact numbers anybody who guesses the texts of a fit could confirm the guess."""
    return np.array([float(f"{value:.{_DIGITS}g}") for value in values])
