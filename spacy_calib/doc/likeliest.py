"""The likeliest label as the prediction, where somebody brings marginals and no labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.morphology import Morphology
from spacy.tokens import Doc, Token

from ..pairs.documents import TOKEN
from ..types import Marginals
from .annotations import EXTENSION_PREFIX, Hashes, get_annotation, label_hashes
from .write import CalibratedBatch


def fill_bare(
    marginals: Marginals, hashes: Sequence[Hashes], labels: Sequence[str]
) -> tuple[list[Hashes], dict[int, list[str]]]:
    """(the label hashes of each Doc, that of the likeliest label where a Doc has none; number of such a Doc -> its labels).

    marginals (Marginals): Of all tokens of the Docs, one Doc after the other. hashes: The label hash of each Doc's tokens. A token of
    which no label has a score gets none ("").
    """
    order = np.argsort(marginals.scores, kind="stable")
    best = np.full(marginals.n_tokens, -1)
    best[marginals.rows[order]] = marginals.tags[order]  # the last one stays
    starts = np.cumsum([0, *map(len, hashes)])
    filled, given = list(hashes), {}
    for number, own in enumerate(hashes):
        if not own.any():
            columns = best[starts[number] : starts[number + 1]].tolist()
            given[number] = [labels[column] if column >= 0 else "" for column in columns]
            known: NDArray[np.bool_] = np.array(columns) >= 0
            filled[number] = np.where(known, label_hashes(given[number]), np.uint64(0))
    return filled, given


def give_labels(doc: Doc, number: int, labels: Sequence[str], batch: CalibratedBatch) -> None:
    """Put the likeliest labels on a Doc that carries none; of a document with categories the raw scores, in `doc.cats`.

    number (int): Of the Doc in the batch. labels (Sequence[str]): See `fill_bare`.
    """
    if get_annotation(batch.layer).unit == TOKEN:
        write_labels(doc, batch.layer, labels)
        return
    marginals = batch.calibrated.marginals
    own = slice(*np.searchsorted(marginals.rows, [number, number + 1]).tolist())
    names = [batch.labels[tag] for tag in marginals.tags[own].tolist()]
    doc.cats.update(zip(names, marginals.scores[own].tolist(), strict=True))


def write_labels(doc: Doc, layer: str, labels: Sequence[str]) -> None:
    """Put labels on the tokens of a Doc, "" for none. layer (str): tag, pos, lemma, dep, ent_type, morph, sent or an extension."""
    for token, label in zip(doc, labels, strict=True):
        if label:
            _write(token, layer, label)


def erase_label(token: Token, layer: str) -> None:
    """Take its label from a token. layer (str): See `write_labels`."""
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
