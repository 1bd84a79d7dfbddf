"""Are new documents like those that a pipe was fitted on? By their scores, labels and expected accuracy. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..schema import Saved, floats, kept, later, lengths, several, text, whole
from ..types import Adds, Floats, Ints
from .estimates import sum_by

LIKE, DIFFERENT, TOO_FEW = "like the fit data", "differs from the fit data", "too few texts to tell"
# Where the scores compared come from another model.
OTHER_WEIGHTS = "fitted with other weights"
OTHER_WEIGHTS_SENTENCE = (
    "OTHER WEIGHTS: the component was trained, or replaced, since the pipe was fitted, so that the maps belong to scores that it gave "
    "before. Fit the pipe again."
)

# A difference that matters: one token in twenty stands elsewhere on the scale of scores, or carries another label. No mean of a quantity
# in [0, 1] that rises with the score can move by more than the scores do.
_MATTERS = 0.05
# Entities are fewer and their scores wider spread.
_MATTERS_ENTITIES = 0.1
# A difference of the expected accuracy that matters: this share of the error rate of the fit data, within these bounds.
_ERRORS, _LEAST, _MOST = 0.25, 0.005, 0.02
# Documents of the fit data that are kept, bins of their scores, and labels that are counted each by itself.
_MOST_DOCS, _BINS, _LABELS = 1000, 20, 30
# Documents of one source differ by chance: this quantile of the differences of so many draws.
_DRAWS, _CHANCE = 500, 0.99
# Where chance alone makes differences this many times larger than one that matters, one that matters would not be seen.
BLIND = 2.0
# The fit data in order is cut into so many parts, to see what differences it holds itself.
_PARTS = 5
# Where documents are few (from the first number on, below the second) and long, stretches of so many tokens stand for them.
_FEW_FROM, _FEW, _STRETCH = 10, 100, 100


@dataclass(frozen=True)
class Labelled:
    """n tokens (or entities) of D documents.

    documents (Ints): Of each, shape (n,). n_docs (int): D. labels (Sequence[str] | None): Of each. raw, calibrated (Floats): Score of the label.
    """

    documents: Ints
    n_docs: int
    labels: Sequence[str] | None
    raw: Floats
    calibrated: Floats

    def take(self, index: Ints) -> Labelled:
        """Some of them, of as many documents."""
        labels = None if self.labels is None else [self.labels[i] for i in index.tolist()]
        return Labelled(self.documents[index], self.n_docs, labels, self.raw[index], self.calibrated[index])


@dataclass(frozen=True)
class Check:
    """One comparison of the new documents with the fit data.

    name (str): "scores", "labels", "expected accuracy" or "entity scores". value (float): Their difference. limit (float): The least that
    matters. chance (float): What as many documents of the fit data itself show in one of a hundred draws at most.
    """

    name: str
    value: float
    limit: float
    chance: float

    @property
    def differs(self) -> bool:
        """More than matters, and more than chance makes."""
        return self.value > max(self.limit, self.chance)

    @property
    def undecided(self) -> bool:
        """Whether chance may have made a difference that matters, or would hide one."""
        return self.limit < self.value <= self.chance or self.chance > BLIND * self.limit


@dataclass(frozen=True)
class Drift:
    """verdict (str): LIKE, DIFFERENT, TOO_FEW or OTHER_WEIGHTS. checks (tuple[Check, ...]): What it is drawn from.
    stretch (int): Tokens of each of the stretches that were compared in place of documents; 0 where documents were.
    """

    verdict: str
    checks: tuple[Check, ...]
    stretch: int = 0

    @property
    def trusted(self) -> bool:
        """Whether expectations hold: the new documents are like the fit data."""
        return self.verdict == LIKE


def totals(tables: dict[str, Floats], weights: Any) -> dict[str, Floats]:
    """Each table summed over documents, by several weightings of them, shape (n_weightings, n_documents)."""
    return {name: weights @ table for name, table in tables.items()}


@dataclass(frozen=True)
class DriftSums(Adds):
    """What is compared of new documents.

    totals (dict): Each table of `DriftProfile.tables` summed over documents. documents, tokens (int): With tokens; and these. stretched (DriftSums | None):
        The same with stretches for documents; None where documents are too many for that.
    """

    totals: dict[str, Floats]
    documents: int
    tokens: int
    stretched: DriftSums | None = None

    @classmethod
    def of(cls, tables: dict[str, Floats], tokens: int, stretched: DriftSums | None = None) -> DriftSums:
        """tokens (int): Of all documents."""
        with_tokens = int((tables["scores"].sum(axis=1) > 0).sum())
        return cls(totals(tables, np.ones((1, len(tables["scores"])))), with_tokens, tokens, stretched)


@dataclass(frozen=True, eq=False)
class DriftProfile(Saved):
    """The fit data, as far as new documents are compared with it; D documents at most _MOST_DOCS, at equal distances.

    edges (Floats): Of the bins of the tokens' raw scores. labels (tuple[str, ...]): The most frequent ones; a last column is for all others.
    scores, label_counts (Floats): Tokens of each document in each bin, and with each label; shape (D, bins), (D, labels + 1).
    calibrated (Floats): Sum of the tokens' calibrated scores, shape (D,).
    span_edges, spans (Floats): The same as edges and scores for the raw scores of entities; without bins where there are none.
    stretch (int): Tokens of each of the stretches that stand for documents where these are few and long; 0 where documents do.
    """

    edges: Floats = kept(floats(0.0, 1.0, rising="rises"))
    labels: tuple[str, ...] = kept(several(text))
    scores: Floats = kept(floats(0.0, ndim=2))
    label_counts: Floats = kept(floats(0.0, ndim=2))
    calibrated: Floats = kept(floats(0.0))
    span_edges: Floats = kept(floats(0.0, 1.0, rising="rises"))
    spans: Floats = kept(floats(0.0, ndim=2))
    stretch: int = later(whole(), 0)

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        n, bins = len(held["calibrated"]), len(held["span_edges"])
        sizes = {
            "scores": (n, len(held["edges"]) + 1),
            "label_counts": (n, len(held["labels"]) + 1),
            "spans": (n, bins + 1 if bins else 0),
        }
        wrong = lengths(sizes, held)
        if not wrong and (not n or held["scores"].sum(axis=1).min() <= 0):
            wrong = "a document has no tokens"
        return wrong

    @classmethod
    def of(cls, tokens: Labelled, spans: Labelled | None = None) -> DriftProfile:
        """tokens, spans (Labelled): Of the fit data; calibrated by maps that did not see the document. Labels of spans are not looked at."""
        long = few_and_long(len(np.unique(tokens.documents)), len(tokens.raw), _STRETCH)
        stretch = _STRETCH if long else 0
        tokens, spans = _in_stretches(tokens, spans, stretch)
        names, counts = np.unique(np.array(tokens.labels or (), dtype=str), return_counts=True)
        labels = tuple(str(name) for name in names[np.argsort(-counts, kind="stable")][:_LABELS])
        edges = _edges(tokens.raw)
        span_edges = np.zeros(0) if spans is None or not len(spans.raw) else _edges(spans.raw)
        made = cls(edges, labels, *(np.zeros((0, 0)),) * 2, np.zeros(0), span_edges, np.zeros((0, 0)))
        table = made.tables(tokens, spans)
        with_tokens = np.flatnonzero(table["scores"].sum(axis=1) > 0)
        kept = with_tokens[np.unique(np.linspace(0, len(with_tokens) - 1, min(len(with_tokens), _MOST_DOCS)).astype(np.intp))]
        return cls(edges, labels, span_edges=span_edges, stretch=stretch, **{name: table[name][kept] for name in table})

    def tables(self, tokens: Labelled, spans: Labelled | None) -> dict[str, Floats]:
        """What is kept of each document, by the name of the attribute."""
        n_docs = tokens.n_docs
        names, of_token = np.unique(np.array(tokens.labels or (), dtype=str), return_inverse=True)
        column = {label: i for i, label in enumerate(self.labels)}
        columns = np.array([column.get(str(name), len(self.labels)) for name in names], dtype=np.intp)[of_token.reshape(-1)]
        return {
            "scores": _table(tokens.documents, np.searchsorted(self.edges, tokens.raw, side="right"), n_docs, len(self.edges) + 1),
            "label_counts": _table(tokens.documents, columns, n_docs, len(self.labels) + 1),
            "calibrated": sum_by(tokens.documents, tokens.calibrated, n_docs),
            "spans": _table(
                spans.documents, np.searchsorted(self.span_edges, spans.raw, side="right"), n_docs, len(self.span_edges) + 1
            ) if spans is not None and len(self.span_edges) else np.zeros((n_docs, 0)),
        }  # fmt: skip

    def compare(self, tokens: Labelled, spans: Labelled | None = None, seed: int = 0) -> Drift:
        """New documents against the fit data: see `judge`. tokens, spans (Labelled): Of the new documents."""
        return self.judge(self.sums_of(tokens, spans), seed)

    def sums_of(self, tokens: Labelled, spans: Labelled | None = None) -> DriftSums:
        """What is compared of new documents."""
        stretched = None
        if len(np.unique(tokens.documents)) < _FEW:
            stretched = DriftSums.of(self.tables(*_in_stretches(tokens, spans, self.usual)), len(tokens.raw))
        return DriftSums.of(self.tables(tokens, spans), len(tokens.raw), stretched)

    def judge(self, new: DriftSums, seed: int = 0) -> Drift:
        """New documents against the fit data. seed (int): Of the draws that show what chance makes."""
        fit, usual, stretch = self.held, self.usual, self.stretch
        if new.stretched is not None and few_and_long(new.documents, new.tokens, usual):
            new, stretch = new.stretched, usual
        found = differences(new.totals, totals(fit, np.ones((1, len(self.scores)))))
        chance = self._chance(fit, self.worth(new.documents, float(new.tokens)), seed)
        limits = self.limits(seed)
        checks = tuple(
            Check(name, float(value[0]), limits[name], chance[name]) for name, value in found.items() if not np.isnan(value[0])
        )
        if any(check.differs for check in checks):
            return Drift(DIFFERENT, checks, stretch)
        return Drift(TOO_FEW if any(check.undecided for check in checks) else LIKE, checks, stretch)

    @property
    def held(self) -> dict[str, Floats]:
        """The tables of the fit documents, by the name of the attribute."""
        return {name: getattr(self, name) for name in ("scores", "label_counts", "calibrated", "spans")}

    @property
    def usual(self) -> int:
        """Tokens of a document of the fit data on the mean, rounded up."""
        return int(np.ceil(self.scores.sum() / len(self.scores)))

    def worth(self, documents: int, tokens: float) -> int:
        """How many fit documents say as much as new ones, so many with tokens: as many, but with no more tokens in all."""
        return max(1, min(documents, int(np.ceil(tokens / (self.scores.sum() / len(self.scores))))))

    def _chance(self, fit: dict[str, Floats], worth: int, seed: int) -> dict[str, float]:
        """The difference that so many documents, drawn from the fit data, show from as many as the fit data has, drawn likewise."""
        rng = np.random.default_rng(seed)
        n = len(self.scores)
        even = np.full(n, 1 / n)
        drawn = differences(
            totals(fit, rng.multinomial(worth, even, size=_DRAWS)), totals(fit, rng.multinomial(n, even, size=_DRAWS))
        )
        return {name: float(np.quantile(np.nan_to_num(values, nan=1.0), _CHANCE)) for name, values in drawn.items()}

    def limits(self, seed: int = 0) -> dict[str, float]:
        """The least difference that matters, by the name of the check; or, where consecutive parts of the fit data differ by more from the
        rest, and by more than chance makes, that: the fit data holds such differences itself.
        """
        fit, n = self.held, len(self.scores)
        part = np.arange(n) * _PARTS // n
        inside = (part == np.arange(_PARTS)[:, None]).astype(float)
        inside = inside[(inside.sum(axis=1) > 0) & (inside.sum(axis=1) < n)]
        own = differences(totals(fit, inside), totals(fit, 1 - inside))
        errors = 1 - fit["calibrated"].sum() / fit["scores"].sum()
        least = {
            "scores": _MATTERS,
            "labels": _MATTERS,
            "expected accuracy": float(np.clip(_ERRORS * errors, _LEAST, _MOST)),
            "entity scores": _MATTERS_ENTITIES,
        }
        chance = self._chance(fit, max(1, n // _PARTS), seed)
        most = {name: float(np.nanmax(values, initial=0.0)) for name, values in own.items()}
        return {name: max(least[name], most[name] if most[name] > chance[name] else 0.0) for name in own}

    def state(self) -> dict[str, Any]:
        """Counts in half as many bytes."""
        counts = {name: getattr(self, name).astype(np.float32) for name in ("scores", "label_counts", "spans")}
        return {**super().state(), **counts}


def few_and_long(documents: int, tokens: int, stretch: int) -> bool:
    """Whether there are few documents, but not too few to stand for others, each as long as two stretches or more on the mean."""
    return _FEW_FROM <= documents < _FEW and tokens >= 2 * stretch * documents


def _in_stretches(tokens: Labelled, spans: Labelled | None, stretch: int) -> tuple[Labelled, Labelled | None]:
    """The same with stretches of about so many tokens of a document as documents; as they are for 0. Spans go to the stretch that stands as
    far from the beginning of its document, by their number.

    tokens, spans (Labelled): Those of one document in the order of the text.
    """
    if not stretch:
        return tokens, spans
    sizes = np.bincount(tokens.documents, minlength=tokens.n_docs)
    parts = np.maximum(1, sizes // stretch)
    first = np.cumsum(parts) - parts
    n = int(parts.sum())

    def cut(one: Labelled) -> Labelled:
        order = np.argsort(one.documents, kind="stable")
        document = one.documents[order]
        begins = np.searchsorted(document, document)
        inside = (np.arange(len(order)) - begins) * parts[document] // np.bincount(document, minlength=tokens.n_docs)[document]
        stretches = np.empty(len(order), dtype=np.intp)
        stretches[order] = first[document] + inside
        return replace(one, documents=stretches, n_docs=n)

    return cut(tokens), None if spans is None else cut(spans)


def _edges(raw: Floats) -> Floats:
    """Bins that hold about equally many; equal edges once."""
    return np.unique(np.quantile(raw, np.linspace(0, 1, _BINS + 1)[1:-1])) if len(raw) else np.zeros(0)


def _table(documents: Ints, columns: Ints, n_docs: int, n_columns: int) -> Floats:
    counts = np.bincount(documents * n_columns + columns, minlength=n_docs * n_columns)
    return counts.reshape(n_docs, n_columns).astype(np.float64)


def differences(one: dict[str, Floats], other: dict[str, Floats]) -> dict[str, Floats]:
    """Of the totals of two sets of documents, shape (n,); NaN where one of them is empty.

    "scores", "entity scores": Kolmogorov and Smirnov's distance of the distributions. "labels": total variation distance.
    "expected accuracy": of the mean calibrated scores.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = {
            name: (one[name] / one[name].sum(axis=1, keepdims=True), other[name] / other[name].sum(axis=1, keepdims=True))
            for name in ("scores", "label_counts", "spans")
        }
        means = [totals["calibrated"] / totals["scores"].sum(axis=1) for totals in (one, other)]
    found = {
        "scores": _kolmogorov_smirnov(*shares["scores"]),
        "labels": np.abs(shares["label_counts"][0] - shares["label_counts"][1]).sum(axis=1) / 2,
        "expected accuracy": np.abs(means[0] - means[1]),
    }
    if one["spans"].shape[1]:
        found["entity scores"] = _kolmogorov_smirnov(*shares["spans"])
    return found


def _kolmogorov_smirnov(one: Floats, other: Floats) -> Floats:
    return np.abs(np.cumsum(one - other, axis=1)).max(axis=1)
