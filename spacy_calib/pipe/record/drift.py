"""Compares new documents with the fit data of a pipe: by scores, labels and expected accuracy.

A profile of the fit data holds means over all documents and their variances, never a value of one document: scores of a short
text would betray it to anybody who guesses texts and scores the guesses.
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
# The component has other weights than at the fit.
OTHER_WEIGHTS = "fitted with other weights"
OTHER_WEIGHTS_SENTENCE = (
    "OTHER WEIGHTS: the component was trained or replaced after the fit, so the calibration belongs to its former scores. "
    "Fit the pipe again."
)

# Fewer documents are not compared, as their means are not normally distributed. A mean over fewer is not saved either.
MIN_DOCUMENTS = 20
# Differences that matter: of the mean score, of the labels of tokens, of the mean score of entities (fewer, and more varied).
_SCORE_LIMIT, _LABEL_LIMIT, _ENTITY_LIMIT = 0.05, 0.05, 0.1
# A difference of expected accuracy that matters: this share of the fit data's error rate, within these bounds.
_ERROR_SHARE, _MIN_ERROR_LIMIT, _MAX_ERROR_LIMIT = 0.25, 0.005, 0.02
# If sampling alone causes differences this many times larger than one that matters, that one would be hidden.
MAX_NOISE_RATIO = 2.0
# Maximum number of labels with a share of their own; significant digits of what is saved.
_MAX_LABELS, _DIGITS = 30, 4
# Number of consecutive parts of the fit data, whose differences raise the limits.
_PARTS = 5
# Number of samples of normal differences, and the quantile of these that chance explains.
_N_SAMPLES, _QUANTILE = 10_000, 0.99
# Names of the checks, in the order of all arrays, and columns of a profile with the numbers of tokens or entities of each.
_CHECKS, _SIZES = ("scores", "labels", "expected accuracy", "entity scores"), [0, 0, 0, -1]


@dataclass(frozen=True)
class UnitScores:
    """Scores of n tokens or entities of n_docs documents.

    documents (Ints): Document of each, in [0, n_docs). labels (Sequence[str] | None): Label of each; None for entities.
    raw, calibrated (Floats): Score of each.
    """

    documents: Ints
    n_docs: int
    labels: Sequence[str] | None
    raw: Floats
    calibrated: Floats

    @classmethod
    def from_tokens(cls, corpus: ScoredCorpus, labels: Sequence[str]) -> UnitScores:
        """Select the tokens that count (`is_counted`). labels (Sequence[str]): Of the source; for lemmas perhaps edit trees."""
        rows = np.flatnonzero(corpus.is_counted)
        entries = np.flatnonzero(corpus.tags == corpus.labels[corpus.rows])
        # Of several edit trees that yield one lemma, the most probable overwrites the others.
        entries = entries[np.argsort(corpus.tag_raw[entries], kind="stable")]
        columns = np.full(len(corpus), -1)
        columns[corpus.rows[entries]] = corpus.columns[entries]
        pairs = zip(columns[rows].tolist(), corpus.labels[rows].tolist(), strict=True)
        names = [labels[column] if column >= 0 else corpus.names[label] for column, label in pairs]
        return cls(corpus.documents[rows], corpus.n_documents, names, corpus.raw[rows], corpus.calibrated[rows])

    @classmethod
    def from_spans(cls, corpus: ScoredCorpus) -> UnitScores:
        documents = corpus.documents_of(corpus.spans.docs)
        return cls(documents, corpus.n_documents, None, corpus.spans.raw, corpus.spans.calibrated)

    def take(self, index: Ints) -> UnitScores:
        """Select by index; n_docs stays."""
        labels = None if self.labels is None else [self.labels[i] for i in index.tolist()]
        return UnitScores(self.documents[index], self.n_docs, labels, self.raw[index], self.calibrated[index])

    def of_documents(self, documents: Ints) -> UnitScores:
        """Select documents, by ascending index, and renumber them from 0."""
        subset = self.take(np.flatnonzero(np.isin(self.documents, documents)))
        return replace(subset, documents=np.searchsorted(documents, subset.documents), n_docs=len(documents))


@dataclass(frozen=True)
class Check:
    """One comparison with the fit data: "scores", "labels", "expected accuracy" or "entity scores".

    value (float): The difference. limit (float): The smallest difference that matters. chance (float): 99 % quantile of the
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
        """Whether sampling alone may explain a difference that matters, or hide one."""
        return self.limit < self.value <= self.chance or self.chance > MAX_NOISE_RATIO * self.limit


@dataclass(frozen=True)
class Drift:
    """Verdict on new documents: LIKE, DIFFERENT, TOO_FEW or OTHER_WEIGHTS. checks (tuple): () if they are not compared."""

    verdict: str
    checks: tuple[Check, ...] = ()

    @property
    def is_trusted(self) -> bool:
        """Whether expected accuracies hold, since the new documents are like the fit data."""
        return self.verdict == LIKE


@dataclass(frozen=True, eq=False)
class DriftSums(FieldwiseSum):
    """Sums over new documents, in the columns of a profile. documents (int): Number of documents with tokens.

    sums, sizes (Floats): Sums of the values, and of the tokens or entities that have them, shape (K,).
    """

    documents: int
    sums: Floats
    sizes: Floats


@dataclass(frozen=True, eq=False)
class DriftProfile(Serializable):
    """Means over the fit documents, with which new documents are compared.

    documents (int): Number of documents with tokens. tokens, entities (float): Their numbers; no
        entities if fewer than MIN_DOCUMENTS documents have some.
    labels (tuple[str, ...]): The L labels with a share of their own: the most frequent of MIN_DOCUMENTS documents or more.
    means (Floats): Mean raw and calibrated score, share of each label and of all others, mean raw score of entities, (K,).
    chances (Floats): 99 % quantile of each check's difference between these means and those of their source, (4,).
    limits (Floats): As in Check, (4,).
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
        """Return a sentence about arrays whose lengths contradict each other, "" if none do."""
        return lengths({"means": len(fields["labels"]) + 4, "chances": 4, "limits": 4}, fields)

    @classmethod
    def from_units(cls, tokens: UnitScores, spans: UnitScores | None = None) -> DriftProfile | None:
        """Build the profile from out-of-fold scores of the fit data; None for fewer than MIN_DOCUMENTS documents with tokens.

        spans (UnitScores | None): Entities, without labels.
        """
        has_tokens = np.bincount(tokens.documents, minlength=tokens.n_docs) > 0
        n = int(has_tokens.sum())
        if n < MIN_DOCUMENTS:
            return None
        if spans is not None and len(np.unique(spans.documents)) < MIN_DOCUMENTS:
            spans = None
        labels = _common_labels(tokens)
        values, sizes = (table[has_tokens] for table in _tables(tokens, spans, labels))
        totals = sizes.sum(axis=0)
        divisors = np.maximum(totals, 1)  # without entities no division by 0
        means = values.sum(axis=0) / divisors
        residuals = (values - means * sizes) / divisors
        scales, axes = np.linalg.eigh(residuals.T @ residuals * n / (n - 1))
        noise = np.random.default_rng(0).standard_normal((_N_SAMPLES, len(means))) * np.sqrt(np.maximum(scales, 0.0)) @ axes.T
        chances = np.quantile(_differences(noise, len(labels)), _QUANTILE, axis=0)
        accuracy_limit = np.clip(_ERROR_SHARE * (1 - means[1]), _MIN_ERROR_LIMIT, _MAX_ERROR_LIMIT)
        limits = np.array([_SCORE_LIMIT, _LABEL_LIMIT, accuracy_limit, _ENTITY_LIMIT])
        for part in np.array_split(np.arange(n), _PARTS):
            share = sizes[part].sum(axis=0) / divisors
            share = np.where((share > 0) & (share < 1), share, np.nan)
            # The part's mean minus that of the rest.
            changes = _differences((values[part].sum(axis=0) / divisors / share - means) / (1 - share), len(labels))
            is_larger = changes > chances / np.sqrt(share * (1 - share))[_SIZES]
            limits = np.where(is_larger, np.maximum(limits, changes), limits)
        return cls(n, float(totals[0]), float(totals[-1]), labels, _rounded(means), _rounded(chances), _rounded(limits))

    def sums_of(self, tokens: UnitScores, spans: UnitScores | None = None) -> DriftSums:
        """Return the sums over new documents that a comparison needs."""
        values, sizes = _tables(tokens, spans if self.entities else None, self.labels)
        return DriftSums(len(np.unique(tokens.documents)), values.sum(axis=0), sizes.sum(axis=0))

    def compare(self, new: DriftSums) -> Drift:
        """Compare new documents with the fit data; fewer than MIN_DOCUMENTS are not compared."""
        if new.documents < MIN_DOCUMENTS:
            return Drift(TOO_FEW)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = _differences(new.sums / new.sizes - self.means, len(self.labels))
            # The fit documents that are as informative as the new ones: as many, but with no more tokens or entities.
            shares = new.sizes[_SIZES] / [*[self.tokens] * 3, self.entities]
            chances = self.chances * np.sqrt(1 + 1 / np.minimum(new.documents / self.documents, shares))
        rows = zip(_CHECKS, values.tolist(), self.limits.tolist(), chances.tolist(), strict=True)
        checks = tuple(Check(*row) for row in rows if not np.isnan(row[1]))
        is_undecided = any(check.is_undecided for check in checks)
        verdict = DIFFERENT if any(check.differs for check in checks) else TOO_FEW if is_undecided else LIKE
        return Drift(verdict, checks)


def _common_labels(tokens: UnitScores) -> tuple[str, ...]:
    """Return the labels with a share of their own: those that a few documents have would tell of these, so they are pooled."""
    names, columns = np.unique(np.array(tokens.labels or (), dtype=str), return_inverse=True)
    columns = columns.reshape(-1)
    counts = cross_sums(columns, tokens.documents, (len(names), tokens.n_docs))
    has_many = (counts > 0).sum(axis=1) >= MIN_DOCUMENTS
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    kept = order[has_many[order]][:_MAX_LABELS].tolist()
    # All others together must not be those of a few documents either.
    while kept and 0 < (np.delete(counts, kept, axis=0).sum(axis=0) > 0).sum() < MIN_DOCUMENTS:
        kept.pop()
    return tuple(str(names[i]) for i in kept)


def _tables(tokens: UnitScores, spans: UnitScores | None, labels: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the sums of each document's values, and its numbers of tokens or entities, both of shape (n_docs, K)."""
    n_docs, n_labels = tokens.n_docs, len(labels)
    column_by_label = {label: i for i, label in enumerate(labels)}
    columns = np.array([column_by_label.get(label, n_labels) for label in tokens.labels or ()], dtype=np.intp)
    scores = [sum_by(tokens.documents, values, n_docs) for values in (tokens.raw, tokens.calibrated)]
    documents, raw = ((), ()) if spans is None else (spans.documents, spans.raw)
    entities = [sum_by(np.asarray(documents, dtype=np.intp), values, n_docs) for values in (raw, None)]
    values = [*scores, *cross_sums(columns, tokens.documents, (n_labels + 1, n_docs)), entities[0]]
    sizes = [*[sum_by(tokens.documents, None, n_docs)] * (n_labels + 3), entities[1]]
    return np.stack(values, axis=1), np.stack(sizes, axis=1)


def _differences(changes: Floats, n_labels: int) -> Floats:
    """Return the difference of each check, shape (..., 4), from changes of the means, (..., K); of labels the total variation."""
    raw, calibrated, labels, entities = np.split(np.abs(changes), [1, 2, 3 + n_labels], axis=-1)
    return np.concatenate([raw, labels.sum(axis=-1, keepdims=True) / 2, calibrated, entities], axis=-1)


def _rounded(values: Floats) -> Floats:
    """Round to _DIGITS significant digits: exact sums would betray which guessed texts they are the sums of."""
    return np.array([float(f"{value:.{_DIGITS}g}") for value in values])
