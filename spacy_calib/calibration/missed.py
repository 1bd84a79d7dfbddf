"""Recall of a review of flagged tokens: how many entity tokens of a scored corpus it finds, and how many it misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pairs.scored_corpus import ScoredCorpus
from ..types import Ints
from .cutoffs import OUT, EntityScores, EntityTypes, RecallCutoffs, key_probability
from .recall_threshold import effective_size, find_recall_threshold
from .thresholds import prediction_interval, round_down

Bools = NDArray[np.bool_]
_UNKNOWN = -2  # the type index of an unknown label


@dataclass(frozen=True, eq=False)
class GoldEntities:
    """Gold entities. starts, ends (Ints): First token of each, and the one after its last, in a corpus. labels: Their types."""

    starts: Ints
    ends: Ints
    labels: Sequence[str]


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

        labels (Sequence[str]): Token labels of the recognizer. has_prefix (bool): Whether they have a prefix B-, I-, L- or
            U-. threshold (float): Lower raw scores are not in the corpus. entities (GoldEntities): All gold entities.
        """
        n, types = len(corpus), EntityTypes.from_labels(corpus.names, has_prefix)
        type_of_label = np.append(types.of_label, _UNKNOWN)  # the last one is for label -1, which is none
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

    def in_gold(self, key: str, per: str) -> Bools:
        """Return whether each token is scored and in a gold entity: of any type if `per` is "all", else of the type `key`."""
        return self.is_scored & (self.gold > OUT if per == "all" else self.gold == self.types.names.index(key))

    def in_predicted(self, key: str, per: str) -> Bools:
        """Return whether each token is scored and in a predicted entity: of any type if `per` is "all", else of type `key`."""
        return self.is_scored & (self.predicted > OUT if per == "all" else self.predicted == self.types.names.index(key))

    def find_cutoffs(self, recall: float, confidence: float, per: str) -> RecallCutoffs:
        """Find the highest cut-offs that reach a recall with a confidence: one if `per` is "all", one per type if "label"."""
        values = {}
        for key in ("all",) if per == "all" else self.types.names[: self.n_types]:
            in_gold = self.in_gold(key, per)
            # Rounded, so that no exact score of a private text is saved as a cut-off.
            probability = round_down(key_probability(key, per, self.scores, self.types)[in_gold])
            values[key] = find_recall_threshold(probability, self.documents[in_gold], recall, confidence)
        return RecallCutoffs(recall, confidence, per, values)

    def flag(self, cutoffs: RecallCutoffs) -> dict[str, Bools]:
        """Return key of `cutoffs` ("all", or a type) -> whether each token is scored and flagged by that cut-off."""
        return {key: flags & self.is_scored for key, flags in cutoffs.flags(self.scores, self.types).items()}

    def rows_of(self, cutoffs: RecallCutoffs) -> list[dict[str, Any]]:
        """Count for each cut-off what a review of the tokens that it flags finds, and a review of predicted entities instead.

        RETURNS (list): A dict per cut-off: "key", its value "cutoff", counts ("tokens", "found", "recall" ...) of a review of
            the flagged tokens, and "predicted", a dict of the same counts of a review of all predicted entities.
        """
        rows = []
        for key, is_flagged in self.flag(cutoffs).items():
            counts = self._count_review(key, cutoffs, is_flagged)
            predicted = self._count_review(key, cutoffs, self.in_predicted(key, cutoffs.per))
            rows.append({"key": key, "cutoff": cutoffs.values[key], **counts, "predicted": predicted})
        return rows

    def _count_review(self, key: str, cutoffs: RecallCutoffs, is_flagged: Bools) -> dict[str, Any]:
        """Count the tokens that a review of flagged tokens reads, and what it finds of the gold entities.

        key (str): Type of the entities that count; all count if `cutoffs.per` is "all". is_flagged (Bools): Whether each token
            is reviewed; only scored ones are. cutoffs: Their confidence is that of the interval.
        RETURNS (dict): "tokens": Number of scored tokens in gold entities. "found": Number of flagged ones among these.
            "recall": found / tokens. "flagged": Number of all flagged tokens. "share": Their share of the scored tokens. "low",
            "high": Prediction interval of this share in other documents with as many tokens. "entities": Number of gold
            entities with a scored token. "touched": Number of these with a flagged token.
        """
        in_gold = self.in_gold(key, cutoffs.per)
        n_entity_tokens, n_found = int(in_gold.sum()), int((in_gold & is_flagged).sum())
        share, low, high = self._share_flagged(is_flagged, cutoffs.confidence)
        has_score = self._entities_with(self.is_scored, key, cutoffs.per)
        is_touched = self._entities_with(is_flagged, key, cutoffs.per)
        return {
            "tokens": n_entity_tokens, "found": n_found, "recall": n_found / n_entity_tokens if n_entity_tokens else None,
            "flagged": int(is_flagged.sum()), "share": share, "low": low, "high": high,
            "entities": int(has_score.sum()), "touched": int((has_score & is_touched).sum()),
        }  # fmt: skip

    def _share_flagged(self, is_flagged: Bools, confidence: float) -> tuple[float | None, float | None, float | None]:
        """Return (share of the scored tokens flagged, low, high: its prediction interval), each None if no token is scored."""
        n_scored = int(self.is_scored.sum())
        if not n_scored:
            return None, None, None
        n_documents = int(self.documents.max()) + 1
        scored_by_document = np.bincount(self.documents[self.is_scored], minlength=n_documents)
        flagged_by_document = np.bincount(self.documents[is_flagged], minlength=n_documents)
        share = int(is_flagged.sum()) / n_scored
        size = effective_size(scored_by_document, flagged_by_document)  # in independent tokens
        return share, *prediction_interval(share, size, size, confidence)  # among as many new tokens

    def _entities_with(self, tokens: Bools, key: str, per: str) -> Bools:
        """Return whether each gold entity (only of type `key` if `per` is "label") has a token for which `tokens` is True."""
        has_key = np.array([per == "all" or label == key for label in self.entities.labels], dtype=bool)
        n_before = np.append(0, np.cumsum(tokens))  # number of these tokens before each token: it grows in an entity with one
        return n_before[self.entities.ends[has_key]] > n_before[self.entities.starts[has_key]]


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
