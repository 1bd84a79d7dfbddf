"""Scores that any component left on the Doc: what their sources share, and marginals as an array of the Doc."""

from __future__ import annotations

import contextlib
import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc

from ..annotations import Annotation, get_annotation
from ..calibration.registered import prototypes
from ..errors import calib_error
from ..pairs.build import DenseScores
from ..pairs.documents import TOKEN
from ..types import ROUNDING
from .base import Source, named_source, to_numpy

# Begins the name of an extension attribute, as in `span._.score`.
EXTENSION = "_."
# A probability that was computed in single precision may pass 1 by this.
_SINGLE = 1e-6


class LeftScoresSource(Source):
    """Reads scores that any component left on the Doc.

    component (str): Name of the component; "" for Docs that come with scores. labels (Sequence[str] | None): None takes the
    `labels` of the component, else those that have a score in the fit data.
    """

    doc_alone = True

    def __init__(self, component: str, labels: Sequence[str] | None):
        self.component = component
        self._set_labels = None if labels is None else distinct_labels(labels, "a list of distinct labels, or left out")
        self._fit_labels: tuple[str, ...] = ()

    def supports(self, pipe: Any) -> bool:
        return True

    def claims(self, pipe: Any) -> bool:
        source_name = named_source(pipe).get("@calib_sources", "")
        return bool(source_name) and type(prototypes("calib_sources").get(source_name)) is type(self)

    def kind(self, pipe: Any) -> str:
        """Functions are told apart by their names."""
        return getattr(pipe, "__qualname__", type(pipe).__name__)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return ""

    def reads_output(self, pipe: Any) -> bool:
        return True

    def is_trained(self, pipe: Any) -> bool:
        """True: what a component needs is not known, and its labels may be learned."""
        return True

    # Labels

    def own_labels(self, pipe: Any) -> tuple[str, ...]:
        """Return the labels; () where they are learned and nothing was fitted yet."""
        return self._set_labels or _labels_of(pipe) or self._fit_labels

    def learn_labels(self, pipe: Any, docs: Sequence[Doc]) -> tuple[str, ...]:
        """Learn the labels from the fit data, unless settings or component name them. RETURNS: Unknown labels with a score.

        RAISES C281 to C283, C286: unreadable scores. C284: no label with a score is known. C285: nothing has a score.
        """
        readable = [doc for doc, why in zip(docs, self.missing_input(docs), strict=True) if not why]
        if not readable and self.own_labels(pipe):
            return ()  # why, says the fit
        scored_labels = sorted(self.scored_labels(pipe, readable))
        labels = self.own_labels(pipe) if self._set_labels or _labels_of(pipe) else tuple(scored_labels)
        if not scored_labels:
            raise calib_error("C285", where=self.where)
        if not set(scored_labels) & set(labels):
            raise calib_error("C284", where=self.where, found=", ".join(scored_labels), known=", ".join(labels))
        self._fit_labels = labels
        return tuple(label for label in scored_labels if label not in labels)

    def kept_labels(self) -> tuple[str, ...]:
        return self._set_labels or self._fit_labels

    def restore_labels(self, saved: Sequence[str]) -> bool:
        """Learned labels are not written into the config."""
        if self._set_labels is None:
            self._fit_labels = tuple(saved)
            return False
        if not differ_in_dollars(saved, self._set_labels):
            return False
        self._set_labels = tuple(saved)
        return True

    # What is on the Doc

    @property
    @abstractmethod
    def where(self) -> str:
        """Where the scores are stored, for messages."""

    @abstractmethod
    def missing_input(self, docs: Sequence[Doc]) -> list[str]:
        """Return why each Doc has nothing to read, or ""."""

    @abstractmethod
    def scored_labels(self, pipe: Any, docs: Sequence[Doc]) -> set[str]:
        """Return the labels that have a score on readable Docs."""

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        if not self.own_labels(pipe):
            return ["its labels are learned by the fit; fit it, or name them in the source (labels)"] * len(docs)
        return ["" if not len(doc) else why for doc, why in zip(docs, self.missing_input(docs), strict=True)]


def _labels_of(pipe: Any) -> tuple[str, ...]:
    """Return the distinct text labels that a component names, or ()."""
    labels = getattr(pipe, "labels", ())
    is_list = isinstance(labels, (list, tuple)) and all(isinstance(label, str) for label in labels)
    return tuple(labels) if is_list and len(set(labels)) == len(labels) else ()


def named_scores(score: object) -> tuple[str, ...]:
    """Return the score names of a setting: a text with commas, or a list; () for anything else."""
    names = [name.strip() for name in score.split(",")] if isinstance(score, str) else score
    return tuple(names) if isinstance(names, list) and all(isinstance(name, str) and name for name in names) else ()


def check_extension(owner: type, name: str) -> None:
    """RAISES C281: Doc, Span or Token (owner) has no extension of this name."""
    if not owner.has_extension(name):  # type: ignore[attr-defined]
        raise calib_error("C281", owner=owner.__name__, name=name)


def as_score(value: Any, where: str, what: str) -> float:
    """Return a number of Python, numpy or torch as a score; NaN for None. RAISES C282: it is not in [0, 1]."""
    if value is None:
        return math.nan
    number = value
    if hasattr(value, "item"):
        with contextlib.suppress(Exception):  # an array of several numbers is none
            number = value.item()
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not -_SINGLE <= number <= 1 + _SINGLE:
        raise calib_error("C282", where=where, given=repr(number), what=what)
    return min(1.0, max(0.0, float(number)))


def distinct_labels(labels: Sequence[str], expected: str) -> tuple[str, ...]:
    """Return the labels of a setting. RAISES C001: none, or not distinct. C111: one that no config can hold."""
    if not labels or len(set(labels)) != len(labels):
        raise calib_error("C001", name="labels", wanted=expected, given=list(labels))
    for label in labels:
        if "${" in label:
            raise calib_error("C111", label=label)
    return tuple(labels)


def differ_in_dollars(saved: Sequence[str], labels: Sequence[str]) -> bool:
    """Return whether the labels differ only in numbers of dollar signs: spaCy doubles them each time it writes a config."""
    return tuple(saved) != tuple(labels) and [_single(label) for label in saved] == [_single(label) for label in labels]


def _single(label: str) -> str:
    """Replace every run of dollar signs by one."""
    return re.sub(r"\$+", "$", label)


# A row of half-precision probabilities may miss 1 by this.
_ROUNDED = 0.01


class DocTensorSource(Source):
    """Reads an array (n_tokens, n_labels) of probabilities from each Doc.

    labels (list[str]): The label of each column.
    key (str): "tensor" for doc.tensor, else a key of doc.user_data.
    layer (str): Annotation of the labels: tag, pos, morph, lemma, sent, dep, ent_type.
    subprobabilities (bool): Whether a row may sum to less than 1, as small probabilities were left out.
    RAISES C001: labels that are not distinct, or no such annotation. C111: a label that no config can hold.
    """

    sets_labels = True

    def __init__(self, labels: list[str], key: str = "tensor", layer: str = "tag", subprobabilities: bool = False):
        self._labels = distinct_labels(labels, "a list of distinct labels, one per column")
        self._annotation = get_annotation(layer)
        if self._annotation.unit != TOKEN:
            raise calib_error("C001", name="layer", wanted="an annotation of tokens", given=repr(layer))
        self.key = key
        self.subprobabilities = subprobabilities
        self.user_data_keys = () if key == "tensor" else (key,)

    def kept_labels(self) -> tuple[str, ...]:
        return self._labels

    def restore_labels(self, saved: Sequence[str]) -> bool:
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
        array = doc.tensor if self.key == "tensor" else doc.user_data.get(self.key, ())
        return to_numpy(array)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return ["" if self._array(doc).size else f"there is no array at {self._where}" for doc in docs]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> DenseScores:
        """RAISES C040: another shape. C041: values that are no probabilities. C166: rows that do not sum to 1."""
        arrays = [self._array(doc) for doc in docs]
        for doc, array in zip(docs, arrays, strict=True):
            shape = (len(doc), len(self._labels))
            if array.shape != shape:
                raise calib_error("C040", where=self._where, given=array.shape, wanted=shape)
        whole = np.concatenate(arrays).astype(np.float64)
        low, high = whole.min(initial=0.0), whole.max(initial=0.0)
        if not (low >= -ROUNDING and high <= 1 + ROUNDING):
            raise calib_error("C041", where=self._where, given=f"values from {low} to {high}")
        sums = whole.sum(axis=1)
        if (sums > 1 + _ROUNDED).any() or (not self.subprobabilities and (sums < 1 - _ROUNDED).any()):
            raise calib_error("C166", where=self._where, low=f"{sums.min():.3g}", high=f"{sums.max():.3g}")
        return DenseScores(np.clip(whole, 0.0, 1.0))
