"""Spans that have one score each, and what that says of their tokens. Knows arrays, never Docs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints, Marginals, Spans


@dataclass(frozen=True, eq=False)
class ScoredSpans:
    """n spans of one Doc.

    starts, ends (Ints): First token, and the one after the last. labels (Ints): Column of each among the span labels.
    own (Floats): The score, in [0, 1]. chosen (NDArray[bool]): Whether it stands on the Doc.
    """

    starts: Ints
    ends: Ints
    labels: Ints
    own: Floats
    chosen: NDArray[np.bool_]

    def read(self, n_tokens: int, n_labels: int, outside: bool) -> tuple[Marginals, Spans]:
        """(scores of the tokens, the spans with the scores of their tokens).

        The score of a label at a token is the highest of a span with the label that covers it; its column is one more than that of the
        spans, behind "O". outside (bool): Whether "O" has the rest to 1 of the highest of all, which is 1 outside of all spans; else "O"
        has no score, and tokens outside of all spans have none at all.
        """
        best = np.full((n_tokens, 1 + n_labels), 0.0 if outside else np.nan)
        for start, end, label, score in zip(
            self.starts.tolist(), self.ends.tolist(), self.labels.tolist(), self.own.tolist(), strict=True
        ):
            np.fmax(best[start:end, 1 + label], score, out=best[start:end, 1 + label])
        if outside:
            best[:, 0] = 1.0 - best[:, 1:].max(axis=1, initial=0.0)
        rows, columns = np.nonzero(best) if outside else np.nonzero(~np.isnan(best))
        lengths = self.ends - self.starts
        tokens = np.repeat(self.starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        token_scores = best[tokens, 1 + np.repeat(self.labels, lengths)]
        return (
            Marginals(rows, columns, best[rows, columns], n_tokens),
            Spans(self.starts, self.ends, self.labels, token_scores, self.own, self.chosen),
        )
