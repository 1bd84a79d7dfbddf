"""Sources that read scores of tokens or documents from the Doc: the score of the label, or scores of several labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from spacy.pipeline.textcat import TextCategorizer
from spacy.pipeline.textcat_multilabel import MultiLabel_TextCategorizer
from spacy.tokens import Doc, Token

from ..annotations import Annotation, CatsAnnotation, get_annotation
from ..annotations.cats import CATS
from ..errors import calib_error
from ..pairs.pairing import find_top
from ..pairs.scores import DenseScores, SparseScores
from ..types import ROUNDING, Marginals
from .left_scores import EXTENSION, HALF_PRECISION, LeftScoresSource, as_score, check_extension, split_score_names
from .source import OutputSource, to_numpy

_LAYERS = ("tag", "pos", "morph", "lemma", "sent", "dep", "ent_type")
_MAX_SHOWN = 40  # maximum number of characters of a value or a text in a message


class UnitScoresSource(LeftScoresSource):
    """Base class: reads a value for each token or document, the score of its label or a mapping of labels to scores.

    The value None is no score. A Doc without labels gets the highest-scored label of each mapping.
    component (str): Name of the component, or "". labels (Sequence[str] | None): None for labels of the component or the fit
    data. score (str): "_.NAME" for an extension, another name for a key of `doc.user_data`.
    """

    sets_labels = True

    def __init__(self, component: str, score: str, labels: Sequence[str] | None):
        super().__init__(component, labels)
        self.score = score
        self.distributions = True  # whether every value is a mapping; a fit to single numbers sets False

    @property
    def user_data_keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """The keys of `doc.user_data` to read from gold files; () if a component of the pipeline sets the scores."""
        names = () if self.component else (self.score, *self.further_score_names)
        return tuple(name for name in names if name != CATS and not name.startswith(EXTENSION))  # these are no keys

    @abstractmethod
    def values(self, doc: Doc) -> list[Any]:
        """Return the value of each token (or of the document), or None; [] for no values. RAISES C281, C283: unreadable."""

    @abstractmethod
    def describe_unit(self, doc: Doc, row: int) -> str:
        """Return in words, for messages, which unit of the Doc has the number `row`."""

    def entries(self, pipe: Any, doc: Doc) -> list[dict[str, float]]:
        """Return label -> score for each token (or for the document). RAISES C281, C283: unreadable. C282: not in [0, 1]."""
        annotation = self.annotation(pipe)
        result = []
        for row, value in enumerate(self.values(doc)[: annotation.n_units(doc)]):
            scores_by_label = value if isinstance(value, Mapping) else {annotation.label_at(doc, row): value}
            name = self.describe_unit(doc, row)
            scores = {label: as_score(score, self.where, name) for label, score in scores_by_label.items()}
            result.append({label: score for label, score in scores.items() if label and not math.isnan(score)})
        return result

    def reasons_not_to_read(self, docs: Sequence[Doc]) -> list[str]:
        why = f"nothing has a score at {self.where}"
        return ["" if any(value is not None for value in self.values(doc)) else why for doc in docs]

    def scored_labels(self, pipe: Any, docs: Sequence[Doc]) -> set[str]:
        return {label for doc in docs for scores in self.entries(pipe, doc) for label in scores}

    def learn_labels(self, pipe: Any, docs: Sequence[Doc]) -> tuple[str, ...]:
        """Learn the labels from Docs of the fit, and set `distributions`: whether each value is a dict, not one number.

        RETURNS (tuple): Labels with a score that settings and component do not name. RAISES C281 to C285: no readable scores.
        """
        values = [value for doc in docs for value in self.values(doc) if value is not None]
        self.distributions = all(isinstance(value, Mapping) for value in values)  # a number is the score of one label alone
        return super().learn_labels(pipe, docs)

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Return the scores of known labels. RAISES C281 to C283: unreadable. C288: exclusive labels sum to more than 1."""
        column = {label: i for i, label in enumerate(self.labels(pipe))}
        # A unit is a token, or a document; `row` is its number in the Doc.
        units = [(doc, row, scores) for doc in docs for row, scores in enumerate(self.entries(pipe, doc))]
        is_exclusive = not self.annotation(pipe).kind.overlapping  # only one label of a unit is right
        entries: list[tuple[int, int, float]] = []  # (number of the unit among all, column of the label, score)
        for number, (doc, row, scores) in enumerate(units):
            known_scores = sorted((column[label], score) for label, score in scores.items() if label in column)
            total = sum(score for _, score in known_scores)
            if is_exclusive and total > 1 + HALF_PRECISION:
                raise calib_error("C288", where=self.where, what=self.describe_unit(doc, row), given=f"{total:.3g}")
            entries += [(number, tag, score) for tag, score in known_scores]
        table = np.array(entries, dtype=np.float64).reshape(-1, 3)
        rows, tags = table[:, :2].astype(np.intp).T
        return SparseScores(Marginals(rows, tags, table[:, 2].copy(), len(units)), absent=np.nan)


class TokenScoresSource(UnitScoresSource):
    """Source of a value for each token: the score of its label, or a mapping of labels to scores.

    component (str): Name of the component, or "". labels (list[str] | None): None for labels of the component or the fit data.
    score (str): "_.NAME" for the extension `token._.NAME`, another name for a key of `doc.user_data` with a value per token.
    layer (str): Annotation of the labels: tag, pos, morph, lemma, sent, dep, ent_type.
    RAISES C001: no such annotation, or labels that are not distinct. C111: a label that no config can contain.
    """

    def __init__(
        self, component: str = "", score: str = f"{EXTENSION}score", layer: str = "tag", labels: list[str] | None = None
    ):
        super().__init__(component, score, labels)
        if layer not in _LAYERS:
            raise calib_error("C001", name="layer", wanted=f"one of {', '.join(_LAYERS)}", given=repr(layer))
        self.layer = layer

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(self.layer)

    @property
    def where(self) -> str:
        return f"token.{self.score}" if self._is_extension else f"doc.user_data[{self.score!r}]"

    def describe_unit(self, doc: Doc, row: int) -> str:
        return f"the token {doc[row].text[:40]!r}"

    def values(self, doc: Doc) -> list[Any]:
        if self._is_extension:
            name = self.score.removeprefix(EXTENSION)
            check_extension(Token, name)
            return [token._.get(name) for token in doc]
        stored = doc.user_data.get(self.score)  # a list, or an array of numpy, cupy or torch
        if stored is None:
            return []
        values = list(stored) if isinstance(stored, (list, tuple)) else to_numpy(stored).reshape(-1).tolist()
        if len(values) != len(doc):
            raise calib_error("C283", where=self.where, given=len(values), wanted=len(doc), text=doc.text[:40])
        return values


class DocScoresSource(UnitScoresSource):
    """Source of a value for each document: a mapping of categories to scores, or the score of the highest one in `doc.cats`.

    Gold categories are read from `doc.cats` of gold Docs. A predicted Doc with none of the source's categories there gets their
    scores.
    component (str): Name of the component, or "". labels (list[str] | None): None for labels of the component or the fit data.
    score (str | list): "cats" for `doc.cats`, "_.NAME" for the extension `doc._.NAME`, another name for a key of
        `doc.user_data`. Names of further scores in [0, 1], which the fit uses as features, follow after commas or in a list;
        the first score replaces missing ones.
    exclusive (bool): Whether a document has only one of the categories. RAISES C001: a score that is not a name, or labels that
    are not distinct. C111: a label that no config can contain. C740: further scores of categories that are not exclusive.
    """

    def __init__(self, component: str = "", score: object = CATS, labels: list[str] | None = None, exclusive: bool = True):
        names = split_score_names(score)
        if names[1:] and not exclusive:
            raise calib_error("C740", given=", ".join(names[1:]))
        super().__init__(component, names[0], labels)
        self.further_score_names = names[1:]
        self.exclusive = exclusive

    def annotation(self, pipe: Any) -> CatsAnnotation:
        return CatsAnnotation(self.labels(pipe), not self.exclusive)

    @property
    def where(self) -> str:
        return _place_on_doc(self.score)

    def describe_unit(self, doc: Doc, row: int) -> str:
        return f"the document that begins {doc.text[:40]!r}"

    def values(self, doc: Doc) -> list[Any]:
        return [_document_value(doc, self.score)]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Return the scores of the categories of each document, with `further_scores`: name -> array of shape (n_documents,).

        A further score of a document is read for its top category; it is 0 for a document without scores.
        """
        scores = super().read(pipe, docs)
        labels, marginals = self.labels(pipe), scores.marginals
        top = np.flatnonzero(find_top(marginals.rows, marginals.scores))
        # (document, category, score) of each document's top category
        top_entries = list(zip(marginals.rows[top], marginals.tags[top], marginals.scores[top], strict=True))
        documents = [doc for doc in docs if len(doc)]  # the Doc of each row
        for name in self.further_score_names:
            column = np.zeros(scores.n_tokens)  # one "token" per document
            for row, tag, score in top_entries:
                column[row] = self._further_score(documents[row], name, labels[tag], score)
            scores.further_scores = {**scores.further_scores, name: column}
        return scores

    def _further_score(self, doc: Doc, name: str, label: str, first_score: float) -> float:
        """Return the score `name` of a document's category (label) or, if it is missing, first_score (of the first name)."""
        value = _document_value(doc, name)
        value = value.get(label) if isinstance(value, Mapping) else value
        return first_score if value is None else as_score(value, _place_on_doc(name), self.describe_unit(doc, 0))


def _place_on_doc(name: str) -> str:
    """Return the place on a Doc of the score with this name, for messages."""
    if name == CATS:
        return "doc.cats"
    return f"doc.{name}" if name.startswith(EXTENSION) else f"doc.user_data[{name!r}]"


def _document_value(doc: Doc, name: str) -> Any:
    """Return doc.cats for the name "cats", doc._.NAME for "_.NAME", else doc.user_data[name]; None if there is no value.

    RAISES C281: the extension NAME does not exist. C290: it is of a calib pipe.
    """
    if name == CATS:
        return doc.cats or None
    if not name.startswith(EXTENSION):
        return doc.user_data.get(name)
    check_extension(Doc, name.removeprefix(EXTENSION))
    return doc._.get(name.removeprefix(EXTENSION))


class TextcatSource(OutputSource):
    """Source of the probabilities of text categories in `doc.cats`, exclusive (`textcat`) or not (`textcat_multilabel`)."""

    reads = ("textcat", "textcat_multilabel")
    component_classes = (MultiLabel_TextCategorizer, TextCategorizer)

    def __init__(self, component: str = "textcat"):
        super().__init__(component)

    def annotation(self, pipe: Any) -> CatsAnnotation:
        return CatsAnnotation(pipe.labels, isinstance(pipe, MultiLabel_TextCategorizer))

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return [self._why_missing(pipe.labels, doc) if len(doc) else "" for doc in docs]

    def _why_missing(self, labels: Sequence[str], doc: Doc) -> str:
        """Return in words which of these labels is no category in `doc.cats`, "" if all are."""
        absent = next((label for label in labels if label not in doc.cats), None)
        if absent is None:
            return ""
        return f"doc.cats has no category '{absent}'; run the component '{self.component}' on the Doc first"

    def read(self, pipe: Any, docs: Sequence[Doc]) -> DenseScores:
        """Return the probabilities of documents. RAISES C262: values outside [0, 1]."""
        units = [doc for doc in docs if len(doc)]
        values = [[doc.cats[label] for label in pipe.labels] for doc in units]
        table = np.array([[value if isinstance(value, Real) else np.nan for value in row] for row in values], dtype=np.float64)
        table = table.reshape(-1, len(pipe.labels))
        bad = ~((table >= -ROUNDING) & (table <= 1 + ROUNDING))  # NaN is bad too
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            cell = f"{pipe.labels[column]} = {repr(values[row][column])[:_MAX_SHOWN]}"
            raise calib_error("C262", component=self.component, given=cell, text=units[row].text[:_MAX_SHOWN])
        return DenseScores(np.clip(table, 0.0, 1.0))
