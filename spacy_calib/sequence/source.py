"""The marginals of sequence models as a source: of their labels, and of whole entities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..doc.annotations import Annotation, get_annotation
from ..pairs.build import DenseScores, Scores, SparseScores, from_dense
from ..sources.base import Source, all_finite, has_weights, missing_input, to_numpy
from ..types import OUTSIDE, Floats, Ints, Spans
from .inference.sums import sum_chains
from .labeller import ChainLabeller
from .online.component import OnlineLabeller
from .targets import ENTITIES


class ChainSource(Source):
    """P(label at token | text) by forward-backward. For entities P(type), the sum over its BILUO tags, and the
    probability of each entity on the Doc, that of the path of its tags.

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
        return spans.own

    def is_trained(self, pipe: Any) -> bool:
        return bool(pipe.labels) and (not hasattr(pipe, "model") or has_weights(pipe))

    def has_finite_weights(self, pipe: Any) -> bool:
        return all_finite(pipe) if hasattr(pipe, "model") else all(np.isfinite(one).all() for one in pipe.learned_arrays())

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
        xp, packed = chains.xp, chains.packing.packed

        def of_paths(rows: Ints, labels: Ints, lengths: Ints) -> Floats:
            return to_numpy(sums.paths(packed[rows], labels, lengths))

        marginals = to_numpy(sums.marginals[chains.packing.on(xp, "packed")])
        return scores_of(pipe, docs, marginals, of_paths)


# (tokens of some stretches, a label of each, lengths of the stretches) -> a number for each stretch.
OfPaths = Callable[[Ints, Ints, Ints], Floats]


def scores_of(pipe: ChainLabeller, docs: Sequence[Doc], of_labels: Floats, of_paths: OfPaths) -> Scores:
    """Scores of labels as a source gives them: for entities those of their types, and of each whole one on the Docs.

    of_labels (Floats): In [0, 1], shape (n_tokens, K); it is overwritten.
    """
    if pipe.cfg["target"] != ENTITIES:
        return DenseScores(np.clip(of_labels, 0.0, 1.0, out=of_labels))
    types = by_type(of_labels, pipe.labels)
    return SparseScores(from_dense(types, 0.0), _entities(docs, pipe.labels, types, of_paths))


def entity_types(labels: Sequence[str]) -> tuple[str, ...]:
    """The types of BILUO tags, in their order."""
    return tuple(dict.fromkeys(label.partition("-")[2] for label in labels if label != OUTSIDE))


def by_type(marginals: Floats, labels: Sequence[str]) -> Floats:
    """The sums over the tags of each type, "O" first, shape (n_tokens, 1 + n_types)."""
    types = entity_types(labels)
    member = np.array([[(label.partition("-")[2] or OUTSIDE) == one for one in (OUTSIDE, *types)] for label in labels])
    return np.clip(marginals @ member, 0.0, 1.0)


def _entities(docs: Sequence[Doc], labels: Sequence[str], types: Floats, of_paths: OfPaths) -> Spans:
    """The entities on the Docs; those of other types are left out. types (Floats): Of `by_type`."""
    column = {label: i for i, label in enumerate(labels)}
    number = {name: i for i, name in enumerate(entity_types(labels))}
    found: list[tuple[int, int, int]] = []
    taken: list[Ints] = []
    offset = 0
    for doc in docs:
        for span in doc.ents:
            if span.label_ in number:
                found.append((offset + span.start, offset + span.end, number[span.label_]))
                taken.append(_path_of(span.label_, len(span), column))
        offset += len(doc)
    table = np.array(found, dtype=np.intp).reshape(-1, 3)
    of_tokens = [types[start:end, 1 + kind] for start, end, kind in found]
    chosen = np.ones(len(table), dtype=bool)
    own = _path_scores(of_paths, table, taken)
    return Spans(table[:, 0], table[:, 1], table[:, 2], np.concatenate([np.zeros(0), *of_tokens]), own, chosen)


def _path_scores(of_paths: OfPaths, table: Ints, taken: Sequence[Ints]) -> Floats:
    """The score of each entity's path; 0 where the model has not all its labels. table (Ints): (start, end, ...)."""
    scores = np.zeros(len(table))
    known = np.flatnonzero([len(own) > 0 for own in taken])
    if len(known):
        rows = np.concatenate([np.arange(start, end) for start, end in table[known, :2].tolist()])
        labels = np.concatenate([taken[i] for i in known.tolist()])
        scores[known] = np.clip(of_paths(rows, labels, table[known, 1] - table[known, 0]), 0.0, 1.0)
    return scores


def _path_of(kind: str, length: int, column: dict[str, int]) -> Ints:
    """The columns of the BILUO tags of an entity; none where one is not among the labels."""
    letters = "U" if length == 1 else "B" + "I" * (length - 2) + "L"
    names = [f"{letter}-{kind}" for letter in letters]
    return np.array([column[name] for name in names] if all(name in column for name in names) else [], dtype=np.intp)
