"""The component `calib_crfsuite`: CRFsuite's CRF (Okazaki 2007) over sparse features, with our inference."""

# No `from __future__ import annotations` here: spaCy reads the types that `initialize` takes, and resolves no strings.
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from spacy.language import Language
from spacy.training import Example, validate_get_examples

from ...schema import floats
from ...types import Floats, Ints
from .factory import CrfsuiteSettings
from .features import FeatureLabeller, SparseFeatures
from .messages import calib_error


class CrfsuiteLabeller(FeatureLabeller):
    """A conditional random field that `initialize` trains at once, by L-BFGS; `update` does nothing.

    c2 (float): Coefficient of the L2 penalty. max_iterations (int): Of L-BFGS. Other settings: See `FeatureLabeller`.
    RAISES C001: a setting out of range. C329: python-crfsuite is not installed.
    """

    kind = "calib_crfsuite"
    field_forms: ClassVar = {"weights": floats()}

    def __init__(self, nlp: Language, name: str = "calib_crfsuite", **settings: Any):
        config = CrfsuiteSettings(**settings)
        self.c2, self.max_iterations = config.c2, config.max_iterations
        for setting in ("c2", "max_iterations"):
            if not getattr(config, setting) > 0:
                raise calib_error("C001", name=setting, wanted="greater than 0", given=getattr(config, setting))
        self._weights = np.zeros(0)
        super().__init__(nlp, name, config)

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None, labels: Sequence[str] | None = None
    ) -> None:
        """Train. labels: From `spacy init labels`; None takes the examples'. RAISES C326: fewer than two. C329: no python-crfsuite."""
        validate_get_examples(get_examples, "CrfsuiteLabeller.initialize")
        self.learn_features(get_examples, labels)
        data = [sequence for eg in get_examples() for sequence in self.sequences(eg)]
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            train_crfsuite(data, model, self.c2, self.max_iterations)
            self._weights = read_weights(model, len(self.index), len(self.labels))

    def weight_rows(self, rows: Ints) -> Floats:
        weights: Floats = self._weights.reshape(-1, len(self.labels))[rows]
        return weights

    def _fitted_fields(self) -> dict[str, Any]:
        return {**super()._fitted_fields(), "weights": self._weights}

    def _restore(self, fields: dict[str, Any]) -> None:
        super()._restore(fields)
        self._weights = fields["weights"]


def _library() -> Any:
    try:
        import pycrfsuite
    except ModuleNotFoundError:
        raise calib_error("C329") from None
    return pycrfsuite


def train_crfsuite(data: Sequence[tuple[SparseFeatures, Ints]], model: Path, c2: float, max_iterations: int) -> None:
    """Train on (features, gold columns) of sequences and write the model file. RAISES C329: no python-crfsuite."""
    trainer = _library().Trainer(algorithm="lbfgs", verbose=False)
    # No pruning, and a weight for each pair of labels: every parameter that our labellers have.
    trainer.set_params({"c1": 0.0, "c2": c2, "max_iterations": max_iterations, "feature.possible_transitions": True})
    for tokens, gold in data:
        trainer.append(crfsuite_items(tokens), [str(column) for column in gold.tolist()])
    trainer.train(str(model))


def crfsuite_items(tokens: SparseFeatures) -> list[list[str]]:
    """Return the features of each token as CRFsuite takes them."""
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
