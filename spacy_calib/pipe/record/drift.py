"""Compares new documents with the fit data of a pipe: by scores, labels and expected accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...pairs.bins import assign
from ...pairs.scored_corpus import ScoredCorpus
from ...schema import Serializable, floats, lengths, saved_field, text, tuple_of, whole
from ...types import FieldwiseSum, Floats, Ints
from .estimates import cross_sums, sum_by

LIKE, DIFFERENT, TOO_FEW = "like the fit data", "differs from the fit data", "too few texts to tell"
# The component has other weights than at the fit.
OTHER_WEIGHTS = "fitted with other weights"
OTHER_WEIGHTS_SENTENCE = (
    "OTHER WEIGHTS: the component was trained or replaced after the fit, so the calibration belongs to its former scores. "
    "Fit the pipe again."
)

# A difference of scores or labels that matters: one token in twenty. It also bounds the change of the mean of any quantity in
# [0, 1] that rises with the score.
_LIMIT = 0.05
# The same for entities, which are fewer and have scores that vary more.
_ENTITY_LIMIT = 0.1
# A difference of expected accuracy that matters: this share of the fit data's error rate, within these bounds.
_ERROR_SHARE, _MIN_ERROR_LIMIT, _MAX_ERROR_LIMIT = 0.25, 0.005, 0.02
# Maximum number of documents in a profile; bins of their scores; maximum number of labels with a column of their own.
_MAX_DOCS, _BINS, _MAX_LABELS = 1000, 20, 30
# Number of samples that simulate the differences between documents of one source, and the quantile of these.
_N_SAMPLES, _NOISE_QUANTILE = 500, 0.99
# If sampling alone causes differences this many times larger than one that matters, that one would be hidden.
MAX_NOISE_RATIO = 2.0
# Number of consecutive parts of the fit data, whose differences raise the limits.
_PARTS = 5
# Long documents, if they are few (at least _MIN_FEW, fewer than _MAX_FEW), are replaced by stretches of this many tokens.
_MIN_FEW, _MAX_FEW, _STRETCH_LENGTH = 10, 100, 100


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
        differences that sampling alone causes, with as many fit documents as there are new ones.
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
    """Verdict on new documents: LIKE, DIFFERENT, TOO_FEW or OTHER_WEIGHTS. stretch (int): As in DriftProfile."""

    verdict: str
    checks: tuple[Check, ...]
    stretch: int = 0

    @property
    def is_trusted(self) -> bool:
        """Whether expected accuracies hold, since the new documents are like the fit data."""
        return self.verdict == LIKE


def totals(tables: dict[str, Floats], weights: Any) -> dict[str, Floats]:
    """Sum each table over documents, with weights of shape (n_weightings, n_documents)."""
    return {name: weights @ table for name, table in tables.items()}


@dataclass(frozen=True)
class DriftSums(FieldwiseSum):
    """Sums over new documents. totals (dict): Column sums of `DriftProfile.tables`. documents, tokens (int): Their numbers.

    stretch_sums (DriftSums | None): The same with documents cut into stretches; None if there are many documents.
    """

    totals: dict[str, Floats]
    documents: int
    tokens: int
    stretch_sums: DriftSums | None = None

    @classmethod
    def from_tables(cls, tables: dict[str, Floats], tokens: int, stretch_sums: DriftSums | None = None) -> DriftSums:
        """Sum the tables of some documents. tokens (int): Number of their tokens."""
        with_tokens = int((tables["scores"].sum(axis=1) > 0).sum())
        return cls(totals(tables, np.ones((1, len(tables["scores"])))), with_tokens, tokens, stretch_sums)


@dataclass(frozen=True, eq=False)
class DriftProfile(Serializable):
    """Counts in D fit documents, with which new documents are compared; an even selection if there are more than _MAX_DOCS.

    edges (Floats): Edges of the bins of raw scores. labels (tuple[str, ...]): The most frequent labels.
    scores (Floats): Tokens of each document in each bin, shape (D, n_bins). label_counts (Floats): Tokens with each label, in
        the last column with any other one, (D, n_labels + 1). calibrated (Floats): Sum of the calibrated scores, (D,).
    span_edges, spans (Floats): The same as `edges` and `scores`, of entities.
    stretch (int): Length of the stretches of tokens that few and long documents are cut into; 0 if they are whole.
    """

    edges: Floats = saved_field(floats(0.0, 1.0, rising="rises"))
    labels: tuple[str, ...] = saved_field(tuple_of(text))
    scores: Floats = saved_field(floats(0.0, ndim=2))
    label_counts: Floats = saved_field(floats(0.0, ndim=2))
    calibrated: Floats = saved_field(floats(0.0))
    span_edges: Floats = saved_field(floats(0.0, 1.0, rising="rises"))
    spans: Floats = saved_field(floats(0.0, ndim=2))
    stretch: int = saved_field(whole(), 0)

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        """Return a sentence about arrays whose lengths contradict each other, "" if none do."""
        n, bins = len(fields["calibrated"]), len(fields["span_edges"])
        sizes = {
            "scores": (n, len(fields["edges"]) + 1),
            "label_counts": (n, len(fields["labels"]) + 1),
            "spans": (n, bins + 1 if bins else 0),
        }
        without_tokens = not n or fields["scores"].sum(axis=1).min() <= 0
        return lengths(sizes, fields) or ("a document has no tokens" if without_tokens else "")

    @classmethod
    def from_units(cls, tokens: UnitScores, spans: UnitScores | None = None) -> DriftProfile:
        """Build the profile from out-of-fold scores of the fit data. spans (UnitScores | None): Entities, without labels."""
        long = few_and_long(len(np.unique(tokens.documents)), len(tokens.raw), _STRETCH_LENGTH)
        stretch = _STRETCH_LENGTH if long else 0
        if stretch:
            tokens, spans = _in_stretches(tokens, spans, stretch)
        names, counts = np.unique(np.array(tokens.labels or (), dtype=str), return_counts=True)
        labels = tuple(str(name) for name in names[np.argsort(-counts, kind="stable")][:_MAX_LABELS])
        # Distinct edges of bins of about equal counts.
        edges, span_edges = (
            np.unique(np.quantile(units.raw, np.linspace(0, 1, _BINS + 1)[1:-1]))
            if units is not None and len(units.raw)
            else np.zeros(0)
            for units in (tokens, spans)
        )
        profile = cls(edges, labels, *(np.zeros((0, 0)),) * 2, np.zeros(0), span_edges, np.zeros((0, 0)))
        table = profile.tables(tokens, spans)
        with_tokens = np.flatnonzero(table["scores"].sum(axis=1) > 0)
        index = with_tokens[np.unique(np.linspace(0, len(with_tokens) - 1, min(len(with_tokens), _MAX_DOCS)).astype(np.intp))]
        return cls(edges, labels, span_edges=span_edges, stretch=stretch, **{name: table[name][index] for name in table})

    def tables(self, tokens: UnitScores, spans: UnitScores | None) -> dict[str, Floats]:
        """Return the table of each attribute, with a row for each document."""
        n_docs = tokens.n_docs
        names, of_token = np.unique(np.array(tokens.labels or (), dtype=str), return_inverse=True)
        column = {label: i for i, label in enumerate(self.labels)}
        columns = np.array([column.get(str(name), len(self.labels)) for name in names], dtype=np.intp)[of_token.reshape(-1)]
        spans_by_bin = np.zeros((n_docs, 0))
        if spans is not None and len(self.span_edges):
            shape = (n_docs, len(self.span_edges) + 1)
            spans_by_bin = cross_sums(spans.documents, assign(spans.raw, self.span_edges), shape)
        return {
            "scores": cross_sums(tokens.documents, assign(tokens.raw, self.edges), (n_docs, len(self.edges) + 1)),
            "label_counts": cross_sums(tokens.documents, columns, (n_docs, len(self.labels) + 1)),
            "calibrated": sum_by(tokens.documents, tokens.calibrated, n_docs),
            "spans": spans_by_bin,
        }

    def compare(self, tokens: UnitScores, spans: UnitScores | None = None, seed: int = 0) -> Drift:
        """Compare new documents with the fit data. seed (int): Seed of the simulated sampling."""
        return self.compare_sums(self.sums_of(tokens, spans), seed)

    def sums_of(self, tokens: UnitScores, spans: UnitScores | None = None) -> DriftSums:
        """Return the sums over new documents that a comparison needs."""
        stretch_sums = None
        if len(np.unique(tokens.documents)) < _MAX_FEW:
            stretch_sums = DriftSums.from_tables(self.tables(*_in_stretches(tokens, spans, self.mean_length)), len(tokens.raw))
        return DriftSums.from_tables(self.tables(tokens, spans), len(tokens.raw), stretch_sums)

    def compare_sums(self, new: DriftSums, seed: int = 0) -> Drift:
        """Compare the sums over new documents with the fit data. seed (int): Seed of the simulated sampling."""
        mean_length, stretch = self.mean_length, self.stretch
        if new.stretch_sums is not None and few_and_long(new.documents, new.tokens, mean_length):
            new, stretch = new.stretch_sums, mean_length
        noise = self._sampling_noise(self.fit_tables, self.n_equivalent(new.documents, float(new.tokens)), seed)
        checks = self.checks(new.totals, self.limits(seed), noise)
        is_undecided = any(check.is_undecided for check in checks)
        verdict = DIFFERENT if any(check.differs for check in checks) else TOO_FEW if is_undecided else LIKE
        return Drift(verdict, checks, stretch)

    def checks(self, new: dict[str, Floats], limits: dict[str, float], noise: dict[str, float]) -> tuple[Check, ...]:
        """Return each comparison with the new documents, whose column sums are in `new`."""
        values_by_name = differences(new, totals(self.fit_tables, np.ones((1, len(self.scores)))))
        values = ((name, float(value[0])) for name, value in values_by_name.items())
        return tuple(Check(name, value, limits[name], noise[name]) for name, value in values if not np.isnan(value))

    @property
    def fit_tables(self) -> dict[str, Floats]:
        """Tables of the fit documents, by attribute."""
        return {name: getattr(self, name) for name in ("scores", "label_counts", "calibrated", "spans")}

    @property
    def mean_length(self) -> int:
        """Mean number of tokens of a fit document, rounded up."""
        return int(np.ceil(self.scores.sum() / len(self.scores)))

    def n_equivalent(self, documents: int, tokens: float) -> int:
        """Return the number of fit documents that are as informative as the new ones: as many, but with no more tokens."""
        return max(1, min(documents, int(np.ceil(tokens / (self.scores.sum() / len(self.scores))))))

    def _sampling_noise(self, fit: dict[str, Floats], worth: int, seed: int) -> dict[str, float]:
        """Return, by check, the quantile of simulated differences between `worth` fit documents and resampled fit data."""
        rng = np.random.default_rng(seed)
        n = len(self.scores)
        even = np.full(n, 1 / n)
        sampled_differences = differences(
            totals(fit, rng.multinomial(worth, even, size=_N_SAMPLES)), totals(fit, rng.multinomial(n, even, size=_N_SAMPLES))
        )
        return {
            name: float(np.quantile(np.nan_to_num(values, nan=1.0), _NOISE_QUANTILE))
            for name, values in sampled_differences.items()
        }

    def limits(self, seed: int = 0) -> dict[str, float]:
        """Return the smallest difference that matters, by check; larger if parts of the fit data themselves differ by more."""
        fit, n = self.fit_tables, len(self.scores)
        part = np.arange(n) * _PARTS // n
        in_part = (part == np.arange(_PARTS)[:, None]).astype(float)
        in_part = in_part[(in_part.sum(axis=1) > 0) & (in_part.sum(axis=1) < n)]
        part_differences = differences(totals(fit, in_part), totals(fit, 1 - in_part))
        errors = 1 - fit["calibrated"].sum() / fit["scores"].sum()
        accuracy_limit = float(np.clip(_ERROR_SHARE * errors, _MIN_ERROR_LIMIT, _MAX_ERROR_LIMIT))
        matters = {"scores": _LIMIT, "labels": _LIMIT, "expected accuracy": accuracy_limit, "entity scores": _ENTITY_LIMIT}
        noise = self._sampling_noise(fit, max(1, n // _PARTS), seed)
        between_parts = {name: float(np.nanmax(values, initial=0.0)) for name, values in part_differences.items()}
        return {
            name: max(matters[name], between_parts[name] if between_parts[name] > noise[name] else 0.0)
            for name in part_differences
        }

    def state(self) -> dict[str, Any]:
        """Return the saved fields, with counts in float32: half the size."""
        counts = {name: getattr(self, name).astype(np.float32) for name in ("scores", "label_counts", "spans")}
        return super().state() | counts


def few_and_long(documents: int, tokens: int, stretch: int) -> bool:
    """Return whether documents are few, but enough to compare, and on average at least two stretches long."""
    return _MIN_FEW <= documents < _MAX_FEW and tokens >= 2 * stretch * documents


def _in_stretches(tokens: UnitScores, spans: UnitScores | None, stretch: int) -> tuple[UnitScores, UnitScores | None]:
    """Replace documents by stretches of `stretch` tokens. An entity's position is its index among the document's entities."""
    sizes = np.bincount(tokens.documents, minlength=tokens.n_docs)
    parts = np.maximum(1, sizes // stretch)
    first = np.cumsum(parts) - parts
    n = int(parts.sum())

    def cut(units: UnitScores) -> UnitScores:
        """Return the units with long documents cut into stretches of equal length."""
        order = np.argsort(units.documents, kind="stable")
        document = units.documents[order]
        begins = np.searchsorted(document, document)
        offset = (np.arange(len(order)) - begins) * parts[document] // np.bincount(document, minlength=tokens.n_docs)[document]
        stretches = np.empty(len(order), dtype=np.intp)
        stretches[order] = first[document] + offset
        return replace(units, documents=stretches, n_docs=n)

    return cut(tokens), None if spans is None else cut(spans)


def differences(a: dict[str, Floats], b: dict[str, Floats]) -> dict[str, Floats]:
    """Return the differences between the totals of two sets of documents; NaN for an empty set.

    "scores", "entity scores": Kolmogorov-Smirnov distance. "labels": total variation distance.
    "expected accuracy": difference of the mean calibrated scores.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = {
            name: (a[name] / a[name].sum(axis=1, keepdims=True), b[name] / b[name].sum(axis=1, keepdims=True))
            for name in ("scores", "label_counts", "spans")
        }
        means = [totals["calibrated"] / totals["scores"].sum(axis=1) for totals in (a, b)]
    by_name = {
        "scores": _kolmogorov_smirnov(*shares["scores"]),
        "labels": np.abs(shares["label_counts"][0] - shares["label_counts"][1]).sum(axis=1) / 2,
        "expected accuracy": np.abs(means[0] - means[1]),
    }
    if a["spans"].shape[1]:
        by_name["entity scores"] = _kolmogorov_smirnov(*shares["spans"])
    return by_name


def _kolmogorov_smirnov(a: Floats, b: Floats) -> Floats:
    return np.abs(np.cumsum(a - b, axis=1)).max(axis=1)
