"""A source together with the component that it reads, whose annotation and labels are looked up once."""

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

    source (Source): The settings. component (Any): The component that it reads; None for a source that reads only the Doc.
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
        """Bind a source to a component, and look up annotation and labels. RAISES C163: a label map for labels that cannot be mapped."""
        return cls(
            source, component, source.annotation(component), source.labels(component), tuple(source.span_labels(component))
        )

    @cached_property
    def own_labels(self) -> tuple[str, ...]:
        """The labels of the component, before a label map merges them."""
        return with_map(self.source, None).labels(self.component)

    @cached_property
    def label_hashes(self) -> Hashes:
        return label_hashes(self.labels)

    @property
    def name(self) -> str:
        """The name of the component for messages."""
        return self.source.component or "the source"

    def read(self, docs: Sequence[Doc]) -> Scores:
        """Return the scores of all tokens (or documents) of readable Docs."""
        return self.source.read(self.component, docs)

    def missing(self, docs: Sequence[Doc]) -> list[str]:
        """Return for each Doc why it cannot be read, "" if it can."""
        return self.source.missing(self.component, docs)

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """Count the gold labels of Docs."""
        return self.source.count(self.component, docs)

    def with_current_labels(self) -> BoundSource:
        """Return this source with the labels that the component has now; recognizers can get new labels while they run."""
        is_current = self.source.labels(self.component) == self.labels
        return self if is_current else BoundSource.from_component(self.source, self.component)
