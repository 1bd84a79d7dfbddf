"""What labellers over sparse features share: templates, the features they know, and one array of weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import srsly
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from ...errors import calib_error
from ...types import Floats, Ints
from ..inference.chains import Potentials
from ..labeller import ChainLabeller
from ..targets import get_target
from .index import FeatureIndex, Sparse, cut
from .templates import feature_hashes, read_templates

_FILE = "learner.msgpack"
_Own = TypeVar("_Own", bound="FeatureLabeller")


class FeatureLabeller(ChainLabeller, Pipe):
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

    @property
    @abstractmethod
    def feature_weights(self) -> Floats:
        """The weights that it predicts with."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What was learned, as plain data and arrays."""

    @abstractmethod
    def _take(self, state: dict[str, Any]) -> None:
        """Take over what `_state` gave."""

    # Learning

    def learn_features(self, get_examples: Callable[[], Iterable[Example]], labels: Sequence[str] | None) -> None:
        """The labels and features of examples. RAISES C326: fewer than two labels."""
        self.learn_labels(get_examples(), labels)
        found = [self._hashes(eg.predicted, self._bounds_of(eg)) for eg in get_examples()]
        self.index = FeatureIndex.of(found, self.cfg["least"])

    def sequences(self, example: Example) -> list[tuple[Sparse, Ints]]:
        """(features, gold columns) of each chain whose gold is whole."""
        column = {label: i for i, label in enumerate(self.labels)}
        gold = np.array([column.get(one or "", -1) for one in get_target(self.cfg["target"]).gold(example)], dtype=np.intp)
        bounds = self._bounds_of(example)
        rows = self.index.rows(self._hashes(example.predicted, bounds))
        return [(cut(rows, start, end), gold[start:end]) for start, end in bounds if (gold[start:end] >= 0).all()]

    def _bounds_of(self, example: Example) -> list[tuple[int, int]]:
        """Those of the gold sentences, where predicted and gold tokens are the same."""
        same = [token.text for token in example.predicted] == [token.text for token in example.reference]
        return self.bounds(example.reference if same else example.predicted)

    def _hashes(self, doc: Doc, bounds: Sequence[tuple[int, int]]) -> Any:
        return feature_hashes(doc, bounds, self.templates)

    # Prediction

    def features_of(self, doc: Doc) -> list[Sparse]:
        """The known features of each chain of a Doc."""
        bounds = self.bounds(doc)
        rows = self.index.rows(self._hashes(doc, bounds))
        return [cut(rows, start, end) for start, end in bounds]

    def weights(self) -> Potentials:
        """RAISES C327: it is not initialized."""
        self._check_learned()
        n = len(self.labels)
        return Potentials(self.feature_weights[len(self.index) * n :].reshape(n, n), np.zeros(n), np.zeros(n))

    def label_scores(self, docs: Sequence[Doc]) -> list[Any]:
        """RAISES C327: it is not initialized."""
        self._check_learned()
        n = len(self.labels)
        table = self.feature_weights[: len(self.index) * n].reshape(-1, n)
        rows = [self.index.rows(self._hashes(doc, self.bounds(doc))) for doc in docs]
        return [np.add.reduceat(table[one.rows], one.starts[:-1], axis=0) if len(one) else np.zeros((0, n)) for one in rows]

    def _check_learned(self) -> None:
        if not self.labels:
            raise calib_error("C327", name=self.name)

    def __call__(self, doc: Doc) -> Doc:
        self.set_annotations([doc], self.predict([doc]))
        return doc

    # Saving

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        return srsly.msgpack_dumps({"cfg": self.cfg, "hashes": self.index.hashes, **self._state()})

    def from_bytes(self: _Own, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> _Own:
        held = srsly.msgpack_loads(bytes_data)
        self.cfg.update(held.pop("cfg"))
        self.index = FeatureIndex(np.array(held.pop("hashes"), dtype=np.uint64))
        self._take(held)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / _FILE).write_bytes(self.to_bytes())

    def from_disk(self: _Own, path: str | Path, *, exclude: Iterable[str] = ()) -> _Own:
        return self.from_bytes((Path(path) / _FILE).read_bytes())
