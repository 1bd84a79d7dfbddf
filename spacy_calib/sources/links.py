"""Links of entities: the candidates of spaCy's entity linker, each with prior and similarity, and NIL, through a conditional logit."""

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

from ..calibration.conditional_logit import fit_choices, softmax
from ..calibration.recalibrators.logistic import combine
from ..doc.annotations import LINK, Annotation, get_annotation
from ..doc.annotations.base import NOT_THOSE
from ..errors import calib_error
from ..pairs.build import SparseScores
from ..types import Floats, Ints, Marginals
from .base import OutputSource, has_weights, to_numpy

# The columns: NIL beside candidates and NIL of an entity that has none, which have a group each, and the candidates by falling prior, who share one.
NIL = EntityLinker.NIL
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
    """What the m entities of some Docs may be linked to; of each its candidates, then NIL.

    rows (Ints): First token of each entity, in the tokens of all Docs, shape (m,). starts (Ints): Where its options begin, and the end of the last,
    shape (m + 1,). names (list[str]): The identity of each of n options. prior, similarity, score (Floats): What spaCy computes of it, 0 for NIL.
    n_tokens (int): Of all Docs.
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
        """How many options each entity has."""
        return np.diff(self.starts)

    @property
    def nil(self) -> Ints:
        """The option of each entity that is NIL."""
        return self.starts[1:] - 1

    def features(self) -> Floats:
        """Shape (n, 4), columns as in FEATURES."""
        is_nil = np.zeros(len(self.names))
        is_nil[self.nil] = 1.0
        logs = [np.where(is_nil, 0.0, np.log(np.maximum(one, _SMALLEST))) for one in (self.prior, self.score)]
        return np.column_stack([logs[0], self.similarity, logs[1], is_nil])

    @classmethod
    def of(cls, pipe: Any, docs: Sequence[Doc]) -> Options:
        """As `EntityLinker.predict` finds them: the candidates that the linker's function gives, their prior (0 if it is left out), the cosine of the
        entity's vector and the encoding of the sentences around (0 if these are left out, or without a vector), and prior + similarity - prior * similarity.
        """
        rows, lengths, names, priors, vectors, windows = [], [], [], [], [], []
        first = 0
        for doc in docs:
            asked = [entity for entity in doc.ents if entity.label_ not in pipe.labels_discard]
            found = dict(zip(((one.start, one.end) for one in asked), _candidates(pipe, asked), strict=True))
            for entity, window in zip(doc.ents, _windows(pipe, doc), strict=True):
                own = found.get((entity.start, entity.end), [])
                rows.append(first + entity.start)
                lengths.append(len(own) + 1)
                names += [*(one.entity_ for one in own), NIL]
                priors += [*(one.prior_prob if pipe.incl_prior else 0.0 for one in own), 0.0]
                vectors.append(np.array([one.entity_vector for one in own], dtype=np.float64))
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
    """(first token, the one after the last) of the sentences around each entity."""
    bounds = [(sentence.start, sentence.end) for sentence in doc.sents] if len(doc.ents) else []
    starts = [start for start, _ in bounds]
    for entity in doc.ents:
        first, last = np.searchsorted(starts, [entity.start, entity.end - 1], side="right") - 1
        yield bounds[max(0, first - pipe.n_sents)][0], bounds[min(len(bounds) - 1, last + pipe.n_sents)][1]


def _similarities(pipe: Any, vectors: Sequence[Floats], windows: Sequence[tuple[Doc, int, int]]) -> Floats:
    """Of each option, see `Options.of`. Each window is encoded once, alone, and by the first row of what the model gives, as spaCy does it: spaCy's own
    architecture gives a row for each entity of the window.
    """
    encoded: dict[tuple[int, int, int], Floats] = {}
    found = [np.zeros(0)]
    for own, (doc, start, end) in zip(vectors, windows, strict=True):
        products = lengths = np.zeros(len(own))
        if len(own):
            key = (id(doc), start, end)
            if key not in encoded:
                encoded[key] = to_numpy(pipe.model.predict([doc[start:end].as_doc()])[0]).astype(np.float64)
            products, lengths = own @ encoded[key], np.linalg.norm(encoded[key]) * np.linalg.norm(own, axis=1)
        found += [np.divide(products, lengths, out=np.zeros(len(own)), where=lengths > 0), np.zeros(1)]
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class _Known:
    """What the gold says of the options of m entities.

    starts (Ints): See Options. right (Floats), rejected (NDArray[bool]): Of each option, 1 for the gold, shape (n,). has_gold, is_open (NDArray[bool]): Whether
    the gold of an entity is known, and whether no more is known than that some options are wrong, shape (m,). has_any (NDArray[bool]): Candidates.
    """

    starts: Ints
    right: Floats
    rejected: NDArray[np.bool_]
    has_gold: NDArray[np.bool_]
    is_open: NDArray[np.bool_]
    has_any: NDArray[np.bool_]

    @classmethod
    def of(cls, options: Options, gold: NDArray[np.uint64], rejected: Collection[tuple[int, int]]) -> _Known:
        """gold: Hash of each entity's identity, 0 for none. rejected (Collection): (row of the entity, hash of the identity)."""
        hashes = [get_string_id(name) for name in options.names]
        rows, is_open = np.repeat(options.rows, options.lengths).tolist(), gold == NOT_THOSE
        return cls(
            options.starts,
            (np.array(hashes, dtype=np.uint64) == np.repeat(gold, options.lengths)).astype(np.float64),
            np.array([pair in rejected for pair in zip(rows, hashes, strict=True)], dtype=bool),
            (gold != 0) & ~is_open,
            is_open,
            options.lengths > 1,
        )

    def likely(self, shares: Sequence[float]) -> Floats:
        """How likely what is known would be if an option were the one of those offered. shares (Sequence[float]): See `shares`."""
        uncovered = 1 - np.where(self.has_any, *shares)
        lengths = np.diff(self.starts)
        open_ = np.where(self.rejected, np.repeat(uncovered, lengths), 1.0)
        return np.where(np.repeat(self.is_open, lengths), open_, self.right)

    def shares(self, chances: Floats) -> list[float]:
        """How often the gold is among the options, of entities with candidates and of those without. chances (Floats): Of each option, if it is."""
        n = np.zeros(0)
        found, wrong = (
            np.add.reduceat(one, self.starts[:-1]) if len(self.starts) > 1 else n
            for one in (self.right, chances * self.rejected)
        )
        made = []
        for with_any in (True, False):
            known, open_ = (own & (self.has_any == with_any) for own in (self.has_gold, self.is_open))
            share = 0.5
            for _ in range(_ROUNDS if open_.any() else 1):
                others = share * (1 - wrong[open_]) / (1 - share * wrong[open_])
                # Laplace's rule: nothing is certain
                share = float((found[known].sum() + others.sum() + 1) / (known.sum() + open_.sum() + 2))
            made.append(share)
        return made


class EntityLinkerSource(OutputSource):
    """P(link) of each candidate of an entity, and of NIL: softmax of four features of the options (McFadden 1974), at the entity's first token.

    The features are log prior, similarity, log of spaCy's score (prior + similarity - prior * similarity), each of a candidate, and 1 for NIL.

    component (str): Name of the component. weights (list[float] | None): Of the features, in this order; with None the fit learns them from the gold,
    and before that a candidate's probability is its share of the scores, in which NIL has the linker's threshold.
    covered (list[float] | None): How often the gold is among the options, of entities with candidates and of those without, which have NIL alone; the
    probabilities of the options sum to it. With None the fit learns it; before that it is 1.
    RAISES C001: not four finite weights, or two shares.
    """

    reads = ("entity_linker",)
    of = (EntityLinker,)
    alone = (NIL, NO_CANDIDATE)

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
    def says(self) -> str:  # type: ignore[override]
        return (
            ""
            if self.weights is None
            else ", ".join(f"{name} {value:.3g}" for name, value in zip(FEATURES, self.weights, strict=True))
        )

    @property
    def unsettled(self) -> bool:  # type: ignore[override]
        return self.weights is None or self.covered is None

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(LINK)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return _LABELS

    def frequency_label(self, label: str) -> str:
        return label if label in self.alone else "linked"

    def count(self, pipe: Any, docs: Iterable[Doc]) -> Counter[str]:
        """Gold frequency of the columns, by the candidates of the gold entities: no identity of the gold is kept."""
        counts: Counter[str] = Counter()
        for doc in docs:
            gold = [entity for entity in doc.ents if entity.kb_id]
            asked = [entity for entity in gold if entity.label_ not in pipe.labels_discard]
            found = dict(zip((entity.start for entity in asked), _candidates(pipe, asked), strict=True))
            for entity in gold:
                own = [one.entity_ for one in sorted(found.get(entity.start, ()), key=lambda one: -one.prior_prob)[:_MOST]]
                columns = {NIL: NIL if own else NO_CANDIDATE, **dict(zip(own, _LABELS[2:], strict=False))}
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

    def settle(
        self, pipe: Any, examples: Sequence[Example], progress: Callable[[Iterable[int]], Iterable[int]] = iter
    ) -> dict[str, Any]:
        """Learn how often the gold is among the options, and the weights from the entities of which it is. Where people rejected a link, and it is not known
        what is right, the likelihood is that of the answer.
        """
        readable = [one for one in examples if len(one.predicted) and not self._why_missing(pipe, one.predicted)]
        options = Options.of(pipe, [one.predicted for one in readable])
        annotation, starts = self.annotation(pipe), np.cumsum([0, *(len(one.predicted) for one in readable)]).tolist()
        gold = np.concatenate([np.zeros(0, dtype=np.uint64), *map(annotation.aligned_gold, readable)])[options.rows]
        rejected = {
            (start + row, key)
            for start, one in zip(starts, readable, strict=False)
            for row, key in annotation.refused(one) or ()
        }
        known = _Known.of(options, gold, rejected)
        self.weights, self.covered = _learned(options, known, _of_score(pipe), self.weights, self.covered)
        return {"weights": self.weights, "covered": self.covered}

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Of candidates beyond 30 the less likely ones are left out."""
        options = Options.of(pipe, docs)
        weights = _of_score(pipe) if self.weights is None else np.array(self.weights)
        shares = np.where(options.lengths > 1, *(self.covered or (1.0, 1.0)))
        chances = softmax(combine(options.features(), weights), options.starts) * np.repeat(shares, options.lengths)
        places, columns = _kept(options, chances)
        rows = np.repeat(options.rows, options.lengths)[places]
        names = [options.names[i] for i in places.tolist()]
        return SparseScores(Marginals(rows, columns, np.minimum(chances[places], 1.0), options.n_tokens, names), absent=np.nan)


def _learned(
    options: Options, known: _Known, towards: Floats, weights: list[float] | None, covered: list[float] | None
) -> tuple[list[float], list[float]]:
    """The weights, held near `towards`, and the shares; those that are given stay. Where some links are open, one by the other in turns."""
    features, shares, found = options.features(), covered or [], towards if weights is None else np.array(weights)
    for _ in range(_ROUNDS if known.is_open.any() else 1):
        if covered is None:
            shares = known.shares(softmax(combine(features, found), options.starts))
        if weights is None:
            found = fit_choices(features, options.starts, known.likely(shares), towards, _PENALTIES)
    return found.tolist(), list(map(float, shares))


def _of_score(pipe: Any) -> Floats:
    """Weights by which the likeliest option is the one that spaCy's linker chooses."""
    return np.array([0.0, 0.0, 1.0, np.log(max(pipe.threshold or 0.0, _SMALLEST))])


def _kept(options: Options, chances: Floats) -> tuple[Ints, Ints]:
    """(the options that are kept, entity by entity, NIL first; the column of each)."""
    places: list[int] = []
    columns: list[int] = []
    for start, nil in zip(options.starts[:-1].tolist(), options.nil.tolist(), strict=True):
        likeliest = sorted(range(start, nil), key=lambda i: -chances[i])[:_MOST]
        places += [nil, *sorted(likeliest, key=lambda i: -options.prior[i])]
        columns += [_LABELS.index(NIL if likeliest else NO_CANDIDATE), *range(2, 2 + len(likeliest))]
    return np.array(places, dtype=np.intp), np.array(columns, dtype=np.intp)
