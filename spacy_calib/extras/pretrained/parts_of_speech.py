"""The part of speech of each token, from the probabilities of finer labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from spacy.tokens import Doc

from ...doc.annotations import Annotation, get_annotation
from ...pairs.label_map import merge_labels
from ...sources.mapped import MappedScores
from ...sources.softmax import SoftmaxSource
from ...types import Ints


class PosSource(SoftmaxSource):
    """P(part of speech) of a morphologizer: the sum over its labels with that part of speech.

    component (str): Name of the component. It is read where a setting names this source, never by default.
    """

    def __init__(self, component: str = "morphologizer"):
        super().__init__(component)

    def supports(self, pipe: Any) -> bool:
        return super().supports(pipe) and bool(self.labels(pipe))

    def claims(self, pipe: Any) -> bool:
        return False

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation("pos")

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return _merge(tuple(super().labels(pipe)))[0]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> MappedScores:
        columns = _merge(tuple(super().labels(pipe)))[1]
        return MappedScores(super().read(pipe, docs), columns, highest=False, spans=None)


@cache
def _merge(labels: tuple[str, ...]) -> tuple[tuple[str, ...], Ints]:
    """(the parts of speech, the column of each label among them, -1 for one without)."""
    return merge_labels(
        labels, [next((field[4:] for field in label.split("|") if field.startswith("POS=")), "") for label in labels]
    )
