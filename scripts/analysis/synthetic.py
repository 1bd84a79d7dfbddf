"""Made-up predictions whose true calibration error is known: scores from a beta distribution, hits from a map of the score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_calib.errors import calib_error
from spacy_calib.pairs.bins import check_count
from spacy_calib.types import Floats


class MapKind(NamedTuple):
    """apply: (scores, strength) -> true probabilities. low, high (float): Range of the strength. kinks: strength -> where it bends."""

    apply: Callable[[Any, float], Any]
    low: float
    high: float
    kinks: Callable[[float], list[float]] = lambda strength: []


def _logistic(scores: Any, strength: float) -> Any:
    # q e^s / (q e^s + 1 - q): the logistic function of logit(q) + s, without infinities at 0 and 1
    lifted = scores * np.exp(strength)
    return lifted / (lifted + 1.0 - scores)


def _step(scores: Any, strength: float) -> Any:
    return np.clip(np.where(np.asarray(scores) <= 0.5, scores - strength, scores + strength), 0.0, 1.0)


# P(hit | score): the score itself (strength is not looked at); score ** strength; the logistic of logit(score) + strength; and the
# step of the thesis, section 4.3.1: strength less up to 0.5 and strength more above (which misprints min(1, .) as min(0, .)).
MAPS: dict[str, MapKind] = {
    "identity": MapKind(lambda scores, strength: scores, -np.inf, np.inf),
    "power": MapKind(lambda scores, strength: scores**strength, 0.01, 100.0),
    "logistic": MapKind(_logistic, -20.0, 20.0),
    "step": MapKind(_step, 0.0, 0.5, lambda strength: [strength, 0.5, 1.0 - strength]),
}


@dataclass(frozen=True)
class Synthetic:
    """Scores q ~ Beta(a, b), and hits with a probability that is a known map of q (the thesis, section 4.3).

    a, b (float): Above 0; both below 1 pile the scores up at 0 and 1.
    map (str): One of MAPS. strength (float): Of the map.
    RAISES C001: a, b or strength out of range, or an unknown map.
    """

    a: float = 0.3
    b: float = 0.1
    map: str = "identity"
    strength: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            if not (np.isfinite(value) and value > 0):
                raise calib_error("C001", name=name, wanted="a number above 0", given=repr(value))
        if self.map not in MAPS:
            raise calib_error("C001", name="map", wanted=f"one of {', '.join(MAPS)}", given=repr(self.map))
        kind = MAPS[self.map]
        if not kind.low <= self.strength <= kind.high:
            wanted = f"a number from {kind.low:g} to {kind.high:g} for the map {self.map}"
            raise calib_error("C001", name="strength", wanted=wanted, given=repr(self.strength))

    def chance(self, scores: Any) -> Any:
        """P(hit | score) of a score or an array of them."""
        return MAPS[self.map].apply(scores, self.strength)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        """n scores and their hits.

        RAISES C001: n is not a whole number of at least 1.
        """
        scores = rng.beta(self.a, self.b, size=check_count("n", n))
        return scores, rng.random(n) < self.chance(scores)

    def mean(self, function: Callable[[Any], Any]) -> float:
        """The mean of function(q) over q ~ Beta(a, b), by numerical integration.

        The integral runs over the quantiles of q, where the density's poles at 0 and 1 do not matter; it is cut where the map bends.
        """
        from scipy.integrate import quad
        from scipy.special import betainc, betaincinv

        bends = {float(betainc(self.a, self.b, kink)) for kink in MAPS[self.map].kinks(self.strength)}
        ends = [0.0, *sorted(bend for bend in bends if 0 < bend < 1), 1.0]

        def at_quantile(share: float) -> float:
            return float(function(betaincinv(self.a, self.b, share)))

        parts = zip(ends[:-1], ends[1:], strict=True)
        return sum(quad(at_quantile, low, high, limit=200, epsabs=1e-10)[0] for low, high in parts)

    def error(self) -> float:
        """The true calibration error, sqrt(mean (q - P(hit | q))^2) (Nguyen & O'Connor 2015, definition 1)."""
        return float(np.sqrt(self.mean(lambda score: (score - self.chance(score)) ** 2)))
