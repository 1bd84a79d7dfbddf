"""Queries: a label to count, and how its probabilities and its gold are read from a Doc."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from spacy.pipeline import EntityLinker
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ...annotations import SPANS_PREFIX, Annotation, get_annotation, plain_name
from ...doc.view import DocCalib, doc_view
from ...pairs.documents import DOCUMENT, TOKEN
from ...types import Floats
from .messages import calib_error

# Unit of counts, as are TOKEN and DOCUMENT.
ENTITY = "entity"
LabelTest = Callable[[str], bool]
# Returns the scores of a Doc under a prefix: `doc_view`, or a cached version of it.
ViewOf = Callable[[Doc, str], DocCalib | None]


@dataclass(frozen=True, eq=False)
class QueryResult:
    """The result of a query in one Doc.

    raw, calibrated (Floats): Probability that each unit satisfies the query, for units that may, shape (n,). n_found (int):
    Number of units that satisfy it by their predicted labels. tokens (float | None): Expected number of tokens in entities, if entities are counted by their first tokens, else None.
    """

    raw: Floats
    calibrated: Floats
    n_found: int
    tokens: float | None = None


@dataclass(frozen=True)
class LabelScores:
    """The label scores of one calib pipe, as queries see them.

    attr (str): Prefix of the pipe. layer (str): Name of its annotation. labels (Sequence[str]): Labels that have scores. names
    (Mapping): Label -> its name in queries, if that differs. merged_labels (Mapping): Label of the component -> label of the
    scores, which stands for several labels of the component.
    """

    attr: str
    layer: str
    labels: Sequence[str]
    names: Mapping[str, str] = field(default_factory=dict, hash=False, kw_only=True)
    merged_labels: Mapping[str, str] = field(default_factory=dict, hash=False, kw_only=True)

    @property
    def annotation(self) -> Annotation:
        return get_annotation(self.layer)

    @property
    def plain_layer(self) -> str:
        return plain_name(self.layer)

    @property
    def of_entities(self) -> bool:
        return self.plain_layer in ("ner", "biluo")

    def list_merged(self, label: str) -> list[str]:
        """Return the labels of the component that a label of the scores stands for; [] if it stands for itself."""
        return [component_label for component_label, name in self.merged_labels.items() if name == label]

    def sum_scores(self, doc: Doc, test: LabelTest, view_of: ViewOf = doc_view) -> tuple[Floats, Floats]:
        """Return the (raw, calibrated) probability that each unit has a label that passes a test, each of shape (n_units,)."""
        n_units = self.annotation.n_units(doc)
        view = view_of(doc, self.attr)
        if view is None:
            return np.zeros(n_units), np.zeros(n_units)
        is_match = {tag: test(tag) for tag in set(view.tags.tolist())}
        entries = np.array([is_match[tag] for tag in view.tags.tolist()], dtype=bool)
        raw, calibrated = (
            np.bincount(view.rows[entries], column[entries], minlength=n_units) for column in (view.raw, view.calibrated)
        )
        return np.minimum(raw, 1.0), np.minimum(calibrated, 1.0)

    def match_labels(self, doc: Doc, test: LabelTest, gold: bool = False) -> NDArray[np.bool_]:
        """Return which units of a Doc have a label that passes a test. gold (bool): Whether it is a gold Doc."""
        annotation = self.annotation.gold if gold else self.annotation
        hashes = annotation.gold_hashes(doc) if gold else annotation.hashes(doc)
        keys, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        matches = [key != 0 and test(annotation.label_at(doc, i)) for key, i in zip(keys.tolist(), first.tolist(), strict=True)]
        return np.array(matches, dtype=bool)[inverse.reshape(-1)]


def countable_units(label_scores: LabelScores) -> tuple[str, ...]:
    """Return the units in which labels with these scores can be counted, the default first."""
    if label_scores.annotation.unit == DOCUMENT:
        return (DOCUMENT,)
    if label_scores.plain_layer.startswith(SPANS_PREFIX):
        return (ENTITY, DOCUMENT)
    return (ENTITY, TOKEN, DOCUMENT) if label_scores.of_entities else (TOKEN, DOCUMENT)


@dataclass(frozen=True)
class LabelQuery:
    """Counts the units with a label. text (str): As the user wrote it. unit (str): TOKEN, ENTITY or DOCUMENT. label (str): In the scheme of the gold, without a prefix such as B-."""

    text: str
    unit: str
    label_scores: LabelScores
    label: str

    @property
    def labels(self) -> list[tuple[str, str]]:
        return [(self.label_scores.attr, label) for label in self.label_scores.labels if self._is_label(label)]

    def _is_label(self, label: str) -> bool:
        return label == self.label or (self.label_scores.annotation.has_prefixes and label[2:] == self.label)

    @property
    def _counts_entities(self) -> bool:
        """Whether entities are counted, or documents that have one."""
        return ENTITY in countable_units(self.label_scores) and self.unit != TOKEN

    def answer(self, doc: Doc, view_of: ViewOf = doc_view) -> QueryResult:
        """Return the scores of each possible match in a Doc: of spans, of first tokens of entities, or of tokens."""
        n_found, label_scores = self._count(doc), self.label_scores
        tokens = None
        if self._counts_entities and label_scores.plain_layer.startswith(SPANS_PREFIX):
            view = view_of(doc, label_scores.attr)
            spans = [] if view is None else [span for span in (*view.ents, *view.candidates) if span.label == self.label]
            return QueryResult(np.array([span.raw for span in spans]), np.array([span.score for span in spans]), n_found)
        if self._counts_entities and label_scores.annotation.has_prefixes:
            raw, calibrated = label_scores.sum_scores(
                doc, lambda name: self._is_label(name) and name[:2] in ("B-", "U-"), view_of
            )
        else:
            raw, calibrated = label_scores.sum_scores(doc, self._is_label, view_of)
            if self._counts_entities:
                tokens = float(calibrated.sum())
                raw, calibrated = self._begin_scores(doc, raw), self._begin_scores(doc, calibrated)
        is_possible = (raw > 0) | (calibrated > 0)
        return QueryResult(raw[is_possible], calibrated[is_possible], n_found, tokens=tokens)

    def _begin_scores(self, doc: Doc, scores: Floats) -> Floats:
        """Return the probability that an entity with the label begins at each token, shape (n_tokens,).

        It is approximated, as only the probability that a token has the label is known, and tokens of an entity depend on each
        other: by how much more probable the label is than at the token before, or in full if a predicted entity begins there.
        """
        begins = scores.copy()
        begins[1:] = np.maximum(0.0, scores[1:] - scores[:-1])
        starts = [span.start for span in self.label_scores.annotation.spans_on(doc)]
        begins[starts] = scores[starts]
        return begins

    def _count(self, doc: Doc, gold: bool = False) -> int:
        """Return how many units have the label by prediction, or by the gold."""
        if self._counts_entities:
            annotation, label = self.label_scores.annotation, get_string_id(self.label)
            if gold:
                n = sum(span.label == label for span in annotation.gold.spans_on(doc))
            else:
                n = sum(annotation.gold_span_label(span.label) == label for span in annotation.spans_on(doc))
        else:
            n = int(self.label_scores.match_labels(doc, self._is_label, gold).sum())
        return min(n, 1) if self.unit == DOCUMENT else n

    def count_gold(self, doc: Doc) -> int:
        return self._count(doc, gold=True)


_MAX_LISTED = 40


def make_query(label: str, all_scores: Sequence[LabelScores], unit: str | None = None) -> LabelQuery:
    """Return the query for a label. unit (str | None): What to count: token, entity or document; None for the default.

    RAISES C393: no pipe has the label. C389: several have it. C483: a pipe merges it with other labels. C398: another unit.
    """
    text, label = label, label.strip()
    candidates = []
    for label_scores in all_scores:
        pipe_labels = {
            name[2:] if label_scores.annotation.has_prefixes and name != "O" else name
            for name in _countable_labels(label_scores)
        }
        pipe_label = next((name for name, query_name in label_scores.names.items() if query_name == label), label)
        if pipe_label in pipe_labels:
            candidates.append((label_scores, pipe_label))
    if len(candidates) > 1:
        options = " or ".join(f"--attr {label_scores.attr}" for label_scores, _ in candidates)
        raise calib_error("C389", query=repr(text), n=len(candidates), options=options)
    for label_scores, pipe_label in candidates:
        units = countable_units(label_scores)
        if unit is not None and unit not in units:
            raise calib_error("C398", what=f"The label {label}", given=unit, wanted=" or ".join(units))
        return LabelQuery(text, units[0] if unit is None else unit, label_scores, pipe_label)
    for label_scores in all_scores:
        if name := label_scores.merged_labels.get(label):
            labels = " and ".join(", ".join(label_scores.list_merged(name)).rsplit(", ", 1))
            raise calib_error("C483", name=label_scores.attr, labels=labels, given=label, query=repr(text), merged=name)
    names = sorted({scores.names.get(name, name) for scores in all_scores for name in _countable_labels(scores) if name})
    listing = ", ".join(names[:_MAX_LISTED]) + (", ..." if len(names) > _MAX_LISTED else "")
    listing += " (no other identity of links is counted)" * any(scores.annotation.spans_are_units for scores in all_scores)
    raise calib_error("C393", given=label, query=repr(text), known=listing or "none")


def _countable_labels(label_scores: LabelScores) -> Sequence[str]:
    """Return the labels that a query may name; of entity links only NIL, as all other columns are ranks of candidates."""
    return [EntityLinker.NIL] if label_scores.annotation.spans_are_units else label_scores.labels
