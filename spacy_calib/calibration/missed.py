"""What is found and missed in a scored corpus if all tokens that may be inside an entity are reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..pairs.scored_corpus import ScoredCorpus
from ..types import Ints
from .cutoffs import OUT, EntityScores, EntityTypes, RecallCutoffs, score_of
from .recall_threshold import effective_size, find_recall_threshold
from .thresholds import prediction_interval

Bools = NDArray[np.bool_]
# In place of a type: the label is unknown.
_UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class GoldEntities:
    """starts, ends (Ints): First token in the corpus, and the one after the last. labels (Sequence[str]): Of each."""

    starts: Ints
    ends: Ints
    labels: Sequence[str]


class ByDocument(NamedTuple):
    """units, hits (Ints): Number of units (tokens, entities) in each document, and of those that hit."""

    units: Ints
    hits: Ints

    def totals(self) -> tuple[int, int]:
        """Return (units, hits) of all documents."""
        return int(self.units.sum()), int(self.hits.sum())


@dataclass(frozen=True, eq=False)
class Finds:
    """What flagged tokens find.

    flagged (ByDocument): Tokens with a score; flagged ones hit. found (ByDocument): Tokens to find; flagged ones hit. touched
    (ByDocument): Gold entities with a score; those with a flagged token hit.
    """

    flagged: ByDocument
    found: ByDocument
    touched: ByDocument

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """Return the counts with "recall", "share" flagged, and its interval "low" to "high" for as many other tokens."""
        (n_scored, n_flagged), (n, n_found) = self.flagged.totals(), self.found.totals()
        share = n_flagged / n_scored if n_scored else None
        low = high = None
        if share is not None:
            size = effective_size(*self.flagged)
            low, high = prediction_interval(share, size, size, confidence)
        entities, n_touched = self.touched.totals()
        return {
            "tokens": n, "found": n_found, "recall": n_found / n if n else None,
            "flagged": n_flagged, "share": share, "low": low, "high": high, "entities": entities, "touched": n_touched,
        }  # fmt: skip


class Caught(NamedTuple):
    """What a cut-off finds, and what the recognizer's entities find without any."""

    flagged: Finds
    predicted: Finds

    def row(self, key: str, cutoffs: RecallCutoffs) -> dict[str, Any]:
        """Return `Finds.to_dict` of the flagged, with "key", "cutoff" and "predicted"."""
        flagged_row, predicted_row = (finds.to_dict(cutoffs.confidence) for finds in self)
        return {"key": key, "cutoff": cutoffs.values[key], **flagged_row, "predicted": predicted_row}


@dataclass(frozen=True, eq=False)
class EntityTokens:
    """The n tokens of a corpus as parts of entities.

    types (EntityTypes): Of all labels, the n_types (int) of the recognizer first. scored (Bools): Whether a token has scores.
    gold, said (Ints): Type in the gold and on the Doc, a place in types.names, -1 for O, -2 if unknown. entities: Gold ones.
    """

    types: EntityTypes
    n_types: int
    scores: EntityScores
    scored: Bools
    gold: Ints
    said: Ints
    documents: Ints
    entities: GoldEntities

    @classmethod
    def of(
        cls, corpus: ScoredCorpus, labels: Sequence[str], prefixed: bool, threshold: float, entities: GoldEntities
    ) -> EntityTokens:
        """labels: Of the source. prefixed (bool): Whether with B-, I-, L- or U-. threshold (float): Of the pipe."""
        n, types = len(corpus), EntityTypes.of(corpus.names, prefixed)
        of_label = np.append(types.of_label, _UNKNOWN)  # the place -1 is that of no label
        scored = np.zeros(n, dtype=bool)
        scored[corpus.rows] = True
        return cls(
            types,
            len(EntityTypes.of(labels, prefixed).names),
            EntityScores(corpus.rows, types.of_label[corpus.tags], corpus.tag_calibrated, n, threshold),
            scored,
            of_label[corpus.gold],
            of_label[corpus.labels],
            corpus.documents,
            entities,
        )

    def keys(self, per: str) -> tuple[str, ...]:
        """Return the keys of the cut-offs: "all", or each entity type of the recognizer."""
        return ("all",) if per == "all" else self.types.names[: self.n_types]

    def wanted(self, key: str, per: str) -> Bools:
        """Return the scored tokens of gold entities, of this type or any."""
        return self.scored & (self.gold > OUT if per == "all" else self.gold == self.types.names.index(key))

    def predicted(self, key: str, per: str) -> Bools:
        """Return the scored tokens of predicted entities, of this type or any."""
        return self.scored & (self.said > OUT if per == "all" else self.said == self.types.names.index(key))

    def find(self, recall: float, confidence: float, per: str) -> RecallCutoffs:
        """Find cut-offs that bound what is missed; the confidence holds for each by itself."""
        values = {}
        for key in self.keys(per):
            is_wanted = self.wanted(key, per)
            score = score_of(key, per, self.scores, self.types)[is_wanted]
            values[key] = find_recall_threshold(score, self.documents[is_wanted], recall, confidence).cutoff
        return RecallCutoffs(recall, confidence, per, values)

    def flagged(self, cutoffs: RecallCutoffs) -> dict[str, Bools]:
        """Return the scored tokens that each cut-off flags."""
        flags_by_key = cutoffs.flags(self.scores, self.types)
        return {key: flags & self.scored for key, flags in flags_by_key.items()}

    def finds(self, key: str, per: str, is_flagged: Bools) -> Finds:
        """Count what flagged tokens find."""
        to_find = self.wanted(key, per)
        starts, has_score, is_touched = self._entities(key, per, is_flagged)
        return Finds(
            self._by_document(self.documents, self.scored, is_flagged),
            self._by_document(self.documents, to_find, to_find & is_flagged),
            self._by_document(self.documents[starts], has_score, has_score & is_touched),
        )

    def caught(self, cutoffs: RecallCutoffs) -> dict[str, Caught]:
        """Count what the cut-off of each key finds."""
        per = cutoffs.per
        return {
            key: Caught(self.finds(key, per, flags), self.finds(key, per, self.predicted(key, per)))
            for key, flags in self.flagged(cutoffs).items()
        }

    def _entities(self, key: str, per: str, is_flagged: Bools) -> tuple[Ints, Bools, Bools]:
        """Return (first token of each gold entity, whether it has a scored token, whether it has a flagged one)."""
        entities = self.entities
        of_key = np.array([per == "all" or label == key for label in entities.labels], dtype=bool)
        starts, ends = entities.starts[of_key], entities.ends[of_key]
        cumulative = [np.append(0, np.cumsum(tokens)) for tokens in (self.scored, is_flagged)]
        has_score, is_touched = (counts[ends] > counts[starts] for counts in cumulative)
        return starts, has_score, is_touched

    def _by_document(self, documents: Ints, units: Bools, hits: Bools) -> ByDocument:
        """Count units and hits by document."""
        n = int(self.documents.max(initial=-1)) + 1
        return ByDocument(*(np.bincount(documents[mask], minlength=n) for mask in (units, hits)))


def rows_of(tokens: EntityTokens, cutoffs: RecallCutoffs) -> list[dict[str, Any]]:
    """Return a row for each cut-off, see `Caught.row`."""
    return [result.row(key, cutoffs) for key, result in tokens.caught(cutoffs).items()]


def review_of(tokens: EntityTokens, is_flagged: Bools, is_accepted: Bools) -> dict[str, dict[str, Any]]:
    """Return the parts of a corpus: "accept" and "drop", which nobody reviews, and "look"; flagged tokens of accepted entities
    count as accepted.

    RETURNS: Of each part "tokens" with a score, their "share", those with "gold", "inside" gold entities, and "inside_share".
    """
    parts = {"accept": is_accepted, "look": is_flagged & ~is_accepted, "drop": ~is_flagged & ~is_accepted}
    n = int(tokens.scored.sum())
    review = {}
    for name, part in parts.items():
        scored_part = part & tokens.scored
        with_gold = scored_part & (tokens.gold != _UNKNOWN)
        n_own, n_known, n_inside = int(scored_part.sum()), int(with_gold.sum()), int((tokens.gold[with_gold] > OUT).sum())
        review[name] = {
            "tokens": n_own, "share": n_own / n if n else None,
            "gold": n_known, "inside": n_inside, "inside_share": n_inside / n_known if n_known else None,
        }  # fmt: skip
    return review
