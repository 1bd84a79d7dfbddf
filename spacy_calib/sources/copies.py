"""Copies of Docs for a second pass of a component over them."""

from __future__ import annotations

import numpy as np
from spacy.tokens import Doc

# What embedding layers may read besides the word: of the token, not of its lexeme ("n't" has the norm "not").
_READ: list[int | str] = ["NORM", "TAG", "POS", "MORPH", "LEMMA"]


def clear_copy(doc: Doc, parsed: bool = True) -> Doc:
    """The same words with what a component's model reads (token vectors, transformer data), but no entities and no heads.

    parsed (bool): Whether sentence starts and the labels of arcs go along.
    """
    columns = doc.to_array(["SENT_START"]).astype(np.uint64).reshape(-1).view(np.int64)
    starts: list[bool | int | None] = [None if sign == 0 or not parsed else bool(sign == 1) for sign in columns.tolist()]
    copy = Doc(
        doc.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc], sent_starts=starts
    )
    read = [*_READ, "DEP"] if parsed else _READ
    copy.from_array(read, np.asarray(doc.to_array(read)))  # type: ignore[arg-type]
    copy.tensor = doc.tensor
    if Doc.has_extension("trf_data"):
        copy._.trf_data = doc._.trf_data
    return copy
