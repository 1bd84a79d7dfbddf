"""Marginals that somebody else put on the Doc: `doc.tensor`, or an array under a key of `doc.user_data`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..doc.annotations import Annotation, get_annotation
from ..errors import calib_error
from ..pairs.build import DenseScores
from ..pairs.documents import TOKEN
from ..types import ROUNDING
from .base import Source, to_numpy
from .left_scores import differ_in_dollars, distinct_labels

# A row of half-precision probabilities may miss 1 by this.
_ROUNDED = 0.01


class DocTensorSource(Source):
    """Reads an array (n_tokens, n_labels) of probabilities from each Doc.

    labels (list[str]): The label of each column.
    key (str): "tensor" for doc.tensor, else a key of doc.user_data.
    layer (str): Which annotation the labels are of: tag, pos, morph, lemma, sent, dep, ent_type.
    subprobabilities (bool): Whether the row of a token may sum to less than 1: small probabilities were left out.
    RAISES C001: no labels, labels that are not distinct, or no such annotation. C111: a label that no config can hold.
    """

    sets_labels = True

    def __init__(self, labels: list[str], key: str = "tensor", layer: str = "tag", subprobabilities: bool = False):
        self._labels = distinct_labels(labels, "a list of distinct labels, one per column")
        self._annotation = get_annotation(layer)
        if self._annotation.unit != TOKEN:
            raise calib_error("C001", name="layer", wanted="an annotation of tokens", given=repr(layer))
        self.key = key
        self.subprobabilities = subprobabilities
        self.user_data_key = "" if key == "tensor" else key

    def kept_labels(self) -> tuple[str, ...]:
        """See Source."""
        return self._labels

    def restore_labels(self, saved: Sequence[str]) -> bool:
        """See Source."""
        if not differ_in_dollars(saved, self._labels):
            return False
        self._labels = tuple(saved)
        return True

    @property
    def _where(self) -> str:
        return "doc.tensor" if self.key == "tensor" else f"doc.user_data[{self.key!r}]"

    def annotation(self, pipe: Any) -> Annotation:
        return self._annotation

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return self._labels

    def _array(self, doc: Doc) -> NDArray[Any]:
        given = doc.tensor if self.key == "tensor" else doc.user_data.get(self.key, ())
        return to_numpy(given)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return ["" if self._array(doc).size else f"there is no array at {self._where}" for doc in docs]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> DenseScores:
        """RAISES C040: an array of another shape. C041: values that are no probabilities. C166: rows that do not sum to 1."""
        arrays = [self._array(doc) for doc in docs]
        for doc, array in zip(docs, arrays, strict=True):
            wanted = (len(doc), len(self._labels))
            if array.shape != wanted:
                raise calib_error("C040", where=self._where, given=array.shape, wanted=wanted)
        whole = np.concatenate(arrays).astype(np.float64)
        low, high = whole.min(initial=0.0), whole.max(initial=0.0)
        if not (low >= -ROUNDING and high <= 1 + ROUNDING):
            raise calib_error("C041", where=self._where, given=f"values from {low} to {high}")
        sums = whole.sum(axis=1)
        if (sums > 1 + _ROUNDED).any() or (not self.subprobabilities and (sums < 1 - _ROUNDED).any()):
            raise calib_error("C166", where=self._where, low=f"{sums.min():.3g}", high=f"{sums.max():.3g}")
        return DenseScores(np.clip(whole, 0.0, 1.0))
