"""The tokens that may be inside an entity, as stretches: `doc.spans["<attr>_doubtful"]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup

from ..types import Floats, Ints
from .annotations import get_annotation


@dataclass(frozen=True, eq=False)
class Flags:
    """Which tokens of Docs that follow one another are flagged.

    flagged (NDArray[int8]): For each token 1 or 0, -1 without a score. rows (Ints): The m flagged ones, ascending.
    types (Sequence[str]): Entity types. kinds (Ints): Likeliest type of each flagged token, an index into types, (m,).
    scores (Floats): Their P(inside an entity) or, where each label has a cut-off, P(their type), (m,).
    """

    flagged: NDArray[np.int8]
    rows: Ints
    types: Sequence[str]
    kinds: Ints
    scores: Floats


def doubtful_key(attr: str) -> str:
    """The key of the group in `doc.spans`."""
    return f"{attr}_doubtful"


def delete_doubtful(doc: Doc, attr: str) -> None:
    """Remove the group of an earlier run."""
    if doubtful_key(attr) in doc.spans:
        del doc.spans[doubtful_key(attr)]


def write_doubtful(docs: Sequence[Doc], attr: str, layer: str, flags: Flags) -> None:
    """Write the group on each Doc: a span per stretch of flagged tokens, and its highest score in `attrs["scores"]`.

    A stretch ends where an entity on the Doc begins or ends: an entity that was found is a span of its own, with its
    own label. Any other stretch has the label of its highest token. layer (str): Name of the entities' annotation.
    """
    annotation = get_annotation(layer)
    bounds = np.cumsum([0, *map(len, docs)])
    firsts = np.searchsorted(flags.rows, bounds)
    for doc, start, first, end in zip(docs, bounds.tolist(), firsts.tolist(), firsts[1:].tolist(), strict=False):
        own = {(span.start, span.end): span.label_ for span in annotation.spans_on(doc)}
        tokens, scores, kinds = flags.rows[first:end] - start, flags.scores[first:end], flags.kinds[first:end]
        edges = np.array(sorted({edge for key in own for edge in key}), dtype=np.intp)
        spans, highest = [], []
        for stretch in _stretches(tokens, edges):
            begins, ends = int(tokens[stretch[0]]), int(tokens[stretch[-1]]) + 1
            best = stretch[int(scores[stretch].argmax())]
            label = own.get((begins, ends), flags.types[kinds[best]])
            spans.append(Span(doc, begins, ends, label=label))
            highest.append(scores[best])
        name = doubtful_key(attr)
        doc.spans[name] = SpanGroup(doc, name=name, attrs={"scores": np.array(highest, dtype=np.float64)}, spans=spans)


def _stretches(tokens: Ints, edges: Ints) -> list[Ints]:
    """Runs of consecutive tokens, cut at the edges: their places in tokens. tokens, edges (Ints): Numbers, sorted."""
    if not len(tokens):
        return []
    area = np.searchsorted(edges, tokens, side="right")
    cuts = np.flatnonzero((np.diff(tokens) > 1) | (np.diff(area) > 0)) + 1
    return np.split(np.arange(len(tokens)), cuts)
