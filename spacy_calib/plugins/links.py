"""Probabilities of entity links: a conditional logit over the candidates of spaCy's entity linker and NIL (no entry)."""

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
from ..annotations.annotation import NIL, ONLY_REJECTED
from ..calibration.conditional_logit import fit_choices, softmax
from ..calibration.solvers import combine
from ..errors import calib_error
from ..pairs.scores import SparseScores
from ..sources.source import OutputSource, has_weights, to_numpy
from ..types import Floats, Ints, Marginals

NO_CANDIDATE = "no candidate"
_MAX_CANDIDATES = 30
# Score columns: NIL of an entity with candidates, NIL of one without, and the chosen candidates by descending prior.
_LABELS = (NIL, NO_CANDIDATE, *(f"candidate {i + 1}" for i in range(_MAX_CANDIDATES)))
_SMALLEST = 1e-4  # the minimum to which lower priors and scores are raised before the logarithm is taken
FEATURES = ("log prior", "similarity", "log score", "NIL")
_ROUNDS = 20  # each learns shares and then weights
# Ridge penalty on each weight's distance from its value in spaCy's score; it is small for similarities, which differ little.
_PENALTIES = np.array([0.3, 0.03, 0.3, 0.01])


@dataclass(frozen=True, eq=False)
class Options:
    """The n options that m entities can be linked to: for each entity the linker's candidates, then NIL.

    rows (Ints): First token of each entity, counted over all Docs, (m,). starts (Ints): First option of each entity, and n at
    the end, (m + 1,). names (list[str]): Identity (knowledge base id) of each option. prior, similarity (Floats): Prior
    probability, and cosine similarity to the context, 0 for NIL, (n,). n_tokens (int): Number of tokens of all Docs.
    """

    rows: Ints
    starts: Ints
    names: list[str]
    prior: Floats
    similarity: Floats
    n_tokens: int

    @property
    def lengths(self) -> Ints:
        """Number of options of each entity, (m,)."""
        return np.diff(self.starts)

    @property
    def score(self) -> Floats:
        """spaCy's score of each option, 0 for NIL, (n,)."""
        return self.prior + self.similarity - self.prior * self.similarity

    @property
    def nil(self) -> Ints:
        """Index of the NIL option of each entity, (m,)."""
        return self.starts[1:] - 1

    def features(self) -> Floats:
        """Return the features of the options, shape (n, 4): log prior, similarity, log of spaCy's score, and 1 for NIL."""
        is_nil = np.zeros(len(self.names))
        is_nil[self.nil] = 1.0
        log_prior, log_score = (np.where(is_nil, 0.0, np.log(np.maximum(p, _SMALLEST))) for p in (self.prior, self.score))
        return np.column_stack([log_prior, self.similarity, log_score, is_nil])

    @classmethod
    def from_docs(cls, pipe: Any, docs: Sequence[Doc]) -> Options:
        """Compute the options of all entities of `docs`, with prior and similarity, as `predict` of the linker `pipe` does."""
        rows, lengths, names, priors = [], [], [], []
        similarities = [np.zeros(0)]  # np.concatenate needs an array even if there are no entities
        n_tokens_before = 0  # of the Docs before this one
        for doc in docs:
            candidates = _candidates(pipe, doc.ents)
            encodings: dict[tuple[int, int], Floats] = {}
            for entity, window in zip(doc.ents, _windows(pipe, doc), strict=True):
                options = candidates.get(entity.start, [])  # without NIL, which follows them
                rows.append(n_tokens_before + entity.start)
                lengths.append(len(options) + 1)
                names += [*(candidate.entity_ for candidate in options), NIL]
                priors += [*(candidate.prior_prob if pipe.incl_prior else 0.0 for candidate in options), 0.0]
                similarities += [_similarities(pipe, options, doc, window, encodings), np.zeros(1)]
            n_tokens_before += len(doc)
        return cls(
            rows=np.array(rows, dtype=np.intp),
            starts=np.cumsum([0, *lengths]),
            names=names,
            prior=np.array(priors, dtype=np.float64),
            similarity=np.concatenate(similarities),
            n_tokens=n_tokens_before,
        )


def _candidates(pipe: Any, entities: Iterable[Any]) -> dict[int, list[Any]]:
    """Return first token -> candidates of each entity, from the linker `pipe`; without entities whose label it discards."""
    entities = [entity for entity in entities if entity.label_ not in pipe.labels_discard]
    if pipe.candidates_batch_size > 1:
        candidates = map(list, pipe.get_candidates_batch(pipe.kb, entities))
    else:
        candidates = map(list, (pipe.get_candidates(pipe.kb, entity) for entity in entities))
    return dict(zip((entity.start for entity in entities), candidates, strict=True))


def _windows(pipe: Any, doc: Doc) -> Iterator[tuple[int, int]]:
    """Yield (first token, token after the last) of each entity's context: its sentences, and `pipe.n_sents` on each side."""
    bounds = [(sentence.start, sentence.end) for sentence in doc.sents] if len(doc.ents) else []
    starts = [start for start, _ in bounds]
    for entity in doc.ents:
        # Numbers of the sentences with its first and its last token.
        first, last = np.searchsorted(starts, [entity.start, entity.end - 1], side="right") - 1
        yield bounds[max(0, first - pipe.n_sents)][0], bounds[min(len(bounds) - 1, last + pipe.n_sents)][1]


def _similarities(
    pipe: Any, candidates: Sequence[Any], doc: Doc, window: tuple[int, int], encodings: dict[tuple[int, int], Floats]
) -> Floats:
    """Return the cosine similarity of each candidate of an entity to its context; zeros if the linker does not compare them.

    doc (Doc): The Doc with the entity. window (tuple): First token of the context, and the token after its last. encodings
    (dict): Window -> vector of the context, of the contexts of this Doc so far; a new one is added.
    """
    similarities = np.zeros(len(candidates))
    if not pipe.incl_context or not candidates:
        return similarities
    if window not in encodings:
        encodings[window] = to_numpy(pipe.model.predict([doc[slice(*window)].as_doc()])[0]).astype(np.float64)
    context, vectors = encodings[window], np.array([candidate.entity_vector for candidate in candidates], dtype=np.float64)
    norms = np.linalg.norm(context) * np.linalg.norm(vectors, axis=1)
    return np.divide(vectors @ context, norms, out=similarities, where=norms > 0)


@dataclass(frozen=True, eq=False)
class _GoldOptions:
    """The gold links of m entities, compared with their n options.

    starts (Ints): First option of each entity, and n, (m + 1,). right (Floats): 1 for the gold option, else 0, (n,).
    is_rejected (NDArray[bool]): Whether the gold rejects an option, (n,). has_gold (NDArray[bool]): Whether an entity has a
    gold link, (m,). is_open: Whether it has only rejected links, (m,). has_candidates: Whether it has more options than NIL.
    """

    starts: Ints
    right: Floats
    is_rejected: NDArray[np.bool_]
    has_gold: NDArray[np.bool_]
    is_open: NDArray[np.bool_]
    has_candidates: NDArray[np.bool_]

    @classmethod
    def from_links(cls, options: Options, gold: NDArray[np.uint64], rejections: Collection[tuple[int, int]]) -> _GoldOptions:
        """Compare options with gold: the hash of each entity's gold link, ONLY_REJECTED, or 0 without gold, (m,).

        rejections (Collection): A pair (first token of the entity, hash of the link) for each link that annotators rejected;
        tokens are counted over all Docs.
        """
        hashes = [get_string_id(name) for name in options.names]
        rows = np.repeat(options.rows, options.lengths).tolist()  # first token of each option's entity
        is_open = gold == ONLY_REJECTED
        return cls(
            starts=options.starts,
            right=(np.array(hashes, dtype=np.uint64) == np.repeat(gold, options.lengths)).astype(np.float64),
            is_rejected=np.array([link in rejections for link in zip(rows, hashes, strict=True)], dtype=bool),
            has_gold=(gold != 0) & ~is_open,
            is_open=is_open,
            has_candidates=options.lengths > 1,  # NIL is always an option
        )

    def likelihoods(self, shares: Sequence[float]) -> Floats:
        """Return for each option the likelihood of its entity's gold if the model chooses this option, (n,).

        With a gold link it is 1 for that option, else 0. With only rejected links it is 1 for an option that is not rejected;
        for a rejected one it is the probability that the true link is none of the entity's options.
        shares (Sequence[float]): Share of entities whose true link is among their options, [with candidates, without].
        """
        share_with_candidates, share_without = shares
        p_missing = 1 - np.where(self.has_candidates, share_with_candidates, share_without)
        lengths = np.diff(self.starts)
        likelihood_if_open = np.where(self.is_rejected, np.repeat(p_missing, lengths), 1.0)
        return np.where(np.repeat(self.is_open, lengths), likelihood_if_open, self.right)

    def estimate_shares(self, probabilities: Floats) -> list[float]:
        """Estimate the share of entities whose gold link is among their options: the linker's candidates, and NIL (no link).

        An entity with only rejected links counts by the probability that its gold is one of its other options (EM).
        probabilities (Floats): P(option) of the n options of all entities by the model, (n,), summing to 1 for each entity.
        RETURNS (list[float]): Two shares: of entities with candidates, and of entities without, whose only option is NIL.
        """
        gold_sums = np.add.reduceat(self.right, self.starts[:-1])  # of each entity: 1 if its gold link is among its options
        rejected_sums = np.add.reduceat(probabilities * self.is_rejected, self.starts[:-1])
        shares = []
        for is_selected in (self.has_candidates, ~self.has_candidates):
            is_linked, is_open = self.has_gold & is_selected, self.is_open & is_selected
            share = 0.5  # start of EM; if no entity has only rejected links, its first round is final
            for _ in range(_ROUNDS if is_open.any() else 1):
                # Entities with only rejected links: the probability that the gold is another of their options.
                expected_open = share * (1 - rejected_sums[is_open]) / (1 - share * rejected_sums[is_open])
                # Laplace's rule: no share is 0 or 1
                share = float((gold_sums[is_linked].sum() + expected_open.sum() + 1) / (is_linked.sum() + is_open.sum() + 2))
            shares.append(share)
        return shares


class EntityLinkerSource(OutputSource):
    """Reads P(link) of each candidate of an entity, and of NIL, at its first token, by a conditional logit (McFadden 1974).

    The features of a candidate are log prior, similarity, and log of spaCy's score (prior + similarity - prior * similarity);
    NIL has an indicator. component (str): Name of the component. weights (list[float] | None): Weights of the features; None:
    the fit learns them, and before it probabilities are proportional to spaCy's scores, in which NIL has the linker's
    threshold. covered (list[float] | None): Share of entities whose gold is among the options, [with candidates, without];
    None: the fit learns them, and before it they are 1. RAISES C001: `weights` are not four finite numbers, or `covered` are
    not two numbers in [0, 1].
    """

    reads = ("entity_linker",)
    component_classes = (EntityLinker,)
    singleton_labels = (NIL, NO_CANDIDATE)
    auto_settings = ("weights", "covered")

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
        weights = zip(FEATURES, self.weights or (), strict=False)  # () before the fit
        return ", ".join(f"{name} {weight:.3g}" for name, weight in weights)

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(LINK)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return _LABELS

    def frequency_label(self, label: str) -> str:
        return label if label in self.singleton_labels else "linked"  # all candidates share a frequency

    def count_gold(self, pipe: Any, docs: Iterable[Doc]) -> Counter[str]:
        """Count gold links by the score column that they belong to, such as "candidate 1"; else they are "another identity"."""
        counts: Counter[str] = Counter()
        for doc in docs:
            linked = [entity for entity in doc.ents if entity.kb_id]
            candidates = _candidates(pipe, linked)
            for entity in linked:
                by_prior = sorted(candidates.get(entity.start, ()), key=lambda candidate: -candidate.prior_prob)
                names = [candidate.entity_ for candidate in by_prior[:_MAX_CANDIDATES]]
                candidate_columns = dict(zip(names, _LABELS[2:], strict=False))  # the first two columns are for NIL
                columns = {NIL: NIL if names else NO_CANDIDATE, **candidate_columns}
                counts[columns.get(entity.kb_id_, "another identity")] += 1  # the identity itself may be private
        return counts

    def is_trained(self, pipe: Any) -> bool:
        return not pipe.kb.is_empty() and has_weights(pipe)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return [self._why_missing(pipe, doc) if len(doc) else "" for doc in docs]

    def _why_missing(self, pipe: Any, doc: Doc) -> str:
        """Return why a Doc cannot be read, "" if it can."""
        if not doc.has_annotation("ENT_IOB"):
            return "its entities were not set; put a component that finds entities before it"
        has_sentences = doc.has_annotation("SENT_START")
        return "" if has_sentences else "its sentences were not set; put a component that finds sentences before it"

    def resolve_auto_settings(
        self, pipe: Any, examples: Sequence[Example], progress: Callable[[Iterable[int]], Iterable[int]] = iter
    ) -> None:
        """Learn the settings `weights` and `covered`, if they are None, from gold and rejected links. progress: Not used."""
        readable = [eg for eg in examples if len(eg.predicted) and not self._why_missing(pipe, eg.predicted)]
        options = Options.from_docs(pipe, [eg.predicted for eg in readable])
        annotation = self.annotation(pipe)
        gold_hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *map(annotation.aligned_gold, readable)])  # of each token
        rejections: set[tuple[int, int]] = set()
        doc_start = 0  # in tokens of all Docs
        for eg in readable:
            rejections |= {(doc_start + token, link) for token, link in annotation.rejected_labels(eg) or ()}
            doc_start += len(eg.predicted)
        gold_options = _GoldOptions.from_links(options, gold_hashes[options.rows], rejections)
        self.weights, self.covered = _learn(options, gold_options, _score_weights(pipe), self.weights, self.covered)

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Return the probabilities of NIL and the 30 top candidates of each entity, in the row of its first token."""
        options = Options.from_docs(pipe, docs)
        weights = _score_weights(pipe) if self.weights is None else np.array(self.weights)
        # P(link) = P(link if the true link is an option of the entity) * P(the true link is an option).
        p_with_candidates, p_nil_alone = self.covered or (1.0, 1.0)
        p_covered = np.where(options.lengths > 1, p_with_candidates, p_nil_alone)  # of each entity
        probabilities = softmax(combine(options.features(), weights), options.starts) * np.repeat(p_covered, options.lengths)
        indices, columns = _select_options(options, probabilities)
        rows = np.repeat(options.rows, options.lengths)[indices]
        names = [options.names[i] for i in indices.tolist()]
        scores = np.minimum(probabilities[indices], 1.0)  # rounding may exceed 1
        # absent: candidates that are not selected have no score.
        return SparseScores(Marginals(rows, columns, scores, options.n_tokens, names), absent=np.nan)


def _learn(
    options: Options, gold_options: _GoldOptions, centre: Floats, weights: list[float] | None, fixed_shares: list[float] | None
) -> tuple[list[float], list[float]]:
    """Learn the weights of the features, and the shares of entities whose true link is among their options, in turn.

    options (Options): What each entity can be linked to, with features. gold_options (_GoldOptions): Which of these options the
    gold has or rejects. centre (Floats): Weights towards which the learned ones are shrunk, (4,). weights, fixed_shares: Values
    to keep; None: learn them. RETURNS (tuple): Weights of FEATURES; shares for entities [with candidates, with NIL alone].
    """
    features, shares = options.features(), fixed_shares or []
    learned_weights = centre if weights is None else np.array(weights)
    for _ in range(_ROUNDS if gold_options.is_open.any() else 1):  # without open entities shares do not depend on weights
        if fixed_shares is None:
            shares = gold_options.estimate_shares(softmax(combine(features, learned_weights), options.starts))
        if weights is None:
            learned_weights = fit_choices(features, options.starts, gold_options.likelihoods(shares), centre, _PENALTIES)
    return learned_weights.tolist(), list(map(float, shares))


def _score_weights(pipe: Any) -> Floats:
    """Return the weights of FEATURES, (4,), that rank options as spaCy's score does, and NIL as the linker's threshold does."""
    return np.array([0.0, 0.0, 1.0, np.log(max(pipe.threshold or 0.0, _SMALLEST))])


def _select_options(options: Options, probabilities: Floats) -> tuple[Ints, Ints]:
    """Return (indices of each entity's NIL, then of its 30 most probable candidates by falling prior; score column of each)."""
    indices: list[int] = []
    columns: list[int] = []
    for start, nil in zip(options.starts[:-1].tolist(), options.nil.tolist(), strict=True):
        top = sorted(range(start, nil), key=lambda i: -probabilities[i])[:_MAX_CANDIDATES]
        indices += [nil, *sorted(top, key=lambda i: -options.prior[i])]
        columns += [_LABELS.index(NIL if top else NO_CANDIDATE), *range(2, 2 + len(top))]  # candidates follow both NIL columns
    return np.array(indices, dtype=np.intp), np.array(columns, dtype=np.intp)
