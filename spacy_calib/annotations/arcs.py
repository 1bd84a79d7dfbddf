"""The arcs of a parser: the head of each token and the label of its arc."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore, get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from .annotation import Annotation, Hashes, is_space, map_unique, single_gold_tokens, values_of_tokens
from .kinds import ARCS, HEADS

_ROOT = "ROOT"
ARC_EVENTS = ("head", "arc")  # names of the annotations of arcs: an arc is right by its head, or by head and label


class ArcAnnotation(Annotation):
    """The arc from each token to its head. In the annotation "arc" head and label must be right, in "head" only the head.

    As in spaCy's `score_deps`, token and head must each align with one gold token of a gold arc, and labels are compared in
    lower case; unlike there, arcs of punctuation count. The label of a token without a head is "ROOT", whatever its case on the
    Doc. The spans of this annotation are sentences, which are right if all their arcs are.
    """

    def __init__(self, name: str):
        self.name = name
        self.kind = HEADS if name == "head" else ARCS

    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each token's arc label, that of "ROOT" for "root" in any case, 0 for no label."""
        strings, codes = doc.vocab.strings, values_of_tokens(doc, "DEP").view(np.uint64)
        return map_unique(codes, lambda key: get_string_id(_as_label(strings[key])) if key else 0)

    def label(self, token: Token) -> str:
        return _as_label(token.dep_)

    def partner(self, token: Token) -> Token:
        return token.head

    def partners(self, doc: Doc) -> NDArray[np.int32]:
        return head_offsets(doc)

    def is_gold(self, example: Example, units: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return for n arcs whether head (for "arc" also label) is right, (n,). units, hashes: Token and label hash of each."""
        gold_token = single_gold_tokens(example)  # of each predicted token, -1 for none
        aligned_head = gold_token[_heads(example.predicted)]  # the gold token that the predicted head aligns with
        gold_heads = np.append(_heads(example.reference), -1)  # the last element, -1, is for the gold token -1
        is_aligned = (gold_token >= 0) & (aligned_head >= 0)
        has_right_head = (is_aligned & (gold_heads[gold_token] == aligned_head))[units]
        if self.kind.any_label:  # only heads are compared
            return has_right_head
        strings, gold = example.predicted.vocab.strings, self.aligned_gold(example)[units]
        return has_right_head & (_lower_hashes(strings, hashes) == _lower_hashes(strings, gold))

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        return list(doc.sents) if doc.has_annotation("SENT_START") else ()

    def evaluate_spans(self, example: Example, spans: Sequence[tuple[int, int, int]]) -> NDArray[np.intp]:
        """Return per (start, end, label) 1 if all words have right arcs, else 0; -1 without words or if a word lacks gold."""
        doc = example.predicted
        words, gold = ~is_space(doc), self.aligned_gold(example)
        right = self.is_gold(example, np.arange(len(doc)), self.hashes(doc))
        hits = []
        for start, end, _ in spans:
            tokens = start + np.flatnonzero(words[start:end])
            has_gold = len(tokens) > 0 and bool((gold[tokens] != 0).all())
            hits.append(int(right[tokens].all()) if has_gold else -1)
        return np.array(hits, dtype=np.intp)

    def _string(self, key: int, strings: object) -> str:
        return _ROOT if key == get_string_id(_ROOT) else super()._string(key, strings)  # "ROOT" may be missing in `strings`


def _heads(doc: Doc) -> NDArray[np.int64]:
    """Return the index in the Doc of each token's head; a root is its own head."""
    return np.arange(len(doc)) + values_of_tokens(doc, "HEAD")


def head_offsets(doc: Doc) -> NDArray[np.int32]:
    """Return the number of characters from the start of each token to the start of its head, 0 for a root."""
    starts = values_of_tokens(doc, "IDX")
    return (starts[_heads(doc)] - starts).astype(np.int32)


def _as_label(name: str) -> str:
    """Return the label of an arc unchanged, but "ROOT" for "root" in any case."""
    return _ROOT if name.lower() == "root" else name


def _lower_hashes(strings: StringStore, hashes: Hashes) -> Hashes:
    """Return for each label's hash that of the label in lower case. A hash that `strings` lacks is returned unchanged."""

    def lower_hash(key: int) -> int:
        try:
            return get_string_id(strings[key].lower())
        except KeyError:
            return key

    return map_unique(hashes, lower_hash)
