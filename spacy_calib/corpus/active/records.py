"""A chosen batch as plain data: each sentence with the token that was the reason, so that a person sees why."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from ...pairs.documents import DOCUMENT
from ...types import Floats, Ints
from .pieces import Pieces

if TYPE_CHECKING:
    from ..scored import ScoredCorpus

N_ALTERNATIVES = 3


def batch_rows(
    corpus: ScoredCorpus,
    pieces: Pieces,
    chosen: Ints,
    scores: Floats,
    values: Floats,
    *,
    whole_docs: bool,
    tags: Collection[str] = (),
    entities: bool = False,
) -> list[dict[str, Any]]:
    """A record for each chosen piece.

    scores (Floats): Priority of each piece. values (Floats): Of each token, see `priority.token_values`. whole_docs (bool): Whether the
        pieces are Docs. tags (Collection[str]): The tags that were hunted; empty for other orders. entities (bool): Whether what the corpus is a part of has
        any.
    RETURNS (list[dict]): "rank" (from 1), "text", "doc" and "sentence" (from 0, in the data and in the Doc; None for whole Docs), "origin"
        (see `ScoredCorpus.origins`),
        "start" and "end" (tokens in the Doc; None where documents have the labels), "words", "score", "expected_errors", "reason": see `reason_of`, and "entities" where there
        are any.
    """
    expected = pieces.sums(np.where(corpus.counted, 1 - corpus.calibrated, np.nan))
    rows, with_label = [], corpus.row_unit == DOCUMENT
    for rank, place in enumerate(chosen.tolist(), 1):
        first, last, doc = int(pieces.first[place]), int(pieces.last[place]), int(pieces.docs[place])
        offset = int(corpus.doc_starts[doc])
        row = {
            "rank": rank,
            "text": corpus.text(first, last),
            "doc": int(corpus.numbers_of_docs[doc]),
            "origin": corpus.origin(doc),
            "sentence": None if whole_docs else int(corpus.sentences[first] - corpus.sentences[offset]),
            "start": None if with_label else first - offset,
            "end": None if with_label else last - offset,
            "words": int(pieces.words[place]),
            "score": float(scores[place]),
            "expected_errors": float(expected[place]),
            "reason": reason_of(corpus, first, last, values, tags),
        }
        if entities or len(corpus.spans):
            row["entities"] = _entities_of(corpus, doc, first - offset, last - offset)
        rows.append(row)
    return rows


def reason_of(corpus: ScoredCorpus, first: int, last: int, values: Floats, tags: Collection[str] = ()) -> dict[str, Any]:
    """Why the tokens from `first` to before `last` were chosen: the one with the greatest value, the first of equal ones.

    RETURNS (dict): "token" (from 0, in the piece) and "word", None where documents have the labels, "label" that it carries, "tag": the label, or the likeliest of the tags that
        were hunted, its "probability" (calibrated) and "raw" one, "alternatives": other tag -> calibrated probability, highest first.
    """
    token = first + int(np.nanargmax(values[first:last]))
    label = corpus.names[corpus.labels[token]]
    own = slice(corpus.indptr[token], corpus.indptr[token + 1])
    names = [corpus.names[tag] for tag in corpus.tags[own].tolist()]
    calibrated = dict(zip(names, corpus.tag_calibrated[own].tolist(), strict=True))
    raw = dict(zip(names, corpus.tag_raw[own].tolist(), strict=True))
    # The label may lie below the threshold of the scores.
    calibrated.setdefault(label, float(corpus.calibrated[token]))
    raw.setdefault(label, float(corpus.raw[token]))
    ordered = sorted(calibrated, key=lambda name: -calibrated[name])
    tag = next((name for name in ordered if name in tags), label)
    others = [name for name in ordered if name != tag][:N_ALTERNATIVES]
    return {
        "token": None if corpus.row_unit == DOCUMENT else token - first,
        "word": None if corpus.row_unit == DOCUMENT else str(corpus.words[token]),
        "label": label,
        "tag": tag,
        "probability": calibrated[tag],
        "raw": raw[tag],
        "alternatives": {name: calibrated[name] for name in others},
    }


def _entities_of(corpus: ScoredCorpus, doc: int, start: int, end: int) -> list[dict[str, Any]]:
    """The predicted entities that begin between two tokens of a Doc, with their tokens counted from the first of these."""
    spans, offset = corpus.spans, int(corpus.doc_starts[doc])
    of_doc = np.arange(*np.searchsorted(spans.docs, [doc, doc + 1]))
    own = of_doc[(spans.starts[of_doc] >= start) & (spans.starts[of_doc] < end)]
    return [
        {
            "start": int(spans.starts[i]) - start,
            "end": int(spans.ends[i]) - start,
            "text": corpus.text(offset + int(spans.starts[i]), offset + int(spans.ends[i])),
            "label": corpus.names[spans.labels[i]],
            "probability": float(spans.calibrated[i]),
            "raw": float(spans.raw[i]),
        }
        for i in own.tolist()
    ]
