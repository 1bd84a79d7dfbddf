"""The mentions of a Doc: those in a span group, or its entities, noun chunks and pronouns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_calib.types import Ints

from .calibration import KINDS, PairGrouping

_NOMINAL, _PROPER, _PRONOUN = range(len(KINDS))
# One name for all forms of an English pronoun, as the form tells less; without tags, these words are the pronouns.
_FORMS = {
    "i": "i me my mine myself", "you": "you your yours yourself yourselves u", "he": "he him his himself", "she": "she her hers herself",
    "it": "it its itself", "we": "we us our ours ourselves", "they": "they them their theirs themselves themself",
    "this": "this these", "that": "that those", "who": "who whom whose which",
}  # fmt: skip
PRONOUNS = {form: name for name, forms in _FORMS.items() for form in forms.split()}


@dataclass(frozen=True, eq=False)
class Mentions:
    """Arrays of n mentions in text order: bounds, head (the last token without a parse), index in KINDS, sentence number."""

    starts: Ints
    ends: Ints
    heads: Ints
    kinds: Ints
    sentences: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def grouping(self) -> PairGrouping:
        return PairGrouping(self.kinds, self.sentences)

    @classmethod
    def on(cls, doc: Doc, spans: Iterable[tuple[int, int]]) -> Mentions:
        """Build the arrays of these spans of a Doc. spans: (first token, the one after the last), each once."""
        bounds = np.array(sorted(spans), dtype=np.intp).reshape(-1, 2)
        has_heads = doc.has_annotation("DEP")
        heads = np.array([doc[a:b].root.i if has_heads else b - 1 for a, b in bounds.tolist()], dtype=np.intp)
        kinds = np.array([_kind(doc, head) for head in heads.tolist()], dtype=np.intp)
        numbers = sentence_numbers(doc)[bounds[:, 0]]
        return cls(bounds[:, 0], bounds[:, 1], heads, kinds, numbers)


def mentions_of(doc: Doc, key: str) -> Mentions:
    """Return the mentions in `doc.spans[key]`, else entities, noun chunks and pronouns."""
    spans = {(span.start, span.end) for span in doc.spans[key]} if key in doc.spans else found_mentions(doc)
    return Mentions.on(doc, spans)


def found_mentions(doc: Doc) -> set[tuple[int, int]]:
    """Return entities, noun chunks (of parsed Docs, if the language has them) and pronouns, possessive ones too."""
    mentions = {(ent.start, ent.end) for ent in doc.ents}
    if doc.has_annotation("DEP") and doc.vocab.get_noun_chunks is not None:
        mentions |= {(chunk.start, chunk.end) for chunk in doc.noun_chunks}
    return mentions | {(token.i, token.i + 1) for token in doc if _kind(doc, token.i) == _PRONOUN}


def _kind(doc: Doc, head: int) -> int:
    """Return the kind of a mention with this head token, an index in KINDS."""
    token = doc[head]
    if token.pos:
        possessive = token.tag_ in ("PRP$", "WP$")  # these are determiners in some schemes
        kind = {"PRON": _PRONOUN, "PROPN": _PROPER}.get(token.pos_, _NOMINAL)
        return _PRONOUN if possessive else kind
    return _PRONOUN if token.lower_ in PRONOUNS else _PROPER if token.ent_type else _NOMINAL


def sentence_numbers(doc: Doc) -> Ints:
    """Return the number of each token's sentence; 0 without sentences."""
    if not doc.has_annotation("SENT_START"):
        return np.zeros(len(doc), dtype=np.intp)
    starts = doc.to_array(["SENT_START"]).astype(np.uint64, copy=False).view(np.int64).reshape(-1) == 1
    starts[:1] = False
    return np.cumsum(starts)


def speakers_of(doc: Doc, key: str) -> NDArray[np.uint64]:
    """Return the speaker of each token: hash of the label of its last span in `doc.spans[key]`; 0 for none."""
    speakers = np.zeros(len(doc), dtype=np.uint64)
    for span in doc.spans.get(key, ()):
        speakers[span.start : span.end] = span.label
    return speakers


# Gold


def gold_clusters(doc: Doc, prefix: str, key: str) -> list[list[Span]]:
    """Return the clusters of a gold Doc: the groups prefix_1, prefix_2, ... and each other mention of `doc.spans[key]`."""
    groups = [list(group) for name, group in doc.spans.items() if re.fullmatch(rf"{prefix}_\d+", name)]
    in_group = {(span.start, span.end) for group in groups for span in group}
    return groups + [[span] for span in doc.spans.get(key, ()) if (span.start, span.end) not in in_group]


def aligned_gold(example: Example, prefix: str, key: str) -> dict[tuple[int, int], int]:
    """Return (start, end) of each gold mention, in tokens of the predicted Doc -> number of its cluster."""
    cluster_of: dict[tuple[int, int], int] = {}
    for number, cluster in enumerate(gold_clusters(example.reference, prefix, key)):
        for span in example.get_aligned_spans_y2x(cluster, allow_overlap=True):
            cluster_of[span.start, span.end] = number
    return cluster_of


def clusters_in(mentions: Mentions, gold: dict[tuple[int, int], int]) -> Ints:
    """Return the number of each mention's gold cluster; a mention without gold gets a number that no other has."""
    first_free = 1 + max(gold.values(), default=-1)
    bounds = zip(mentions.starts.tolist(), mentions.ends.tolist(), strict=True)
    return np.array([gold.get(bound, first_free + i) for i, bound in enumerate(bounds)], dtype=np.intp)
