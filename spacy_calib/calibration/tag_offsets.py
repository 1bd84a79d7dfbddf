"""A correction of each tag's log-odds, drawn to its group, and of each group's, drawn to all tags (partial pooling)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..schema import Serializable, anything, dict_of, floats, maybe, number, record, saved_field
from ..types import Floats, Ints
from .recalibrators.logistic import FARTHEST_MARGIN, log_odds, sigmoid, softplus

# The greatest offset: without a penalty, that of a tag whose pairs all hit would be infinite.
_FARTHEST = 15.0
# Newton's method takes at most so many steps, and ends with one shorter than the tolerance.
_STEPS = 60
_TOLERANCE = 1e-9
# Strengths of which the data choose, in equal steps of the logarithm, the strongest first.
_STRENGTHS = np.exp2(np.arange(11.0, -7.0, -1.0))
# Strengths that `average_offsets` averages over, the strongest first; half of the belief is in no offsets at all.
_FEW_STRENGTHS = (256.0, 64.0, 16.0, 4.0, 1.0)
# One tag in so many is believed to be far off: its offset has this strength, a standard deviation of 4.
_FAR_SHARE, _FAR_STRENGTH = 1 / 20, 1 / 16
# The search ends after so many strengths in a row without gain, and needs offsets only as exact as this.
_PATIENCE = 3
_ROUGHLY = 1e-3


@dataclass(frozen=True, eq=False)
class Offsets(Serializable):
    """Offsets of some units: tags, or groups of tags.

    values (Floats): Added to the log-odds of a unit's pairs, shape (n_units,); 0 without pairs.
    strength (float): Penalty, strength / 2 times the squared offset: the inverse variance of the offsets.
    """

    values: Floats = saved_field(floats())
    strength: float = saved_field(number(0.0, np.inf))


def fit_offsets(
    margins: Floats,
    hits: NDArray[np.bool_],
    units: Ints,
    n_units: int,
    strength: float | None = None,
) -> Offsets:
    """One offset per unit of least log loss plus penalty, by Newton's method for all units at once.

    Without a strength, the likeliest of 2^-6 to 2^11 is taken, with offsets integrated out (empirical Bayes, by
    Laplace's approximation for each unit).

    margins (Floats): Log-odds of n pairs. hits, units: Of each; units in [0, n_units), -1 for none.
    strength (float | None): 0 fits each unit by itself (up to 15), infinity gives zeros.
    RAISES C001: a negative strength.
    """
    if strength is not None and not strength >= 0:
        raise calib_error("C001", name="strength", wanted="a number of at least 0", given=repr(strength))
    problem = _Problem(margins, hits, units, n_units)
    if strength is not None:
        return Offsets(problem.solve(strength)[0], float(strength))
    if not problem.held.any():
        return Offsets(np.zeros(n_units), np.inf)
    return Offsets(*problem.choose_strength())


def average_offsets(
    margins: Floats,
    hits: NDArray[np.bool_],
    units: Ints,
    n_units: int,
    weights: Floats | None = None,
    wary: Floats | None = None,
) -> Offsets:
    """As `fit_offsets` for few pairs, which do not tell strengths apart: the mean offsets of a few strengths and of
    none, each weighted by how likely it makes the hits. The returned strength is the likeliest.

    weights (Floats | None): Of the pairs.
    wary (Floats | None): If given, a twentieth of the units is believed to be far off (tags that other annotators use
        otherwise), which one Gaussian would hold back. It replaces `weights` of pairs where a unit is asked for that.
    """
    far_offsets = None if wary is None else _Problem(margins, hits, units, n_units, wary)
    return Offsets(*_Problem(margins, hits, units, n_units, weights).average(far_offsets))


class _Problem:
    """The pairs, unit by unit, and sums over each unit's pairs for Newton's method; arguments as of `fit_offsets`."""

    def __init__(self, margins: Floats, hits: NDArray[np.bool_], units: Ints, n_units: int, weights: Floats | None = None):
        own = np.flatnonzero(units >= 0)
        margins, units, hits = margins[own], units[own], hits[own]
        weights = np.ones(len(own)) if weights is None else weights[own]
        small = units.astype(np.int16) if n_units < 1 << 15 else units  # small integers sort several times as fast
        order = np.argsort(small, kind="stable")
        self.margins, self.weights, self.n_units = margins[order], weights[order], n_units
        counts = np.bincount(units, minlength=n_units)
        self.present = np.flatnonzero(counts)
        self.counts = counts[self.present]
        self.starts = np.cumsum(self.counts) - self.counts
        hit = self.weights * hits[order]
        self.hit_mass, self.hit_margin = self._sum(hit), self._sum(hit * self.margins)
        self.held = self._sum(self.weights) > 0

    def _sum(self, values: Floats) -> Floats:
        """Sums over the pairs of each unit, shape (n_units,)."""
        sums = np.zeros(self.n_units)
        if len(values):
            sums[self.present] = np.add.reduceat(values, self.starts)
        return sums

    def _moved(self, offsets: Floats) -> Floats:
        return self.margins + np.repeat(offsets[self.present], self.counts)

    def _loss(self, moved: Floats, offsets: Floats) -> Floats:
        """Summed log loss of each unit."""
        return self._sum(self.weights * softplus(moved)) - self.hit_margin - self.hit_mass * offsets

    def evidence_without(self) -> Floats:
        """Log likelihood of each unit without an offset: infinite strength."""
        return -self._loss(self.margins, np.zeros(self.n_units))

    def choose_strength(self) -> tuple[Floats, float]:
        """(offsets, strength) of the highest evidence."""
        offsets = np.zeros(self.n_units)
        best, highest, since = np.inf, self.evidence_without().sum(), 0
        for strength in _STRENGTHS.tolist():
            offsets, of_each = self.solve(strength, offsets, _ROUGHLY)
            evidence = of_each.sum()
            since += 1
            if evidence > highest:
                best, highest, since = strength, evidence, 0
            if since >= _PATIENCE and np.isfinite(best):
                break
        return self.solve(best)[0], best

    def average(self, wary: _Problem | None) -> tuple[Floats, float]:
        """(mean offsets, strength of the highest evidence). wary (_Problem | None): Tells which units are far off."""
        average = [(np.zeros(self.n_units), self.evidence_without())]
        for strength in _FEW_STRENGTHS:
            average.append(self.solve(strength, average[-1][0]))
        if wary is not None:
            average = self._mixed_with_far(average, wary)
        total = np.array([evidence.sum() for _, evidence in average])
        total[0] += np.log(len(_FEW_STRENGTHS))
        share = np.exp(total - total.max())
        mean = share @ np.array([offsets for offsets, _ in average]) / share.sum()
        return mean, (np.inf, *_FEW_STRENGTHS)[int(share.argmax())]

    def _mixed_with_far(self, mixture: list[tuple[Floats, Floats]], wary: _Problem) -> list[tuple[Floats, Floats]]:
        """Offsets and evidence of some strengths, mixed with units being far off."""
        far, evidence = wary.solve(_FAR_STRENGTH)
        of_far = np.log(_FAR_SHARE) + self.evidence_without() + evidence - wary.evidence_without()
        mixed = []
        for near, of_near in mixture:
            of_both = np.logaddexp(np.log1p(-_FAR_SHARE) + of_near, of_far)
            mixed.append((near + np.exp(of_far - of_both) * (far - near), of_both))
        return mixed

    def solve(self, strength: float, start: Floats | None = None, tolerance: float = _TOLERANCE) -> tuple[Floats, Floats]:
        """(offsets, log evidence of the strength by each unit); the last step is shorter than the tolerance."""
        offsets = np.zeros(self.n_units) if start is None else start.copy()
        if np.isinf(strength):
            return np.zeros(self.n_units), self.evidence_without()
        for _ in range(_STEPS):
            chance = sigmoid(self._moved(offsets))
            mass = self.weights * chance
            gradient = self._sum(mass) - self.hit_mass + strength * offsets
            curvature = self._sum(mass - mass * chance) + strength
            # A step of at most 1 keeps Newton's method from leaping where the sigmoid is flat.
            step = np.clip(gradient / np.maximum(curvature, 1e-12), -1.0, 1.0)
            offsets = np.clip(np.where(self.held, offsets - step, 0.0), -_FARTHEST, _FARTHEST)
            if np.abs(step[self.held]).max(initial=0.0) < tolerance:
                break
        moved = self._moved(offsets)
        chance = sigmoid(moved)
        curvature = self._sum(self.weights * chance * (1 - chance)) + strength
        penalty = 0.5 * strength * offsets**2
        log_ratio = 0.5 * np.log(np.maximum(strength, 1e-300) / np.maximum(curvature, 1e-300))
        return offsets, np.where(self.held, log_ratio - self._loss(moved, offsets) - penalty, 0.0)


_LEARNED = record({"tags": maybe(Offsets.read), "groups": maybe(Offsets.read)})


class TagOffsets:
    """After the map of a group: log-odds + offset of the group + offset of the tag.

    The offset of a tag is shrunk towards 0, and so the tag towards its group; that of a group, too: a tag without pairs
    has exactly its group's map. The registry and the setting call it pooling; elsewhere "pooled" means of all pairs.

    strength (float | None): Penalty on tag offsets; None lets data choose. group_strength (float | None): On groups'.
    tags_, groups_ (Offsets): What was learned.
    RAISES C001: a negative strength.
    """

    registered = "spacy-calib.TagOffsets.v1"

    def __init__(self, strength: float | None = None, group_strength: float | None = None):
        for name, value in (("strength", strength), ("group_strength", group_strength)):
            is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if value is not None and not (is_number and value >= 0):
                raise calib_error("C001", name=name, wanted="a number of at least 0", given=repr(value))
        self.strength = strength
        self.group_strength = group_strength
        self.tags_: Offsets | None = None
        self.groups_: Offsets | None = None

    def clone(self) -> TagOffsets:
        """Tag offsets with the same settings, not fitted."""
        return TagOffsets(self.strength, self.group_strength)

    @classmethod
    def of(cls, groups: Offsets, tags: Offsets) -> TagOffsets:
        """Fitted tag offsets of these values."""
        offsets = cls()
        offsets.groups_, offsets.tags_ = groups, tags
        return offsets

    def fit(
        self,
        scores: Floats,
        hits: NDArray[np.bool_],
        tags: Ints,
        n_tags: int,
        groups: Ints,
        n_groups: int,
    ) -> TagOffsets:
        """Learn the offsets. scores (Floats): What the maps give for n pairs. hits, tags, groups: Of these; -1 for no group."""
        margins = log_odds(scores)
        self.groups_ = fit_offsets(margins, hits, groups, n_groups, strength=self.group_strength)
        margins = margins + offsets_of(self.groups_.values, groups)
        self.tags_ = fit_offsets(margins, hits, np.where(tags < n_tags, tags, -1), n_tags, strength=self.strength)
        return self

    def predict(self, scores: Floats, tags: Ints, groups: Ints) -> Floats:
        """The corrected probabilities; unchanged where neither the tag nor its group has an offset. RAISES C004: not fitted."""
        offsets = self.offsets(tags, groups)
        margins = np.flatnonzero(offsets != 0)
        new_margins = scores.copy()
        new_margins[margins] = sigmoid(log_odds(scores[margins]) + offsets[margins])
        return new_margins

    def move(self, margins: Floats, tags: Ints, groups: Ints) -> Floats:
        """As `predict`, in log-odds, clipped where there is an offset, as in the fit. RAISES C004: not fitted."""
        offsets = self.offsets(tags, groups)
        return np.where(offsets == 0, margins, np.clip(margins, -FARTHEST_MARGIN, FARTHEST_MARGIN) + offsets)

    def offsets(self, tags: Ints, groups: Ints) -> Floats:
        """The sum of the offsets of each pair's tag and group. RAISES C004: not fitted."""
        if self.tags_ is None or self.groups_ is None:
            raise calib_error("C004", what="TagOffsets")
        return offsets_of(self.groups_.values, groups) + offsets_of(self.tags_.values, tags)

    def describe(self) -> dict[str, float | None]:
        """The strengths used; None where the data want no offsets. RAISES C004: not fitted."""
        if self.tags_ is None or self.groups_ is None:
            raise calib_error("C004", what="TagOffsets")
        both = {"strength": self.tags_.strength, "group_strength": self.groups_.strength}
        return {name: None if np.isinf(value) else value for name, value in both.items()}

    def settings(self) -> dict[str, Any]:
        """The constructor arguments, as plain data."""
        return {"strength": self.strength, "group_strength": self.group_strength}

    def state(self) -> dict[str, Any]:
        """Plain data and arrays."""
        learned = {name: one and one.state() for name, one in (("tags", self.tags_), ("groups", self.groups_))}
        return {"@calib_poolings": self.registered, "settings": self.settings(), "learned": learned}

    def load_learned(self, learned: dict[str, Any]) -> TagOffsets:
        """Take over what was learned, from a state. RAISES Misfit: it is not of the form declared."""
        fields = _LEARNED(learned, "learned")
        self.tags_, self.groups_ = fields["tags"], fields["groups"]
        return self

    def sizes(self) -> tuple[int, int] | None:
        """How many (tags, groups) it was fitted to; None before."""
        return None if self.tags_ is None or self.groups_ is None else (len(self.tags_.values), len(self.groups_.values))


def learned_offsets(value: Any, where: str) -> TagOffsets:
    """A form: fitted tag offsets, whatever their settings were."""
    return TagOffsets().load_learned(dict_of(anything)(value, where))


def offsets_of(values: Floats, units: Ints) -> Floats:
    """The value of each unit; 0 for units below 0 or past the end."""
    padded_values = np.append(values, 0.0)
    return padded_values[np.where((units >= 0) & (units < len(values)), units, len(values))]
