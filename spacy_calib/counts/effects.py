"""What independent units leave out: documents that are unlike each other, and maps that are off. Both are shifts of log-odds.

A document's shift moves the log-odds of all its units, and with them its expected count, by the shift times v = the sum of p (1 - p) of its
units: to first order, the count of a part then varies by sum v + tau^2 sum v_d^2. tau^2 is learned by moments from labelled documents with
scores of maps that did not see them, as `expect.estimates.Residuals` learns it of shares; here v is what a document's units amount to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..calibration.recalibrators.logistic import sigmoid
from ..errors import calib_error
from ..expect.estimates import Residuals, Sums, sum_by
from ..types import Floats, Ints
from .distribution import Counted, independent, mixed

# Nodes of the quadrature over a shift; and the width below which a shift changes nothing that is seen.
_NODES = 15
_NO_SHIFT = 1e-6
_STEPS = 60


@dataclass(frozen=True)
class Effects:
    """Shifts of log-odds.

    between (float): Variance of a document's own shift, tau^2. shared (float): That of one shift of all documents: how far the maps, which
    were learned from few documents, may be off.
    """

    between: float = 0.0
    shared: float = 0.0

    @classmethod
    def fit(cls, chances: Floats, holds: Floats, documents: Ints) -> Effects:
        """From units with gold. chances (Floats): By maps that did not see the document. holds (Floats): 1 where the unit holds, else 0.
        documents (Ints): Number of each unit's document, from 0. No effects where fewer than two documents have an open unit.

        RAISES C002: lengths differ.
        """
        if not len(chances) == len(holds) == len(documents):
            raise calib_error("C002", what="Counting", first="answer and document", second="chance", n_first=len(holds), n_second=len(chances))
        n_docs = int(documents.max(initial=-1)) + 1
        open_ = sum_by(documents, chances * (1 - chances), n_docs)
        if (open_ > 0).sum() < 2:
            return cls()
        sums = Sums(sum_by(documents, chances, n_docs)[:, None], open_[:, None], open_)
        residuals = Residuals.of(sum_by(documents, holds, n_docs)[:, None], sums)
        own, independent_part = float(residuals.moment[0, 0]), float(residuals.independent[0])
        return cls(max(0.0, own - independent_part) / residuals.squares, max(own, independent_part) / residuals.units**2)

    @classmethod
    def of_shares(cls, residuals: Residuals) -> Effects:
        """From what a fit keeps of its right tokens: the shift of a document's share, over what a token's p (1 - p) is on average.

        residuals (Residuals): k = 1.
        """
        own, independent_part = float(residuals.moment[0, 0]), float(residuals.independent[0])
        if independent_part <= 0:
            return cls()
        each = independent_part / residuals.units
        return cls(max(0.0, own - independent_part) / residuals.squares / each**2, max(own, independent_part) / independent_part**2)

    def of_part(self, chances: Floats, documents: Ints) -> float:
        """The variance of the one shift that does to the count of these units what the shifts of their documents do together."""
        open_ = np.bincount(documents, chances * (1 - chances)) if len(documents) else np.zeros(0)
        total = float(open_.sum())
        return self.shared + (self.between * float(np.square(open_).sum()) / total**2 if total > 0 else 0.0)


def counted(chances: Floats, documents: Ints, effects: Effects | None = None) -> Counted:
    """How many of these units hold.

    chances (Floats): Of each unit, in [0, 1]. documents (Ints): Number of each unit's document. effects (Effects | None): None takes all units
    for independent. The expected number is the sum of the chances with effects and without.
    RAISES C390: they are no probabilities.
    """
    plain = independent(chances)
    if effects is None or not len(chances):
        return plain
    width = float(np.sqrt(effects.of_part(chances, documents)))
    unsure = chances[(chances > 0) & (chances < 1)]
    if width < _NO_SHIFT or not len(unsure):
        return plain
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    odds = np.log(unsure) - np.log1p(-unsure)
    center = _centre(odds, width * nodes, weights, float(unsure.sum()))
    sure = np.ones(int((chances == 1).sum()))
    parts = [independent(np.concatenate([sigmoid(odds + center + width * node), sure])) for node in nodes.tolist()]
    return mixed(parts, weights)


def _centre(odds: Floats, shifts: Floats, weights: Floats, wanted: float) -> float:
    """The middle of the shifts under which the mixture expects as many as without them (bisection)."""
    low, high = -float(np.abs(shifts).max()), float(np.abs(shifts).max())
    for _ in range(_STEPS):
        middle = (low + high) / 2
        expected = float(weights @ sigmoid(odds[None, :] + middle + shifts[:, None]).sum(axis=1))
        low, high = (middle, high) if expected < wanted else (low, middle)
        if high - low < 1e-9:
            break
    return (low + high) / 2
