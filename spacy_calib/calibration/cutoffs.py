"""Cut-offs of scores: above which spans are accepted, below which tokens are missed. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..schema import Serializable, choice, dict_of, maybe, number, saved_field
from ..types import OUTSIDE, Floats, Groups, Ints

PER = ("all", "group", "label")


def check_cutoffs(shares: Mapping[str, Any], per: str, allowed_keys: Sequence[str], values: Mapping[str, float | None]) -> None:
    """Check all cut-offs. shares: Name of a setting -> a number in (0, 1). RAISES C001: a part is out of range."""
    for name, value in shares.items():
        if not isinstance(value, (int, float)) or not 0 < value < 1:
            raise calib_error("C001", name=name, wanted="a number between 0 and 1", given=repr(value))
    if per not in allowed_keys:
        raise calib_error("C001", name="per", wanted=f"one of {', '.join(allowed_keys)}", given=repr(per))
    for key, cutoff in values.items():
        if cutoff is not None and not (isinstance(cutoff, (int, float)) and 0 <= cutoff <= 1):
            raise calib_error("C001", name=f"cut-off of '{key}'", wanted="a number in [0, 1] or null", given=repr(cutoff))


@dataclass(frozen=True)
class Cutoffs(Serializable):
    """Cut-offs that reach a precision.

    precision (float): The precision wanted. confidence (float): How sure it is that it is reached.
    per (str): "all": one cut-off under the key "all"; "group", "label": one for each group or label.
    values (Mapping[str, float | None]): Key -> the least score accepted; None where none reaches the precision.
    """

    precision: float = saved_field(number(0.0, 1.0))
    confidence: float = saved_field(number(0.0, 1.0))
    per: str = saved_field(choice(*PER))
    values: Mapping[str, float | None] = saved_field(dict_of(maybe(number(0.0, 1.0))), key="cutoffs")

    def __post_init__(self) -> None:
        check_cutoffs({"precision": self.precision, "confidence": self.confidence}, self.per, PER, self.values)

    def accepts(self, scores: Floats, columns: Ints, labels: Sequence[str], groups: Groups) -> NDArray[np.bool_]:
        """Which spans reach the cut-off of their key, if it has one. columns: Of each label, in `labels` and `groups`."""
        return scores >= self.of(columns, labels, groups)

    def of(self, columns: Ints, labels: Sequence[str], groups: Groups) -> Floats:
        """The cut-off of each span, infinite where there is none."""
        keys = keys_of(self.per, columns, labels, groups)
        limit = {key: np.inf if value is None else value for key, value in self.values.items()}
        return np.array([limit.get(key, np.inf) for key in keys], dtype=np.float64)


def keys_of(per: str, columns: Ints, labels: Sequence[str], groups: Groups) -> list[str]:
    """The key of each span: "all", its group's name ("" without one), or its label."""
    if per == "all":
        return ["all"] * len(columns)
    if per == "label":
        return [labels[column] for column in columns.tolist()]
    return [groups.names[group] if group >= 0 else "" for group in groups.find(columns).tolist()]


RECALL_PER = ("all", "label")
# The place of O, which is no entity type.
OUT = -1


@dataclass(frozen=True)
class EntityTypes:
    """The entity types among the labels of tokens. of_label (Ints): Place in `names` of each label's type, -1 for O."""

    names: tuple[str, ...]
    of_label: Ints

    @classmethod
    def of(cls, labels: Sequence[str], prefixed: bool) -> EntityTypes:
        """The types of these labels. prefixed (bool): Whether labels begin with B-, I-, L- or U-."""
        types = ["" if label == OUTSIDE else label[2:] if prefixed else label for label in labels]
        names = tuple(dict.fromkeys(filter(None, types)))
        return cls(names, np.array([names.index(type_name) if type_name else OUT for type_name in types], dtype=np.intp))


@dataclass(frozen=True, eq=False)
class EntityScores:
    """What the entries of n tokens say of entities; arrays of one length.

    rows (Ints): Token of each entry. types (Ints): Place in `EntityTypes.names`, -1 for O. scores (Floats): Calibrated.
    n_tokens (int). threshold (float): No entry is made where the raw probability is below it.
    """

    rows: Ints
    types: Ints
    scores: Floats
    n_tokens: int
    threshold: float

    @cached_property
    def inside(self) -> Floats:
        """P(inside an entity) = 1 - P(O) of each token; 1 where P(O) has no entry."""
        return 1.0 - self._sum(self.types == OUT)

    def of_type(self, kind: int) -> Floats:
        """P(type) of each token; without an entry the product of its upper bounds, which keeps such tokens in order."""
        remaining = np.where(self.has(OUT), self.inside, 1.0 - self._sum(np.ones(len(self.types), dtype=bool)))
        return np.where(self.has(kind), self._sum(self.types == kind), self.threshold * remaining)

    def has(self, kind: int) -> NDArray[np.bool_]:
        """Which tokens have an entry of this type (or of O)."""
        return np.bincount(self.rows[self.types == kind], minlength=self.n_tokens) > 0

    def _sum(self, own: NDArray[np.bool_]) -> Floats:
        return np.clip(np.bincount(self.rows[own], weights=self.scores[own], minlength=self.n_tokens), 0.0, 1.0)


@dataclass(frozen=True)
class RecallCutoffs(Serializable):
    """Cut-offs that bound what is missed.

    recall (float): The share of gold entities' tokens that is to be flagged. confidence (float): How sure it is.
    per (str): "all": one cut-off of P(inside an entity), under the key "all"; "label": one of P(label) for each type.
    values (Mapping[str, float | None]): Key -> the least score flagged; None flags every token: no cut-off is sure.
    """

    recall: float = saved_field(number(0.0, 1.0))
    confidence: float = saved_field(number(0.0, 1.0))
    per: str = saved_field(choice(*RECALL_PER))
    values: Mapping[str, float | None] = saved_field(dict_of(maybe(number(0.0, 1.0))), key="cutoffs")

    def __post_init__(self) -> None:
        check_cutoffs({"recall": self.recall, "confidence": self.confidence}, self.per, RECALL_PER, self.values)

    def flags(self, scores: EntityScores, types: EntityTypes) -> dict[str, NDArray[np.bool_]]:
        """Which tokens the cut-off of each key flags; types that the component no longer has are left out."""
        known_keys = ["all"] if self.per == "all" else [name for name in types.names if name in self.values]
        limits = {key: -np.inf if value is None else value for key, value in self.values.items()}
        return {key: score_of(key, self.per, scores, types) >= limits[key] for key in known_keys}


def score_of(key: str, per: str, scores: EntityScores, types: EntityTypes) -> Floats:
    """What a key's cut-off is compared with at each token: P(inside an entity), or P(label)."""
    return scores.inside if per == "all" else scores.of_type(types.names.index(key))
