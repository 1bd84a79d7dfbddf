"""Annotations that are attributes of tokens: tags, lemmas, parts of speech, features, sentence starts, extensions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from spacy import attrs
from spacy.morphology import Morphology
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token

from ..errors import calib_error
from .annotation import Annotation, Hashes, map_unique, values_of_tokens
from .kinds import SENT

EXTENSION_PREFIX = "_."  # prefix of the name of an annotation in an extension attribute of Token


class AttributeAnnotation(Annotation):
    """Labels that spaCy stores in one attribute of each token: TAG, LEMMA, POS, ENT_TYPE or DEP."""

    def __init__(self, name: str, attribute: str):
        self.name = name
        self._number = attrs.IDS[attribute]  # `Doc.to_array` is slower by name
        self._string_attribute = f"{attribute.lower()}_"

    def hashes(self, doc: Doc) -> Hashes:
        return cast(Hashes, doc.to_array([self._number]))

    def label(self, token: Token) -> str:
        return getattr(token, self._string_attribute)


class PosAnnotation(AttributeAnnotation):
    """Universal part-of-speech tags (`token.pos_`), which spaCy stores as small numbers, not hashes."""

    def __init__(self) -> None:
        super().__init__("pos", "POS")

    def hashes(self, doc: Doc) -> Hashes:
        codes = super().hashes(doc)  # 0 for no tag
        return map_unique(codes, lambda code: get_string_id(doc.vocab.strings[int(code)]) if code else 0)


class MorphAnnotation(Annotation):
    """UPOS tag and morphological features as one label, in the form of spaCy's morphologizer: "Number=Sing|POS=NOUN"."""

    name = "morph"

    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each token's label, such as "Number=Sing|POS=NOUN"; 0 for a token without tag and features."""
        if not len(doc):
            return np.zeros(0, dtype=np.uint64)
        codes = doc.to_array(["POS", "MORPH"]).astype(np.uint64)
        distinct, inverse = np.unique(codes, axis=0, return_inverse=True)  # labels are made once per (POS, MORPH)
        strings = doc.vocab.strings
        labels = [self._join(doc.vocab, strings[int(pos)], strings[int(morph)]) for pos, morph in distinct]
        return np.array([get_string_id(label) if label else 0 for label in labels], dtype=np.uint64)[inverse.reshape(-1)]

    def label(self, token: Token) -> str:
        morph: Any = token.morph
        return self._join(token.vocab, token.pos_, token.vocab.strings[morph.key])  # str(morph) is "" for "_", too

    @staticmethod
    def _join(vocab: object, pos: str, morph: str) -> str:
        """Join pos ("" for none) and morph ("Number=Sing"; "_": no features; "": not set) to a label; "" if both are ""."""
        if not pos and not morph:
            return ""
        feats = Morphology.feats_to_dict(morph)
        if pos:
            feats["POS"] = pos
        return vocab.strings[vocab.morphology.add(feats)]  # type: ignore[attr-defined]


class SentAnnotation(Annotation):
    """Sentence starts: "S" for the first token of a sentence, "I" for others; a Doc's first token, always a start, has none."""

    name = "sent"
    starts = {1: "S", -1: "I"}  # value of SENT_START -> label
    kind = SENT

    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of "S" for each sentence start of a Doc, of "I" for other tokens, 0 for tokens without a mark."""
        signs = values_of_tokens(doc, "SENT_START")
        hash_of_sign = {sign: get_string_id(label) for sign, label in self.starts.items()}
        hashes = map_unique(signs, lambda sign: hash_of_sign.get(sign, 0))  # 0: a token without a mark
        hashes[: self.kind.first_unit] = 0  # the first token of a Doc has no label
        return hashes

    def gold_hashes(self, doc: Doc) -> Hashes:
        if not doc.has_annotation("SENT_START"):
            return np.zeros(len(doc), dtype=np.uint64)
        hashes = self.hashes(doc)
        hashes[hashes == 0] = get_string_id("I")  # in a Doc with sentences a token without a mark is no start
        hashes[: self.kind.first_unit] = 0  # the first token of a Doc has no label
        return hashes

    def label(self, token: Token) -> str:
        is_start = token.is_sent_start if token.i >= self.kind.first_unit else None
        return "" if is_start is None else self.starts[1 if is_start else -1]

    def _string(self, key: int, strings: object) -> str:
        return "S" if key == get_string_id("S") else "I"


class ExtensionAnnotation(Annotation):
    """Labels that are strings in an extension attribute of tokens, `token._.<extension>`."""

    def __init__(self, extension: str):
        self.name = f"{EXTENSION_PREFIX}{extension}"
        self.extension = extension

    def hashes(self, doc: Doc) -> Hashes:
        strings = doc.vocab.strings  # labels are added, as spaCy does not add the values of extensions
        return np.array([strings.add(label) if (label := self.label(token)) else 0 for token in doc], dtype=np.uint64)

    def label(self, token: Token) -> str:
        """Return the label of a token, "" for none. RAISES C324: Token has no such extension."""
        if not Token.has_extension(self.extension):
            raise calib_error("C324", name=self.extension)
        return token._.get(self.extension) or ""
