"""The source of P(part of speech) of each token, from the probabilities of a morphologizer's finer labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc

from ...annotations import Annotation, get_annotation
from ...pairs.label_map import merge_labels
from ...sources.heads import SoftmaxSource
from ...sources.mapped import MappedScores
from ...types import Ints


class PosSource(SoftmaxSource):
    """A source of P(part of speech): the sum of a morphologizer's probabilities of all labels with this part, such as NOUN."""

    def claims(self, pipe: Any) -> bool:
        return False  # only a config that names this source uses it

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation("pos")

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return self._merge_labels(pipe)[0]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> MappedScores:
        return MappedScores(super().read(pipe, docs), self._merge_labels(pipe)[1], highest=False, spans=None)  # sums

    def _merge_labels(self, pipe: Any) -> tuple[tuple[str, ...], Ints]:
        """Return (the distinct parts of speech; for each label, such as "Case=Nom|POS=PRON", the index of its part, or -1)."""
        parts = [next((field[4:] for field in label.split("|") if field.startswith("POS=")), "") for label in pipe.labels]
        return merge_labels(parts)
