"""Cut-offs of scores, from which spans are accepted or tokens are flagged for review. No Docs are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema import Serializable, choice, dict_of, maybe, number, record, saved_field, whole
from ..types import OUTSIDE, Floats, Groups, Ints

PER = ("all", "group", "label")
_SAMPLE = record({"answers": whole(), "documents": whole(), "drawn_from": whole(), "accepted": number(0.0, 1.0)})


@dataclass(frozen=True)
class Cutoffs(Serializable):
    """Minimum scores from which spans are accepted, so that the accepted ones reach a precision.

    precision (float): Required precision (the lowest of the targets). confidence (float): Confidence that it is reached.
    per (str): "all": one cut-off under the key "all"; "group", "label": one for each group or label.
    values (Mapping[str, float | None]): Key -> minimum score that is accepted; None if no cut-off reaches the precision.
    targets (Mapping[str, float] | None): Label -> required precision of that label; the confidence is then of all together.
    sample (Mapping | None): The random sample of entities that gave the cut-offs: number of "answers", of their "documents",
        and of the documents that it was "drawn_from"; share of entities "accepted". None if they are from other gold.
    """

    precision: float = saved_field(number(0.0, 1.0))
    confidence: float = saved_field(number(0.0, 1.0))
    per: str = saved_field(choice(*PER))
    values: Mapping[str, float | None] = saved_field(dict_of(maybe(number(0.0, 1.0))), key="cutoffs")
    targets: Mapping[str, float] | None = saved_field(maybe(dict_of(number(0.0, 1.0))), None)
    sample: Mapping[str, Any] | None = saved_field(maybe(_SAMPLE), None)

    @classmethod
    def read(cls, value: Any, where: str = "state") -> Cutoffs:
        """Check a state (keys "targets" and "sample" may be missing); build cut-offs from it. where: Its name in messages."""
        if isinstance(value, dict):
            value = {"targets": None, "sample": None, **value}
        return super().read(value, where)

    def accepts(self, scores: Floats, columns: Ints, labels: Sequence[str], groups: Groups) -> NDArray[np.bool_]:
        """Return whether each span's score reaches its cut-off. columns: Index of its label in `labels`. groups: Of labels."""
        return scores >= self.get_cutoffs(columns, labels, groups)

    def get_cutoffs(self, columns: Ints, labels: Sequence[str], groups: Groups) -> Floats:
        """Return each span's cut-off; infinite: none is accepted. columns: Its label's index in `labels`. groups: Of labels."""
        keys = keys_of(self.per, columns, labels, groups)
        cutoffs = {key: np.inf if value is None else value for key, value in self.values.items()}
        return np.array([cutoffs.get(key, np.inf) for key in keys], dtype=np.float64)

    @property
    def level(self) -> float:
        """The confidence of each single cut-off: with n targets each has 1/n of the error, so all hold together."""
        return 1 - (1 - self.confidence) / (len(self.targets) if self.targets else 1)

    def promise(self, names: Mapping[str, str]) -> str:
        """Describe in words the precision of the cut-offs; "" without cut-offs or sample. names: Key -> name to print."""
        named = {key: names.get(key) or key for key, value in self.values.items() if value is not None}
        if self.sample is None or not named:
            return ""
        precisions, scope = f"{100 * self.precision:g} %", ""
        if self.targets is not None:
            precisions = " and ".join(f"{100 * self.targets[key]:g} % of {named[key]}" for key in named)
            scope = " for all together"
        elif self.per != "all":
            precisions, scope = f"{precisions} of each {self.per} ({', '.join(named.values())})", " for each by itself"
        return (
            f"Of the entities that this pipeline finds and accepts in texts like these, at least {precisions} are right "
            f"({100 * self.confidence:g} % confidence{scope}; {self.sample['answers']:,} answers in "
            f"{self.sample['documents']:,} documents, drawn at random from {self.sample['drawn_from']:,}). It accepts about "
            f"{100 * self.sample['accepted']:.0f} % of the entities that it finds. Entities that it does not find are not in "
            "this number."
        )


def keys_of(per: str, columns: Ints, labels: Sequence[str], groups: Groups) -> list[str]:
    """Return each span's key by `per`: "all", its label, or its group ("" for none). columns (Ints): Index of its label."""
    if per == "all":
        return ["all"] * len(columns)
    if per == "label":
        return [labels[column] for column in columns.tolist()]
    return [groups.names[group] if group >= 0 else "" for group in groups.find(columns).tolist()]


OUT = -1  # the index of O, which is no entity type


@dataclass(frozen=True)
class EntityTypes:
    """The entity types in the labels of tokens. of_label (Ints): Index in `names` of each label's type, -1 for O."""

    names: tuple[str, ...]
    of_label: Ints

    @classmethod
    def from_labels(cls, labels: Sequence[str], has_prefix: bool) -> EntityTypes:
        """Find the types in token labels ("O", or a type). has_prefix (bool): Whether types have a prefix B-, I-, L- or U-."""
        prefix_length = 2 if has_prefix else 0
        types = ["" if label == OUTSIDE else label[prefix_length:] for label in labels]  # "" for O
        names = tuple(dict.fromkeys(filter(None, types)))
        return cls(names, np.array([names.index(type_name) if type_name else OUT for type_name in types], dtype=np.intp))


@dataclass(frozen=True, eq=False)
class EntityScores:
    """Calibrated probabilities of the labels of n tokens as m entries. Labels of one type, such as B-X and I-X, add up.

    rows (Ints): Token of each entry. types (Ints): Its type, an index in `EntityTypes.names`; -1 for O. scores (Floats):
    Its probability. n_tokens (int): n. threshold (float): Labels with a lower raw probability have no entry.
    """

    rows: Ints
    types: Ints
    scores: Floats
    n_tokens: int
    threshold: float

    @cached_property
    def inside_probability(self) -> Floats:
        """P(inside an entity) = 1 - P(O) of each token, (n,); 1 if O has no entry."""
        return 1.0 - self._sum_scores(self.types == OUT)

    def type_probability(self, type_index: int) -> Floats:
        """Return P(type) of each token, shape (n,). type_index (int): Index of the type in `EntityTypes.names`.

        Where the type has no entry, P(type) is below the threshold. It is estimated as the threshold times P(inside an entity).
        This is unknown without an entry of O; then the factor is the probability of all labels that have no entry.
        """
        without_entry = 1.0 - self._sum_scores(np.ones(len(self.types), dtype=bool))
        estimate = self.threshold * np.where(self.has_type(OUT), self.inside_probability, without_entry)
        return np.where(self.has_type(type_index), self._sum_scores(self.types == type_index), estimate)

    def has_type(self, type_index: int) -> NDArray[np.bool_]:
        """Return whether each token has an entry of a type, shape (n,). type_index: Index in `EntityTypes.names`, -1 for O."""
        return np.bincount(self.rows[self.types == type_index], minlength=self.n_tokens) > 0

    def _sum_scores(self, mask: NDArray[np.bool_]) -> Floats:
        """Return the sum of the selected entries of each token, clipped to [0, 1]. mask: Whether each entry is selected."""
        return np.clip(np.bincount(self.rows[mask], weights=self.scores[mask], minlength=self.n_tokens), 0.0, 1.0)


@dataclass(frozen=True)
class RecallCutoffs(Serializable):
    """Minimum probabilities from which tokens are flagged for review, so that the flagged ones reach a recall.

    recall (float): Required share of gold entity tokens that are flagged. confidence (float): Confidence that it is reached.
    per (str): "all": one cut-off of P(inside an entity), under the key "all"; "label": one of P(type) for each entity type.
    values (Mapping[str, float | None]): Key -> minimum that is flagged; None if no cut-off is safe: every token is flagged.
    """

    recall: float = saved_field(number(0.0, 1.0))
    confidence: float = saved_field(number(0.0, 1.0))
    per: str = saved_field(choice("all", "label"))
    values: Mapping[str, float | None] = saved_field(dict_of(maybe(number(0.0, 1.0))), key="cutoffs")

    def flags(self, scores: EntityScores, types: EntityTypes) -> dict[str, NDArray[np.bool_]]:
        """Return key ("all" or a type) -> whether its cut-off flags each token; saved types not in `types` are left out."""
        keys = ["all"] if self.per == "all" else [name for name in types.names if name in self.values]
        cutoffs = {key: -np.inf if value is None else value for key, value in self.values.items()}  # None flags every token
        return {key: key_probability(key, self.per, scores, types) >= cutoffs[key] for key in keys}


def key_probability(key: str, per: str, scores: EntityScores, types: EntityTypes) -> Floats:
    """Return for each token what cut-off `key` is compared with: P(inside an entity) if `per` is "all", else P(type `key`)."""
    return scores.inside_probability if per == "all" else scores.type_probability(types.names.index(key))
