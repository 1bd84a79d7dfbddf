"""Compares new documents with those that a pipe was fitted on: by scores, labels and expected accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...pairs.bins import assign
from ...pairs.scored_corpus import ScoredCorpus
from ...schema import Saved, floats, kept, lengths, several, text, whole
from ...types import Adds, Floats, Ints
from .estimates import cross_sums, sum_by

LIKE, DIFFERENT, TOO_FEW = "like the fit data", "differs from the fit data", "too few texts to tell"
# The scores come from another model than those of the fit.
OTHER_WEIGHTS = "fitted with other weights"
OTHER_WEIGHTS_SENTENCE = (
    "OTHER WEIGHTS: the component was trained, or replaced, since the pipe was fitted, so that the maps belong to scores that it gave "
    "before. Fit the pipe again."
)

# A difference that matters: one token in twenty moves on the scale of scores, or gets another label. The mean of a
# quantity in [0, 1] that rises with the score cannot move by more.
_MATTERS = 0.05
# Entities are fewer, with scores more spread out.
_MATTERS_ENTITIES = 0.1
# A difference of expected accuracy that matters: this share of the fit data's error rate, within these bounds.
_ERRORS, _LEAST, _MOST = 0.25, 0.005, 0.02
# At most so many documents of the fit data are kept; bins of their scores; labels counted each by itself.
_MOST_DOCS, _BINS, _LABELS = 1000, 20, 30
# Documents of one source differ by chance: this quantile of the differences of so many draws.
_DRAWS, _CHANCE = 500, 0.99
# If chance alone makes differences this many times larger than one that matters, that one would not be seen.
BLIND = 2.0
# The fit data in order is cut into so many parts, to see how much they differ.
_PARTS = 5
# Where documents are few (from the first number on, below the second) and long, stretches of so many tokens replace them.
_FEW_FROM, _FEW, _STRETCH = 10, 100, 100


@dataclass(frozen=True)
class Labelled:
    """n tokens or entities: documents (Ints): Of each, from 0 to n_docs - 1. labels (Sequence[str] | None): Of each."""

    documents: Ints
    n_docs: int
    labels: Sequence[str] | None
    raw: Floats
    calibrated: Floats

    @classmethod
    def from_tokens(cls, corpus: ScoredCorpus, labels: Sequence[str]) -> Labelled:
        """Take the counted tokens. labels (Sequence[str]): Of the source, which may be edit trees, not the lemmas they give."""
        places = np.flatnonzero(corpus.is_counted)
        entries = np.flatnonzero(corpus.tags == corpus.labels[corpus.rows])
        entries = entries[np.argsort(corpus.tag_raw[entries], kind="stable")]  # of trees that give one lemma the likeliest
        columns = np.full(len(corpus), -1)
        columns[corpus.rows[entries]] = corpus.columns[entries]
        pairs = zip(columns[places].tolist(), corpus.labels[places].tolist(), strict=True)
        names = [labels[column] if column >= 0 else corpus.names[label] for column, label in pairs]
        return cls(corpus.documents[places], corpus.n_documents, names, corpus.raw[places], corpus.calibrated[places])

    @classmethod
    def from_spans(cls, corpus: ScoredCorpus) -> Labelled:
        """Take the entities."""
        documents = corpus.documents_of(corpus.spans.docs)
        return cls(documents, corpus.n_documents, None, corpus.spans.raw, corpus.spans.calibrated)

    def take(self, index: Ints) -> Labelled:
        """Select by index; D stays."""
        labels = None if self.labels is None else [self.labels[i] for i in index.tolist()]
        return Labelled(self.documents[index], self.n_docs, labels, self.raw[index], self.calibrated[index])

    def of_documents(self, documents: Ints) -> Labelled:
        """Select documents, ascending, and number them anew."""
        subset = self.take(np.flatnonzero(np.isin(self.documents, documents)))
        return replace(subset, documents=np.searchsorted(documents, subset.documents), n_docs=len(documents))


@dataclass(frozen=True)
class Check:
    """One comparison of the new documents with the fit data.

    name (str): "scores", "labels", "expected accuracy" or "entity scores". value (float): Difference. limit (float): Smallest
    that matters. chance (float): The 99 % quantile for as many fit documents.
    """

    name: str
    value: float
    limit: float
    chance: float

    @property
    def differs(self) -> bool:
        """Whether the difference matters and is more than chance."""
        return self.value > max(self.limit, self.chance)

    @property
    def undecided(self) -> bool:
        """Whether chance may explain a difference that matters, or may hide one."""
        return self.limit < self.value <= self.chance or self.chance > BLIND * self.limit


@dataclass(frozen=True)
class Drift:
    """verdict (str): LIKE, DIFFERENT, TOO_FEW or OTHER_WEIGHTS. stretch (int): Tokens of each stretch; 0 for documents."""

    verdict: str
    checks: tuple[Check, ...]
    stretch: int = 0

    @property
    def trusted(self) -> bool:
        """Whether expectations hold, as the new documents are like the fit data."""
        return self.verdict == LIKE


def totals(tables: dict[str, Floats], weights: Any) -> dict[str, Floats]:
    """Sum each table over documents, with weights of shape (n_weightings, n_documents)."""
    return {name: weights @ table for name, table in tables.items()}


@dataclass(frozen=True)
class DriftSums(Adds):
    """The sums over new documents that are compared.

    totals (dict): Tables of `DriftProfile.tables`, summed. stretched (DriftSums | None): The same for stretches; None for too
    many documents.
    """

    totals: dict[str, Floats]
    documents: int
    tokens: int
    stretched: DriftSums | None = None

    @classmethod
    def of(cls, tables: dict[str, Floats], tokens: int, stretched: DriftSums | None = None) -> DriftSums:
        """Sum some documents. tokens (int): In all of them."""
        with_tokens = int((tables["scores"].sum(axis=1) > 0).sum())
        return cls(totals(tables, np.ones((1, len(tables["scores"])))), with_tokens, tokens, stretched)


@dataclass(frozen=True, eq=False)
class DriftProfile(Saved):
    """The fit data for comparisons: D documents, evenly picked, at most _MOST_DOCS.

    edges (Floats): Of the bins of raw scores. labels (tuple[str, ...]): The most frequent; the others share a last column.
    scores, label_counts (Floats): Tokens of each document by bin and by label. calibrated (Floats): Sum of calibrated scores.
    span_edges, spans (Floats): Bins of raw scores of entities. stretch (int): Tokens of each stretch that replaces few and long
    documents; 0 for documents.
    """

    edges: Floats = kept(floats(0.0, 1.0, rising="rises"))
    labels: tuple[str, ...] = kept(several(text))
    scores: Floats = kept(floats(0.0, ndim=2))
    label_counts: Floats = kept(floats(0.0, ndim=2))
    calibrated: Floats = kept(floats(0.0))
    span_edges: Floats = kept(floats(0.0, 1.0, rising="rises"))
    spans: Floats = kept(floats(0.0, ndim=2))
    stretch: int = kept(whole(), 0)

    @classmethod
    def agree(cls, fields: dict[str, Any]) -> str:
        n, bins = len(fields["calibrated"]), len(fields["span_edges"])
        sizes = {
            "scores": (n, len(fields["edges"]) + 1),
            "label_counts": (n, len(fields["labels"]) + 1),
            "spans": (n, bins + 1 if bins else 0),
        }
        wrong = lengths(sizes, fields)
        if not wrong and (not n or fields["scores"].sum(axis=1).min() <= 0):
            wrong = "a document has no tokens"
        return wrong

    @classmethod
    def of(cls, tokens: Labelled, spans: Labelled | None = None) -> DriftProfile:
        """tokens, spans (Labelled): The fit data, calibrated by maps that did not see a document; spans: no labels."""
        long = few_and_long(len(np.unique(tokens.documents)), len(tokens.raw), _STRETCH)
        stretch = _STRETCH if long else 0
        if stretch:
            tokens, spans = _in_stretches(tokens, spans, stretch)
        names, counts = np.unique(np.array(tokens.labels or (), dtype=str), return_counts=True)
        labels = tuple(str(name) for name in names[np.argsort(-counts, kind="stable")][:_LABELS])
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
        index = with_tokens[np.unique(np.linspace(0, len(with_tokens) - 1, min(len(with_tokens), _MOST_DOCS)).astype(np.intp))]
        return cls(edges, labels, span_edges=span_edges, stretch=stretch, **{name: table[name][index] for name in table})

    def tables(self, tokens: Labelled, spans: Labelled | None) -> dict[str, Floats]:
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

    def compare(self, tokens: Labelled, spans: Labelled | None = None, seed: int = 0) -> Drift:
        """Return the verdict on new documents, see `judge`."""
        return self.judge(self.sums_of(tokens, spans), seed)

    def sums_of(self, tokens: Labelled, spans: Labelled | None = None) -> DriftSums:
        """Return the sums that the verdict on new documents needs."""
        stretch_sums = None
        if len(np.unique(tokens.documents)) < _FEW:
            stretch_sums = DriftSums.of(self.tables(*_in_stretches(tokens, spans, self.usual)), len(tokens.raw))
        return DriftSums.of(self.tables(tokens, spans), len(tokens.raw), stretch_sums)

    def judge(self, new: DriftSums, seed: int = 0) -> Drift:
        """Return the verdict on new documents. seed (int): Of the simulated chance differences."""
        usual_length, stretch = self.usual, self.stretch
        if new.stretched is not None and few_and_long(new.documents, new.tokens, usual_length):
            new, stretch = new.stretched, usual_length
        chance = self._chance(self.held, self.worth(new.documents, float(new.tokens)), seed)
        checks = self.checks(new.totals, self.limits(seed), chance)
        is_undecided = any(check.undecided for check in checks)
        verdict = DIFFERENT if any(check.differs for check in checks) else TOO_FEW if is_undecided else LIKE
        return Drift(verdict, checks, stretch)

    def checks(self, new: dict[str, Floats], limits: dict[str, float], chance: dict[str, float]) -> tuple[Check, ...]:
        """Return the comparisons with new documents, whose tables are summed in `new`."""
        values_by_name = differences(new, totals(self.held, np.ones((1, len(self.scores)))))
        values = ((name, float(value[0])) for name, value in values_by_name.items())
        return tuple(Check(name, value, limits[name], chance[name]) for name, value in values if not np.isnan(value))

    @property
    def held(self) -> dict[str, Floats]:
        """The tables of the fit documents, by attribute."""
        return {name: getattr(self, name) for name in ("scores", "label_counts", "calibrated", "spans")}

    @property
    def usual(self) -> int:
        """Mean number of tokens in a document of the fit data, rounded up."""
        return int(np.ceil(self.scores.sum() / len(self.scores)))

    def worth(self, documents: int, tokens: float) -> int:
        """Return how many fit documents are as informative as so many new ones: as many, but with no more tokens in all."""
        return max(1, min(documents, int(np.ceil(tokens / (self.scores.sum() / len(self.scores))))))

    def _chance(self, fit: dict[str, Floats], worth: int, seed: int) -> dict[str, float]:
        """Simulate the differences that chance makes between so many documents of the fit data and resampled fit data."""
        rng = np.random.default_rng(seed)
        n = len(self.scores)
        even = np.full(n, 1 / n)
        sampled_differences = differences(
            totals(fit, rng.multinomial(worth, even, size=_DRAWS)), totals(fit, rng.multinomial(n, even, size=_DRAWS))
        )
        return {
            name: float(np.quantile(np.nan_to_num(values, nan=1.0), _CHANCE)) for name, values in sampled_differences.items()
        }

    def limits(self, seed: int = 0) -> dict[str, float]:
        """Return the smallest difference that matters, by check; more if parts of the fit data differ by more than chance."""
        fit, n = self.held, len(self.scores)
        part = np.arange(n) * _PARTS // n
        in_part = (part == np.arange(_PARTS)[:, None]).astype(float)
        in_part = in_part[(in_part.sum(axis=1) > 0) & (in_part.sum(axis=1) < n)]
        part_differences = differences(totals(fit, in_part), totals(fit, 1 - in_part))
        errors = 1 - fit["calibrated"].sum() / fit["scores"].sum()
        minimum = {
            "scores": _MATTERS,
            "labels": _MATTERS,
            "expected accuracy": float(np.clip(_ERRORS * errors, _LEAST, _MOST)),
            "entity scores": _MATTERS_ENTITIES,
        }
        chance = self._chance(fit, max(1, n // _PARTS), seed)
        maximum = {name: float(np.nanmax(values, initial=0.0)) for name, values in part_differences.items()}
        return {name: max(minimum[name], maximum[name] if maximum[name] > chance[name] else 0.0) for name in part_differences}

    def state(self) -> dict[str, Any]:
        """Return plain data and arrays, which `read` takes: counts in half as many bytes."""
        counts = {name: getattr(self, name).astype(np.float32) for name in ("scores", "label_counts", "spans")}
        return super().state() | counts


def few_and_long(documents: int, tokens: int, stretch: int) -> bool:
    """Return whether documents are few, but enough for a comparison, and on average at least two stretches long."""
    return _FEW_FROM <= documents < _FEW and tokens >= 2 * stretch * documents


def _in_stretches(tokens: Labelled, spans: Labelled | None, stretch: int) -> tuple[Labelled, Labelled | None]:
    """Replace documents by stretches of so many tokens. A span's place is counted in spans."""
    sizes = np.bincount(tokens.documents, minlength=tokens.n_docs)
    parts = np.maximum(1, sizes // stretch)
    first = np.cumsum(parts) - parts
    n = int(parts.sum())

    def cut(units: Labelled) -> Labelled:
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

    "scores", "entity scores": Kolmogorov and Smirnov's distance of the distributions. "labels": total variation distance.
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
