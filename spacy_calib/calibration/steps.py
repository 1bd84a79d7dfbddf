"""From a source's probabilities to calibrated ones: a table of predictions, which each step takes and gives on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..pairs.build import find_top
from ..types import Floats, Ints, Marginals, Pairs, Spans

# How far a prediction goes. LOOKED_AT: a scaling weighs others by it, then the threshold cuts it off. ASKED: below the
# threshold, but a carried label: it goes all the way, and no other depends on it. KEPT: it reaches the threshold.
LOOKED_AT, ASKED, KEPT = range(3)
_OF_EACH = ("rows", "tags", "raw", "scores", "levels", "before_maps")


@dataclass(eq=False)
class Predictions:
    """n labels of tokens, documents or spans, with their probabilities after the steps taken so far.

    rows (Ints): Token, document or span of each, ascending. tags (Ints): Column of its label. raw, scores (Floats):
        What the source gave, and what that has become. levels (NDArray[int8] | None): How far each goes; None where all are KEPT.
    before_maps (Floats | None): What the maps were given; None before. words: Of all tokens; a context looks at them.
    spans (Spans | None): Where these are of spans. view: The tokens as the context's features see them, or None.
    """

    rows: Ints
    tags: Ints
    raw: Floats
    scores: Floats
    levels: NDArray[np.int8] | None
    before_maps: Floats | None = None
    words: Any = None
    spans: Spans | None = None
    view: Any = None

    @classmethod
    def of_pairs(cls, pairs: Pairs | Marginals, threshold: float, words: Any = None) -> Predictions:
        """Before any step. pairs (Pairs | Marginals): All entries of their tokens that reach the lowest score taken."""
        is_kept = pairs.scores >= threshold
        levels = None if is_kept.all() else is_kept * np.int8(KEPT)  # LOOKED_AT is 0
        return cls(pairs.rows, pairs.tags, pairs.scores, pairs.scores, levels, words=words)

    @classmethod
    def of_spans(cls, spans: Spans, raw: Floats, view: Any = None) -> Predictions:
        """Each span by itself; those on the Doc are kept, candidates asked for. view: Of their tokens."""
        levels = np.where(spans.chosen, KEPT, ASKED).astype(np.int8)
        return cls(np.arange(len(spans)), spans.labels, raw, raw.copy(), levels, spans=spans, view=view)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def is_kept(self) -> NDArray[np.bool_]:
        """Whether each prediction reaches the threshold."""
        return np.ones(len(self), dtype=bool) if self.levels is None else self.levels == KEPT

    @property
    def kept(self) -> Ints:
        """Index of the predictions that reach the threshold."""
        return self.is_kept.nonzero()[0]

    @property
    def leads(self) -> NDArray[np.bool_]:
        """Whether each is the likeliest of its row by raw scores; what leads reaches the threshold."""
        is_top = np.zeros(len(self), dtype=bool)
        is_top[self.kept] = find_top(self.rows[self.kept], self.raw[self.kept])
        return is_top

    def having(self, **fields: Any) -> Predictions:
        """The same with other values of some fields, unchecked."""
        copy = object.__new__(Predictions)
        vars(copy).update(vars(self), **fields)
        return copy

    def take(self, index: Ints) -> Predictions:
        """Some predictions, by ascending index."""
        columns = {name: getattr(self, name) for name in _OF_EACH}
        parts = {name: column[index] for name, column in columns.items() if column is not None}
        return self.having(**parts, spans=self.spans and self.spans.take(index))

    def with_asked(self, rows: Ints, tags: Ints, raw: Floats) -> Predictions:
        """With labels below the threshold that are asked for, before any step. rows, tags, raw: Theirs."""
        if not len(rows):
            return self
        order = np.argsort(np.append(self.rows, rows), kind="stable")
        new: dict[str, NDArray[Any]] = {
            "rows": rows,
            "tags": tags,
            "raw": raw,
            "scores": raw,
            "levels": np.full(len(rows), ASKED, dtype=np.int8),
        }
        given = self if self.levels is not None else self.having(levels=np.full(len(self), KEPT, dtype=np.int8))
        return self.having(**{name: np.append(getattr(given, name), column)[order] for name, column in new.items()})


class CalibrationStep(Protocol):
    """What makes other scores of the scores so far."""

    def apply(self, predictions: Predictions) -> Predictions:
        """The predictions with other scores, which depend on other rows only where a context looks at neighbours."""


class Cut:
    """The threshold: what was looked at only for the sake of others goes no further."""

    def apply(self, predictions: Predictions) -> Predictions:
        if predictions.levels is None:
            return predictions
        result = predictions.take(predictions.levels.nonzero()[0])  # LOOKED_AT is 0
        return result.having(levels=None) if len(result.kept) == len(result) else result


def walk(steps: Iterable[CalibrationStep], predictions: Predictions) -> Predictions:
    """Apply one step after the other."""
    for step in steps:
        predictions = step.apply(predictions)
    return predictions
