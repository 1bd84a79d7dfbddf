"""CRFsuite (Okazaki 2007) over sparse features: training, and the weights of its model file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacy_calib.types import Floats, Ints

from .features import SparseFeatures


def _library() -> Any:
    try:
        import pycrfsuite
    except ModuleNotFoundError:
        raise ValueError("python-crfsuite is not installed") from None
    return pycrfsuite


def train_crfsuite(data: Sequence[tuple[SparseFeatures, Ints]], model: Path, c2: float, max_iterations: int) -> None:
    """Train on (features, gold columns) of sequences and write the model file."""
    trainer = _library().Trainer(algorithm="lbfgs", verbose=False)
    # No pruning, and a weight for each pair of labels: every parameter that our labellers have.
    trainer.set_params({"c1": 0.0, "c2": c2, "max_iterations": max_iterations, "feature.possible_transitions": True})
    for tokens, gold in data:
        trainer.append(crfsuite_items(tokens), [str(column) for column in gold.tolist()])
    trainer.train(str(model))


def crfsuite_items(tokens: SparseFeatures) -> list[list[str]]:
    """Return the features of each token in the form of CRFsuite."""
    rows, starts = list(map(str, tokens.rows.tolist())), tokens.starts.tolist()
    return [rows[start:end] for start, end in zip(starts[:-1], starts[1:], strict=True)]


def read_weights(model: Path, n_features: int, n_labels: int) -> Floats:
    """Return the weights of a model file, in the order of `OnlineLearner`; 0 for those that CRFsuite left out."""
    tagger = _library().Tagger()
    tagger.open(str(model))
    info = tagger.info()
    weights = np.zeros((n_features + n_labels) * n_labels)
    for (row, column), value in info.state_features.items():
        weights[int(row) * n_labels + int(column)] = value
    for (previous, column), value in info.transitions.items():
        weights[(n_features + int(previous)) * n_labels + int(column)] = value
    tagger.close()
    return weights
