"""What a few labelled documents of a new kind say of calibrated scores there: a line in log-odds for leading entries,
one for the others, and offsets of groups and tags; for tags of tokens and labels of spans alike.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...schema import Saved, kept, maybe, whole
from ...types import Floats, Groups, Ints
from ..recalibrators.logistic import log_odds, sigmoid
from ..steps import Predictions
from ..tag_offsets import Offsets, TagOffsets, average_offsets, learned_offsets, offsets_of
from .lines import OF_TOKENS, Line, Prior, document_weights, fit_line


@dataclass(frozen=True, eq=False)
class GoldEntries:
    """n scored entries with gold: (token, tag) pairs, or spans.

    scores (Floats), hits (NDArray[bool]), tags (Ints): Calibrated score, whether it is right, and column of its label.
    leads (NDArray[bool]): Whether it is its token's likeliest by raw scores (a span: whether it is on the Doc). Too
        sure of what leads is too unsure of the rest, so the two have different maps.
    documents (Ints): The document of each.
    RAISES C002: lengths differ.
    """

    scores: Floats
    hits: NDArray[np.bool_]
    leads: NDArray[np.bool_]
    tags: Ints
    documents: Ints

    def __post_init__(self) -> None:
        for second, array in (("hit", self.hits), ("place", self.leads), ("tag", self.tags), ("document", self.documents)):
            if len(array) != len(self.scores):
                raise calib_error(
                    "C002", what="Adapting", first="score", second=second, n_first=len(self.scores), n_second=len(array)
                )

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, index: Ints) -> GoldEntries:
        """Some of the entries."""
        return GoldEntries(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Side(Saved):
    """What was learned of the leading entries, or of the others.

    line (Line): Of all. offsets (TagOffsets | None): Of groups and tags, after the line. entries (int): Learned from.
    """

    line: Line = kept(Line.read, Line())
    offsets: TagOffsets | None = kept(maybe(learned_offsets), None)
    entries: int = kept(whole(), 0)

    @classmethod
    def fit(cls, entries: GoldEntries, groups: Groups, prior: Prior) -> Side:
        if not len(entries):
            return cls()
        margins = log_odds(entries.scores)
        weights = document_weights(entries.scores, entries.documents, prior.between)
        line = fit_line(margins, entries.hits, weights, prior)
        if not prior.offsets:
            return cls(line, None, len(entries))
        moved = line.move(margins)
        of_group, n_tags = groups.of(entries.tags).astype(np.intp), len(groups.of_tag)
        of_groups = _offsets(moved, entries, of_group, len(groups), prior)
        moved = moved + offsets_of(of_groups.values, of_group)
        known = np.where(entries.tags < n_tags, entries.tags, -1)
        return cls(line, TagOffsets.of(of_groups, _offsets(moved, entries, known, n_tags, prior)), len(entries))

    def move(self, scores: Floats, tags: Ints, groups: Groups) -> Floats:
        if self.line == Line():
            moved = scores
        else:
            moved = sigmoid(self.line.move(log_odds(scores)))
        return moved if self.offsets is None else self.offsets.predict(moved, tags, groups.of(tags).astype(np.intp))

    def state(self) -> dict[str, Any]:
        """Plain data; of the offsets what they learned, without name and settings."""
        return {**super().state(), "offsets": None if self.offsets is None else self.offsets.state()["learned"]}


def _offsets(margins: Floats, entries: GoldEntries, units: Ints, n_units: int, prior: Prior) -> Offsets:
    """Offsets of groups or tags; entries of one in one document are alike. margins (Floats): Log-odds so far."""
    _, documents = np.unique(entries.documents, return_inverse=True)
    chances, places = sigmoid(margins), documents * (n_units + 1) + units + 1
    weights = document_weights(chances, places, prior.within)
    wary = document_weights(chances, places, prior.within, entries.hits) if prior.far else None
    return average_offsets(margins, entries.hits, units, n_units, weights, wary)


@dataclass(frozen=True, eq=False)
class Adaptation(Saved):
    """A step after the maps and the context: from scores that are true at home to scores true on new texts. Monotone.

    groups (Groups): Of the tags, for the offsets. leading, other (Side): What was learned.
    """

    groups: Groups = kept(Groups.read)
    leading: Side = kept(Side.read)
    other: Side = kept(Side.read)

    @classmethod
    def fit(cls, entries: GoldEntries, groups: Groups, prior: Prior = OF_TOKENS) -> Adaptation:
        """Learn from the entries of a few labelled documents."""
        sides = (entries.take(np.flatnonzero(entries.leads == leads)) for leads in (True, False))
        return cls(groups, *(Side.fit(side, groups, prior) for side in sides))

    def apply(self, given: Predictions) -> Predictions:
        """Move leading entries by their line and offsets, the others by theirs."""
        return given.having(scores=self.move(given.scores, given.leads, given.tags))

    def move(self, scores: Floats, leads: NDArray[np.bool_], tags: Ints) -> Floats:
        """The adapted probabilities of n entries. scores, leads, tags: As of GoldEntries."""
        moved = np.empty(len(scores))
        for side, index in ((self.leading, np.flatnonzero(leads)), (self.other, np.flatnonzero(~leads))):
            moved[index] = side.move(scores[index], tags[index], self.groups)
        return moved

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        sizes = (len(held["groups"].of_tag), len(held["groups"]))
        fitted = all(side.offsets is None or side.offsets.sizes() == sizes for side in (held["leading"], held["other"]))
        return "" if fitted else "'offsets' are fitted to these tags and groups"
