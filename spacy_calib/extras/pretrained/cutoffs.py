"""One cut-off for all labels: what it reaches on the sources left out, and the lowest one that reaches a precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...types import Floats
from .card import CUTOFFS, Card

# With fewer accepted entities no precision is reached on a source.
_FEWEST = 10
# So far may the precision on the worst source be below the one that is asked for.
_SLACK = 0.1


@dataclass(frozen=True)
class CutoffResult:
    """What a cut-off reaches on sources left out.

    mean, worst (float): Precision of what it accepts. kept (float): Mean share of the right entities that it accepts.
    """

    cutoff: float
    mean: float
    worst: float
    kept: float


def count_above(scores: Floats, right: NDArray[np.bool_]) -> dict[str, Any]:
    """Count "right" entities, and "above" each of CUTOFFS how many are "accepted", and "right" of these."""
    reach = scores >= np.array(CUTOFFS)[:, None]
    above = {"accepted": reach.sum(axis=1).tolist(), "right": (reach & right).sum(axis=1).tolist()}
    return {"right": int(right.sum()), "above": above}


def evaluate_cutoffs(sources: Sequence[Mapping[str, Any]]) -> list[CutoffResult]:
    """Evaluate each of CUTOFFS. sources (Sequence): What `count_above` gave for each."""
    accepted, right = (np.array([source["above"][key] for source in sources]) for key in ("accepted", "right"))
    precision = np.where(accepted >= _FEWEST, right / np.maximum(accepted, 1), 0.0)
    kept = right / np.maximum([[source["right"]] for source in sources], 1)
    columns = (precision.mean(axis=0), precision.min(axis=0), kept.mean(axis=0))
    return [CutoffResult(*row) for row in zip(CUTOFFS, *(column.tolist() for column in columns), strict=True)]


def lowest_cutoff(
    sources: Sequence[Mapping[str, Any]], precision: float, worst: float | None = None, step: int = 1
) -> CutoffResult | None:
    """Return the lowest cut-off that reaches a precision; None if none does.

    precision (float): In the mean of the sources. worst (float | None): On each of them; None allows .1 less than in the mean.
    step (int): Only multiples of so many hundredths are tried.
    """
    least = precision - _SLACK if worst is None else worst
    results = evaluate_cutoffs(sources)[step - 1 :: step]
    return next((result for result in results if result.mean >= precision and result.worst >= least), None)


def choose_cutoff(card: Card, precision: float | None) -> dict[str, Any] | None:
    """Choose the cut-off of a card, the default one or that for a precision; None for a card without.

    RETURNS (dict): "precision" that it is for, and the fields of CutoffResult.
    RAISES C839: no cut-off reaches the precision.
    """
    default = card.data["cutoffs"]
    if default is None:
        return None
    sources = default["sources"]
    if precision is None:
        result = evaluate_cutoffs(sources)[CUTOFFS.index(default["cutoff"])]
        return {"precision": default["precision"], **asdict(result)}
    chosen = lowest_cutoff(sources, precision)
    if chosen is None:
        best = max(evaluate_cutoffs(sources), key=lambda result: result.mean)
        raise calib_error(
            "C839", card=card.name, precision=precision, least=f"{precision - _SLACK:.2f}", mean=f"{best.mean:.2f}", cutoff=best.cutoff
        )  # fmt: skip
    return {"precision": precision, **asdict(chosen)}
