"""Whether a new fit is worth more than the calibration that is there already, by held-out losses of the same units. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.proper import log_losses, mean_with_error
from ..pairs.documents import TOKEN
from ..schema import Serializable, choice, maybe, number, saved_field, text, whole
from ..types import Floats, Ints
from .sufficiency import documents_or_blocks

# What the pipeline says now, that with an adaptation, and the new fit.
PRESENT, ADAPTED, FIT = "present", "adapted", "fit"
# With fewer units with gold no fit and no adaptation counts as shown to be better.
_FEWEST, _FEWEST_TOKENS = 20, 200
# Of so many times as many a fit may be taken, which learns more than an adaptation: held-out losses of a few dozen entities
# mislead (scripts/adapt_or_fit_study.py: fits on 28 to 39 entities that gained .05 to .4 there lost .3 to .8 elsewhere).
_TIMES_FOR_FIT = 2.5


def fewest_of(unit: str) -> int:
    """How many units with gold can show that scores are better: tokens are more alike than entities or documents."""
    return _FEWEST_TOKENS if unit == TOKEN else _FEWEST


def is_enough(unit: str, n_units: int) -> bool:
    """Whether so many units with gold can show that scores are better."""
    return n_units >= fewest_of(unit)


@dataclass(frozen=True)
class Replacement(Serializable):
    """Mean held-out log losses of the same units, and which scores are taken.

    present (float): Of the scores that the pipeline gives now. adapted (float | None): Of these with an adaptation; None where no
        document can be held out. fit (float): Of the new fit. error (float): Standard error, by document, of the difference
        between the fit and the better one of the others. units (int): How many were compared. unit (str): What they are.
    winner (str): PRESENT, ADAPTED or FIT.
    """

    present: float = saved_field(number(0.0))
    adapted: float | None = saved_field(maybe(number(0.0)))
    fit: float = saved_field(number(0.0))
    error: float = saved_field(number(0.0))
    units: int = saved_field(whole(1))
    unit: str = saved_field(text)
    winner: str = saved_field(choice(PRESENT, ADAPTED, FIT))

    @property
    def gains(self) -> bool:
        """Whether what is taken is shown to be better than what was there."""
        return self.winner != PRESENT and is_enough(self.unit, self.units)


def compare_losses(losses: Mapping[str, Floats], documents: Ints, unit: str = "entity") -> Replacement:
    """Take the adaptation if it gains over the present scores, and the fit if its gain over both exceeds its standard error.

    On too few units no fit is taken.

    losses (Mapping): PRESENT, FIT and perhaps ADAPTED -> log loss of each of n > 0 units, held out. documents (Ints): Of each, ascending.
    """
    means = {name: float(values.mean()) for name, values in losses.items()}
    rival = ADAPTED if ADAPTED in means and means[ADAPTED] < means[PRESENT] else PRESENT
    difference, error = mean_with_error(losses[FIT] - losses[rival], documents_or_blocks(np.arange(len(documents)), documents))
    winner = FIT if -difference > error and len(documents) >= _TIMES_FOR_FIT * fewest_of(unit) else rival
    return Replacement(means[PRESENT], means.get(ADAPTED), means[FIT], error, len(documents), unit, winner)


def align_scores(keys: Ints, other_keys: Ints, scores: Floats) -> Floats:
    """Find the score of each unit among others. NaN where it has none.

    keys, other_keys (Ints): What tells units apart, shapes (n, k) and (m, k). scores (Floats): Of the others, shape (m,).
    """
    places: dict[Any, int] = {key: i for i, key in enumerate(map(tuple, other_keys.tolist()))}
    index = np.array([places.get(tuple(key), -1) for key in keys.tolist()], dtype=np.intp)
    return np.where(index >= 0, np.append(scores, np.nan)[index], np.nan)


def compare_scores(
    scores: Mapping[str, Floats], hits: NDArray[np.bool_], documents: Ints, unit: str = "entity"
) -> Replacement | None:
    """Compare by the units that all can score; None where there are none.

    scores (Mapping): As the losses of `compare_losses`, NaN for units without a score. hits (NDArray[bool]): Whether each unit is right.
    """
    index = np.flatnonzero(np.all([~np.isnan(values) for values in scores.values()], axis=0))
    if not len(index):
        return None
    losses = {name: log_losses(values[index], hits[index]) for name, values in scores.items()}
    return compare_losses(losses, documents[index], unit)
