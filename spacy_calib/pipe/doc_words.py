"""The tokens of Docs as arrays, for the features of a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from spacy import attrs
from spacy.language import Language
from spacy.tokens import Doc

from ..context.features import DocFunction
from ..context.words import Words
from ..errors import brief, calib_error
from ..types import Floats

_ATTRIBUTES = [attrs.LOWER, attrs.SUFFIX, attrs.IS_SPACE, attrs.IS_TITLE, attrs.LIKE_NUM]


def words_of(
    docs: Sequence[Doc],
    functions: Sequence[DocFunction] = (),
    first: int = 0,
    further_scores: Mapping[str, Floats] | None = None,
) -> Words:
    """Collect the tokens of consecutive Docs.

    functions (Sequence[DocFunction]): Features to compute from the Docs. first (int): First token that may have a label.
    further_scores (Mapping | None): As in Words.
    RAISES C202, C203, C206: a function returned another shape, or a value that is not finite, or failed.
    """
    starts = np.array([0, *accumulate(map(len, docs))])
    tables = [doc.to_array(_ATTRIBUTES) for doc in docs]
    table = tables[0] if len(tables) == 1 else np.concatenate([np.zeros((0, len(_ATTRIBUTES)), dtype=np.uint64), *tables])
    forms, endings, is_space, is_title, like_number = table.T
    counts = is_space == 0
    if first:
        counts &= np.arange(len(counts)) >= np.repeat(starts[:-1] + first, np.diff(starts))
    columns = {feature.name: columns_of_function(feature, docs, int(starts[-1])) for feature in functions}
    shapes = (is_title + 2 * like_number).view(np.intp)
    return Words(starts, forms, endings, shapes, counts, columns, further_scores or {})


def functions_in(nlp: Language, context: Any) -> Sequence[DocFunction]:
    """Return the features that a context computes from Docs: of its method `functions_in`, if it has one, else `functions`."""
    bind = getattr(context, "functions_in", None)
    return context.functions if bind is None else bind(nlp)


def columns_of_function(feature: DocFunction, docs: Sequence[Doc], n_tokens: int) -> Floats:
    """Return a feature of all tokens, shape (n_tokens, k). RAISES C202: another shape. C203: not finite. C206: it failed."""
    name = feature.name
    try:
        values = np.asarray(feature.function(docs), dtype=np.float64)
    except Exception as error:  # the user's function may raise anything
        raise calib_error("C206", name=name, why=f"{type(error).__name__}: {brief(error, 160)}") from error
    if values.ndim not in (1, 2) or len(values) != n_tokens:
        raise calib_error("C202", name=name, given=values.shape, n=n_tokens)
    columns = values.reshape(n_tokens, -1) if values.ndim == 2 else values[:, None]
    bad = np.flatnonzero(~np.isfinite(columns).all(axis=1))
    if len(bad):
        doc = docs[int(np.searchsorted(np.cumsum([len(doc) for doc in docs]), bad[0], side="right"))]
        wrong = columns[bad[0]][~np.isfinite(columns[bad[0]])][0]
        raise calib_error("C203", name=name, given=wrong, text=doc.text[:40])
    return columns
