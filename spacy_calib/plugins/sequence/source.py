"""The sources of sequence models: marginals of labels and of whole entities, and confidences that are no probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import EditTreeLemmatizer
from spacy.tokens import Doc
from spacy.training import Example

from ...annotations import Annotation, get_annotation, label_hashes
from ...pairs.build import DenseScores, Scores, SparseScores, from_dense
from ...sources.base import Source, all_finite, has_weights, missing_input, to_numpy
from ...sources.softmax import SoftmaxSource
from ...types import OUTSIDE, Floats, Ints, Spans
from .confidence import Progress, WeightSamples, gaps, has_head, k_best_shares, sample_head, sample_learner
from .factory import SAMPLING_WAYS, WAYS
from .inference.sums import sum_chains
from .labeller import ChainLabeller
from .messages import calib_error
from .online import OnlineLabeller
from .targets import ENTITIES


class ChainSource(Source):
    """P(label at token | text) by forward-backward. For entities P(type), the sum over its BILUO tags, and the probability of
    each entity's path of tags.

    component (str): Name of the component.
    """

    reads = ("calib_crf", "calib_hmm", "calib_crfsuite")

    def __init__(self, component: str = "calib_crf"):
        self.component = component

    def supports(self, pipe: Any) -> bool:
        return isinstance(pipe, ChainLabeller)

    def claims(self, pipe: Any) -> bool:
        return self.supports(pipe) and not isinstance(pipe, OnlineLabeller)  # whose scores are no logarithms

    def kind(self, pipe: Any) -> str:
        return type(pipe).__name__

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation("ner" if pipe.cfg["target"] == ENTITIES else pipe.cfg["target"])

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return (OUTSIDE, *self.span_labels(pipe)) if pipe.cfg["target"] == ENTITIES else pipe.labels

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        return entity_types(pipe.labels) if pipe.cfg["target"] == ENTITIES else ()

    def raw_span_scores(self, spans: Spans) -> Floats:
        return spans.scores

    def is_trained(self, pipe: Any) -> bool:
        return bool(pipe.labels) and (not hasattr(pipe, "model") or has_weights(pipe))

    def has_finite_weights(self, pipe: Any) -> bool:
        return all_finite(pipe) if hasattr(pipe, "model") else all(np.isfinite(array).all() for array in pipe.learned_arrays())

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return missing_input(pipe, docs) if hasattr(pipe, "model") else [""] * len(docs)

    def reads_output(self, pipe: Any) -> bool:
        return pipe.cfg["target"] == ENTITIES  # those on the Doc are scored

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return super().obstacle(nlp, name, pipe) if hasattr(pipe, "model") else ""

    def read(self, pipe: Any, docs: Sequence[Doc]) -> Scores:
        chains, _ = pipe.chains(docs)
        if not len(chains.scores):
            return DenseScores(np.zeros((0, len(self.labels(pipe)))))
        sums = sum_chains(chains)
        xp, packed_index = chains.xp, chains.packing.packed_index

        def of_paths(rows: Ints, labels: Ints, lengths: Ints) -> Floats:
            return to_numpy(sums.paths(packed_index[rows], labels, lengths))

        marginals = to_numpy(sums.marginals[chains.packing.on(xp, "packed_index")])
        return scores_of(pipe, docs, marginals, of_paths)


# (tokens of some entities, a label of each token, lengths of the entities) -> a score for each entity.
OfPaths = Callable[[Ints, Ints, Ints], Floats]


def scores_of(pipe: ChainLabeller, docs: Sequence[Doc], of_labels: Floats, of_paths: OfPaths) -> Scores:
    """Return the scores of labels; for entities those of types, and of each entity on the Docs.

    of_labels (Floats): In [0, 1], shape (n_tokens, K); it is overwritten.
    """
    if pipe.cfg["target"] != ENTITIES:
        return DenseScores(np.clip(of_labels, 0.0, 1.0, out=of_labels))
    types = by_type(of_labels, pipe.labels)
    return SparseScores(from_dense(types, 0.0), _entities(docs, pipe.labels, types, of_paths))


def entity_types(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the types of BILUO tags, in their order."""
    return tuple(dict.fromkeys(label.partition("-")[2] for label in labels if label != OUTSIDE))


def by_type(marginals: Floats, labels: Sequence[str]) -> Floats:
    """Return the probability of each entity type, summed over its BILUO tags, "O" first, shape (n_tokens, 1 + n_types)."""
    types = entity_types(labels)
    member = np.array([[(label.partition("-")[2] or OUTSIDE) == kind for kind in (OUTSIDE, *types)] for label in labels])
    return np.clip(marginals @ member, 0.0, 1.0)


def _entities(docs: Sequence[Doc], labels: Sequence[str], types: Floats, of_paths: OfPaths) -> Spans:
    """Return the entities of known types on the Docs. types (Floats): Scores of types, shape (n_tokens, 1 + n_types)."""
    column = {label: i for i, label in enumerate(labels)}
    number = {name: i for i, name in enumerate(entity_types(labels))}
    rows: list[tuple[int, int, int]] = []
    paths: list[Ints] = []
    offset = 0
    for doc in docs:
        for span in doc.ents:
            if span.label_ in number:
                rows.append((offset + span.start, offset + span.end, number[span.label_]))
                paths.append(_path_of(span.label_, len(span), column))
        offset += len(doc)
    table = np.array(rows, dtype=np.intp).reshape(-1, 3)
    of_tokens = [types[start:end, 1 + kind] for start, end, kind in rows]
    is_chosen = np.ones(len(table), dtype=bool)
    path_scores = _path_scores(of_paths, table, paths)
    return Spans(table[:, 0], table[:, 1], table[:, 2], np.concatenate([np.zeros(0), *of_tokens]), path_scores, is_chosen)


def _path_scores(of_paths: OfPaths, table: Ints, paths: Sequence[Ints]) -> Floats:
    """Return the score of each entity's path; 0 where the model lacks a label. table (Ints): (start, end, ...)."""
    scores = np.zeros(len(table))
    with_path = np.flatnonzero([len(path) > 0 for path in paths])
    if len(with_path):
        rows = np.concatenate([np.arange(start, end) for start, end in table[with_path, :2].tolist()])
        labels = np.concatenate([paths[i] for i in with_path.tolist()])
        scores[with_path] = np.clip(of_paths(rows, labels, table[with_path, 1] - table[with_path, 0]), 0.0, 1.0)
    return scores


def _path_of(kind: str, length: int, column: dict[str, int]) -> Ints:
    """Return the columns of the BILUO tags of an entity; empty if one is not among the labels."""
    letters = "U" if length == 1 else "B" + "I" * (length - 2) + "L"
    names = [f"{letter}-{kind}" for letter in letters]
    return np.array([column[name] for name in names] if all(name in column for name in names) else [], dtype=np.intp)


# The scales that `choose_scale` tries, and the default.
SCALES = tuple(np.geomspace(0.01, 1.0, 20).tolist())
_UNCHOSEN = 0.1
# About how many tokens `choose_scale` uses at most.
_ENOUGH = 5_000


def _as_inner(name: str) -> Any:
    """Return a method that calls the source which reads the component's probabilities."""
    return lambda self, pipe, *docs: getattr(self._inner(pipe), name)(pipe, *docs)


class ConfidenceSource(Source):
    """Measures confidence by how much the answer of a labeller changes (Mejer & Crammer 2010, section 5).

    component (str): A sequence model of this package, or for kd_fixed any tagging head over token vectors.
    way (str): kd_pc: samples of the weights from N(mu, s Sigma), by an online learner with variances; kd_fixed: from N(mu, s
    I); kbv, wkbv: the k best labellings, equal or weighted by scores; delta: the best one's lead.
    k (int | None): Number of samples (None: 50, as in the paper) or labellings (None: 30). seed (int): Of the samples. scale
    (float | None): s; with None the fit chooses it (`choose_scale`). RAISES C001: a setting out of range.
    """

    reads = ("calib_online",)

    def __init__(
        self,
        component: str = "calib_online",
        way: str = "kd_pc",
        k: int | None = None,
        scale: float | None = None,
        seed: int = 0,
    ):
        if way not in WAYS:
            raise calib_error("C001", name="way", wanted=f"one of {', '.join(WAYS)}", given=repr(way))
        if k is not None and k < 1:
            raise calib_error("C001", name="k", wanted="at least 1", given=k)
        if scale is not None and not 0 < scale < np.inf:
            raise calib_error("C001", name="scale", wanted="greater than 0", given=scale)
        self.component, self.way, self.scale, self.seed = component, way, scale, seed
        # End of the error message about a component that this way cannot read.
        self.reads_what = f" by way {way}: {WAYS[way]}"
        self.k = k or (30 if way in ("kbv", "wkbv") else 50)

    def supports(self, pipe: Any) -> bool:
        if self.way == "kd_pc":
            return isinstance(pipe, OnlineLabeller)
        if self.way == "kd_fixed":
            return isinstance(pipe, OnlineLabeller) or (has_head(pipe) and _labels_tokens(pipe))
        return isinstance(pipe, ChainLabeller)

    def claims(self, pipe: Any) -> bool:
        return isinstance(pipe, OnlineLabeller)

    def kind(self, pipe: Any) -> str:
        return type(pipe).__name__

    @property
    def settings_summary(self) -> str:  # type: ignore[override]
        scale_text = f", scale {self.scale or _UNCHOSEN:.3g}" if self.way in SAMPLING_WAYS else ""
        return self.way + ("" if self.way == "delta" else f", k {self.k}") + scale_text

    def _inner(self, pipe: Any) -> Source:
        return ChainSource(self.component) if isinstance(pipe, ChainLabeller) else SoftmaxSource(self.component)

    annotation, labels, span_labels = map(_as_inner, ("annotation", "labels", "span_labels"))
    is_trained, has_finite_weights = map(_as_inner, ("is_trained", "has_finite_weights"))
    missing, reads_output = map(_as_inner, ("missing", "reads_output"))

    def raw_span_scores(self, spans: Spans) -> Floats:
        return spans.scores

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return self._inner(pipe).obstacle(nlp, name, pipe)

    @property
    def has_auto_settings(self) -> bool:  # type: ignore[override]
        return self.way in SAMPLING_WAYS and self.scale is None

    def resolve_auto_settings(self, pipe: Any, examples: Sequence[Example], progress: Progress = iter) -> dict[str, Any]:
        self.scale = choose_scale(self, pipe, examples, progress=progress)
        return {"scale": self.scale}

    def read(self, pipe: Any, docs: Sequence[Doc]) -> Scores:
        """Read confidences; that of an entity is the lowest of its BILUO tags."""
        scores = np.concatenate([np.zeros((0, len(pipe.labels))), *self.confidences(pipe, docs)])
        if not isinstance(pipe, ChainLabeller):
            return DenseScores(np.clip(scores, 0.0, 1.0))
        return scores_of(
            pipe,
            docs,
            scores,
            lambda rows, labels, n: np.minimum.reduceat(scores[rows, labels], np.cumsum([0, *n[:-1].tolist()])),
        )

    def confidences(self, pipe: Any, docs: Sequence[Doc]) -> list[Floats]:
        """Return the confidence in each label at each token, shape (length, K) for each chain."""
        if self.way in SAMPLING_WAYS:
            return self.weight_samples(pipe, docs).shares(self.k, self.scale or _UNCHOSEN)
        chains, _ = pipe.chains(docs)
        return gaps(chains) if self.way == "delta" else k_best_shares(chains, self.k, by_score=self.way == "wkbv")

    def weight_samples(self, pipe: Any, docs: Sequence[Doc]) -> WeightSamples:
        """Return samples of the weights, for the sequences of some Docs."""
        if isinstance(pipe, OnlineLabeller):
            sequences = [sequence for doc in docs for sequence in pipe.features_of(doc, unseen=True)]
            return sample_learner(pipe.learner, sequences, self.way == "kd_pc", self.seed, pipe.constraint_potentials())
        if isinstance(pipe, ChainLabeller):
            return sample_head(pipe, docs, [pipe.bounds(doc) for doc in docs], self.seed, pipe.potentials())
        return sample_head(pipe, docs, [[(0, len(doc))] if len(doc) else [] for doc in docs], self.seed)


def _labels_tokens(pipe: Any) -> bool:
    """Return whether the columns of a component's head are labels of tokens, which edit trees are not."""
    return isinstance(pipe, ChainLabeller) or (SoftmaxSource().supports(pipe) and not isinstance(pipe, EditTreeLemmatizer))


def choose_scale(
    source: ConfidenceSource,
    pipe: Any,
    examples: Sequence[Example],
    scales: Sequence[float] = SCALES,
    progress: Progress = iter,
) -> float:
    """Return the scale whose confidences find wrong labels best, by average precision, as the paper chooses it.

    examples (Sequence[Example]): Their predicted Docs have the component's input; of 5,000 tokens or more only evenly spaced
    examples are used. RETURNS (float): 0.1 if all labels are right, or all are wrong.
    """
    from sklearn.metrics import average_precision_score

    examples = [eg for eg in examples if len(eg.predicted)]
    examples = examples[:: 1 + sum(len(eg.predicted) for eg in examples) // _ENOUGH]
    if not examples:
        return _UNCHOSEN
    docs = [eg.predicted for eg in examples]
    predicted_columns = np.concatenate(pipe.predict(docs))
    gold = np.concatenate([source.annotation(pipe).aligned_gold(eg) for eg in examples])
    names = [label.partition("-")[2] or OUTSIDE for label in pipe.labels] if _of_entities(pipe) else pipe.labels
    with_gold = np.flatnonzero(gold)
    wrong = label_hashes(names)[predicted_columns[with_gold]] != gold[with_gold]
    if not wrong.any() or wrong.all():
        return _UNCHOSEN
    agree = np.zeros((len(scales), len(predicted_columns)))
    for labels in source.weight_samples(pipe, docs).labels(source.k, scales, progress):
        agree += labels == predicted_columns
    return scales[int(np.argmax([average_precision_score(wrong, -shares[with_gold]) for shares in agree]))]


def _of_entities(pipe: Any) -> bool:
    return isinstance(pipe, ChainLabeller) and pipe.cfg["target"] == ENTITIES
