"""Annotations whose token labels come from spans: entities, span groups and links (identities of entities)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup, Token
from spacy.training import Example

from .annotation import (
    NO_PARTNER,
    UNKNOWN,
    Annotation,
    Hashes,
    is_space,
    map_unique,
    mark_rejected,
    rejected_in,
    resolve_gold,
    values_of_tokens,
)
from .kinds import BILUO, ENTITIES, LINKS, REJECTED_LINKS, SPANS

SPANS_PREFIX = "spans:"  # prefix of the name of the annotation of a span group, before its key in `doc.spans`
LINK = "link"
_OUT = np.uint64(get_string_id("O"))  # hash of the label of tokens outside of spans


class _SpanTokenAnnotation(Annotation):
    """Base class of annotations whose token labels come from spans."""

    def gold_hashes(self, doc: Doc) -> Hashes:
        # Yes/no answers about predicted spans are no gold of tokens.
        return self.hashes(doc) if rejected_in(self, doc) is None else np.zeros(len(doc), dtype=np.uint64)

    def aligned_gold(self, example: Example) -> Hashes:
        return resolve_gold(self, super().aligned_gold(example), example)

    def rejected_labels(self, example: Example) -> None:
        return None  # people reject spans, not labels of tokens

    def _string(self, key: int, strings: object) -> str:
        # "O" is not looked up, since it may be missing from the strings of a vocab.
        return "O" if key == int(_OUT) else super()._string(key, strings)


class _EntityTokenAnnotation(_SpanTokenAnnotation):
    """Base class of annotations that label tokens by the entities of a Doc."""

    kind = ENTITIES

    def aligned_gold(self, example: Example) -> Hashes:
        """Return each predicted token's gold label hash; 0 for all if the gold is only yes/no answers to predicted entities.

        This gold, made by `doc.set_ents(accepted, outside=rejected, default="missing")`, is recognized by its coverage: the
        share of tokens with gold is less than half as high outside of predicted entities as inside.
        """
        gold = super().aligned_gold(example)
        _, entity_types = _entity_columns(example.predicted)
        is_word, is_entity = ~is_space(example.predicted), entity_types != 0
        # Whether words outside and inside of predicted entities have gold. Yes/no answers to entities leave most others out.
        outside, inside = gold[is_word & ~is_entity] != 0, gold[is_word & is_entity] != 0
        has_only_answers = len(outside) and len(inside) and 2 * float(outside.mean()) < float(inside.mean())
        return np.zeros_like(gold) if has_only_answers else gold

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        return doc.ents

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        return _entity_columns(doc)[0] != 0  # ENT_IOB, 0 for a token without annotation


class EntityAnnotation(_EntityTokenAnnotation):
    """The entity type of each token, "O" outside of entities; no label for a token without entity annotation."""

    name = "ner"

    def hashes(self, doc: Doc) -> Hashes:
        iob, types = _entity_columns(doc)  # 0 in `iob`: no annotation; 0 in `types`: no entity
        return np.where(types != 0, types, np.where(iob != 0, _OUT, np.uint64(0)))

    def label(self, token: Token) -> str:
        return token.ent_type_ or ("O" if token.ent_iob else "")


class BiluoAnnotation(_EntityTokenAnnotation):
    """The BILUO tag of each token: B-, I-, L- or U- and entity type, or "O"; no label without entity annotation."""

    name = "biluo"
    kind = BILUO

    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each token's BILUO tag, 0 for a token without entity annotation."""
        iob, types = _entity_columns(doc)

        def hash_of_tag(letter: str, entity_type: Any) -> int:
            return get_string_id(f"{letter}-{doc.vocab.strings[int(entity_type)]}")

        begins, is_inside = iob == 3, iob == 1  # the codes of ENT_IOB; 0: no annotation
        continues = np.append(is_inside[1:], False)[: len(iob)]  # whether the entity goes on at the next token
        masks = {"B": begins & continues, "I": ~begins & continues, "L": ~begins & ~continues, "U": begins & ~continues}
        hashes = np.where(iob != 0, _OUT, np.uint64(0))
        for letter, mask in masks.items():
            tokens = np.flatnonzero(mask & (types != 0))
            hashes[tokens] = map_unique(types[tokens], partial(hash_of_tag, letter))
        return hashes

    def count_gold(self, docs: Iterable[Doc]) -> Counter[str]:
        counts = Counter(self.label(token) for doc in docs for token in doc)
        counts.pop("", None)
        return counts

    def label(self, token: Token) -> str:
        if not token.ent_type_:
            return "O" if token.ent_iob else ""
        follows = token.i + 1 < len(token.doc) and token.nbor().ent_iob == 1  # 1: inside
        prefix = ("B" if follows else "U") if token.ent_iob == 3 else ("I" if follows else "L")  # 3: the entity's first token
        return f"{prefix}-{token.ent_type_}"


class SpanAnnotation(_SpanTokenAnnotation):
    """The label of the best span in `doc.spans[key]` that covers a token; "O" if none does.

    The best span has the highest value in `attrs["scores"]`; without scores it is the first. If several gold spans cover a
    token, each of their labels is right.
    """

    kind = SPANS

    def __init__(self, key: str):
        self.name = f"{SPANS_PREFIX}{key}"
        self.key = key

    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each token's label, by the best span over it; 0 for all if the Doc lacks the group."""
        if self.key not in doc.spans:
            return np.zeros(len(doc), dtype=np.uint64)
        hashes = np.full(len(doc), _OUT)
        scores, spans = span_scores(doc.spans[self.key]), self.spans_on(doc)
        best_first = range(len(spans)) if scores is None or not spans else np.argsort(-scores, kind="stable").tolist()
        for i in reversed(best_first):  # the best span last, so that its label stays
            hashes[spans[i].start : spans[i].end] = spans[i].label
        return hashes

    def label(self, token: Token) -> str:
        """Return the label of the best span that covers the token, "O" if none does, "" if the Doc lacks the group."""
        if self.key not in token.doc.spans:
            return ""
        scores, spans = span_scores(token.doc.spans[self.key]), self.spans_on(token.doc)
        covering = [i for i, span in enumerate(spans) if span.start <= token.i < span.end]
        if not covering:
            return "O"
        best = covering[0] if scores is None else max(covering, key=lambda i: (scores[i], -i))  # the first of equal scores
        return spans[best].label_

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        """Return the spans of the group; () if tokens were merged after it was set, since spaCy does not update groups."""
        try:
            return list(doc.spans[self.key]) if self.key in doc.spans else ()
        except IndexError:  # spans of the group end after the last token, since tokens were merged
            return ()

    def gold_hashes(self, doc: Doc) -> Hashes:
        return np.where(_is_contradictory(doc), np.uint64(0), super().gold_hashes(doc))

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        return ~_is_contradictory(doc) & (self.key in doc.spans and rejected_in(self, doc) is None)

    def is_gold(self, example: Example, units: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return for n labels whether a gold span with the label covers its token. units, hashes: Token, label hash of each."""
        hits = self.aligned_gold(example)[units] == hashes
        alignment = example.alignment.x2y
        # `aligned_gold` has one label of each token; gold spans that overlap give it further ones.
        gold_spans = example.reference.spans.get(self.key, ())
        token_labels = {(token, span.label) for span in gold_spans for token in range(span.start, span.end)}
        for i in np.flatnonzero(~hits).tolist():
            gold_tokens = alignment[int(units[i])]
            hits[i] = len(gold_tokens) == 1 and (int(gold_tokens[0]), int(hashes[i])) in token_labels
        return hits


class LinkAnnotation(_EntityTokenAnnotation):
    """The identity of an entity (`ent.kb_id_`), as the label of its first token.

    As in spaCy's `score_links`, the gold of an entity is the identity of the gold entity with the same characters, whatever
    their types; without such a gold entity it is unknown. "NIL" is the identity of an entity that is not in the knowledge base.
    Identities that annotators rejected are labels of gold spans (`doc.spans[REJECTED_LINKS]`) with the same characters.
    """

    name = LINK
    kind = LINKS

    def hashes(self, doc: Doc) -> Hashes:
        hashes = np.zeros(len(doc), dtype=np.uint64)
        for entity in doc.ents:
            hashes[entity.start] = entity.kb_id
        return hashes

    def gold_hashes(self, doc: Doc) -> Hashes:
        return self.hashes(doc)  # accepted identities count, even if the gold consists of yes/no answers

    def label(self, token: Token) -> str:
        return token.ent_kb_id_ if token.ent_iob_ == "B" else ""

    def partner(self, token: Token) -> Token | None:
        """Return the last token of the entity that a token begins; None if it begins none."""
        if token.ent_iob_ != "B":
            return None
        while token.i + 1 < len(token.doc) and token.nbor().ent_iob_ == "I":
            token = token.nbor()
        return token

    def partners(self, doc: Doc) -> NDArray[np.int32]:
        """Return how many characters after an entity's first token its last token starts; NO_PARTNER for other tokens."""
        # A score is stored with its partner, and ignored if the entity gets another end. Merging tokens moves no characters.
        starts, partners = values_of_tokens(doc, "IDX"), np.full(len(doc), NO_PARTNER, dtype=np.int32)
        for entity in doc.ents:
            partners[entity.start] = starts[entity.end - 1] - starts[entity.start]
        return partners

    def aligned_gold(self, example: Example) -> Hashes:
        gold_links = {(entity.start_char, entity.end_char): entity.kb_id for entity in example.reference.ents}
        hashes = np.zeros(len(example.predicted), dtype=np.uint64)
        for entity in example.predicted.ents:
            hashes[entity.start] = gold_links.get((entity.start_char, entity.end_char), 0)
        return mark_rejected(self, hashes, example)

    def rejected_labels(self, example: Example) -> set[tuple[int, int]] | None:  # type: ignore[override]
        """Return (first token of the predicted entity, hash) of rejected identities; None if the gold has no yes/no answers."""
        if rejected_in(self, example.reference) is None:
            return None
        first_tokens = {(entity.start_char, entity.end_char): entity.start for entity in example.predicted.ents}
        spans = [(span.start_char, span.end_char, span.label) for span in example.reference.spans[REJECTED_LINKS]]
        return {(first_tokens[start, end], label) for start, end, label in spans if (start, end) in first_tokens}

    def evaluate_spans(self, example: Example, spans: Sequence[tuple[int, int, int]]) -> NDArray[np.intp]:
        """Return for each of n spans (start, end, identity hash) 1 if the identity is right, 0 if not, -1 without gold."""
        first_tokens = np.array([start for start, _, _ in spans], dtype=np.intp)
        hashes = np.array([label for *_, label in spans], dtype=np.uint64)
        has_gold, is_right = self.is_known(example, first_tokens, hashes), self.is_gold(example, first_tokens, hashes)
        return np.where(has_gold, is_right, -1).astype(np.intp)


def _is_contradictory(doc: Doc) -> NDArray[np.bool_]:
    """Return for each token of a gold Doc whether it is in a span on which its sources do not decide, or disagree."""
    is_contradictory = np.zeros(len(doc), dtype=bool)
    for span in doc.spans.get(UNKNOWN, ()):
        is_contradictory[span.start : span.end] = True
    return is_contradictory


def span_scores(group: SpanGroup) -> NDArray[np.float64] | None:
    """Return `attrs["scores"]` of a span group, one score per span; None if missing or of another length."""
    values = group.attrs.get("scores")
    if values is None:
        return None
    scores = np.asarray(values.get() if hasattr(values, "get") else values, dtype=np.float64).reshape(-1)  # get: of cupy
    return scores if len(scores) == len(group) else None


def _entity_columns(doc: Doc) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return ENT_IOB and ENT_TYPE of each token, each of shape (n_tokens,)."""
    columns = doc.to_array(["ENT_IOB", "ENT_TYPE"]).astype(np.uint64, copy=False).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
