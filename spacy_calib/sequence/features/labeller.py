"""What labellers over sparse features share: templates, the features they know, and one array of weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import srsly
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from ...errors import calib_error
from ...pipe.annotating import AnnotatingPipe
from ...types import Floats, Ints
from ..inference.chains import Potentials
from ..labeller import ChainLabeller
from ..targets import get_target
from .index import FeatureIndex, Sparse, cut, row_sums
from .templates import batch_hashes, feature_hashes, read_templates


class FeatureLabeller(ChainLabeller, AnnotatingPipe):
    """A weight for each (feature, label) and each (label, label before); see `OnlineLearner` for their order.

    target (str), by_sentence (bool), constraints (list | None), overwrite (bool): See ChainLabeller.
    features (str | list[str]): "chunking" (words and tags), "spelling" (words and what they look like), or templates.
    least (int): Features that stand more seldom in the examples of `initialize` are left out.
    RAISES C001: no such target. C324: no such extension. C328: no such template.
    """

    def __init__(
        self,
        vocab: Vocab,
        name: str,
        *,
        target: str,
        by_sentence: bool,
        constraints: Sequence[Sequence[str]] | None,
        features: str | Sequence[str],
        least: int,
        overwrite: bool,
    ):
        get_target(target)
        self.templates = read_templates(features)
        self.vocab, self.name = vocab, name
        self.cfg = {
            "labels": [], "target": target, "by_sentence": by_sentence, "constraints": constraints and [list(pair) for pair in constraints],
            "overwrite": overwrite, "least": least,
        }  # fmt: skip
        self.index = FeatureIndex(np.zeros(0, dtype=np.uint64))

    @abstractmethod
    def weight_rows(self, rows: Ints) -> Floats:
        """The weights that it predicts with of some features, and of labels before as rows len(index) and up, shape (n, K)."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What was learned, as plain data and arrays."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Take over what `_state` gave."""

    # Learning

    def learn_features(self, get_examples: Callable[[], Iterable[Example]], labels: Sequence[str] | None) -> None:
        """The labels and features of examples. RAISES C326: fewer than two labels."""
        self.learn_labels(get_examples(), labels)
        found = [self._hashes(eg.predicted, self.gold_bounds(eg)) for eg in get_examples()]
        self.index = FeatureIndex.of(found, self.cfg["least"])

    def sequences(self, example: Example) -> list[tuple[Sparse, Ints]]:
        """(features, gold columns) of each chain whose gold is whole."""
        gold, bounds = self.gold_columns(example), self.gold_bounds(example)
        rows = self.index.rows(self._hashes(example.predicted, bounds))
        return [(cut(rows, start, end), gold[start:end]) for start, end in bounds if (gold[start:end] >= 0).all()]

    def _hashes(self, doc: Doc, bounds: Sequence[tuple[int, int]]) -> Any:
        return feature_hashes(doc, bounds, self.templates)

    # Prediction

    def features_of(self, doc: Doc, unseen: bool = False) -> list[Sparse]:
        """The known features of each chain of a Doc. unseen (bool): The others too, see `FeatureIndex.rows`."""
        bounds = self.bounds(doc)
        rows = self.index.rows(self._hashes(doc, bounds), unseen)
        return [cut(rows, start, end) for start, end in bounds]

    def weights(self) -> Potentials:
        """RAISES C327: it is not initialized."""
        self._check_learned()
        n = len(self.labels)
        return Potentials(self.weight_rows(len(self.index) + np.arange(n)), np.zeros(n), np.zeros(n))

    def label_scores(self, docs: Sequence[Doc]) -> list[Any]:
        """RAISES C327: it is not initialized."""
        self._check_learned()
        tokens = self.index.rows(batch_hashes(docs, [self.bounds(doc) for doc in docs], self.templates))
        used, place = np.unique(tokens.rows, return_inverse=True)
        scores = row_sums(self.weight_rows(used), Sparse(place.reshape(-1), tokens.starts))
        return np.split(scores, np.cumsum([len(doc) for doc in docs])[:-1])

    def _check_learned(self) -> None:
        if not self.labels:
            raise calib_error("C327", name=self.name)

    # Saving

    def _dump(self) -> bytes:
        return srsly.msgpack_dumps({"cfg": self.cfg, "hashes": self.index.hashes, **self._state()})

    def _take(self, data: bytes, path: str) -> None:
        held = srsly.msgpack_loads(data)
        self.cfg.update(held.pop("cfg"))
        self.index = FeatureIndex(np.array(held.pop("hashes"), dtype=np.uint64))
        self._restore(held)
