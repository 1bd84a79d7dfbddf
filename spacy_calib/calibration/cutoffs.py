"""Score cut-offs above which spans are accepted. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..schema import Saved, choice, kept, keyed, maybe, number
from ..types import Floats, Groups, Ints

PER = ("all", "group", "label")


def check_cutoffs(shares: Mapping[str, Any], per: str, allowed: Sequence[str], values: Mapping[str, float | None]) -> None:
    """What all cut-offs are checked for. shares: Name of a setting -> a number between 0 and 1. RAISES C001: a part is out of range."""
    for name, value in shares.items():
        if not isinstance(value, (int, float)) or not 0 < value < 1:
            raise calib_error("C001", name=name, wanted="a number between 0 and 1", given=repr(value))
    if per not in allowed:
        raise calib_error("C001", name="per", wanted=f"one of {', '.join(allowed)}", given=repr(per))
    for key, cutoff in values.items():
        if cutoff is not None and not (isinstance(cutoff, (int, float)) and 0 <= cutoff <= 1):
            raise calib_error("C001", name=f"cut-off of '{key}'", wanted="a number in [0, 1] or null", given=repr(cutoff))


@dataclass(frozen=True)
class Cutoffs(Saved):
    """Cut-offs that reach a precision.

    precision (float): The precision wanted. confidence (float): How sure it is that it is reached.
    per (str): "all": one cut-off under the key "all"; "group", "label": one for each group or label.
    values (Mapping[str, float | None]): Key -> the least score that is accepted; None where no cut-off reaches the precision.
    """

    precision: float = kept(number(0.0, 1.0))
    confidence: float = kept(number(0.0, 1.0))
    per: str = kept(choice(*PER))
    values: Mapping[str, float | None] = kept(keyed(maybe(number(0.0, 1.0))), key="cutoffs")

    def __post_init__(self) -> None:
        check_cutoffs({"precision": self.precision, "confidence": self.confidence}, self.per, PER, self.values)

    def accepts(self, scores: Floats, columns: Ints, labels: Sequence[str], groups: Groups) -> NDArray[np.bool_]:
        """Which spans reach their cut-off; one whose key has none is not accepted.

        scores (Floats): Calibrated, shape (n,). columns (Ints): Column of each span's label. labels: Of the columns. groups: Of them.
        """
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
    return [groups.names[group] if group >= 0 else "" for group in groups.of(columns).tolist()]
