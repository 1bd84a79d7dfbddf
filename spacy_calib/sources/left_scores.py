"""The base class of sources that read scores which any component left on the Doc, and the source of an array there."""

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
from ..doc.attributes import is_calibrated
from ..errors import calib_error
from ..pairs.scores import DenseScores
from ..registry import prototypes
from ..types import ROUNDING, SINGLE_PRECISION
from .source import Source, named_source, to_numpy

EXTENSION = "_."  # prefix of the name of an extension attribute, as in `span._.score`
HALF_PRECISION = 0.01  # tolerance for sums of probabilities that were computed in half precision


class LeftScoresSource(Source):
    """Base class of sources of scores that any component, or your own code, left on the Doc.

    component (str): Name of the component; "" for Docs that come with scores. labels (Sequence[str] | None): The labels; None
    takes the `labels` of the component or, if it has none, the labels with a score in the fit data. score (str): Name of the
    score on the Doc; "_.NAME" is an extension.
    """

    reads_doc_only = True
    score: str

    def __init__(self, component: str, labels: Sequence[str] | None):
        self.component = component
        self._set_labels = None if labels is None else distinct_labels(labels, "a list of distinct labels, or left out")
        self._fit_labels: tuple[str, ...] = ()  # learned by the fit

    def claims(self, pipe: Any) -> bool:
        source_name = named_source(pipe).get("@calib_sources", "")
        return bool(source_name) and type(prototypes("calib_sources").get(source_name)) is type(self)  # the component names it

    def type_name(self, pipe: Any) -> str:
        """Return the name of the component if it is a function, else the name of its class."""
        return getattr(pipe, "__qualname__", type(pipe).__name__)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return ""

    def reads_output(self, pipe: Any) -> bool:
        return True

    def is_trained(self, pipe: Any) -> bool:
        """Return True, as nobody knows what the component needs. Labels that are missing are learned by the fit."""
        return True

    def score_labels(self, pipe: Any) -> tuple[str, ...]:
        """Return the labels that can have a score; () before the fit that learns them."""
        return self._set_labels or _labels_of(pipe) or self._fit_labels

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return self.score_labels(pipe)

    def learn_labels(self, pipe: Any, docs: Sequence[Doc]) -> tuple[str, ...]:
        """Learn the labels from Docs of the fit, unless the settings or the component name the labels.

        RETURNS (tuple): The labels with a score that are not named. RAISES C281 to C283: unreadable scores. C284: labels are
            named, but none of them has a score. C285: nothing has a score.
        """
        readable = [doc for doc, why in zip(docs, self.reasons_not_to_read(docs), strict=True) if not why]
        if not readable and self.score_labels(pipe):
            return ()  # the fit reports why it can read no Doc
        scored_labels = sorted(self.scored_labels(pipe, readable))
        labels = self.score_labels(pipe) if self._set_labels or _labels_of(pipe) else tuple(scored_labels)
        if not scored_labels:
            raise calib_error("C285", where=self.where)
        if not set(scored_labels) & set(labels):
            raise calib_error("C284", where=self.where, found=", ".join(scored_labels), known=", ".join(labels))
        self._fit_labels = labels
        return tuple(label for label in scored_labels if label not in labels)

    def kept_labels(self) -> tuple[str, ...]:
        """Return the labels that settings name or a fit learned, for the pipe to save."""
        return self._set_labels or self._fit_labels

    def restore_labels(self, saved_labels: Sequence[str]) -> bool:
        """Set the labels that the pipe saved: learned ones, or those in the settings as they were before spaCy doubled "$".

        RETURNS (bool): Whether labels in the settings were replaced, because they contain a "$" (`restore_dollars`).
        """
        if self._set_labels is None:
            self._fit_labels = tuple(saved_labels)
            return False
        labels = self._set_labels
        self._set_labels = restore_dollars(saved_labels, labels)
        return self._set_labels != labels

    @property
    def _is_extension(self) -> bool:
        return self.score.startswith(EXTENSION)

    @property
    @abstractmethod
    def where(self) -> str:
        """The place on the Doc where the scores are, for messages."""

    @abstractmethod
    def reasons_not_to_read(self, docs: Sequence[Doc]) -> list[str]:
        """Return for each Doc why it has no scores to read, "" if it has some. RAISES C281: no such extension."""

    @abstractmethod
    def scored_labels(self, pipe: Any, docs: Sequence[Doc]) -> set[str]:
        """Return the labels that have a score on readable Docs."""

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        if not self.score_labels(pipe):
            return ["its labels are learned by the fit; fit it, or name them in the source (labels)"] * len(docs)
        return ["" if not len(doc) else why for doc, why in zip(docs, self.reasons_not_to_read(docs), strict=True)]


def _labels_of(pipe: Any) -> tuple[str, ...]:
    """Return the `labels` of a component; () if it has none, or they are not distinct strings."""
    labels = getattr(pipe, "labels", ())
    is_list = isinstance(labels, (list, tuple)) and all(isinstance(label, str) for label in labels)
    return tuple(labels) if is_list and len(set(labels)) == len(labels) else ()


def split_score_names(score: object) -> tuple[str, ...]:
    """Return the score names of a setting, a comma-separated string or a list. RAISES C001: it is something else, or empty."""
    names = [name.strip() for name in score.split(",")] if isinstance(score, str) else score
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise calib_error("C001", name="score", wanted="a name, or several", given=repr(score))
    return tuple(names)


def check_extension(owner: type, name: str) -> None:
    """Check the extension `name` of owner (Doc, Span, Token). RAISES C281: it does not exist. C290: it is of a calib pipe."""
    if not owner.has_extension(name):  # type: ignore[attr-defined]
        raise calib_error("C281", owner=owner.__name__, name=name)
    if is_calibrated(owner, name):
        raise calib_error("C290", owner=owner.__name__, name=name)


def as_score(value: Any, where: str, unit_name: str) -> float:
    """Return a score as float, NaN for None. where, unit_name: Its place and unit, for messages. RAISES C282: not in [0, 1]."""
    if value is None:
        return math.nan
    number = value
    if hasattr(value, "item"):  # of numpy or torch
        with contextlib.suppress(Exception):  # it fails for an array of several numbers, which is no score
            number = value.item()
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not (is_number and -SINGLE_PRECISION <= number <= 1 + SINGLE_PRECISION):
        raise calib_error("C282", where=where, given=repr(number), what=unit_name)
    return min(1.0, max(0.0, float(number)))


def distinct_labels(labels: Sequence[str], requirement: str) -> tuple[str, ...]:
    """Return the labels as a tuple. RAISES C001 (it cites `requirement`): no labels, or equal ones. C111: a label with "${"."""
    if not labels or len(set(labels)) != len(labels):
        raise calib_error("C001", name="labels", wanted=requirement, given=list(labels))
    for label in labels:
        if "${" in label:  # a config takes it for a variable
            raise calib_error("C111", label=label)
    return tuple(labels)


def restore_dollars(saved_labels: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    """Return the saved labels if the labels of a config differ from them only in numbers of "$", else the config's labels.

    spaCy doubles "$" each time it writes a config: the label "$", for instance of money, comes back as "$$", then as "$$$$".
    """
    saved_names, names = ([re.sub(r"\$+", "$", label) for label in label_list] for label_list in (saved_labels, labels))
    return tuple(saved_labels if saved_names == names else labels)


class DocTensorSource(Source):
    """Source of probabilities in an array on the Doc, shape (n_tokens, n_labels).

    labels (list[str]): The label of each column. key (str): "tensor" for doc.tensor, else a key of doc.user_data.
    layer (str): Annotation of the labels: tag, pos, morph, lemma, sent, dep, ent_type.
    subprobabilities (bool): Whether a row may sum to less than 1, because small probabilities were left out.
    RAISES C001: labels that are not distinct, or no such annotation. C111: a label that no config can contain.
    """

    sets_labels = True

    def __init__(self, labels: list[str], key: str = "tensor", layer: str = "tag", subprobabilities: bool = False):
        self._labels = distinct_labels(labels, "a list of distinct labels, one per column")
        self._annotation = get_annotation(layer)
        if self._annotation.kind.of_documents:
            raise calib_error("C001", name="layer", wanted="an annotation of tokens", given=repr(layer))
        self.key = key
        self.subprobabilities = subprobabilities
        self.user_data_keys = () if key == "tensor" else (key,)

    def kept_labels(self) -> tuple[str, ...]:
        return self._labels

    def restore_labels(self, saved_labels: Sequence[str]) -> bool:
        """Set the labels that the pipe saved, as spaCy doubles "$" in those of a config. RETURNS: Whether they differ."""
        labels = self._labels
        self._labels = restore_dollars(saved_labels, labels)
        return self._labels != labels

    @property
    def _where(self) -> str:
        return "doc.tensor" if self.key == "tensor" else f"doc.user_data[{self.key!r}]"

    def annotation(self, pipe: Any) -> Annotation:
        return self._annotation

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return self._labels

    def _array(self, doc: Doc) -> NDArray[Any]:
        return to_numpy(doc.tensor if self.key == "tensor" else doc.user_data.get(self.key, ()))

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return ["" if self._array(doc).size else f"there is no array at {self._where}" for doc in docs]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> DenseScores:
        """Return the probabilities of tokens. RAISES C040: another shape. C041: not in [0, 1]. C166: row sums other than 1."""
        arrays = [self._array(doc) for doc in docs]
        for doc, array in zip(docs, arrays, strict=True):
            shape = (len(doc), len(self._labels))
            if array.shape != shape:
                raise calib_error("C040", where=self._where, given=array.shape, wanted=shape)
        probabilities = np.concatenate(arrays).astype(np.float64)
        low, high = probabilities.min(initial=0.0), probabilities.max(initial=0.0)
        if not (low >= -ROUNDING and high <= 1 + ROUNDING):
            raise calib_error("C041", where=self._where, given=f"values from {low} to {high}")
        sums = probabilities.sum(axis=1)
        if (sums > 1 + HALF_PRECISION).any() or (not self.subprobabilities and (sums < 1 - HALF_PRECISION).any()):
            raise calib_error("C166", where=self._where, low=f"{sums.min():.3g}", high=f"{sums.max():.3g}")
        return DenseScores(np.clip(probabilities, 0.0, 1.0))
