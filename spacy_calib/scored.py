"""Docs that a calib pipe has scored -> flat arrays of tokens, scores and spans: what reports, queues and expectations read.

The Docs themselves are let go, so that a corpus of any length is held in a few dozen bytes a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from .attributes import DocCalib, doc_view, token_values
from .entities.events import span_hits
from .layers import Hashes, Layer, label_hashes
from .types import Floats, Ints, Pairs

# Right, wrong, and nothing known.
RIGHT, WRONG, UNKNOWN = 1, 0, -1


@dataclass(frozen=True, eq=False)
class ScoredSpans:
    """Spans (entities) with a score; n spans, in the order of the text.

    docs (Ints): Number of the Doc. starts, ends (Ints): First token in the Doc, and the one after the last. labels (Ints): In `names`.
    raw, calibrated (Floats): Probability before and after calibration. right (NDArray[int8]): 1 or 0, -1 where the gold is not known.
    """

    docs: Ints
    starts: Ints
    ends: Ints
    labels: Ints
    raw: Floats
    calibrated: Floats
    right: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.docs)


@dataclass(frozen=True, eq=False)
class ScoredCorpus:
    """n tokens of some Docs, their m scores above the threshold, and their spans.

    names (tuple[str, ...]): The labels that were met.
    docs (Ints): Number of each token's Doc, ascending, shape (n,). n_docs (int): Docs looked at, with or without tokens.
    words (NDArray[object]): Text of each token. spaces (NDArray[bool]): Whether a space follows it.
    starts (NDArray[bool]): Whether it begins a sentence; the first token of a Doc always does.
    labels (Ints): The label that it carries, as a place in names; -1 where none.
    raw, calibrated (Floats): Probability of that label before and after calibration; NaN where it has none.
    gold (Ints): The gold label, as a place in names; -1 where none is known.
    right (NDArray[int8]): Whether the carried label is a gold one: 1 or 0, -1 where no gold is known or it carries none.
    rows, tags, columns (Ints): Token of each score, ascending; its tag in names; its column in the labels of the source; shape (m,).
    tag_raw, tag_calibrated (Floats): The score before and after calibration. hits (NDArray[int8]): As `right`, of each score.
    spans (ScoredSpans): The entities (or categorized spans).
    """

    names: tuple[str, ...]
    docs: Ints
    n_docs: int
    words: NDArray[np.object_]
    spaces: NDArray[np.bool_]
    starts: NDArray[np.bool_]
    labels: Ints
    raw: Floats
    calibrated: Floats
    gold: Ints
    right: NDArray[np.int8]
    rows: Ints
    tags: Ints
    columns: Ints
    tag_raw: Floats
    tag_calibrated: Floats
    hits: NDArray[np.int8]
    spans: ScoredSpans

    def __len__(self) -> int:
        return len(self.docs)

    @cached_property
    def doc_starts(self) -> Ints:
        """First token of each Doc, and the number of tokens at the end: shape (n_docs + 1,)."""
        return np.searchsorted(self.docs, np.arange(self.n_docs + 1))

    @cached_property
    def sentences(self) -> Ints:
        """Number of each token's sentence, from 0, shape (n,)."""
        return np.cumsum(self.starts) - 1

    @cached_property
    def sentence_starts(self) -> Ints:
        """First token of each sentence, and the number of tokens at the end."""
        return np.append(np.flatnonzero(self.starts), len(self))

    @cached_property
    def indptr(self) -> Ints:
        """Where each token's scores begin: shape (n + 1,)."""
        return np.searchsorted(self.rows, np.arange(len(self) + 1))

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Tokens that carry a label with a score and are not white space, shape (n,): those that queues and expectations are about."""
        is_space = np.array([word.isspace() for word in self.words.tolist()], dtype=bool)
        return ~np.isnan(self.calibrated) & ~is_space

    @property
    def has_gold(self) -> bool:
        """Whether the gold label of any counted token is known."""
        return bool((self.right[self.counted] != UNKNOWN).any())

    def pairs(self) -> tuple[Pairs, Floats, Ints]:
        """(pairs, calibrated score of each, Doc of each): the scores of tokens with gold (DESIGN section 2)."""
        keep = self.hits != UNKNOWN
        known = np.zeros(len(self), dtype=bool)
        known[self.rows[keep]] = True
        rows = self.rows[keep]
        pairs = Pairs(rows, self.columns[keep], self.tag_raw[keep], self.hits[keep] == RIGHT, int(known.sum()))
        return pairs, self.tag_calibrated[keep], self.docs[rows]

    def span_pairs(self, labels: Sequence[str]) -> tuple[Pairs, Floats, Ints]:
        """The same for the spans with gold, each a unit of its own.

        labels (Sequence[str]): Of the spans of the source, as columns.
        """
        spans, column = self.spans, {label: i for i, label in enumerate(labels)}
        keep = np.flatnonzero(spans.right != UNKNOWN)
        of_name = np.array([column.get(name, -1) for name in self.names], dtype=np.intp)
        tags = of_name[spans.labels[keep]]
        pairs = Pairs(np.arange(len(keep)), tags, spans.raw[keep], spans.right[keep] == RIGHT, len(keep))
        return pairs, spans.calibrated[keep], spans.docs[keep]

    def text(self, first: int, last: int) -> str:
        """The text of the tokens from `first` to before `last`, without white space at its ends."""
        words, spaces = self.words[first:last].tolist(), self.spaces[first:last].tolist()
        return "".join(word + " " * space for word, space in zip(words, spaces, strict=True)).strip()

    def sentence_of(self, token: int) -> tuple[int, int]:
        """(first token, the one after the last) of the sentence around a token."""
        number = int(self.sentences[token])
        return int(self.sentence_starts[number]), int(self.sentence_starts[number + 1])


class _Names:
    """Labels as small numbers, in the order in which they are met."""

    def __init__(self, labels: Iterable[str]) -> None:
        self.numbers: dict[str, int] = {}
        self._of_hash: dict[int, int] = {}
        for label in labels:
            self.number(label)

    def number(self, name: str) -> int:
        found = self.numbers.setdefault(name, len(self.numbers))
        self._of_hash[get_string_id(name)] = found
        return found

    def of_strings(self, names: NDArray[Any]) -> Ints:
        found, inverse = np.unique(names.astype(str), return_inverse=True)
        return np.array([self.number(str(name)) for name in found], dtype=np.intp)[inverse.reshape(-1)]

    def of_hashes(self, hashes: Hashes, layer: Layer, doc: Doc, in_doc: Hashes) -> Ints:
        """-1 for the hash 0 (no label). doc (Doc): Where these labels stand. in_doc (Hashes): The label hash of each of its tokens."""
        found, inverse = np.unique(hashes, return_inverse=True)
        for key in found[found != 0].tolist():
            if key not in self._of_hash:
                name = layer.label(doc[int(np.flatnonzero(in_doc == np.uint64(key))[0])])
                self._of_hash[key] = self.number(name)
        return np.array([self._of_hash.get(key, -1) for key in found.tolist()], dtype=np.intp)[inverse.reshape(-1)]


_TOKENS = {
    "docs": np.intp, "words": object, "spaces": bool, "starts": bool, "labels": np.intp, "raw": np.float64,
    "calibrated": np.float64, "gold": np.intp, "right": np.int8,
}  # fmt: skip
_SCORES = {
    "rows": np.intp, "tags": np.intp, "columns": np.intp, "tag_raw": np.float64, "tag_calibrated": np.float64, "hits": np.int8,
}  # fmt: skip
_SPANS = {
    "docs": np.intp, "starts": np.intp, "ends": np.intp, "labels": np.intp, "raw": np.float64, "calibrated": np.float64,
    "right": np.int8,
}  # fmt: skip
_Columns = dict[str, NDArray[Any]]


def scored_corpus(examples: Iterable[Example], attr: str, layer: Layer, labels: Sequence[str] = ()) -> ScoredCorpus:
    """Take what a calib pipe wrote from the predicted Docs, and compare it with the gold.

    examples (Iterable[Example]): Read one by one. A `reference` without annotation has no gold. attr (str): Prefix of the pipe's
        attributes. layer (Layer): Which annotation the pipe's labels are of. labels (Sequence[str]): Of its source; names begin with them.
    """
    names = _Names(labels)
    tokens: list[_Columns] = []
    scores: list[_Columns] = []
    spans: list[_Columns] = []
    n_tokens = 0
    for number, example in enumerate(examples):
        view = doc_view(example.predicted, attr)
        gold = layer.aligned_gold(example)
        found = {} if view is None else _scores_of(view, example, layer, gold, names)
        tokens.append(_tokens_of(number, example, view, attr, layer, gold, found, names))
        if found:
            scores.append({**found, "rows": found["rows"] + n_tokens})
        if view is not None and view.ents:
            spans.append(_spans_of(number, example, view, layer, names))
        n_tokens += len(example.predicted)
    return ScoredCorpus(
        names=tuple(names.numbers),
        n_docs=len(tokens),
        spans=ScoredSpans(**_joined(spans, _SPANS)),
        **_joined(tokens, _TOKENS),
        **_joined(scores, _SCORES),
    )


def _joined(parts: Sequence[_Columns], dtypes: dict[str, Any]) -> _Columns:
    """The columns of all Docs, one Doc after the other."""
    return {
        key: np.concatenate([np.zeros(0, dtype=dtype), *(np.asarray(part[key], dtype=dtype) for part in parts)])
        for key, dtype in dtypes.items()
    }


def _tokens_of(
    number: int,
    example: Example,
    view: DocCalib | None,
    attr: str,
    layer: Layer,
    gold: Hashes,
    scores: _Columns,
    names: _Names,
) -> _Columns:
    doc, reference = example.predicted, example.reference
    carried = layer.hashes(doc)
    labels = names.of_hashes(carried, layer, doc, carried)
    raw, calibrated = _carried_scores(doc, view, attr, scores, labels)
    known = (gold != 0) & (carried != 0)
    right = np.where(known, layer.is_gold(example, np.arange(len(doc)), carried), UNKNOWN)
    return {
        "docs": np.full(len(doc), number),
        "words": np.array([*(token.text for token in doc), None], dtype=object)[:-1],
        "spaces": doc.to_array(["SPACY"]).reshape(-1),
        "starts": _sentence_starts(doc, reference),
        "labels": labels,
        "raw": raw,
        "calibrated": calibrated,
        "gold": names.of_hashes(gold, layer, reference, layer.gold_hashes(reference)),
        "right": right,
    }


def _scores_of(view: DocCalib, example: Example, layer: Layer, gold: Hashes, names: _Names) -> _Columns:
    tags, local = np.unique(view.tags.astype(str), return_inverse=True)
    hashes = label_hashes(tags.tolist())[local.reshape(-1)]
    hits = np.where(gold[view.rows] != 0, layer.is_gold(example, view.rows, hashes), UNKNOWN)
    return {
        "rows": view.rows,
        "tags": names.of_strings(view.tags),
        "columns": view.columns,
        "tag_raw": view.raw,
        "tag_calibrated": view.calibrated,
        "hits": hits,
    }


def _carried_scores(doc: Doc, view: DocCalib | None, attr: str, scores: _Columns, labels: Ints) -> tuple[Floats, Floats]:
    """(raw, calibrated) of the label that each token carries, NaN where it has none."""
    raw, calibrated = np.full(len(doc), np.nan), np.full(len(doc), np.nan)
    if view is None:
        return raw, calibrated
    own = np.flatnonzero(scores["tags"] == labels[scores["rows"]])
    raw[scores["rows"][own]] = scores["tag_raw"][own]
    calibrated[scores["rows"][own]] = scores["tag_calibrated"][own]
    below_threshold = view.scored & np.isnan(raw) & (labels >= 0)
    for i in np.flatnonzero(below_threshold).tolist():
        values = token_values(doc[i], attr)
        if values is not None:
            raw[i], calibrated[i] = values.raw, values.calibrated
    return raw, calibrated


def _sentence_starts(doc: Doc, reference: Doc) -> NDArray[np.bool_]:
    """Of the Doc; of the gold where only that has sentences and the same tokens."""
    source = doc
    if not doc.has_annotation("SENT_START") and [token.text for token in doc] == [token.text for token in reference]:
        source = reference
    starts = source.to_array(["SENT_START"]).reshape(-1).astype(np.int64) == 1
    starts[:1] = True
    return starts


def _spans_of(number: int, example: Example, view: DocCalib, layer: Layer, names: _Names) -> _Columns:
    keys = [(span.start, span.end, get_string_id(span.label)) for span in view.ents]
    columns = list(
        zip(*((span.start, span.end, names.number(span.label), span.raw, span.score) for span in view.ents), strict=True)
    )
    found: dict[str, Any] = dict(zip(("starts", "ends", "labels", "raw", "calibrated"), columns, strict=True))
    return {**found, "docs": np.full(len(keys), number), "right": span_hits(example, layer, keys, view.ents[0].event)}
