"""Whether a new fit or an adaptation is better than the present calibration, by log losses of the same units with gold."""

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

# The scores of the pipeline now, these with an adaptation, and those of the new fit.
PRESENT, ADAPTED, FIT = "present", "adapted", "fit"
_FEWEST, _FEWEST_TOKENS = 20, 200  # with fewer units with gold neither a fit nor an adaptation counts as better
# A fit has more parameters than an adaptation, and needs so many times as many units: losses of a few dozen entities mislead
# (fits on 28 to 39 entities that gained .05 to .4 in cross-validation lost .3 to .8 elsewhere).
_TIMES_FOR_FIT = 2.5


def fewest_of(unit: str) -> int:
    """Return how many units with gold a comparison of fits needs: more if `unit` is "token", as tokens are more alike."""
    return _FEWEST_TOKENS if unit == TOKEN else _FEWEST


def is_enough(unit: str, n_units: int) -> bool:
    """Return whether n_units units with gold are enough for a comparison. unit (str): "token", "entity" ..."""
    return n_units >= fewest_of(unit)


@dataclass(frozen=True)
class Replacement(Serializable):
    """The comparison of a new fit with the present calibration: mean log losses of the same units, and the winner.

    present, fit (float): Loss of the present scores, and cross-validated loss of the new fit. adapted (float | None):
        Cross-validated loss of the present scores with an adaptation; None with a single document. error (float): Standard
        error, by document, of the difference between the fit and the better one of the others. units (int): Number of units.
    unit (str): What the units are, such as "entity". winner (str): PRESENT, ADAPTED or FIT.
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
        """Whether the winner is the new fit or the adaptation, and there are enough units."""
        return self.winner != PRESENT and is_enough(self.unit, self.units)


def compare_losses(losses: Mapping[str, Floats], documents: Ints, unit: str = "entity") -> Replacement:
    """Compare the mean losses of the present scores, perhaps an adaptation, and a new fit.

    The adaptation wins if its loss is lower than the present one. The fit wins if its loss is lower than the better of these by
    more than a standard error, on at least _TIMES_FOR_FIT times as many units as an adaptation needs.
    losses (Mapping): PRESENT, FIT and perhaps ADAPTED -> cross-validated log loss of each of n > 0 units.
    documents (Ints): Document of each unit, ascending. unit (str): What the units are.
    """
    means = {name: float(values.mean()) for name, values in losses.items()}
    rival = ADAPTED if ADAPTED in means and means[ADAPTED] < means[PRESENT] else PRESENT
    clusters = documents_or_blocks(np.arange(len(documents)), documents)  # for the standard error
    difference, error = mean_with_error(losses[FIT] - losses[rival], clusters)
    has_enough_units = len(documents) >= _TIMES_FOR_FIT * fewest_of(unit)
    winner = FIT if has_enough_units and -difference > error else rival
    return Replacement(means[PRESENT], means.get(ADAPTED), means[FIT], error, len(documents), unit, winner)


def align_scores(keys: Ints, other_keys: Ints, scores: Floats) -> Floats:
    """Return the scores of m units in the order of n keys, shape (n,); NaN for a key that none of the m units has.

    keys, other_keys (Ints): A row of k numbers that identifies each unit, shapes (n, k) and (m, k). scores (Floats): Score of
        each unit of other_keys, shape (m,).
    """
    index_of_key: dict[Any, int] = {key: i for i, key in enumerate(map(tuple, other_keys.tolist()))}
    index = np.array([index_of_key.get(tuple(key), -1) for key in keys.tolist()], dtype=np.intp)
    return np.append(scores, np.nan)[index]  # index -1 is that of the last element, NaN


def compare_scores(
    scores: Mapping[str, Floats], hits: NDArray[np.bool_], documents: Ints, unit: str = "entity"
) -> Replacement | None:
    """Compare the log losses of scores on the units that have a score of each kind; None if there are no such units.

    scores (Mapping): PRESENT (in use), FIT (new), perhaps ADAPTED -> scores of n units, or NaN. hits: Whether each is right.
    documents (Ints): Document of each unit, ascending. unit (str): What the units are.
    """
    index = np.flatnonzero(np.all([~np.isnan(values) for values in scores.values()], axis=0))
    if not len(index):
        return None
    losses = {name: log_losses(values[index], hits[index]) for name, values in scores.items()}
    return compare_losses(losses, documents[index], unit)
