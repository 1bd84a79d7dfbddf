"""The tokens of Docs as arrays that features can look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from spacy import attrs
from spacy.tokens import Doc

from ..context.surroundings import FromDocs
from ..context.words import SHAPES, Words
from ..errors import brief, calib_error
from ..types import Floats

# In the order of SHAPES.
_OF_SHAPES = (attrs.IS_TITLE, attrs.LIKE_NUM)
_ATTRIBUTES = [attrs.LOWER, attrs.SUFFIX, attrs.IS_SPACE, *_OF_SHAPES]
_NO_TOKENS = np.zeros((0, len(_ATTRIBUTES)), dtype=np.uint64)


def words_of(
    docs: Sequence[Doc],
    functions: Sequence[FromDocs] = (),
    first: int = 0,
    hints: Mapping[str, Floats] | None = None,
) -> Words:
    """The tokens of Docs, one Doc after the other.

    functions (Sequence[FromDocs]): Called here. first (int): First token that may have a label.
    hints (Mapping | None): See Words.
    RAISES C202, C203, C206: what a function gives.
    """
    starts = np.cumsum([0, *map(len, docs)])
    table = np.concatenate([_NO_TOKENS, *[doc.to_array(_ATTRIBUTES) for doc in docs]])
    counts = table[:, 2] == 0
    if first:
        counts &= np.arange(len(counts)) >= np.repeat(starts[:-1] + first, np.diff(starts))
    shapes = {name: table[:, 3 + i] != 0 for i, name in enumerate(SHAPES)}
    columns = {feature.name: columns_of_function(feature, docs, int(starts[-1])) for feature in functions}
    return Words(starts, table[:, 0].copy(), table[:, 1].copy(), shapes, counts, columns, hints or {})


def columns_of_function(feature: FromDocs, docs: Sequence[Doc], n_tokens: int) -> Floats:
    """What a function says of all tokens, (n_tokens, k). RAISES C202: another shape. C203: not finite. C206: it fails."""
    name = feature.name
    try:
        given = np.asarray(feature.function(docs), dtype=np.float64)
    except Exception as error:  # whatever the function does
        raise calib_error("C206", name=name, why=f"{type(error).__name__}: {brief(error, 160)}") from error
    if given.ndim not in (1, 2) or len(given) != n_tokens:
        raise calib_error("C202", name=name, given=given.shape, n=n_tokens)
    columns = given.reshape(n_tokens, -1) if given.ndim == 2 else given[:, None]
    bad = np.flatnonzero(~np.isfinite(columns).all(axis=1))
    if len(bad):
        doc = docs[int(np.searchsorted(np.cumsum([len(doc) for doc in docs]), bad[0], side="right"))]
        wrong = columns[bad[0]][~np.isfinite(columns[bad[0]])][0]
        raise calib_error("C203", name=name, given=wrong, text=doc.text[:40])
    return columns
