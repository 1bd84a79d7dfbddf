"""Scores that a component left with each unit, a token or a whole document: of the label that it carries, or of several labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc

from ..errors import calib_error
from ..pairs.build import SparseScores
from ..types import Marginals
from .left_scores import EXTENSION, LeftScoresSource, as_score

# The scores of labels that exclude each other may pass 1 together by this: they may have been computed in half precision.
_ROUNDED = 0.01


class UnitScoresSource(LeftScoresSource):
    """Reads one value for each unit: a number, which is the score of the label that the unit carries, or a mapping of labels to scores. A unit
    without a value (None) has no scores, and nothing is said of labels that a mapping leaves out.

    A Doc that carries no label at all gets the likeliest ones, as far as mappings tell.

    component, labels: See LeftScoresSource. score (str): "_.NAME" for an extension, another name for a key of `doc.user_data`.
    """

    sets_labels = True

    def __init__(self, component: str, score: str, labels: Sequence[str] | None):
        super().__init__(component, labels)
        self.score = score
        self.distributions = True  # until a fit has seen a single number

    @property
    def user_data_key(self) -> str:  # type: ignore[override]
        """See Source; what a component of the pipeline leaves is not read from gold files."""
        return "" if self.component or self._is_extension else self.score

    @property
    def _is_extension(self) -> bool:
        return self.score.startswith(EXTENSION)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return self.own_labels(pipe)

    @abstractmethod
    def values(self, doc: Doc) -> list[Any]:
        """What is there for each unit, None for nothing; [] where there is nothing for the Doc.

        RAISES C281: no such extension. C283: not as many values as units.
        """

    @abstractmethod
    def named(self, doc: Doc, row: int) -> str:
        """A unit, as messages name it."""

    def entries(self, pipe: Any, doc: Doc) -> list[dict[str, float]]:
        """The scores of each unit by label. RAISES C281, C283: see `values`. C282: a score that is no number in [0, 1]."""
        annotation = self.annotation(pipe)
        found = []
        for row, value in enumerate(self.values(doc)[: annotation.n_units(doc)]):
            given = value if isinstance(value, Mapping) else {annotation.label_at(doc, row): value}
            name = self.named(doc, row)
            scores = {label: as_score(score, self.where, name) for label, score in given.items()}
            found.append({label: score for label, score in scores.items() if label and not math.isnan(score)})
        return found

    def missing_input(self, docs: Sequence[Doc]) -> list[str]:
        nothing = f"nothing has a score at {self.where}"
        return ["" if any(value is not None for value in self.values(doc)) else nothing for doc in docs]

    def scored_labels(self, pipe: Any, docs: Sequence[Doc]) -> set[str]:
        return {label for doc in docs for scores in self.entries(pipe, doc) for label in scores}

    def learn_labels(self, pipe: Any, docs: Sequence[Doc]) -> tuple[str, ...]:
        """See LeftScoresSource; and whether units have the scores of several labels."""
        values = [value for doc in docs for value in self.values(doc) if value is not None]
        self.distributions = all(isinstance(value, Mapping) for value in values)
        return super().learn_labels(pipe, docs)

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Labels that are not known are left out.

        RAISES C281 to C283: see `entries`. C288: labels that exclude each other have scores whose sum is above 1.
        """
        column = {label: i for i, label in enumerate(self.labels(pipe))}
        units = [(doc, row, scores) for doc in docs for row, scores in enumerate(self.entries(pipe, doc))]
        cells = [sorted((column[label], score) for label, score in scores.items() if label in column) for _, _, scores in units]
        if not self.annotation(pipe).overlapping:
            for (doc, row, _), own in zip(units, cells, strict=True):
                total = sum(score for _, score in own)
                if total > 1 + _ROUNDED:
                    raise calib_error("C288", where=self.where, what=self.named(doc, row), given=f"{total:.3g}")
        entries = [(number, *cell) for number, own in enumerate(cells) for cell in own]
        table = np.array(entries, dtype=np.float64).reshape(-1, 3)
        rows, tags = table[:, :2].astype(np.intp).T
        return SparseScores(Marginals(rows, tags, table[:, 2].copy(), len(units)), absent=np.nan)
