"""The mentions of a Doc: those in a span group, or its entities, noun chunks and pronouns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..errors import calib_error
from ..types import Ints
from .inference.calibration import KINDS, Places

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
    """Stretches of tokens, in the order of their first tokens, then of their last.

    starts, ends (Ints): First token, and the one after the last. heads (Ints): The syntactic head; the last token
    without a parse. kinds (Ints): Numbers of KINDS. sentences (Ints): The first token's sentence, or 0.
    """

    starts: Ints
    ends: Ints
    heads: Ints
    kinds: Ints
    sentences: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def places(self) -> Places:
        return Places(self.kinds, self.sentences)

    @classmethod
    def on(cls, doc: Doc, spans: Iterable[tuple[int, int]]) -> Mentions:
        """The mentions at these tokens. spans: (first token, the one after the last), in any order, each once."""
        bounds = np.array(sorted(spans), dtype=np.intp).reshape(-1, 2)
        parsed = doc.has_annotation("DEP")
        heads = np.array([doc[a:b].root.i if parsed else b - 1 for a, b in bounds.tolist()], dtype=np.intp)
        kinds = np.array([_kind(doc, head) for head in heads.tolist()], dtype=np.intp)
        numbers = sentence_numbers(doc)[bounds[:, 0]]
        return cls(bounds[:, 0], bounds[:, 1], heads, kinds, numbers)


def mentions_of(doc: Doc, key: str) -> Mentions:
    """The mentions in `doc.spans[key]`, or without this key those that are found. RAISES C359: see `given_mentions`."""
    given = given_mentions(doc, key) if key and key in doc.spans else found_mentions(doc)
    return Mentions.on(doc, given)


def given_mentions(doc: Doc, key: str) -> set[tuple[int, int]]:
    """The spans of a group; they may overlap and cross sentences. RAISES C359: one stands there twice."""
    found: set[tuple[int, int]] = set()
    for span in doc.spans[key]:
        if (span.start, span.end) in found:
            raise calib_error("C359", key=key, text=span.text[:40])
        if len(span):
            found.add((span.start, span.end))
    return found


def found_mentions(doc: Doc) -> set[tuple[int, int]]:
    """Entities, noun chunks (where the language has them and the Doc is parsed) and pronouns, possessive ones too."""
    found = {(ent.start, ent.end) for ent in doc.ents}
    if doc.has_annotation("DEP") and doc.vocab.get_noun_chunks is not None:
        found |= {(chunk.start, chunk.end) for chunk in doc.noun_chunks}
    return found | {(token.i, token.i + 1) for token in doc if _kind(doc, token.i) == _PRONOUN}


def _kind(doc: Doc, head: int) -> int:
    token = doc[head]
    if token.pos:
        possessive = token.tag_ in ("PRP$", "WP$")  # these are determiners in some schemes
        named = {"PRON": _PRONOUN, "PROPN": _PROPER}.get(token.pos_, _NOMINAL)
        return _PRONOUN if possessive else named
    return _PRONOUN if token.lower_ in PRONOUNS else _PROPER if token.ent_type else _NOMINAL


def sentence_numbers(doc: Doc) -> Ints:
    """The number of each token's sentence; 0 without sentences."""
    if not doc.has_annotation("SENT_START"):
        return np.zeros(len(doc), dtype=np.intp)
    starts = doc.to_array(["SENT_START"]).astype(np.uint64, copy=False).view(np.int64).reshape(-1) == 1
    starts[:1] = False
    return np.cumsum(starts)


def speakers_of(doc: Doc, key: str) -> NDArray[np.uint64]:
    """The speaker of each token: hash of the label of the last span of `doc.spans[key]` that holds it; 0 for none."""
    found = np.zeros(len(doc), dtype=np.uint64)
    for span in doc.spans.get(key, ()):
        found[span.start : span.end] = span.label
    return found


# Gold


def gold_clusters(doc: Doc, prefix: str, key: str) -> list[list[Span]]:
    """The clusters of a gold Doc: the groups prefix_1, prefix_2 and so on of `doc.spans`, and each mention of
    `doc.spans[key]` in none of them as a cluster of its own.
    """
    groups = [list(group) for name, group in doc.spans.items() if _is_cluster(name, prefix)]
    held = {(span.start, span.end) for group in groups for span in group}
    return groups + [[span] for span in doc.spans.get(key, ()) if (span.start, span.end) not in held]


def _is_cluster(name: str, prefix: str) -> bool:
    head, _, number = name.rpartition("_")
    return head == prefix and number.isdigit()


def write_clusters(doc: Doc, prefix: str, clusters: Sequence[Sequence[Span]]) -> None:
    """Put clusters into `doc.spans`, in place of those there."""
    for name in [name for name in doc.spans if _is_cluster(name, prefix)]:
        del doc.spans[name]
    for number, cluster in enumerate(clusters, start=1):
        doc.spans[f"{prefix}_{number}"] = list(cluster)


def aligned_gold(example: Example, prefix: str, key: str) -> dict[tuple[int, int], int]:
    """Gold mentions in tokens of the predicted Doc -> their clusters. RAISES C359: a mention is in two clusters.

    prefix, key (str): See `gold_clusters`.
    """
    found: dict[tuple[int, int], int] = {}
    for one, cluster in enumerate(gold_clusters(example.reference, prefix, key)):
        for span in example.get_aligned_spans_y2x(cluster, allow_overlap=True):
            if (span.start, span.end) in found:
                raise calib_error("C359", key=f"{prefix}_...", text=span.text[:40])
            found[span.start, span.end] = one
    return found


def gold_speakers(example: Example, key: str, doc: Doc) -> None:
    """Put the speakers of a gold Doc on a copy of the predicted one, unless it names its own."""
    if key in example.reference.spans and key not in doc.spans:
        said = example.get_aligned_spans_y2x(example.reference.spans[key])
        doc.spans[key] = [Span(doc, span.start, span.end, span.label) for span in said]


def clusters_in(mentions: Mentions, gold: dict[tuple[int, int], int]) -> Ints:
    """The gold cluster of each mention; one that the gold does not have is alone."""
    alone = 1 + max(gold.values(), default=-1)
    bounds = zip(mentions.starts.tolist(), mentions.ends.tolist(), strict=True)
    return np.array([gold.get(own, alone + i) for i, own in enumerate(bounds)], dtype=np.intp)


def digest(doc: Doc) -> NDArray[Any]:
    """What identifies a Doc's mentions: its words."""
    return doc.to_array(["ORTH"]).astype(np.uint64, copy=False).reshape(-1)
