"""Recall of a review of flagged tokens: how many entity tokens of a scored corpus it finds, and how many it misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..pairs.scored_corpus import ScoredCorpus
from ..types import Ints
from .cutoffs import OUT, EntityScores, EntityTypes, RecallCutoffs, key_probability
from .recall_threshold import effective_size, find_recall_threshold
from .thresholds import prediction_interval, round_down

Bools = NDArray[np.bool_]
# The type index of an unknown label.
_UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class GoldEntities:
    """Gold entities. starts, ends (Ints): First token of each, and the one after its last, in a corpus. labels: Their types."""

    starts: Ints
    ends: Ints
    labels: Sequence[str]


class DocumentCounts(NamedTuple):
    """Counts per document. units: Number of tokens (or entities). hits: Number of those flagged (or with a flagged token)."""

    units: Ints
    hits: Ints

    def totals(self) -> tuple[int, int]:
        """Return the numbers of units and of hits in all documents."""
        return int(self.units.sum()), int(self.hits.sum())


@dataclass(frozen=True, eq=False)
class RecallCounts:
    """What a review of the flagged tokens reads and finds, counted per document.

    scored_tokens (DocumentCounts): Tokens with a score, and how many are flagged. entity_tokens (DocumentCounts): Scored tokens
    of gold entities, and how many are flagged. entities (DocumentCounts): Gold entities with a scored token, and how many
    have a flagged one.
    """

    scored_tokens: DocumentCounts
    entity_tokens: DocumentCounts
    entities: DocumentCounts

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """Return the totals over documents as a dict.

        "tokens" of gold entities, "found" (flagged) ones of them, and "recall"; "flagged" tokens of all kinds, their "share" of
        the scored tokens, and "low" and "high", the prediction interval of that share among as many tokens of other documents;
        "entities", and "touched" ones, which have a flagged token. confidence (float): Of the interval.
        """
        (n_scored, n_flagged), (n, n_found) = self.scored_tokens.totals(), self.entity_tokens.totals()
        share = n_flagged / n_scored if n_scored else None
        low = high = None
        if share is not None:
            size = effective_size(*self.scored_tokens)
            low, high = prediction_interval(share, size, size, confidence)
        n_entities, n_touched = self.entities.totals()
        return {
            "tokens": n, "found": n_found, "recall": n_found / n if n else None,
            "flagged": n_flagged, "share": share, "low": low, "high": high, "entities": n_entities, "touched": n_touched,
        }  # fmt: skip


class RecallComparison(NamedTuple):
    """What a review finds. by_cutoff: If it reads the flagged tokens. by_recognizer: If it reads the predicted entities."""

    by_cutoff: RecallCounts
    by_recognizer: RecallCounts

    def row(self, key: str, cutoffs: RecallCutoffs) -> dict[str, Any]:
        """Return the counts of the cut-off as a dict, with its "key" and "cutoff", and under "predicted" the recognizer's."""
        cutoff_row, predicted_row = (counts.to_dict(cutoffs.confidence) for counts in self)
        return {"key": key, "cutoff": cutoffs.values[key], **cutoff_row, "predicted": predicted_row}


@dataclass(frozen=True, eq=False)
class EntityTokens:
    """The n tokens of a corpus with their entity types in gold and prediction, and with scores of all types.

    types (EntityTypes): Types of all labels, those of the recognizer first. n_types (int): Number of the recognizer's types.
    scores (EntityScores): Probabilities of the types. is_scored (Bools): Whether a token has scores.
    gold, predicted (Ints): Type in the gold and on the Doc, an index in types.names, -1 for O, -2 if unknown.
    documents (Ints): Document of each token. entities (GoldEntities): All gold entities.
    """

    types: EntityTypes
    n_types: int
    scores: EntityScores
    is_scored: Bools
    gold: Ints
    predicted: Ints
    documents: Ints
    entities: GoldEntities

    @classmethod
    def from_corpus(
        cls, corpus: ScoredCorpus, labels: Sequence[str], has_prefix: bool, threshold: float, entities: GoldEntities
    ) -> EntityTokens:
        """Build the tokens of a scored corpus.

        labels (Sequence[str]): Token labels of the source. has_prefix (bool): Whether types in them have a prefix B-, I-, L- or
            U-. threshold (float): Lower raw scores are not in the corpus. entities (GoldEntities): All gold entities.
        """
        n, types = len(corpus), EntityTypes.from_labels(corpus.names, has_prefix)
        type_of_label = np.append(types.of_label, _UNKNOWN)  # -1 is no label
        is_scored = np.zeros(n, dtype=bool)
        is_scored[corpus.rows] = True
        return cls(
            types=types,
            n_types=len(EntityTypes.from_labels(labels, has_prefix).names),
            scores=EntityScores(corpus.rows, types.of_label[corpus.tags], corpus.tag_calibrated, n, threshold),
            is_scored=is_scored,
            gold=type_of_label[corpus.gold],
            predicted=type_of_label[corpus.labels],
            documents=corpus.documents,
            entities=entities,
        )

    def keys(self, per: str) -> tuple[str, ...]:
        """Return the keys of the cut-offs: "all", or each entity type of the recognizer if `per` is "label"."""
        return ("all",) if per == "all" else self.types.names[: self.n_types]

    def in_gold(self, key: str, per: str) -> Bools:
        """Return whether each token is scored and in a gold entity: of any type if `per` is "all", else of the type `key`."""
        return self.is_scored & (self.gold > OUT if per == "all" else self.gold == self.types.names.index(key))

    def in_predicted(self, key: str, per: str) -> Bools:
        """Return whether each token is scored and in a predicted entity: of any type if `per` is "all", else of type `key`."""
        return self.is_scored & (self.predicted > OUT if per == "all" else self.predicted == self.types.names.index(key))

    def find_cutoffs(self, recall: float, confidence: float, per: str) -> RecallCutoffs:
        """Find the highest cut-offs that reach a recall with a confidence: one if `per` is "all", one per type if "label"."""
        values = {}
        for key in self.keys(per):
            in_gold = self.in_gold(key, per)
            probability = round_down(key_probability(key, per, self.scores, self.types)[in_gold])
            values[key] = find_recall_threshold(probability, self.documents[in_gold], recall, confidence).cutoff
        return RecallCutoffs(recall, confidence, per, values)

    def flag(self, cutoffs: RecallCutoffs) -> dict[str, Bools]:
        """Return key -> whether each token is scored and flagged by the key's cut-off."""
        flags_by_key = cutoffs.flags(self.scores, self.types)
        return {key: flags & self.is_scored for key, flags in flags_by_key.items()}

    def count(self, key: str, per: str, is_flagged: Bools) -> RecallCounts:
        """Count flagged tokens, and gold entities with one. per: "all" counts all entities, "label" those of the type `key`."""
        in_gold = self.in_gold(key, per)
        starts, has_score, is_touched = self._find_touched_entities(key, per, is_flagged)
        return RecallCounts(
            self._count_by_document(self.documents, self.is_scored, is_flagged),
            self._count_by_document(self.documents, in_gold, in_gold & is_flagged),
            self._count_by_document(self.documents[starts], has_score, has_score & is_touched),
        )

    def compare(self, cutoffs: RecallCutoffs) -> dict[str, RecallComparison]:
        """Return key -> counts if its cut-off chooses the tokens to review, and if the recognizer's entities do."""
        per = cutoffs.per
        return {
            key: RecallComparison(self.count(key, per, flags), self.count(key, per, self.in_predicted(key, per)))
            for key, flags in self.flag(cutoffs).items()
        }

    def _find_touched_entities(self, key: str, per: str, is_flagged: Bools) -> tuple[Ints, Bools, Bools]:
        """Return (first token, has a scored one, has a flagged one) of gold entities: all, or if per is "label" of type key."""
        entities = self.entities
        mask = np.array([per == "all" or label == key for label in entities.labels], dtype=bool)
        starts, ends = entities.starts[mask], entities.ends[mask]
        counts_before = [np.append(0, np.cumsum(tokens)) for tokens in (self.is_scored, is_flagged)]  # before each token
        has_score, is_touched = (counts[ends] > counts[starts] for counts in counts_before)
        return starts, has_score, is_touched

    def _count_by_document(self, documents: Ints, units: Bools, hits: Bools) -> DocumentCounts:
        """Count units and hits per document. documents: Document of each item. units, hits: Whether an item counts as one."""
        n = int(self.documents.max(initial=-1)) + 1
        return DocumentCounts(*(np.bincount(documents[mask], minlength=n) for mask in (units, hits)))


def rows_of(tokens: EntityTokens, cutoffs: RecallCutoffs) -> list[dict[str, Any]]:
    """Return a row per cut-off: key, cut-off, what reviewing flagged tokens finds, what reviewing predicted entities finds."""
    return [comparison.row(key, cutoffs) for key, comparison in tokens.compare(cutoffs).items()]


def review_of(tokens: EntityTokens, is_flagged: Bools, is_accepted: Bools) -> dict[str, dict[str, Any]]:
    """Count the scored tokens of a corpus in three parts: "accept" and "drop" are not reviewed, "look" is.

    is_flagged, is_accepted (Bools): Whether each token is flagged for review, and in an accepted entity (then "accept").
    RETURNS (dict): Part -> "tokens" (their number), "share" (of all scored tokens); "gold" (number of tokens of the part that
        have gold), "inside" (number in gold entities), "inside_share" (inside / gold); a share is None if it is 0 / 0.
    """
    parts = {"accept": is_accepted, "look": is_flagged & ~is_accepted, "drop": ~is_flagged & ~is_accepted}
    n = int(tokens.is_scored.sum())
    review = {}
    for name, part in parts.items():
        scored_part = part & tokens.is_scored
        with_gold = scored_part & (tokens.gold != _UNKNOWN)
        n_part, n_gold, n_inside = int(scored_part.sum()), int(with_gold.sum()), int((tokens.gold[with_gold] > OUT).sum())
        review[name] = {
            "tokens": n_part, "share": n_part / n if n else None,
            "gold": n_gold, "inside": n_inside, "inside_share": n_inside / n_gold if n_gold else None,
        }  # fmt: skip
    return review
