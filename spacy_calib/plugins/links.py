"""Probabilities of entity links: a conditional logit over the linker's candidates and NIL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.pipeline import EntityLinker
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import LINK, Annotation, get_annotation
from ..annotations.base import NIL, ONLY_REJECTED
from ..calibration.conditional_logit import fit_choices, softmax
from ..calibration.recalibrators.logistic import combine
from ..errors import calib_error
from ..pairs.build import SparseScores
from ..sources.base import OutputSource, has_weights, to_numpy
from ..types import Floats, Ints, Marginals

NO_CANDIDATE = "no candidate"
_MOST = 30
_LABELS = (NIL, NO_CANDIDATE, *(f"candidate {i + 1}" for i in range(_MOST)))
# Priors and scores are at least this before their logarithm.
_SMALLEST = 1e-4
FEATURES = ("log prior", "similarity", "log score", "NIL")
# Of what is learned in turns.
_ROUNDS = 20
# Strength of the ridge that holds each weight near that of spaCy's own score; similarities lie near one another, so that theirs has farther to go.
_PENALTIES = np.array([0.3, 0.03, 0.3, 0.01])


@dataclass(frozen=True, eq=False)
class Options:
    """What the m entities of some Docs may be linked to: the candidates of each, then NIL.

    rows (Ints): First token of each entity, counted over all Docs. starts (Ints): First of its options, and the end, shape (m +
    1,). names (list[str]): The identity of each option. prior, similarity, score (Floats): By spaCy, 0 for NIL. n_tokens (int):
    Of all Docs.
    """

    rows: Ints
    starts: Ints
    names: list[str]
    prior: Floats
    similarity: Floats
    score: Floats
    n_tokens: int

    @property
    def lengths(self) -> Ints:
        """Number of options of each entity."""
        return np.diff(self.starts)

    @property
    def nil(self) -> Ints:
        """Index of each entity's NIL option."""
        return self.starts[1:] - 1

    def features(self) -> Floats:
        """Return the features, shape (n, 4), columns as in FEATURES."""
        is_nil = np.zeros(len(self.names))
        is_nil[self.nil] = 1.0
        logs = [np.where(is_nil, 0.0, np.log(np.maximum(column, _SMALLEST))) for column in (self.prior, self.score)]
        return np.column_stack([logs[0], self.similarity, logs[1], is_nil])

    @classmethod
    def of(cls, pipe: Any, docs: Sequence[Doc]) -> Options:
        """Compute candidates, prior, cosine similarity to the sentences around, and score as `EntityLinker.predict` does."""
        rows, lengths, names, priors, vectors, windows = [], [], [], [], [], []
        first = 0
        for doc in docs:
            entities = [entity for entity in doc.ents if entity.label_ not in pipe.labels_discard]
            candidates = dict(zip(((item.start, item.end) for item in entities), _candidates(pipe, entities), strict=True))
            for entity, window in zip(doc.ents, _windows(pipe, doc), strict=True):
                options = candidates.get((entity.start, entity.end), [])
                rows.append(first + entity.start)
                lengths.append(len(options) + 1)
                names += [*(item.entity_ for item in options), NIL]
                priors += [*(item.prior_prob if pipe.incl_prior else 0.0 for item in options), 0.0]
                vectors.append(np.array([item.entity_vector for item in options], dtype=np.float64))
                windows.append((doc, *window))
            first += len(doc)
        prior = np.array(priors, dtype=np.float64)
        similarity = _similarities(pipe, vectors, windows) if pipe.incl_context else np.zeros(len(names))
        starts = np.cumsum([0, *lengths])
        return cls(
            np.array(rows, dtype=np.intp), starts, names, prior, similarity, prior + similarity - prior * similarity, first
        )


def _candidates(pipe: Any, entities: Sequence[Any]) -> Iterable[list[Any]]:
    if pipe.candidates_batch_size > 1:
        return map(list, pipe.get_candidates_batch(pipe.kb, entities))
    return (list(pipe.get_candidates(pipe.kb, entity)) for entity in entities)


def _windows(pipe: Any, doc: Doc) -> Iterator[tuple[int, int]]:
    """Yield (first token, the one after the last) of the sentences around each entity."""
    bounds = [(sentence.start, sentence.end) for sentence in doc.sents] if len(doc.ents) else []
    starts = [start for start, _ in bounds]
    for entity in doc.ents:
        first, last = np.searchsorted(starts, [entity.start, entity.end - 1], side="right") - 1
        yield bounds[max(0, first - pipe.n_sents)][0], bounds[min(len(bounds) - 1, last + pipe.n_sents)][1]


def _similarities(pipe: Any, vectors: Sequence[Floats], windows: Sequence[tuple[Doc, int, int]]) -> Floats:
    """Return the similarity of each option. As in spaCy, each window is encoded once, by the first row of the output."""
    encodings: dict[tuple[int, int, int], Floats] = {}
    parts = [np.zeros(0)]
    for vectors_, (doc, start, end) in zip(vectors, windows, strict=True):
        products = lengths = np.zeros(len(vectors_))
        if len(vectors_):
            key = (id(doc), start, end)
            if key not in encodings:
                encodings[key] = to_numpy(pipe.model.predict([doc[start:end].as_doc()])[0]).astype(np.float64)
            products, lengths = vectors_ @ encodings[key], np.linalg.norm(encodings[key]) * np.linalg.norm(vectors_, axis=1)
        parts += [np.divide(products, lengths, out=np.zeros(len(vectors_)), where=lengths > 0), np.zeros(1)]
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _GoldOptions:
    """What the gold says about the options of m entities.

    right (Floats), rejected (NDArray[bool]): Of each option. has_gold, is_open, has_any (NDArray[bool]): Whether an entity has
    a gold link, has only rejected ones, has candidates.
    """

    starts: Ints
    right: Floats
    rejected: NDArray[np.bool_]
    has_gold: NDArray[np.bool_]
    is_open: NDArray[np.bool_]
    has_any: NDArray[np.bool_]

    @classmethod
    def of(cls, options: Options, gold: NDArray[np.uint64], rejected: Collection[tuple[int, int]]) -> _GoldOptions:
        """gold: Hash of each entity's identity, 0 for none. rejected (Collection): (row of the entity, hash of identity)."""
        hashes = [get_string_id(name) for name in options.names]
        rows, is_open = np.repeat(options.rows, options.lengths).tolist(), gold == ONLY_REJECTED
        return cls(
            options.starts,
            (np.array(hashes, dtype=np.uint64) == np.repeat(gold, options.lengths)).astype(np.float64),
            np.array([pair in rejected for pair in zip(rows, hashes, strict=True)], dtype=bool),
            (gold != 0) & ~is_open,
            is_open,
            options.lengths > 1,
        )

    def likely(self, shares: Sequence[float]) -> Floats:
        """Return the likelihood of the gold if each option were right. shares (Sequence[float]): See `shares`."""
        uncovered = 1 - np.where(self.has_any, *shares)
        lengths = np.diff(self.starts)
        open_ = np.where(self.rejected, np.repeat(uncovered, lengths), 1.0)
        return np.where(np.repeat(self.is_open, lengths), open_, self.right)

    def shares(self, chances: Floats) -> list[float]:
        """Return how often the gold is among the options, with candidates and without. chances (Floats): Of each option."""
        n = np.zeros(0)
        gold_sums, wrong = (
            np.add.reduceat(values, self.starts[:-1]) if len(self.starts) > 1 else n
            for values in (self.right, chances * self.rejected)
        )
        shares = []
        for with_any in (True, False):
            closed, open_ = (mask & (self.has_any == with_any) for mask in (self.has_gold, self.is_open))
            share = 0.5
            for _ in range(_ROUNDS if open_.any() else 1):
                expected_open = share * (1 - wrong[open_]) / (1 - share * wrong[open_])
                # Laplace's rule: nothing is certain
                share = float((gold_sums[closed].sum() + expected_open.sum() + 1) / (closed.sum() + open_.sum() + 2))
            shares.append(share)
        return shares


class EntityLinkerSource(OutputSource):
    """P(link) of each candidate of an entity, and of NIL, at its first token: softmax of four features (McFadden 1974).

    The features are log prior, similarity, log of spaCy's score (prior + similarity - prior * similarity), each of a candidate,
    and 1 for NIL.

    component (str): Name of the component. weights (list[float] | None): Of the features; with None the fit learns them. Before
    that a candidate's probability is its share of the scores, in which NIL has the linker's threshold.
    covered (list[float] | None): How often the gold is among the options, for entities with candidates and without; with None
    the fit learns it. Before that it is 1.
    RAISES C001: not four finite weights, or two shares.
    """

    reads = ("entity_linker",)
    component_classes = (EntityLinker,)
    singleton_labels = (NIL, NO_CANDIDATE)

    def __init__(
        self, component: str = "entity_linker", weights: list[float] | None = None, covered: list[float] | None = None
    ):
        super().__init__(component)
        if weights is not None and not (len(weights) == len(FEATURES) and np.isfinite(weights).all()):
            raise calib_error("C001", name="weights", wanted=f"{len(FEATURES)} numbers, or left out", given=repr(weights))
        if covered is not None and not (len(covered) == 2 and all(0 <= share <= 1 for share in covered)):
            raise calib_error("C001", name="covered", wanted="two numbers in [0, 1], or left out", given=repr(covered))
        self.weights, self.covered = weights, covered

    @property
    def settings_summary(self) -> str:  # type: ignore[override]
        return (
            ""
            if self.weights is None
            else ", ".join(f"{name} {value:.3g}" for name, value in zip(FEATURES, self.weights, strict=True))
        )

    @property
    def has_auto_settings(self) -> bool:  # type: ignore[override]
        return self.weights is None or self.covered is None

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(LINK)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return _LABELS

    def frequency_label(self, label: str) -> str:
        return label if label in self.singleton_labels else "linked"

    def count(self, pipe: Any, docs: Iterable[Doc]) -> Counter[str]:
        """Count the columns in the gold by the candidates of the gold entities; no identity is kept."""
        counts: Counter[str] = Counter()
        for doc in docs:
            gold = [entity for entity in doc.ents if entity.kb_id]
            entities = [entity for entity in gold if entity.label_ not in pipe.labels_discard]
            candidates = dict(zip((entity.start for entity in entities), _candidates(pipe, entities), strict=True))
            for entity in gold:
                names = [
                    candidate.entity_
                    for candidate in sorted(candidates.get(entity.start, ()), key=lambda candidate: -candidate.prior_prob)[
                        :_MOST
                    ]
                ]
                columns = {NIL: NIL if names else NO_CANDIDATE, **dict(zip(names, _LABELS[2:], strict=False))}
                counts[columns.get(entity.kb_id_, "another identity")] += 1
        return counts

    def is_trained(self, pipe: Any) -> bool:
        return not pipe.kb.is_empty() and has_weights(pipe)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return [self._why_missing(pipe, doc) if len(doc) else "" for doc in docs]

    def _why_missing(self, pipe: Any, doc: Doc) -> str:
        if not doc.has_annotation("ENT_IOB"):
            return "its entities were not set; put a component that finds entities before it"
        return (
            ""
            if doc.has_annotation("SENT_START")
            else "its sentences were not set; put a component that finds sentences before it"
        )

    def resolve_auto_settings(
        self, pipe: Any, examples: Sequence[Example], progress: Callable[[Iterable[int]], Iterable[int]] = iter
    ) -> dict[str, Any]:
        """Learn shares and weights from gold; for entities with only rejected links by the likelihood of the rejection."""
        readable = [
            example for example in examples if len(example.predicted) and not self._why_missing(pipe, example.predicted)
        ]
        options = Options.of(pipe, [example.predicted for example in readable])
        annotation, starts = self.annotation(pipe), np.cumsum([0, *(len(example.predicted) for example in readable)]).tolist()
        gold = np.concatenate([np.zeros(0, dtype=np.uint64), *map(annotation.aligned_gold, readable)])[options.rows]
        rejected = {
            (start + row, key)
            for start, example in zip(starts, readable, strict=False)
            for row, key in annotation.rejected_labels(example) or ()
        }
        gold_options = _GoldOptions.of(options, gold, rejected)
        self.weights, self.covered = _learn(options, gold_options, _of_score(pipe), self.weights, self.covered)
        return {"weights": self.weights, "covered": self.covered}

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Read the 30 likeliest candidates of each entity, and NIL."""
        options = Options.of(pipe, docs)
        weights = _of_score(pipe) if self.weights is None else np.array(self.weights)
        shares = np.where(options.lengths > 1, *(self.covered or (1.0, 1.0)))
        chances = softmax(combine(options.features(), weights), options.starts) * np.repeat(shares, options.lengths)
        places, columns = _select_options(options, chances)
        rows = np.repeat(options.rows, options.lengths)[places]
        names = [options.names[i] for i in places.tolist()]
        return SparseScores(Marginals(rows, columns, np.minimum(chances[places], 1.0), options.n_tokens, names), absent=np.nan)


def _learn(
    options: Options, gold_options: _GoldOptions, towards: Floats, weights: list[float] | None, set_shares: list[float] | None
) -> tuple[list[float], list[float]]:
    """Learn weights, shrunk towards `towards`, and shares, in turns; values that are set stay."""
    features, shares, learned_weights = options.features(), set_shares or [], towards if weights is None else np.array(weights)
    for _ in range(_ROUNDS if gold_options.is_open.any() else 1):
        if set_shares is None:
            shares = gold_options.shares(softmax(combine(features, learned_weights), options.starts))
        if weights is None:
            learned_weights = fit_choices(features, options.starts, gold_options.likely(shares), towards, _PENALTIES)
    return learned_weights.tolist(), list(map(float, shares))


def _of_score(pipe: Any) -> Floats:
    """Return the weights by which the top option is the one that spaCy's linker chooses."""
    return np.array([0.0, 0.0, 1.0, np.log(max(pipe.threshold or 0.0, _SMALLEST))])


def _select_options(options: Options, chances: Floats) -> tuple[Ints, Ints]:
    """Return (the options that are read, entity by entity, NIL first; the column of each)."""
    places: list[int] = []
    columns: list[int] = []
    for start, nil in zip(options.starts[:-1].tolist(), options.nil.tolist(), strict=True):
        likeliest = sorted(range(start, nil), key=lambda i: -chances[i])[:_MOST]
        places += [nil, *sorted(likeliest, key=lambda i: -options.prior[i])]
        columns += [_LABELS.index(NIL if likeliest else NO_CANDIDATE), *range(2, 2 + len(likeliest))]
    return np.array(places, dtype=np.intp), np.array(columns, dtype=np.intp)
