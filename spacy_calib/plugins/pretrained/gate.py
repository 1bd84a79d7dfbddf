"""The gate of labels: some keep their raw scores, since these were better on sources that the fit did not see."""

# No `from __future__ import annotations` here, as in `pipe.factory`: an argument has a type that a string does not tell.
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calibration.conventions import Shrinkage
from ...calibration.saved import Part
from ...calibration.steps import Predictions
from ...context.tokens import TokenContext


@dataclass(frozen=True, eq=False)
class RawLabels:
    """The step after a context that gives labels their raw scores back. columns: Theirs. shrinkage: What comes before it."""

    shrinkage: Shrinkage | None
    columns: Sequence[int]

    def apply(self, predictions: Predictions) -> Predictions:
        shrunk = predictions if self.shrinkage is None else self.shrinkage.apply(predictions)
        return shrunk.replace_unchecked(
            scores=np.where(np.isin(predictions.tags, self.columns), predictions.raw, shrunk.scores)
        )


class GatedContext(Part):
    """A fitted context of tokens, for all labels but some. inner (TokenContext): Fitted. raw (Sequence[int]): Columns of the others."""

    kind, registered = "@calib_contexts", "spacy-calib.GatedContext.v1"

    def __init__(self, inner: TokenContext | None = None, raw: Sequence[int] = ()):
        self.inner, self.raw = inner or TokenContext(()), list(raw)
        self.when, self.functions = self.inner.when, self.inner.functions

    @property
    def shrinkage(self) -> RawLabels:
        return RawLabels(self.inner.shrinkage, self.raw)

    def apply(self, predictions: Predictions) -> Predictions:
        return self.inner.apply(predictions)

    def settings(self) -> dict[str, Any]:
        return {"inner": self.inner.state(), "raw": self.raw}
