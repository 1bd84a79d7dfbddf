"""Recall of a review: the entity tokens found and missed in a scored corpus if all flagged tokens are reviewed."""

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
    """Gold entities. starts, ends (Ints): First token in the corpus, and the one after the last."""

    starts: Ints
    ends: Ints
    labels: Sequence[str]


class DocumentCounts(NamedTuple):
    """Counts by document. units (Ints): Tokens, or entities. hits (Ints): Flagged tokens, or entities with a flagged token."""

    units: Ints
    hits: Ints

    def totals(self) -> tuple[int, int]:
        return int(self.units.sum()), int(self.hits.sum())


@dataclass(frozen=True, eq=False)
class RecallCounts:
    """Counts of flagged tokens, by document.

    scored_tokens, entity_tokens (DocumentCounts): Tokens with a score, and those of gold entities; flagged ones are hits.
    entities (DocumentCounts): Gold entities with a score; those with a flagged token are hits.
    """

    scored_tokens: DocumentCounts
    entity_tokens: DocumentCounts
    entities: DocumentCounts

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """Return the totals as a dict.

        "tokens" of gold entities, "found" (flagged) ones, and "recall"; "flagged" tokens and their "share", with the
        prediction interval "low" to "high" of that share among as many other tokens; "entities", and "touched" ones, which
        have a flagged token.
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
    """Counts with the tokens that a cut-off flags, and with those of the recognizer's entities instead."""

    by_cutoff: RecallCounts
    by_recognizer: RecallCounts

    def row(self, key: str, cutoffs: RecallCutoffs) -> dict[str, Any]:
        """Return the counts of the cut-off as a dict, with "key", "cutoff", and those of the recognizer as "predicted"."""
        cutoff_row, predicted_row = (counts.to_dict(cutoffs.confidence) for counts in self)
        return {"key": key, "cutoff": cutoffs.values[key], **cutoff_row, "predicted": predicted_row}


@dataclass(frozen=True, eq=False)
class EntityTokens:
    """The n tokens of a corpus with their entity types.

    types (EntityTypes): Of all labels, the n_types of the recognizer first. is_scored (Bools): Whether a token has scores.
    gold, predicted (Ints): Type in the gold and on the Doc, an index in types.names, -1 for O, -2 if unknown.
    documents (Ints): Of each token. entities (GoldEntities): All gold entities.
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
        """Read the tokens of a corpus.

        labels: Of the source. has_prefix (bool): Whether they begin with B-, I-, L- or U-. threshold (float): Of the pipe.
        """
        n, types = len(corpus), EntityTypes.from_labels(corpus.names, has_prefix)
        type_of_label = np.append(types.of_label, _UNKNOWN)  # -1 is no label
        is_scored = np.zeros(n, dtype=bool)
        is_scored[corpus.rows] = True
        return cls(
            types,
            len(EntityTypes.from_labels(labels, has_prefix).names),
            EntityScores(corpus.rows, types.of_label[corpus.tags], corpus.tag_calibrated, n, threshold),
            is_scored,
            type_of_label[corpus.gold],
            type_of_label[corpus.labels],
            corpus.documents,
            entities,
        )

    def keys(self, per: str) -> tuple[str, ...]:
        """Return the keys of the cut-offs: "all", or each entity type of the recognizer."""
        return ("all",) if per == "all" else self.types.names[: self.n_types]

    def in_gold(self, key: str, per: str) -> Bools:
        """Return whether each token is scored and in a gold entity, of the key's type or any."""
        return self.is_scored & (self.gold > OUT if per == "all" else self.gold == self.types.names.index(key))

    def in_predicted(self, key: str, per: str) -> Bools:
        """Return whether each token is scored and in a predicted entity, of the key's type or any."""
        return self.is_scored & (self.predicted > OUT if per == "all" else self.predicted == self.types.names.index(key))

    def find_cutoffs(self, recall: float, confidence: float, per: str) -> RecallCutoffs:
        """Find the cut-offs that reach a recall; the confidence holds for each by itself."""
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
        """Count the flagged tokens and the entities that they find."""
        in_gold = self.in_gold(key, per)
        starts, has_score, is_touched = self._entities(key, per, is_flagged)
        return RecallCounts(
            self._by_document(self.documents, self.is_scored, is_flagged),
            self._by_document(self.documents, in_gold, in_gold & is_flagged),
            self._by_document(self.documents[starts], has_score, has_score & is_touched),
        )

    def compare(self, cutoffs: RecallCutoffs) -> dict[str, RecallComparison]:
        """Compare the cut-off of each key with the recognizer's entities."""
        per = cutoffs.per
        return {
            key: RecallComparison(self.count(key, per, flags), self.count(key, per, self.in_predicted(key, per)))
            for key, flags in self.flag(cutoffs).items()
        }

    def _entities(self, key: str, per: str, is_flagged: Bools) -> tuple[Ints, Bools, Bools]:
        """Return (first token of each gold entity, whether it has a scored token, whether it has a flagged one)."""
        entities = self.entities
        mask = np.array([per == "all" or label == key for label in entities.labels], dtype=bool)
        starts, ends = entities.starts[mask], entities.ends[mask]
        cumulative = [np.append(0, np.cumsum(tokens)) for tokens in (self.is_scored, is_flagged)]
        has_score, is_touched = (counts[ends] > counts[starts] for counts in cumulative)
        return starts, has_score, is_touched

    def _by_document(self, documents: Ints, units: Bools, hits: Bools) -> DocumentCounts:
        n = int(self.documents.max(initial=-1)) + 1
        return DocumentCounts(*(np.bincount(documents[mask], minlength=n) for mask in (units, hits)))


def rows_of(tokens: EntityTokens, cutoffs: RecallCutoffs) -> list[dict[str, Any]]:
    """Return a row of counts for each cut-off, as `RecallComparison.row` makes it."""
    return [comparison.row(key, cutoffs) for key, comparison in tokens.compare(cutoffs).items()]


def review_of(tokens: EntityTokens, is_flagged: Bools, is_accepted: Bools) -> dict[str, dict[str, Any]]:
    """Split the scored tokens of a corpus into "accept" and "drop", which are not reviewed, and "look", which are.

    Flagged tokens of accepted entities count as accepted.
    RETURNS (dict): Of each part "tokens", their "share", those with "gold", "inside" gold entities, and "inside_share".
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
