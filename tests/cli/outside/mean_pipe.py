"""A pipe that reads the scores of a calib pipe: P(all tags of a text are right) is the mean score of its tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from spacy.language import Language

KEY = "outside_mean"


@Language.factory("outside_mean", default_config={"attr": "calib"})
class MeanPipe:
    """Leaves the mean in `Doc.user_data`."""

    def __init__(self, nlp, name, attr):
        self.name, self.attr = name, attr

    def __call__(self, doc):
        doc.user_data[KEY] = float(np.mean([token._.get(f"{self.attr}_score") for token in doc]))
        return doc

    def reads_scores_of(self, attr: str) -> bool:
        return attr == self.attr

    def event_table(self, examples, n_bins: int, seed: int) -> dict[str, Any]:
        """Of Docs that it has not run over it knows nothing: KeyError."""
        forecasts = np.array([example.predicted.user_data[KEY] for example in examples])
        hits = np.array([example.get_aligned("TAG") == example.predicted.to_array("TAG").tolist() for example in examples])
        row = {"name": "mean score", "loss": float(np.mean((forecasts - hits) ** 2))}
        counts = {"units": len(hits), "right": float(hits.mean())}
        return {"name": self.name, "event": "all tags right", "called": ["text", "texts"], **counts, "rows": [row]}
