"""A source together with the component that it reads: annotation and labels are looked up once and handed down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spacy.tokens import Doc

from ..annotations import Annotation, Hashes, label_hashes
from ..pairs.build import Scores
from .base import Source
from .mapped import with_map


@dataclass(frozen=True, eq=False)
class BoundSource:
    """A source bound to a component of a pipeline.

    source (Source): The settings. component (Any): The component that it reads; None for a source that reads the Doc alone.
    annotation (Annotation): The annotation that the labels belong to.
    labels (tuple[str, ...]): The labels, one per column of the scores. span_labels (tuple[str, ...]): Labels of its spans; () without spans.
    """

    source: Source
    component: Any
    annotation: Annotation
    labels: tuple[str, ...]
    span_labels: tuple[str, ...]

    @classmethod
    def from_component(cls, source: Source, component: Any) -> BoundSource:
        """Look up annotation and labels. RAISES C163: the source has a label map, and its labels cannot be mapped."""
        return cls(
            source, component, source.annotation(component), source.labels(component), tuple(source.span_labels(component))
        )

    @cached_property
    def own_labels(self) -> tuple[str, ...]:
        """The labels of the component itself, before a label map merges them."""
        return with_map(self.source, None).labels(self.component)

    @cached_property
    def label_hashes(self) -> Hashes:
        """The hash of each label."""
        return label_hashes(self.labels)

    @property
    def name(self) -> str:
        """The component as messages name it."""
        return self.source.component or "the source"

    def read(self, docs: Sequence[Doc]) -> Scores:
        """The scores of all tokens (or documents) of the Docs; see `Source.read`."""
        return self.source.read(self.component, docs)

    def missing(self, docs: Sequence[Doc]) -> list[str]:
        """Why each Doc cannot be read, "" if it can."""
        return self.source.missing(self.component, docs)

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """The gold frequency of each label."""
        return self.source.count(self.component, docs)

    def with_current_labels(self) -> BoundSource:
        """This one, or one with the labels that the component has learned since: some components meet new ones while they run."""
        is_current = self.source.labels(self.component) == self.labels
        return self if is_current else BoundSource.from_component(self.source, self.component)
