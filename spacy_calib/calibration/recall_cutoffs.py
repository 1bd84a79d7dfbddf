"""Score cut-offs below which tokens are missed, and the scores that they cut. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..schema import Saved, choice, kept, keyed, maybe, number
from ..types import OUTSIDE, Floats, Ints
from .cutoffs import check_cutoffs

PER = ("all", "label")
# The place of O, which is no entity type.
OUT = -1


@dataclass(frozen=True)
class EntityTypes:
    """The entity types among the labels of tokens.

    names (tuple[str, ...]): The types. of_label (Ints): Place in names of each label's type, -1 for O.
    """

    names: tuple[str, ...]
    of_label: Ints

    @classmethod
    def of(cls, labels: Sequence[str], prefixed: bool) -> EntityTypes:
        """prefixed (bool): Whether the labels begin with B-, I-, L- or U-."""
        types = ["" if label == OUTSIDE else label[2:] if prefixed else label for label in labels]
        names = tuple(dict.fromkeys(filter(None, types)))
        return cls(names, np.array([names.index(one) if one else OUT for one in types], dtype=np.intp))


@dataclass(frozen=True, eq=False)
class EntityScores:
    """What the entries of n tokens say of entities; arrays of one length.

    rows (Ints): Token of each entry. types (Ints): Its type, as a place in `EntityTypes.names`, -1 for O. scores (Floats): Calibrated.
    n_tokens (int). threshold (float): No entry is made where the raw probability is below it.
    """

    rows: Ints
    types: Ints
    scores: Floats
    n_tokens: int
    threshold: float

    @cached_property
    def inside(self) -> Floats:
        """P(inside an entity) = 1 - P(O) of each token. Where P(O) has no entry, it is below the threshold: 1."""
        return 1.0 - self._sum(self.types == OUT)

    def of_type(self, kind: int) -> Floats:
        """P(type) of each token. Where the type has no entry, it is below the threshold and below what is left to it: P(inside), or, where P(O) has
        no entry either, 1 less what the entries of other types have. The product of these bounds keeps such tokens in order.
        """
        left = np.where(self.has(OUT), self.inside, 1.0 - self._sum(np.ones(len(self.types), dtype=bool)))
        return np.where(self.has(kind), self._sum(self.types == kind), self.threshold * left)

    def has(self, kind: int) -> NDArray[np.bool_]:
        """Which tokens have an entry of this type (or of O)."""
        return np.bincount(self.rows[self.types == kind], minlength=self.n_tokens) > 0

    def _sum(self, own: NDArray[np.bool_]) -> Floats:
        return np.clip(np.bincount(self.rows[own], weights=self.scores[own], minlength=self.n_tokens), 0.0, 1.0)


@dataclass(frozen=True)
class RecallCutoffs(Saved):
    """Cut-offs that bound what is missed.

    recall (float): The share of the tokens of gold entities that is to be flagged. confidence (float): How sure it is that it is.
    per (str): "all": one cut-off of P(inside an entity), under the key "all"; "label": one of P(label) for each entity type.
    values (Mapping[str, float | None]): Key -> the least score that is flagged; None where no cut-off is sure enough: every token is flagged.
    """

    recall: float = kept(number(0.0, 1.0))
    confidence: float = kept(number(0.0, 1.0))
    per: str = kept(choice(*PER))
    values: Mapping[str, float | None] = kept(keyed(maybe(number(0.0, 1.0))), key="cutoffs")

    def __post_init__(self) -> None:
        check_cutoffs({"recall": self.recall, "confidence": self.confidence}, self.per, PER, self.values)

    def flags(self, scores: EntityScores, types: EntityTypes) -> dict[str, NDArray[np.bool_]]:
        """Which tokens the cut-off of each key flags; a type that the component no longer has is left out."""
        known = ["all"] if self.per == "all" else [name for name in types.names if name in self.values]
        limits = {key: -np.inf if value is None else value for key, value in self.values.items()}
        return {key: score_of(key, self.per, scores, types) >= limits[key] for key in known}


def score_of(key: str, per: str, scores: EntityScores, types: EntityTypes) -> Floats:
    """What the cut-off of a key is compared with at each token: P(inside an entity), or P(label)."""
    return scores.inside if per == "all" else scores.of_type(types.names.index(key))
