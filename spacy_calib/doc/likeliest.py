"""The likeliest label as the prediction, where a source gives marginals but no labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.morphology import Morphology
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token

from ..pairs.documents import TOKEN
from ..types import Marginals
from .annotations import EXTENSION_PREFIX, Annotation, Hashes, MappedAnnotation, plain_name, unit_of


@dataclass(frozen=True, eq=False)
class Likeliest:
    """The labels for *bare* Docs, which carry none. They are those of the scores, before any map of labels.

    marginals (Marginals): Of all units of a batch. labels (Sequence[str]): Its columns. given (dict): Number of a bare
        Doc in the batch -> the likeliest label of each of its units, "" where none has a score.
    """

    marginals: Marginals
    labels: Sequence[str]
    given: dict[int, list[str]]

    @classmethod
    def of(cls, marginals: Marginals, labels: Sequence[str], hashes: Sequence[Hashes]) -> Likeliest:
        """hashes: The label hashes of each Doc's units, 0 for no label."""
        order = np.argsort(marginals.scores, kind="stable")
        best = np.full(marginals.n_tokens, -1)
        best[marginals.rows[order]] = marginals.tags[order]  # the last one stays
        names, starts = [*labels, ""], np.cumsum([0, *map(len, hashes)])
        bare = [number for number, own in enumerate(hashes) if not own.any()]
        given = {number: [names[i] for i in best[starts[number] : starts[number + 1]].tolist()] for number in bare}
        return cls(marginals, labels, given)

    def filled(self, hashes: Sequence[Hashes], annotation: Annotation) -> list[Hashes]:
        """The label hashes of all Docs, for bare ones those of their likeliest labels."""
        counterpart = annotation.counterpart if isinstance(annotation, MappedAnnotation) else str
        filled = list(hashes)
        for number, labels in self.given.items():
            names = map(counterpart, labels)
            filled[number] = np.array([get_string_id(name) if name else 0 for name in names], dtype=np.uint64)
        return filled

    def write(self, docs: Sequence[Doc], layer: str) -> None:
        """Put the labels on the bare Docs; for text categories put the raw scores into `doc.cats`."""
        for number, labels in self.given.items():
            if unit_of(layer) == TOKEN:
                write_labels(docs[number], plain_name(layer), labels)
                continue
            own = slice(*np.searchsorted(self.marginals.rows, [number, number + 1]).tolist())
            names = [self.labels[tag] for tag in self.marginals.tags[own].tolist()]
            docs[number].cats.update(zip(names, self.marginals.scores[own].tolist(), strict=True))


def write_labels(doc: Doc, layer: str, labels: Sequence[str]) -> None:
    """Put labels on tokens, "" for none. layer (str): tag, pos, lemma, dep, ent_type, morph, sent or an extension."""
    for token, label in zip(doc, labels, strict=True):
        if label:
            _write(token, layer, label)


def erase_label(token: Token, layer: str) -> None:
    """Remove a token's label. layer (str): See `write_labels`."""
    if layer == "morph":
        token.pos_ = ""
        token.set_morph(None)  # type: ignore[attr-defined]
    elif layer == "sent":
        if token.i:
            token.is_sent_start = None
    else:
        _write(token, layer, "")


def _write(token: Token, layer: str, label: str) -> None:
    if layer == "morph":
        feats = Morphology.feats_to_dict(label)
        token.pos_ = feats.pop("POS", "")
        token.set_morph(feats)  # type: ignore[attr-defined]
    elif layer == "sent":
        if token.i:
            token.is_sent_start = label == "S"
    elif layer.startswith(EXTENSION_PREFIX):
        token._.set(layer.removeprefix(EXTENSION_PREFIX), label)
    else:
        setattr(token, f"{layer}_", label)
