"""The count of the units of some documents, whose log-odds each document may shift together."""

from __future__ import annotations

import numpy as np

from ..calibration.recalibrators.logistic import sigmoid
from ..expect.effects import WIDTHS, Effects, of_new_source
from ..types import Floats, Ints
from .distribution import Counted, added, independent, mixed

# Nodes of the quadrature over a shift; and the width below which a shift changes nothing that is seen.
_NODES = 15
_NO_SHIFT = 1e-6
_STEPS = 60
# What is left out at the end of a distribution without one.
_TAIL = 1e-9


def counted(chances: Floats, documents: Ints, effects: Effects | None = None, sizes: Floats | None = None) -> Counted:
    """How many units hold.

    chances (Floats): Of each unit, in [0, 1]. documents (Ints): Number of each unit's document. effects (Effects | None): None takes all units
    for independent. The shifts of the documents become one shift that varies the count as they do, and leaves the expected number as it is.
    sizes (Floats | None): Units of each document, with a chance or without: those without add what the fit missed of their kind.
    RAISES C390: they are no probabilities.
    """
    found = _with_chances(chances, documents, effects)
    return found if effects is None or sizes is None else added(found, missed(effects, sizes))


def missed(effects: Effects, sizes: Floats) -> Counted:
    """How many hold among those without a chance: a negative binomial number, Poisson where documents are alike. sizes (Floats): See `counted`."""
    from scipy.stats import nbinom, poisson

    mean = effects.missed * float(sizes.sum())
    if mean <= 0:
        return independent([])
    spread = effects.unsure + effects.uneven * float(np.square(sizes).sum()) / float(sizes.sum()) ** 2
    law = nbinom(1 / spread, 1 / (1 + mean * spread)) if mean * spread > _NO_SHIFT else poisson(mean)
    chances = law.pmf(np.arange(int(law.ppf(1 - _TAIL)) + 1))
    return Counted(0, chances / chances.sum())


def of_another_source(
    home: Counted, effects: Effects, opens: float, found: float | None, most: int, open_ended: bool = False
) -> Counted:
    """A count in texts whose gold may be of another source than that of the fit.

    home (Counted): As if it were of that. opens (float): The sum of p (1 - p) of the units. found (float | None): The number that is taken for the
    expected one, None takes that of `home`. most (int): Units that may hold. open_ended (bool): Whether others may hold too, which have no chance.
    """
    from scipy.special import ndtr

    moved = 0.0 if found is None else found - home.mean
    first, last = -int(home.first + len(home.chances)), max(most, int(np.ceil(moved)), 1)
    edges = np.arange(first, last + 2) - 0.5
    chances = np.zeros(len(edges) - 1)
    for width, weight in zip((WIDTHS * of_new_source(effects.sources)).tolist(), effects.widths, strict=True):
        below = ndtr((edges - moved) / max(width * opens, _NO_SHIFT))
        below[0], below[-1] = 0.0, 1.0  # what lies beyond is counted at the ends
        chances += weight * np.diff(below)
    both = added(home, Counted(first, chances / chances.sum()))
    numbers = np.clip(np.arange(both.first, both.first + len(both.chances)), 0, None if open_ended else most)
    return Counted(int(numbers[0]), np.asarray(np.bincount(numbers - numbers[0], both.chances), dtype=np.float64))


def _with_chances(chances: Floats, documents: Ints, effects: Effects | None) -> Counted:
    plain = independent(chances)
    if effects is None or not len(chances):
        return plain
    width = float(np.sqrt(one_shift(effects, chances, documents)))
    unsure = chances[(chances > 0) & (chances < 1)]
    if not len(unsure) or (width < _NO_SHIFT and not effects.shift):
        return plain
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    odds = np.log(unsure) - np.log1p(-unsure) + effects.shift
    center = _centre(odds, width * nodes, weights, float(sigmoid(odds).sum()))
    sure = np.ones(int((chances == 1).sum()))
    parts = [independent(np.concatenate([sigmoid(odds + center + width * node), sure])) for node in nodes.tolist()]
    return mixed(parts, weights)


def one_shift(effects: Effects, chances: Floats, documents: Ints) -> float:
    """The variance of the one shift that does to the count of these units what the shifts of their documents do together."""
    opens = np.bincount(documents, chances * (1 - chances))
    total = float(opens.sum())
    return effects.shared + (effects.between * float(np.square(opens).sum()) / total**2 if total > 0 else 0.0)


def _centre(odds: Floats, shifts: Floats, weights: Floats, wanted: float) -> float:
    """The middle of the shifts under which the mixture expects as many as without them (bisection)."""
    low, high = -float(np.abs(shifts).max()), float(np.abs(shifts).max())
    for _ in range(_STEPS):
        middle = (low + high) / 2
        # Shift by shift: all at once would take fifteen times the memory of the units.
        expected = float(weights @ np.array([sigmoid(odds + middle + shift).sum() for shift in shifts.tolist()]))
        low, high = (middle, high) if expected < wanted else (low, middle)
        if high - low < 1e-9:
            break
    return (low + high) / 2
