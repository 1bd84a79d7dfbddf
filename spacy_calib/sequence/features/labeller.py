"""What labellers over sparse features share: templates, the features they know, and one array of weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ...errors import calib_error
from ...pipe.annotating import AnnotatingPipe
from ...schema import Form, digests, lengths, listed, record, text, whole
from ...types import Floats, Ints
from .. import saved
from ..factory import FeatureSettings
from ..inference.chains import Potentials
from ..labeller import ChainLabeller
from .templates import FeatureIndex, Sparse, attributes_of, batch_hashes, cut, feature_hashes, read_templates, row_sums

# What must have run before, if a template asks for it.
_READ = {
    "TAG": "token.tag", "POS": "token.pos", "LEMMA": "token.lemma", "MORPH": "token.morph", "DEP": "token.dep",
    "ENT_TYPE": "token.ent_type", "ENT_IOB": "token.ent_iob",
}  # fmt: skip


class FeatureLabeller(ChainLabeller, AnnotatingPipe):
    """A weight for each (feature, label) and each (label, label before), in the order of `OnlineLearner`.

    target (str), by_sentence (bool), constraints (list | None), overwrite (bool): As of ChainLabeller.
    features (str | list[str]): "chunking" (words and tags), "spelling" (words and what they look like), or templates.
    least (int): Features that are rarer in the examples of `initialize` are left out.
    RAISES C001: no such target. C324: no such extension. C328: no such template.
    """

    def __init__(
        self,
        nlp: Language,
        name: str,
        given: FeatureSettings,
    ):
        self.cfg = saved.check_settings(_CFG, given)
        self.templates = read_templates(given.features)
        self.requires = tuple(dict.fromkeys(_READ[name] for name in attributes_of(self.templates) if name in _READ))
        self.take(nlp, name)
        self.index = FeatureIndex(np.zeros(0, dtype=np.uint64))

    @abstractmethod
    def weight_rows(self, rows: Ints) -> Floats:
        """The weights of some features, shape (n, K); rows from len(index) on are those of labels before."""

    kind: ClassVar[str]
    learned: ClassVar[dict[str, Form]]  # the forms of what `_state` gives

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What was learned, as plain data and arrays with a weight for every parameter."""

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
        bounds = self.gold_bounds(example)
        gold = self.gold_columns(example, bounds)
        rows = self.index.rows(self._hashes(example.predicted, bounds))
        return [(cut(rows, start, end), gold[start:end]) for start, end in bounds if (gold[start:end] >= 0).all()]

    def _hashes(self, doc: Doc, bounds: Sequence[tuple[int, int]]) -> Any:
        return feature_hashes(doc, bounds, self.templates)

    # Prediction

    def features_of(self, doc: Doc, unseen: bool = False) -> list[Sparse]:
        """The known features of each chain of a Doc. unseen (bool): Unknown ones, too (`FeatureIndex.rows`)."""
        bounds = self.bounds(doc)
        rows = self.index.rows(self._hashes(doc, bounds), unseen)
        return [cut(rows, start, end) for start, end in bounds]

    def weights(self) -> Potentials:
        """Scores of each Doc's labels, shape (len(doc), K). RAISES C327: it is not initialized."""
        self._check_learned()
        n = len(self.labels)
        return Potentials(self.weight_rows(len(self.index) + np.arange(n)), np.zeros(n), np.zeros(n))

    def label_scores(self, docs: Sequence[Doc]) -> list[Any]:
        """The transitions. RAISES C327: it is not initialized."""
        self._check_learned()
        tokens = self.index.rows(batch_hashes(docs, [self.bounds(doc) for doc in docs], self.templates))
        used, place = np.unique(tokens.rows, return_inverse=True)
        scores = row_sums(self.weight_rows(used), Sparse(place.reshape(-1), tokens.starts))
        return np.split(scores, np.cumsum([len(doc) for doc in docs])[:-1])

    def _check_learned(self) -> None:
        if not self.labels:
            raise calib_error("C327", name=self.name)

    # Saving

    def learned_arrays(self) -> list[Any]:
        """The features that it knows and what was learned of them; last what any further learning changes."""
        held = [np.atleast_1d(value) for value in self._state().values()]
        pairs = held[0][len(self.index) * len(self.labels) :]
        return [self.index.hashes, *held, pairs]

    def _dump(self) -> bytes:
        return saved.dump(self.kind, {"cfg": self.cfg, "hashes": self.index.hashes, **self._state()})

    def _take(self, data: bytes, path: str) -> None:
        """Take over saved bytes. RAISES C335, C336: they cannot be read."""
        form = record({"cfg": _CFG, "hashes": digests, **self.learned}, _sizes)
        held = saved.read(data, form, kind=self.kind, name=self.name, path=path)
        self.cfg.update(held.pop("cfg"))
        self.templates, self.index = read_templates(self.cfg["features"]), FeatureIndex(held.pop("hashes"))
        self._restore(held)


def _features(value: Any, where: str) -> Any:
    return value if isinstance(value, str) else listed(text)(value, where)


def _sizes(held: dict[str, Any]) -> str:
    """Check that there is a weight for each feature and label, and for each two labels."""
    n = len(held["cfg"]["labels"])
    size = (len(held["hashes"]) + 1 + n) * n
    return lengths({name: size for name, value in held.items() if name not in ("cfg", "hashes") and np.ndim(value)}, held)


_CFG = saved.chain_settings({"least": whole(), "features": saved.taken(read_templates, _features)})
