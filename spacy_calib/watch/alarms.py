"""Alarms at a stated rate: how far windows of the fit documents themselves stray from the fit data, simulated.

A window is compared with the fit documents as `expect.drift` does. Here the threshold of each difference is set so that, while texts stay as
they were at the fit, one window in so many gives an alarm at most. Windows of as many documents are drawn from the documents that the drift
profile keeps, and compared with a fit data that is drawn likewise: what was fitted on is a sample, too, and all windows are compared with
that one. The threshold is one that holds the rate for nine of ten such fit data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..expect.drift import BLIND, DIFFERENT, TOO_FEW, Check, Drift, DriftProfile, differences, few_and_long
from ..expect.drift_sums import totals
from ..types import Floats
from .window import Counts

# The verdict on a window that gives no alarm.
QUIET = "no alarm"
# Windows and fit data that are drawn, windows at a time, and the share of the fit data for which the rate is to hold.
_WINDOWS, _FITS, _AT_A_TIME, _CONFIDENCE = 5000, 40, 1000, 0.9
# Above this quantile, differences are taken to fall off exponentially, which is slower than means do.
_TAIL = 0.99
# Thresholds are simulated for so many sizes of window between one size and its double, and for the next smaller of these: they fall with the size.
_STEPS = 4


@dataclass(eq=False)
class Alarms:
    """Compares windows with the fit documents.

    profile (DriftProfile): Of these. level (float): Probability of an alarm in a window of texts like them. seed (int): Of the draws.
    """

    profile: DriftProfile
    level: float
    seed: int = 0
    _thresholds: dict[int, dict[str, float]] = field(default_factory=dict)

    def compare(self, counts: Counts) -> Drift:
        """One window, or several added up; with tokens.

        RETURNS (Drift): DIFFERENT is an alarm; TOO_FEW means that none would be given, unless the difference were many times one that matters;
            else QUIET, which is no proof that texts are alike: that of `DriftProfile.compare` asks for more. Where documents are few and long, their stretches stand for them, as in `DriftProfile.compare`.
        """
        profile = self.profile
        cut = few_and_long(counts.scored, counts.tokens, profile.usual)
        thresholds = self.thresholds(profile.worth(counts.stretches if cut else counts.scored, counts.tokens))
        found = differences(counts.tables, totals(profile.held, np.ones((1, len(profile.scores)))))
        checks = tuple(
            Check(name, float(value[0]), self.limits[name], thresholds[name])
            for name, value in found.items()
            if not np.isnan(value[0])
        )
        stretch = profile.usual if cut else profile.stretch
        if any(check.differs for check in checks):
            return Drift(DIFFERENT, checks, stretch)
        return Drift(TOO_FEW if all(check.chance > BLIND * check.limit for check in checks) else QUIET, checks, stretch)

    @cached_property
    def limits(self) -> dict[str, float]:
        """The least differences that matter, see `DriftProfile.limits`."""
        return self.profile.limits(self.seed)

    def thresholds(self, worth: int) -> dict[str, float]:
        """Up to where differences are chance, by the name of the check; they share the level.

        worth (int): Documents of the window, as many as it says as much as.
        """
        size = int(2 ** (np.floor(np.log2(worth) * _STEPS) / _STEPS)) if worth > 2 * _STEPS else worth
        if size not in self._thresholds:
            self._thresholds[size] = self._simulated(size)
        return self._thresholds[size]

    def _simulated(self, size: int) -> dict[str, float]:
        held, n = self.profile.held, len(self.profile.scores)
        rng, even = np.random.default_rng(self.seed), np.full(n, 1 / n)
        fits = totals(held, rng.multinomial(n, even, size=_FITS))
        parts = [
            totals(held, rng.multinomial(size, even, size=_AT_A_TIME).astype(float)) for _ in range(_WINDOWS // _AT_A_TIME)
        ]
        windows = {name: np.concatenate([part[name] for part in parts]) for name in held}
        found = [differences(windows, {name: table[i : i + 1] for name, table in fits.items()}) for i in range(_FITS)]
        level = self.level / len(found[0])
        return {
            name: float(np.quantile([beyond(np.nan_to_num(one[name], nan=1.0), level) for one in found], _CONFIDENCE))
            for name in found[0]
        }


def beyond(values: Floats, level: float) -> float:
    """What a value passes with this probability: the quantile, or for a small level the exponential tail above a lower one."""
    tail = 1 - _TAIL
    if level >= tail:
        return float(np.quantile(values, 1 - level))
    start = float(np.quantile(values, _TAIL))
    above = values[values > start]
    return start + float((above - start).mean() if len(above) else 0.0) * float(np.log(tail / level))
