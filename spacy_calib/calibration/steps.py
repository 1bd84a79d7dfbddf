"""Calibration as a sequence of steps: each takes a table of predictions and returns it with other scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..pairs.pairing import find_top
from ..types import Floats, Ints, Marginals, Pairs, Spans

# The level of a prediction. INPUT_ONLY: below the threshold; a scaling reads it, then it is cut off. OUTPUT_ONLY: below the
# threshold, but the predicted label: it takes all steps, and no other depends on it. KEPT: it reaches the threshold.
INPUT_ONLY, OUTPUT_ONLY, KEPT = range(3)
_COLUMNS = ("rows", "tags", "raw", "scores", "levels")


@dataclass(eq=False)
class Predictions:
    """n labels of tokens, documents or spans, with their probabilities after the steps so far.

    rows (Ints): Index of the token, document or span that each prediction is about, ascending. tags (Ints): Column of its
        label. raw, scores (Floats): Its probability from the source, and after the steps so far. levels (NDArray[int8] | None):
        KEPT: it reaches the threshold (a span: it is on the Doc). OUTPUT_ONLY: it does not, but all steps calibrate it.
        INPUT_ONLY: only a scaling reads it. None if all are KEPT. spans (Spans | None): The spans, to which `rows` are indices.
        words (Words | None): The words of all tokens, for a context of tokens. view (TokenView | None): Scores and features of
        all tokens, for a context of spans.
    """

    rows: Ints
    tags: Ints
    raw: Floats
    scores: Floats
    levels: NDArray[np.int8] | None
    words: Any = None
    spans: Spans | None = None
    view: Any = None

    @classmethod
    def of_pairs(cls, pairs: Pairs | Marginals, threshold: float, words: Any = None) -> Predictions:
        """Make a prediction of each pair, before any step: INPUT_ONLY below the threshold. words: The words of all tokens."""
        is_kept = pairs.scores >= threshold
        levels = None if is_kept.all() else is_kept * np.int8(KEPT)  # False * KEPT is 0: INPUT_ONLY
        return cls(pairs.rows, pairs.tags, pairs.scores, pairs.scores, levels, words=words)

    @classmethod
    def of_spans(cls, spans: Spans, raw: Floats, view: Any = None) -> Predictions:
        """Make a prediction of each span, before any step: KEPT if the span is on the Doc, OUTPUT_ONLY for other candidates."""
        levels = np.where(spans.on_doc, KEPT, OUTPUT_ONLY).astype(np.int8)
        return cls(np.arange(len(spans)), spans.labels, raw, raw.copy(), levels, spans=spans, view=view)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def is_kept(self) -> NDArray[np.bool_]:
        """Whether each prediction reaches the threshold (is KEPT), shape (n,)."""
        return np.ones(len(self), dtype=bool) if self.levels is None else self.levels == KEPT

    @property
    def kept_indices(self) -> Ints:
        """Indices of the predictions that reach the threshold (are KEPT), ascending."""
        return self.is_kept.nonzero()[0]

    @property
    def is_top(self) -> NDArray[np.bool_]:
        """Whether each prediction reaches the threshold and has the highest raw score of its token, document or span."""
        is_top, kept = np.zeros(len(self), dtype=bool), self.kept_indices
        is_top[kept] = find_top(self.rows[kept], self.raw[kept])
        return is_top

    def replace_unchecked(self, **fields: Any) -> Predictions:
        """Return a copy with other values of some fields, without checks: faster than `dataclasses.replace`."""
        copy = object.__new__(Predictions)
        vars(copy).update(vars(self), **fields)
        return copy

    def take(self, index: Ints) -> Predictions:
        """Select predictions by index. The fields `words` and `view` stay complete, as they describe all tokens."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        selected = {name: column[index] for name, column in columns.items() if column is not None}
        return self.replace_unchecked(**selected, spans=None if self.spans is None else self.spans.take(index))

    def with_output_only(self, rows: Ints, tags: Ints, raw: Floats) -> Predictions:
        """Add n labels below the threshold as OUTPUT_ONLY, so that all steps calibrate them, too. Call it before any step.

        rows, tags, raw: Token, label and raw score of each added label, (n,). RETURNS (Predictions): Sorted by row.
        """
        if not len(rows):
            return self
        order = np.argsort(np.append(self.rows, rows), kind="stable")
        levels = np.full(len(rows), OUTPUT_ONLY, dtype=np.int8)
        added: dict[str, NDArray[Any]] = {"rows": rows, "tags": tags, "raw": raw, "scores": raw, "levels": levels}
        earlier = self if self.levels is not None else self.replace_unchecked(levels=np.full(len(self), KEPT, dtype=np.int8))
        columns = {name: np.append(getattr(earlier, name), column)[order] for name, column in added.items()}
        return self.replace_unchecked(**columns)


class CalibrationStep(Protocol):
    """A step of a calibration, which replaces the scores of predictions."""

    def apply(self, predictions: Predictions) -> Predictions:
        """Return the predictions with other scores. Only a context lets a score depend on other tokens or spans."""


class Cut:
    """The step that drops the INPUT_ONLY predictions: they are below the threshold, and only a scaling has read them."""

    def apply(self, predictions: Predictions) -> Predictions:
        """Return the predictions that are not INPUT_ONLY; their levels become None if all are KEPT."""
        if predictions.levels is None:
            return predictions
        result = predictions.take(predictions.levels.nonzero()[0])  # INPUT_ONLY is 0
        return result.replace_unchecked(levels=None) if len(result.kept_indices) == len(result) else result


def apply_steps(steps: Iterable[CalibrationStep], predictions: Predictions) -> Predictions:
    """Return the predictions after all steps, each of which takes the result of the previous one."""
    for step in steps:
        predictions = step.apply(predictions)
    return predictions
