"""A context that leaves some labels their raw scores, since these were better on left-out sources."""

# No `from __future__ import annotations` here, as in `pipe.factory`: confection needs the types of arguments.
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calibration.conventions import Shrinkage
from ...calibration.saved import Part
from ...calibration.steps import Predictions
from ...context.tokens import TokenContext


@dataclass(frozen=True, eq=False)
class RestoredRawScores:
    """A step that restores the raw scores of the labels with the indices `columns`. shrinkage: Step to apply before, if any."""

    shrinkage: Shrinkage | None
    columns: Sequence[int]

    def apply(self, predictions: Predictions) -> Predictions:
        shrunk = predictions if self.shrinkage is None else self.shrinkage.apply(predictions)
        return shrunk.replace_unchecked(
            scores=np.where(np.isin(predictions.tags, self.columns), predictions.raw, shrunk.scores)
        )


class GatedContext(Part):
    """A context that does the same as the context `inner`, but restores the raw scores of the labels with the indices `raw`."""

    kind, registered = "@calib_contexts", "spacy-calib.GatedContext.v1"

    def __init__(self, inner: TokenContext | None = None, raw: Sequence[int] = ()):
        self.inner, self.raw = inner or TokenContext(()), list(raw)
        self.when, self.functions = self.inner.when, self.inner.functions  # attributes of every context

    @property
    def shrinkage(self) -> RestoredRawScores:
        return RestoredRawScores(self.inner.shrinkage, self.raw)

    def apply(self, predictions: Predictions) -> Predictions:
        return self.inner.apply(predictions)

    def settings(self) -> dict[str, Any]:
        return {"inner": self.inner.state(), "raw": self.raw}
