"""Windows in their order -> what accuracy to expect in each, and which give an alarm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ..expect.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW, Drift
from ..expect.estimates import EntityEstimates, Estimate, expected_accuracy, expected_entities
from ..expect.record import FitRecord
from .alarms import QUIET, Alarms
from .window import Counts

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
