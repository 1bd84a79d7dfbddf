"""The interface of queries, and the simplest one: how often a label occurs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ....annotations import SPANS_PREFIX, Annotation, get_annotation, plain_name
from ....doc.view import DocCalib, doc_view
from ....pairs.documents import DOCUMENT, TOKEN
from ....types import Floats, Ints

# What may be counted besides tokens and documents.
ENTITY = "entity"
# The attribute of spaCy's Matcher for the labels of an annotation.
_KEYS = {"tag": "TAG", "pos": "POS", "morph": "POS", "ner": "ENT_TYPE", "biluo": "ENT_TYPE", "lemma": "LEMMA", "dep": "DEP"}
Satisfies = Callable[[str], bool]
# The scores of a Doc under a prefix: `doc_view`, or a function that remembers its results.
ViewOf = Callable[[Doc, str], DocCalib | None]


@dataclass(frozen=True, eq=False)
class QueryResult:
    """What a query finds in one Doc.

    raw, calibrated (Floats): Probability of each unit that may satisfy it. found (int): Units that satisfy it by the labels on
    the Doc. tokens (float | None): Expected tokens in entities that are counted by their beginnings. draws (Ints | None): For
    dependent units, how many satisfy it in each sample; `raw` and `calibrated` are then of the Doc.
    """

    raw: Floats
    calibrated: Floats
    found: int
    draws: Ints | None = None
    tokens: float | None = None


@dataclass(frozen=True)
class Scored:
    """The scores of one pipe. attr (str): Its prefix. layer (str): Its annotation. labels (Sequence[str]): Of its source.

    names (Mapping): Label -> what queries call it, where that is another name. merged (Mapping): Label of the component -> that of the scores,
    which stands for several of them.
    """

    attr: str
    layer: str
    labels: Sequence[str]
    names: Mapping[str, str] = field(default_factory=dict, hash=False, kw_only=True)
    merged: Mapping[str, str] = field(default_factory=dict, hash=False, kw_only=True)

    @property
    def annotation(self) -> Annotation:
        """The annotation of its labels."""
        return get_annotation(self.layer)

    @property
    def plain(self) -> str:
        return plain_name(self.layer)

    @property
    def key(self) -> str:
        """The labels' attribute of spaCy's Matcher, or ""."""
        return _KEYS.get(self.plain, "")

    def merged_in(self, label: str) -> list[str]:
        """Return the labels of the component that a label of the scores stands for; [] for one alone."""
        return [own for own, name in self.merged.items() if name == label]

    def value(self, label: str) -> str:
        """Return a label as a value of that attribute."""
        if self.plain == "morph":
            return dict(part.split("=", 1) for part in label.split("|") if "=" in part).get("POS", "")
        if self.key == "ENT_TYPE":
            label = "" if label == "O" else label[2:] if self.annotation.has_prefixes else label
        return self.names.get(label, label)

    def chances(self, doc: Doc, satisfies: Satisfies, view_of: ViewOf = doc_view) -> tuple[Floats, Floats]:
        """Return (raw, calibrated) probability of each unit to have a label that satisfies."""
        n_units = self.annotation.n_units(doc)
        view = view_of(doc, self.attr)
        if view is None:
            return np.zeros(n_units), np.zeros(n_units)
        is_match = {tag: satisfies(tag) for tag in set(view.tags.tolist())}
        entries = np.array([is_match[tag] for tag in view.tags.tolist()], dtype=bool)
        raw, calibrated = (
            np.bincount(view.rows[entries], column[entries], minlength=n_units) for column in (view.raw, view.calibrated)
        )
        return np.minimum(raw, 1.0), np.minimum(calibrated, 1.0)

    def carried(self, doc: Doc, satisfies: Satisfies, gold: bool = False) -> NDArray[np.bool_]:
        """Return which units have a label that satisfies. gold (bool): Whether it is a gold Doc."""
        annotation = self.annotation.gold if gold else self.annotation
        hashes = annotation.gold_hashes(doc) if gold else annotation.hashes(doc)
        keys, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        matches = [
            key != 0 and satisfies(annotation.label_at(doc, i)) for key, i in zip(keys.tolist(), first.tolist(), strict=True)
        ]
        return np.array(matches, dtype=bool)[inverse.reshape(-1)]


class Query(ABC):
    """A question to Docs. text (str): As given. unit (str): What it counts, one of the class's `units`."""

    text: str
    unit: str
    units: ClassVar[tuple[str, ...]] = (TOKEN, DOCUMENT)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """(prefix of the pipe, label) of each label that it reads."""
        return []

    @property
    def needs(self) -> list[str]:
        """Attributes that it reads from a Doc and that may be missing there."""
        return []

    @property
    def of_scores(self) -> bool:
        """Whether it reads scores and words alone."""
        return True

    @abstractmethod
    def answer(self, doc: Doc, view_of: ViewOf = doc_view) -> QueryResult:
        """Return the answer of an annotated Doc. view_of (ViewOf): Reads its scores, for many queries."""

    @abstractmethod
    def true(self, doc: Doc) -> int:
        """Return how many units of a gold Doc satisfy it; with documents as units 1 or 0."""


def units_of(label_scores: Scored) -> tuple[str, ...]:
    """Return the units in which a label of these scores may be counted; the first is the default."""
    if label_scores.annotation.unit == DOCUMENT:
        return (DOCUMENT,)
    if label_scores.plain.startswith(SPANS_PREFIX):
        return (ENTITY, DOCUMENT)
    return (ENTITY, TOKEN, DOCUMENT) if label_scores.key == "ENT_TYPE" else (TOKEN, DOCUMENT)


@dataclass(frozen=True)
class LabelQuery(Query):
    """How often a label occurs. label: In the words of the gold, without B- and the like."""

    text: str
    unit: str
    scored: Scored
    label: str

    @property
    def labels(self) -> list[tuple[str, str]]:
        return [(self.scored.attr, label) for label in self.scored.labels if self._is_label(label)]

    def _is_label(self, label: str) -> bool:
        label_scores = self.scored
        return label == self.label or (label_scores.annotation.has_prefixes and label[2:] == self.label)

    @property
    def _of_entities(self) -> bool:
        """Whether entities are counted, or documents by their entities."""
        return ENTITY in units_of(self.scored) and self.unit != TOKEN

    def answer(self, doc: Doc, view_of: ViewOf = doc_view) -> QueryResult:
        n_found = self._count(doc)
        tokens = None
        if self._of_entities and self.scored.plain.startswith(SPANS_PREFIX):
            view = view_of(doc, self.scored.attr)
            spans = [] if view is None else [span for span in (*view.ents, *view.candidates) if span.label == self.label]
            return QueryResult(np.array([span.raw for span in spans]), np.array([span.score for span in spans]), n_found)
        if self._of_entities and self.scored.annotation.has_prefixes:
            raw, calibrated = self.scored.chances(doc, lambda name: self._is_label(name) and name[:2] in ("B-", "U-"), view_of)
        elif self._of_entities:
            of_tokens = self.scored.chances(doc, self._is_label, view_of)
            raw, calibrated = (self._beginnings(doc, column) for column in of_tokens)
            tokens = float(of_tokens[1].sum())
        else:
            raw, calibrated = self.scored.chances(doc, self._is_label, view_of)
        is_possible = (raw > 0) | (calibrated > 0)
        return QueryResult(raw[is_possible], calibrated[is_possible], n_found, tokens=tokens)

    def _beginnings(self, doc: Doc, chances: Floats) -> Floats:
        """Return the probability that an entity of the label begins at a token.

        Only the probability that the token has the type is known, and the tokens of one entity depend on each other: a token
        begins none if the token before is at least as likely, unless an entity on the Doc begins there.
        """
        begins = chances.copy()
        begins[1:] = np.maximum(0.0, chances[1:] - chances[:-1])
        starts = [span.start for span in self.scored.annotation.spans_on(doc)]
        begins[starts] = chances[starts]
        return begins

    def _count(self, doc: Doc, gold: bool = False) -> int:
        if self._of_entities:
            annotation, label = self.scored.annotation, get_string_id(self.label)
            if gold:
                n = sum(span.label == label for span in annotation.gold.spans_on(doc))
            else:
                n = sum(annotation.gold_span_label(span.label) == label for span in annotation.spans_on(doc))
        else:
            n = int(self.scored.carried(doc, self._is_label, gold).sum())
        return min(n, 1) if self.unit == DOCUMENT else n

    def true(self, doc: Doc) -> int:
        return self._count(doc, gold=True)
