"""Shares of right labels and entities from the scores of many texts and the gold of a few, which correct them.

Prediction-powered inference (Angelopoulos et al. 2023) for a finite number of texts: scores say what to expect,
labelled documents by how much that is off. Scores may be anything; labelled documents must be picked at random from
such texts. A document is the unit, as its tokens are alike. The weight of the scores is 1, not tuned (PPI++,
Angelopoulos, Duchi and Zrnic 2023): with few documents a tuned interval is at most a hundredth narrower where it holds,
and holds less often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.scored import RIGHT, UNKNOWN, ScoredCorpus
from ..errors import calib_error
from ..types import Adds, Floats, Ints
from .drift import Labelled
from .estimates import EntityModel, Estimate, sum_by, token_sums
from .record import entity_sums
from .summary import spans_of, tokens_of
from .survey import Known, Survey, accuracy, entities

Chosen = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Read:
    """A corpus, and of each Doc, gold (Ints): its gold entities, digests (Sequence[int]): its `seen.digest`."""

    corpus: ScoredCorpus
    gold: Ints
    digests: Sequence[int]

    def labelled(self) -> Chosen:
        """Which Docs have gold, shape (n_docs,)."""
        tokens = self.corpus.docs[self.corpus.counted & (self.corpus.right != UNKNOWN)]
        return np.asarray(np.bincount(tokens, minlength=self.corpus.n_docs) > 0)


@dataclass(frozen=True, eq=False)
class Rest(Adds):
    """Sums over texts without gold. expected, units (Floats): As in `Survey`, shape (1, k). squares (float)."""

    expected: Floats
    units: Floats
    squares: float


@dataclass(eq=False)
class Beside:
    """Texts beside labelled documents; the texts come in parts, of which only sums are kept.

    few (Read): The labelled documents. labels (Sequence[str]): Of the source. model (EntityModel | None): Of the fit.
    """

    few: Read
    labels: Sequence[str]
    model: EntityModel | None
    _rest: list[Rest] = field(default_factory=list)
    _used: Counter[int] = field(default_factory=Counter)

    def add(self, texts: Read) -> None:
        """Add texts; no document may be split between calls."""
        others = ~self.met(texts.digests)
        documents = _documents(texts.corpus)[others]
        more = []
        for known in _by_doc(texts, self.labels, self.model):
            expected, units = _grouped(known.expected[others], documents), _grouped(known.units[others], documents)
            squares = float(np.square(units[:, -1]).sum())
            more.append(Rest(expected.sum(axis=0, keepdims=True), units.sum(axis=0, keepdims=True), squares))
        self._rest = [one + other for one, other in zip(self._rest, more, strict=True)] if self._rest else more

    def met(self, digests: Sequence[int]) -> Chosen:
        """Which texts, by their digests, are labelled ones; each labelled text counts for one text at most."""
        found = np.zeros(len(digests), dtype=bool)
        for i, digest in enumerate(digests):
            if self._used[digest] < self._labelled[digest]:
                self._used[digest] += 1
                found[i] = True
        return found

    @cached_property
    def _labelled(self) -> Counter[int]:
        """Digest -> number of labelled documents with it."""
        few = self.few
        return Counter(digest for digest, has in zip(few.digests, few.labelled().tolist(), strict=True) if has)

    def among(self) -> Chosen:
        """Which of the labelled documents are among the texts, shape (n_docs,)."""
        found, left = np.zeros(len(self.few.digests), dtype=bool), Counter(self._used)
        for i in np.flatnonzero(self.few.labelled()).tolist():
            found[i] = left[self.few.digests[i]] > 0
            left[self.few.digests[i]] -= found[i]
        return found

    def surveys(self) -> list[Survey]:
        """For right tokens, and with a model for right and missed entities; by documents that have tokens."""
        among, own, made = self.among(), _documents(self.few.corpus), []
        for rest, few in zip(self._rest, _by_doc(self.few, self.labels, self.model, judged=True), strict=True):
            whole = Known(*(_grouped(part, own) for part in few))
            kept = whole.units[:, -1] > 0
            inside = few.observed[among].sum(axis=0), few.units[among].sum(axis=0)
            made.append(Survey(Known(*(part[kept] for part in whole)), *inside, rest.expected, rest.units, rest.squares))
        return made


def with_gold(result: dict[str, Any], texts: Beside, confidence: float) -> dict[str, Any]:
    """What `expected_of` gave, with the numbers from the labelled documents in place of those from the fit data.

    RETURNS (dict): "accuracy" and "entities" have other numbers; "trusted" is true, as labelled documents are like the
        texts. New is "gold": "documents" and what they are ("by"), "tokens", "among" (labelled Docs that are among the
        texts, counted once), "correction" (of the accuracy), and "shares", each with "scores_alone" (expected without
        labels), "classical" (from labelled documents alone) and "narrower" (share of its width that is saved).
    RAISES C001: confidence out of range. C226: fewer than two documents have labels.
    """
    parts, few = texts.surveys(), texts.few
    n = len(parts[0].known.units)
    if n < 2:
        raise calib_error("C226", n=n, by=few.corpus.unit)
    shares = {"accuracy": accuracy(parts[0], confidence)}
    before: dict[str, Any] = {"accuracy": result["accuracy"], **(result["entities"] or {})}
    changed = {**result, "accuracy": {**result["accuracy"], **shares["accuracy"][0]._asdict()}, "trusted": True}
    if result["entities"] is not None:
        right, gold, found = entities(parts[1], confidence)
        exact = result["entities"]["gold"] is not None
        shares |= {name: one for name, one in found.items() if exact or name == "precision"}
        numbers = {name: shares[name][0]._asdict() if name in shares else None for name in ("precision", "recall", "f")}
        changed["entities"] = {**result["entities"], "right": right, "gold": gold if exact else None, **numbers}
    return changed | {
        "gold": {
            "documents": n,
            "by": few.corpus.unit,
            "tokens": int(parts[0].known.units.sum()),
            "among": int(texts.among().sum()),
            "correction": float(parts[0].correction()[0]),
            "shares": {name: _beside(before[name], *one) for name, one in shares.items()},
        }
    }


def _beside(scores_alone: dict[str, Any] | None, powered: Estimate, classical: Estimate) -> dict[str, Any]:
    width = classical.high - classical.low
    alone = None if scores_alone is None else {name: scores_alone[name] for name in Estimate._fields}
    narrower = 1 - (powered.high - powered.low) / width if width else None
    return {"scores_alone": alone, "classical": classical._asdict(), "narrower": narrower}


def known_of(
    tokens: Labelled, right: NDArray[Any], spans: Labelled, spans_right: NDArray[Any], gold: Ints, model: EntityModel | None
) -> list[Known]:
    """Scores and gold of each document: of right tokens; with a model also of right and missed entities.

    right, spans_right (Ints): Whether each is right, see `ScoredCorpus`. gold (Ints): Gold entities of each document.
    """
    n = tokens.n_docs
    sums = token_sums(tokens.calibrated, tokens.documents, n)
    known = [Known(sum_by(tokens.documents, right == RIGHT, n)[:, None], sums.expected, sums.independent, sums.units[:, None])]
    if model is not None:
        found, n_right = entity_sums(tokens, spans), sum_by(spans.documents, spans_right == RIGHT, n)
        sums, observed = model.sums(found), np.stack([n_right, gold - n_right], axis=1)
        known.append(Known(observed, sums.expected, sums.independent, np.stack([found.predicted, found.units], axis=1)))
    return known


def _by_doc(read: Read, labels: Sequence[str], model: EntityModel | None, judged: bool = False) -> list[Known]:
    """`known_of` by Doc. judged (bool): Whether to take only tokens and entities with gold."""
    corpus = read.corpus
    right, spans_right = corpus.right[corpus.counted], corpus.spans.right
    tokens = replace(tokens_of(corpus, labels), documents=corpus.docs[corpus.counted], n_docs=corpus.n_docs)
    spans = replace(spans_of(corpus), documents=corpus.spans.docs, n_docs=corpus.n_docs)
    if judged:
        own, own_spans = (np.flatnonzero(one != UNKNOWN) for one in (right, spans_right))
        tokens, spans, right, spans_right = tokens.take(own), spans.take(own_spans), right[own], spans_right[own_spans]
    return known_of(tokens, right, spans, spans_right, read.gold, model)


def _documents(corpus: ScoredCorpus) -> Ints:
    return corpus.documents_of(np.arange(corpus.n_docs))


def _grouped(values: Floats, documents: Ints) -> Floats:
    """The sum of the rows of each document."""
    n = int(documents.max(initial=-1)) + 1
    return np.stack([sum_by(documents, column, n) for column in values.T], axis=1)
