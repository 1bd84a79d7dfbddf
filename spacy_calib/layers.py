"""Annotation layers of a Doc: which label a token carries, in the predicted and in the gold Doc.

Labels are compared by spaCy's string hashes (uint64), 0 where a token carries none: they are the same in every vocab and process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from spacy.morphology import Morphology
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token
from spacy.training import Example

from .errors import calib_error

Hashes = NDArray[np.uint64]


class Layer(ABC):
    """One kind of label that tokens carry.

    name (str): How config and saved blocks call it.
    """

    name: str

    @abstractmethod
    def hashes(self, doc: Doc) -> Hashes:
        """The hash of each token's label, 0 where it carries none; shape (len(doc),)."""

    @abstractmethod
    def label(self, token: Token) -> str:
        """The label that the token carries, "" where it carries none."""

    def gold_hashes(self, doc: Doc) -> Hashes:
        """The same for a gold Doc, 0 where the annotation is missing."""
        return self.hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        """The gold hash of each predicted token: 0 for missing gold, for white space, and where the predicted token does not align with
        exactly one gold token, as in spaCy's own token scorers.
        """
        alignment = example.alignment.x2y
        lengths = np.asarray(alignment.lengths)
        single = lengths == 1
        gold = np.zeros(len(example.predicted), dtype=np.uint64)
        starts = np.cumsum(lengths) - lengths
        gold[single] = self.gold_hashes(example.reference)[np.asarray(alignment.data)[starts[single]]]
        gold[example.predicted.to_array(["IS_SPACE"]).astype(bool)] = 0
        return gold

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """Gold frequency of each label; tokens without one do not count."""
        counts: Counter[int] = Counter()
        strings = None
        for doc in docs:
            strings = doc.vocab.strings
            found, n = np.unique(self.gold_hashes(doc), return_counts=True)
            counts.update(dict(zip(found.tolist(), n.tolist(), strict=True)))
        counts.pop(0, None)
        return Counter({self._string(key, strings): n for key, n in counts.items()})

    def _string(self, key: int, strings: object) -> str:
        return strings[key]  # type: ignore[index]


class AttributeLayer(Layer):
    """A label that stands in one attribute of the token: TAG, LEMMA, POS, ENT_TYPE, DEP."""

    def __init__(self, name: str, attribute: str):
        self.name = name
        self.attribute = attribute

    def hashes(self, doc: Doc) -> Hashes:
        return doc.to_array([self.attribute]).astype(np.uint64, copy=False).reshape(-1)

    def label(self, token: Token) -> str:
        return getattr(token, self.attribute.lower() + "_")


class PosLayer(AttributeLayer):
    """UPOS: spaCy keeps it as a small number, not as a hash."""

    def __init__(self) -> None:
        super().__init__("pos", "POS")

    def hashes(self, doc: Doc) -> Hashes:
        codes = super().hashes(doc)
        return _map_unique(codes, lambda code: get_string_id(doc.vocab.strings[int(code)]) if code else 0)


class MorphLayer(Layer):
    """UPOS and features as the morphologizer joins them: "Number=Sing|POS=NOUN"."""

    name = "morph"

    def hashes(self, doc: Doc) -> Hashes:
        if not len(doc):
            return np.zeros(0, dtype=np.uint64)
        both = doc.to_array(["POS", "MORPH"]).astype(np.uint64)
        kinds, inverse = np.unique(both, axis=0, return_inverse=True)
        strings = doc.vocab.strings
        known = [self._joined(doc.vocab, strings[int(pos)], strings[int(morph)]) for pos, morph in kinds]
        return np.array([get_string_id(label) if label else 0 for label in known], dtype=np.uint64)[inverse.reshape(-1)]

    def label(self, token: Token) -> str:
        return self._joined(token.vocab, token.pos_, str(token.morph) if token.has_morph() else "", token.has_morph())

    @staticmethod
    def _joined(vocab: object, pos: str, morph: str, has_morph: bool = False) -> str:
        if not pos and not morph and not has_morph:
            return ""
        feats = Morphology.feats_to_dict(morph)
        if pos:
            feats["POS"] = pos
        return vocab.strings[vocab.morphology.add(feats)]  # type: ignore[attr-defined]


class SentLayer(Layer):
    """ "S" where a sentence starts, "I" inside."""

    name = "sent"
    starts = {1: "S", -1: "I"}

    def hashes(self, doc: Doc) -> Hashes:
        signs = doc.to_array(["SENT_START"]).astype(np.uint64, copy=False).view(np.int64).reshape(-1)
        return _map_unique(signs, lambda sign: get_string_id(self.starts[int(sign)]) if int(sign) in self.starts else 0)

    def gold_hashes(self, doc: Doc) -> Hashes:
        if not doc.has_annotation("SENT_START"):
            return np.zeros(len(doc), dtype=np.uint64)
        hashes = self.hashes(doc)
        hashes[hashes == 0] = get_string_id("I")
        return hashes

    def label(self, token: Token) -> str:
        is_start = token.is_sent_start
        return "" if is_start is None else self.starts[1 if is_start else -1]

    def _string(self, key: int, strings: object) -> str:
        return "S" if key == get_string_id("S") else "I"


def _map_unique(codes: NDArray, to_hash: object) -> Hashes:
    found, inverse = np.unique(codes, return_inverse=True)
    return np.array([to_hash(code) for code in found], dtype=np.uint64)[inverse.reshape(-1)]  # type: ignore[operator]


LAYERS: dict[str, Layer] = {
    layer.name: layer
    for layer in (
        AttributeLayer("tag", "TAG"),
        AttributeLayer("lemma", "LEMMA"),
        AttributeLayer("ent_type", "ENT_TYPE"),
        AttributeLayer("dep", "DEP"),
        PosLayer(),
        MorphLayer(),
        SentLayer(),
    )
}


def get_layer(name: str) -> Layer:
    """RAISES C001: no layer has this name."""
    if name not in LAYERS:
        raise calib_error("C001", name="layer", wanted=f"one of {', '.join(sorted(LAYERS))}", given=repr(name))
    return LAYERS[name]


def label_hashes(labels: Iterable[str]) -> Hashes:
    """The hash of each label."""
    return np.array([get_string_id(label) for label in labels], dtype=np.uint64)


def columns_of(hashes: Hashes, of_labels: Hashes) -> NDArray[np.intp]:
    """Column of each label hash: -1 where no label has it, -2 where the hash is 0 (no label)."""
    order = np.argsort(of_labels)
    place = np.minimum(np.searchsorted(of_labels[order], hashes), max(0, len(of_labels) - 1))
    columns = np.full(len(hashes), -1, dtype=np.intp)
    if len(of_labels):
        found = of_labels[order][place] == hashes
        columns[found] = order[place[found]]
    columns[hashes == 0] = -2
    return columns
