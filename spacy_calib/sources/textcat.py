"""Text categories: the scores that `textcat` and `textcat_multilabel` leave in `doc.cats`."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from spacy.pipeline.textcat import TextCategorizer
from spacy.pipeline.textcat_multilabel import MultiLabel_TextCategorizer
from spacy.tokens import Doc

from ..doc.annotations import CatsAnnotation
from ..errors import calib_error
from ..pairs.build import DenseScores
from ..types import ROUNDING
from .base import OutputSource

# Of a value, and of a text, a message shows so many characters.
_SHOWN = 40


class TextcatSource(OutputSource):
    """A row of probabilities for each document: of classes that exclude each other (`textcat`), or each by itself (`textcat_multilabel`).

    component (str): Name of the component. Others may write into `doc.cats` too: only its own labels are read.
    """

    reads = ("textcat", "textcat_multilabel")

    def __init__(self, component: str = "textcat"):
        self.component = component

    def supports(self, pipe: Any) -> bool:
        return isinstance(pipe, TextCategorizer)

    def claims(self, pipe: Any) -> bool:
        return self.supports(pipe)

    def kind(self, pipe: Any) -> str:
        return (MultiLabel_TextCategorizer if _is_multilabel(pipe) else TextCategorizer).__name__

    def annotation(self, pipe: Any) -> CatsAnnotation:
        return CatsAnnotation(pipe.labels, _is_multilabel(pipe))

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return tuple(pipe.labels)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return [self._why_missing(pipe.labels, doc) if len(doc) else "" for doc in docs]

    def _why_missing(self, labels: Sequence[str], doc: Doc) -> str:
        absent = next((label for label in labels if label not in doc.cats), None)
        if absent is None:
            return ""
        return f"doc.cats has no category '{absent}'; run the component '{self.component}' on the Doc first"

    def read(self, pipe: Any, docs: Sequence[Doc]) -> DenseScores:
        """RAISES C262: values that are no probabilities."""
        units = [doc for doc in docs if len(doc)]
        held = [[doc.cats[label] for label in pipe.labels] for doc in units]
        table = np.array([[value if isinstance(value, Real) else np.nan for value in row] for row in held], dtype=np.float64)
        table = table.reshape(-1, len(pipe.labels))
        bad = ~((table >= -ROUNDING) & (table <= 1 + ROUNDING))  # NaN is bad too
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            given = f"{pipe.labels[column]} = {repr(held[row][column])[:_SHOWN]}"
            raise calib_error("C262", component=self.component, given=given, text=units[row].text[:_SHOWN])
        return DenseScores(np.clip(table, 0.0, 1.0))


def _is_multilabel(pipe: Any) -> bool:
    return isinstance(pipe, MultiLabel_TextCategorizer)
