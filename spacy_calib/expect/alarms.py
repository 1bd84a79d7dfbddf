"""Alarms at a stated rate, from simulated windows of the fit documents themselves.

A window is compared with the fit documents as in `expect.drift`. Each difference has a threshold such that, while texts
stay as they were at the fit, at most one window in so many gives an alarm. To find it, windows of as many documents are
drawn from the drift profile, and so are fit data to compare them with, since the fit data is a sample too and all
windows are compared with one of these. The threshold holds the rate for nine of ten such fit data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..types import Floats
from .drift import BLIND, DIFFERENT, OTHER_WEIGHTS, TOO_FEW, Drift, DriftProfile, differences, few_and_long, totals
from .estimates import EntityEstimates, Estimate, expected_accuracy, expected_entities
from .record import FitRecord
from .windows import Counts

# The verdict on a window that gives no alarm.
QUIET = "no alarm"
# How many windows and fit data are drawn, how many windows at once, and for which share of fit data the rate has to
# hold.
_WINDOWS, _FITS, _AT_A_TIME, _CONFIDENCE = 5000, 40, 1000, 0.9
# Differences above this quantile are taken to fall off exponentially, which is slower than means do.
_TAIL = 0.99
# Thresholds fall with the size of a window: they are simulated for so many sizes per doubling; the next smaller one
# counts.
_STEPS = 4


@dataclass(eq=False)
class Alarms:
    """Compares windows with the fit documents.

    profile (DriftProfile): Of these. level (float): Probability of an alarm in a window of texts like them. seed (int).
    """

    profile: DriftProfile
    level: float
    seed: int = 0
    _thresholds: dict[int, dict[str, float]] = field(default_factory=dict)

    def compare(self, counts: Counts) -> Drift:
        """Compare one window with tokens, or several added up.

        RETURNS (Drift): DIFFERENT is an alarm. TOO_FEW: only a difference many times the least that matters gives one.
            QUIET: no alarm, but no proof of likeness. Where documents are few and long, stretches stand for them.
        """
        profile = self.profile
        cut = few_and_long(counts.scored, counts.tokens, profile.usual)
        thresholds = self.thresholds(profile.worth(counts.stretches if cut else counts.scored, counts.tokens))
        checks = profile.checks(counts.tables, self.limits, thresholds)
        blind = all(check.chance > BLIND * check.limit for check in checks)
        verdict = DIFFERENT if any(check.differs for check in checks) else TOO_FEW if blind else QUIET
        return Drift(verdict, checks, profile.usual if cut else profile.stretch)

    @cached_property
    def limits(self) -> dict[str, float]:
        """The least differences that matter, see `DriftProfile.limits`."""
        return self.profile.limits(self.seed)

    def thresholds(self, worth: int) -> dict[str, float]:
        """Up to which value each difference is chance; the checks share the level. worth: From `DriftProfile.worth`."""
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
    """The value passed with this probability: a quantile, or for a small level an exponential tail above one."""
    tail = 1 - _TAIL
    if level >= tail:
        return float(np.quantile(values, 1 - level))
    start = float(np.quantile(values, _TAIL))
    above = values[values > start]
    return start + float((above - start).mean() if len(above) else 0.0) * float(np.log(tail / level))


# Verdicts on a window without documents, without scores, and on one still being filled; others stand above and in
# `drift`.
EMPTY, NO_SCORES, OPEN = "no texts", "no scores", "not full yet"
# Verdict on a window that gives an alarm only together with those before it.
SLOW = "slow change"
VERDICTS = (QUIET, DIFFERENT, SLOW, TOO_FEW, EMPTY, NO_SCORES, OPEN, OTHER_WEIGHTS)


@dataclass(frozen=True)
class Together:
    """Windows compared as one. windows (int): How many, with those before. drift (Drift): Comparison of their sum."""

    windows: int
    drift: Drift


@dataclass(frozen=True)
class Judgement:
    """What is said of one window.

    verdict (str): One of VERDICTS. accuracy (Estimate | None), entities (EntityEstimates | None): Expected ones, if
        there are scores. drift (Drift | None): Comparison with the fit data. together (Together | None): The windows,
        this one the last, that gave an alarm as one.
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
    """Gives each window of one pipe its verdict.

    record (FitRecord): Of its fit. every (float): At most one false alarm in so many windows of texts like the fit's.
    confidence (float): Of the intervals. exact (bool): Whether an entity is right only if it is exactly one of the
        gold's; else recall and F are not given. other_weights (bool): Whether the component was trained since the fit.

    Half of the rate is for single windows, half for sums of windows without an alarm: pairs, fours, eights and so on.
    There are half as many pairs as windows, half as many fours as pairs: so all sums have one level.
    """

    record: FitRecord
    every: float = 1000.0
    confidence: float = 0.95
    exact: bool = True
    other_weights: bool = False

    @cached_property
    def alarms(self) -> Alarms:
        """Compares windows, at half of the rate."""
        return Alarms(self.record.profile, 0.5 / self.every)

    def judge(self, windows: Iterable[tuple[Counts, bool]]) -> Iterator[Judgement]:
        """The verdicts. windows: In order, each with whether it is still being filled, and so gets none on drift."""
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
        """Add a window to the sums, as 1 to a binary number. RETURNS (Together | None): The sum that differs."""
        size = 1
        while pending and pending[-1][0] == size:
            size, counts = 2 * size, pending.pop()[1] + counts
            drift = self.alarms.compare(counts)
            if drift.verdict == DIFFERENT:
                pending.clear()
                return Together(size, drift)
        pending.append((size, counts))
        return None
