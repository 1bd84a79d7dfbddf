"""Top labels as predictions, for Docs that have scores but no labels; and functions that write labels on tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.morphology import Morphology
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token

from ..annotations import EXTENSION_PREFIX, Annotation, Hashes, MappedAnnotation, kind_of, plain_name
from ..types import Marginals


@dataclass(frozen=True, eq=False)
class TopLabels:
    """The top labels of *bare* Docs, which have scores but no labels. No label map has renamed them.

    marginals (Marginals): Scores of all units of a batch of Docs, one after the other. labels: Label of each column of scores.
    by_doc (dict): Index of a bare Doc in the batch -> the top label of each of its units, "" for a unit without scores.
    """

    marginals: Marginals
    labels: Sequence[str]
    by_doc: dict[int, list[str]]

    @classmethod
    def from_marginals(cls, marginals: Marginals, labels: Sequence[str], hashes: Sequence[Hashes]) -> TopLabels:
        """Find the top labels of bare Docs. hashes: For each Doc the hashes of its labels, which are all 0 if it is bare."""
        order = np.argsort(marginals.scores, kind="stable")
        top_tags = np.full(marginals.n_tokens, -1)
        top_tags[marginals.rows[order]] = marginals.tags[order]  # of a unit's entries the last, highest one stays
        names, bounds = [*labels, ""], np.cumsum([0, *map(len, hashes)])  # names[-1]: for a unit without scores
        by_doc = {}
        for number, doc_hashes in enumerate(hashes):
            if not doc_hashes.any():
                by_doc[number] = [names[tag] for tag in top_tags[bounds[number] : bounds[number + 1]].tolist()]
        return cls(marginals, labels, by_doc)

    def fill(self, hashes: Sequence[Hashes], annotation: Annotation) -> list[Hashes]:
        """Return the hashes of each Doc's labels: for bare Docs those of top labels, renamed by the map of `annotation`."""
        map_label = annotation.counterpart if isinstance(annotation, MappedAnnotation) else str  # str: no change
        all_hashes = list(hashes)
        for number, labels in self.by_doc.items():
            names = map(map_label, labels)  # `counterpart` maps a label of the source to its gold label
            all_hashes[number] = np.array([get_string_id(name) if name else 0 for name in names], dtype=np.uint64)
        return all_hashes

    def write(self, docs: Sequence[Doc], layer: str) -> None:
        """Write the top labels on bare Docs. layer: Name of their annotation; for categories `doc.cats` gets all raw scores."""
        for number, labels in self.by_doc.items():
            if not kind_of(layer).of_documents:
                write_labels(docs[number], plain_name(layer), labels)
                continue
            entries = slice(*np.searchsorted(self.marginals.rows, [number, number + 1]).tolist())
            names = [self.labels[tag] for tag in self.marginals.tags[entries].tolist()]
            docs[number].cats.update(zip(names, self.marginals.scores[entries].tolist(), strict=True))


def write_labels(doc: Doc, layer: str, labels: Sequence[str]) -> None:
    """Set the label of each token of a Doc; "" leaves it. layer: tag, pos, lemma, dep, ent_type, morph, sent or "_.NAME"."""
    for token, label in zip(doc, labels, strict=True):
        if label:
            _write_label(token, layer, label)


def erase_label(token: Token, layer: str) -> None:
    """Remove the label of a token. layer (str): tag, pos, lemma, dep, ent_type, morph, sent or "_.NAME" (an extension)."""
    if layer == "morph":
        token.pos_ = ""
        token.set_morph(None)  # type: ignore[attr-defined]
    elif layer == "sent":
        if token.i:  # the first token always is a start
            token.is_sent_start = None
    else:
        _write_label(token, layer, "")


def _write_label(token: Token, layer: str, label: str) -> None:
    """Set the label of a token, in the attributes that the annotation `layer` reads."""
    if layer == "morph":
        feats = Morphology.feats_to_dict(label)
        token.pos_ = feats.pop("POS", "")
        token.set_morph(feats)  # type: ignore[attr-defined]
    elif layer == "sent":
        if token.i:  # the first token always is a start
            token.is_sent_start = label == "S"
    elif layer.startswith(EXTENSION_PREFIX):
        token._.set(layer.removeprefix(EXTENSION_PREFIX), label)
    else:
        setattr(token, f"{layer}_", label)
