"""Alarms at a stated rate: how far windows of the fit documents themselves stray from the fit data, simulated.

A window is compared with the fit documents as `expect.drift` does. Here the threshold of each difference is set so that, while texts stay as
they were at the fit, one window in so many gives an alarm at most. Windows of as many documents are drawn from the documents that the drift
profile keeps, and compared with a fit data that is drawn likewise: what was fitted on is a sample, too, and all windows are compared with
that one. The threshold is one that holds the rate for nine of ten such fit data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..types import Floats
from .drift import BLIND, DIFFERENT, OTHER_WEIGHTS, TOO_FEW, Check, Drift, DriftProfile, differences, few_and_long, totals
from .estimates import EntityEstimates, Estimate, expected_accuracy, expected_entities
from .record import FitRecord
from .windows import Counts

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


# The verdict on a window without documents, without scores, and on one that is still filled; others are those of `expect.drift` and `alarms`.
EMPTY, NO_SCORES, OPEN = "no texts", "no scores", "not full yet"
# That of a window which gives no alarm by itself, but together with those before it.
SLOW = "slow change"
VERDICTS = (QUIET, DIFFERENT, SLOW, TOO_FEW, EMPTY, NO_SCORES, OPEN, OTHER_WEIGHTS)


@dataclass(frozen=True)
class Together:
    """Windows that were compared as one. windows (int): How many, this one and those before it. drift (Drift): By their sums."""

    windows: int
    drift: Drift


@dataclass(frozen=True)
class Judgement:
    """Of one window.

    verdict (str): One of VERDICTS. accuracy (Estimate | None), entities (EntityEstimates | None): To be expected; None without scores.
    drift (Drift | None): Its comparison with the fit data; None where it was not judged. together (Together | None): The block of windows
    ending here that gave an alarm.
    """

    verdict: str
    accuracy: Estimate | None = None
    entities: EntityEstimates | None = None
    drift: Drift | None = None
    together: Together | None = None

    @property
    def alarm(self) -> bool:
        return self.verdict in (DIFFERENT, SLOW)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: "verdict", "alarm", "expected", "low", "high", "entities", "checks" and "together"."""
        drift = self.drift if self.together is None else self.together.drift
        accuracy = (None,) * 3 if self.accuracy is None else self.accuracy
        return {
            "verdict": self.verdict,
            "alarm": self.alarm,
            **dict(zip(Estimate._fields, accuracy, strict=True)),
            "entities": None if self.entities is None else _plain(self.entities),
            "together": None if self.together is None else self.together.windows,
            "stretch": 0 if drift is None else drift.stretch,
            "checks": [] if drift is None else [{**asdict(one), "differs": one.differs} for one in drift.checks],
        }


def _plain(entities: EntityEstimates) -> dict[str, Any]:
    shares = {name: getattr(entities, name) for name in ("precision", "recall", "f")}
    return {
        **{name: getattr(entities, name) for name in ("predicted", "right", "gold")},
        **{name: None if share is None else share._asdict() for name, share in shares.items()},
    }


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges the windows of one pipe.

    record (FitRecord): Of its fit. every (float): One false alarm in so many windows at most, as long as texts are like those of the fit.
    confidence (float): Of the intervals. exact (bool): Whether an entity counts as right where it is one of the gold's; recall and F are
    of such ones alone. other_weights (bool): Whether the component was trained since the fit, so that nothing holds.

    Half of the rate is for the windows by themselves. Windows without an alarm are added up in pairs, fours, eights and so on, each pair
    compared once: there are half as many pairs as windows, and half as many fours as pairs, so that each of these comparisons may be at the
    same level, and all together use the other half. After an alarm they begin anew.
    """

    record: FitRecord
    every: float = 1000.0
    confidence: float = 0.95
    exact: bool = True
    other_weights: bool = False

    @cached_property
    def alarms(self) -> Alarms:
        """What compares windows, at half of the rate."""
        return Alarms(self.record.profile, 0.5 / self.every)

    def judge(self, windows: Iterable[tuple[Counts, bool]]) -> Iterator[Judgement]:
        """windows: In their order, each with whether it is still filled, which leaves it without a verdict."""
        pending: list[tuple[int, Counts]] = []
        for counts, is_open in windows:
            judged = self._alone(counts, is_open)
            together = None
            if judged.drift is not None and judged.verdict != DIFFERENT:
                together = self._add(pending, counts)
            yield judged if together is None else Judgement(SLOW, judged.accuracy, judged.entities, judged.drift, together)

    def _alone(self, counts: Counts, is_open: bool) -> Judgement:
        if not counts.tokens:
            return Judgement(OPEN if is_open else NO_SCORES if counts.documents else EMPTY)
        accuracy = expected_accuracy(self.record.tokens, counts.sums, self.confidence, self.record.between)
        entities = None
        if self.record.entities is not None:
            entities = expected_entities(self.record.entities, counts.entity_sums, self.confidence)
            if not self.exact:  # one gold entity may make several right
                entities = EntityEstimates(entities.predicted, entities.right, entities.gold, entities.precision, None, None)
        if self.other_weights or is_open:
            return Judgement(OTHER_WEIGHTS if self.other_weights else OPEN, accuracy, entities)
        drift = self.alarms.compare(counts)
        return Judgement(drift.verdict, accuracy, entities, drift)

    def _add(self, pending: list[tuple[int, Counts]], counts: Counts) -> Together | None:
        """Add a window to the blocks before it, as one adds 1 to a binary number. RETURNS (Together | None): The block that differs."""
        size = 1
        while pending and pending[-1][0] == size:
            size, counts = 2 * size, pending.pop()[1] + counts
            drift = self.alarms.compare(counts)
            if drift.verdict == DIFFERENT:
                pending.clear()
                return Together(size, drift)
        pending.append((size, counts))
        return None
