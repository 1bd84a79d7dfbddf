"""Offsets of tags and groups in log-odds, shrunk towards 0 by an L2 penalty (partial pooling)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schema import Serializable, floats, number, saved_field
from ..types import Floats, Ints
from .solvers import FARTHEST_MARGIN, log_odds, sigmoid, softplus

# The greatest offset: without a penalty, that of a tag whose pairs all hit would be infinite.
_FARTHEST = 15.0
# Newton's method takes at most so many steps, and ends with one shorter than the tolerance.
_STEPS = 60
_TOLERANCE = 1e-9
# Candidate strengths, in equal steps of the logarithm, the strongest first.
_STRENGTHS = np.exp2(np.arange(11.0, -7.0, -1.0))
# Strengths that `average_offsets` averages over, the strongest first; no offsets at all have half of the prior probability.
_FEW_STRENGTHS = (256.0, 64.0, 16.0, 4.0, 1.0)
# The prior probability that a unit is an outlier, and the strength for its offset: a standard deviation of 4.
_OUTLIER_SHARE, _OUTLIER_STRENGTH = 1 / 20, 1 / 16
# The search ends after so many strengths in a row without gain, and finds offsets to this tolerance.
_PATIENCE = 3
_SEARCH_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Offsets(Serializable):
    """One offset for each unit, where a unit is a tag or a group of tags.

    values (Floats): What is added to the log-odds of each (token, tag) pair of a unit, (n_units,); 0 for a unit without pairs.
    strength (float): Of the L2 penalty, which is strength / 2 times the squared offset. It is the inverse prior variance.
    """

    values: Floats = saved_field(floats())
    strength: float = saved_field(number(0.0, np.inf))


def fit_offsets(margins: Floats, hits: NDArray[np.bool_], units: Ints, n_units: int) -> Offsets:
    """Fit one offset per unit (tag or group) by minimum log loss plus an L2 penalty, by Newton's method for all units at once.

    The strength of the penalty has the maximum evidence among powers of 2 from 2^-6 to 2^11 and infinity (all offsets are 0).
    The evidence integrates over the offsets, by Laplace's approximation for each unit (empirical Bayes).
    margins (Floats): Log-odds of n pairs. hits, units: Whether each pair hits, and its unit in [0, n_units), -1 for none.
    """
    return Offsets(*_OffsetProblem(margins, hits, units, n_units).choose_strength())


def average_offsets(
    margins: Floats,
    hits: NDArray[np.bool_],
    units: Ints,
    n_units: int,
    weights: Floats | None = None,
    outlier_weights: Floats | None = None,
) -> Offsets:
    """Average offsets that are fitted with several strengths, and offsets of 0, each weighted by its evidence.

    This is for few pairs, which cannot determine one strength. The strength of the result is the one of maximum evidence.
    margins (Floats): Log-odds of n pairs. hits, units: Whether each pair hits, and its unit in [0, n_units), -1 for none.
    weights (Floats | None): Weight of each pair; None for 1. outlier_weights (Floats | None): None allows no outliers. Else a
        unit may be an outlier, for instance a tag that other annotators use differently, with a prior probability of 1 / 20.
        The offset of an outlier is fitted with these weights, and hardly shrunk.
    """
    outliers = None if outlier_weights is None else _OffsetProblem(margins, hits, units, n_units, outlier_weights)
    return Offsets(*_OffsetProblem(margins, hits, units, n_units, weights).average_over_strengths(outliers))


class _OffsetProblem:
    """Fits one offset per unit (tag or group of tags) to pairs, and computes the evidence for the offsets of each unit.

    margins (Floats): Log-odds of n pairs. hits, units: Whether each pair hits, and its unit in [0, n_units); -1 leaves it out.
    n_units (int): Number of units. weights (Floats | None): Weight of each pair; None for 1.
    """

    def __init__(self, margins: Floats, hits: NDArray[np.bool_], units: Ints, n_units: int, weights: Floats | None = None):
        """Sort the pairs by unit, so that each sum over the pairs of a unit is a sum of a slice."""
        index = np.flatnonzero(units >= 0)
        margins, units, hits = margins[index], units[index], hits[index]
        weights = np.ones(len(index)) if weights is None else weights[index]
        sort_keys = units.astype(np.int16) if n_units < 1 << 15 else units  # small integers sort several times as fast
        order = np.argsort(sort_keys, kind="stable")
        self.margins, self.weights, self.n_units = margins[order], weights[order], n_units
        counts = np.bincount(units, minlength=n_units)
        self.present = np.flatnonzero(counts)  # the units that have pairs
        self.counts = counts[self.present]  # number of pairs of each
        self.starts = np.cumsum(self.counts) - self.counts  # first pair of each
        hit_weights = self.weights * hits[order]
        # Per unit: sum of the weights of hits, sum of their weights times log-odds, and whether the unit has any weight.
        self.hit_mass, self.hit_margin = self._sum(hit_weights), self._sum(hit_weights * self.margins)
        self.has_pairs = self._sum(self.weights) > 0

    def _sum(self, values: Floats) -> Floats:
        """Return the sum over each unit of these values of the sorted pairs, shape (n_units,)."""
        sums = np.zeros(self.n_units)
        sums[self.present] = np.add.reduceat(values, self.starts)
        return sums

    def _shift_margins(self, offsets: Floats) -> Floats:
        """Return the log-odds of the sorted pairs, each plus the offset of its unit."""
        return self.margins + np.repeat(offsets[self.present], self.counts)

    def _loss(self, shifted_margins: Floats, offsets: Floats) -> Floats:
        """Return the weighted log loss of each unit, (n_units,): the sum over its pairs of softplus(x) - hit * x.

        shifted_margins (Floats): x, the log-odds of each sorted pair plus the offset of its unit. offsets (Floats): The offset
            of each unit, (n_units,). The sum of hit * x is that of hit * log-odds plus that of hit * offset.
        """
        return self._sum(self.weights * softplus(shifted_margins)) - self.hit_margin - self.hit_mass * offsets

    def evidence_without(self) -> Floats:
        """Return the log likelihood of each unit's pairs without an offset (infinite strength), shape (n_units,)."""
        return -self._loss(self.margins, np.zeros(self.n_units))

    def choose_strength(self) -> tuple[Floats, float]:
        """Return (offsets, strength) for the strength of maximum evidence, which is searched from strong to weak."""
        offsets = np.zeros(self.n_units)
        best_strength, highest_evidence, n_without_gain = np.inf, self.evidence_without().sum(), 0
        for strength in _STRENGTHS.tolist():
            offsets, unit_evidence = self.solve(strength, offsets, _SEARCH_TOLERANCE)
            evidence = unit_evidence.sum()
            n_without_gain += 1
            if evidence > highest_evidence:
                best_strength, highest_evidence, n_without_gain = strength, evidence, 0
            if n_without_gain >= _PATIENCE and np.isfinite(best_strength):  # not before the first gain
                break
        return self.solve(best_strength)[0], best_strength  # solved again, to the final tolerance

    def average_over_strengths(self, outliers: _OffsetProblem | None) -> tuple[Floats, float]:
        """Return (mean offsets over strengths, strength of maximum evidence). outliers: The same pairs with outlier weights."""
        solutions = [(np.zeros(self.n_units), self.evidence_without())]
        for strength in _FEW_STRENGTHS:
            solutions.append(self.solve(strength, solutions[-1][0]))
        if outliers is not None:
            solutions = self._mix_with_outliers(solutions, outliers)
        log_evidence = np.array([evidence.sum() for _, evidence in solutions])
        log_evidence[0] += np.log(len(_FEW_STRENGTHS))  # no offsets: half of the prior probability
        posterior = np.exp(log_evidence - log_evidence.max())  # of each strength, relative to the highest
        mean = posterior @ np.array([offsets for offsets, _ in solutions]) / posterior.sum()
        return mean, (np.inf, *_FEW_STRENGTHS)[int(posterior.argmax())]  # the strengths of the solutions, in their order

    def _mix_with_outliers(
        self, solutions: list[tuple[Floats, Floats]], outliers: _OffsetProblem
    ) -> list[tuple[Floats, Floats]]:
        """Average the offsets of each solution (offsets, log evidence) with those of outliers, by P(the unit is an outlier)."""
        outlier_offsets, evidence = outliers.solve(_OUTLIER_STRENGTH)
        # The weights of `outliers` count many confident errors in one document as one, so its evidence is that of other data.
        # Only the gain by its offsets (evidence - outliers_without) is comparable; it is added to the evidence without offsets.
        evidence_without, outliers_without = self.evidence_without(), outliers.evidence_without()
        outlier_evidence = np.log(_OUTLIER_SHARE) + evidence_without + evidence - outliers_without
        mixture = []
        for offsets, usual_evidence in solutions:
            total = np.logaddexp(np.log1p(-_OUTLIER_SHARE) + usual_evidence, outlier_evidence)  # of both cases
            p_outlier = np.exp(outlier_evidence - total)  # of each unit, given its pairs
            mixture.append((offsets + p_outlier * (outlier_offsets - offsets), total))
        return mixture

    def solve(self, strength: float, start: Floats | None = None, tolerance: float = _TOLERANCE) -> tuple[Floats, Floats]:
        """Return the offset and the log evidence of each unit, both (n_units,), for an L2 penalty of this strength.

        An infinite strength gives offsets of 0. start (Floats | None): Initial offsets. tolerance (float): The search ends when
        all steps are smaller. The evidence integrates over the offset by Laplace's approximation; 0 for a unit without pairs.
        """
        offsets = np.zeros(self.n_units) if start is None else start.copy()
        if np.isinf(strength):
            return np.zeros(self.n_units), self.evidence_without()
        for _ in range(_STEPS):
            probabilities = sigmoid(self._shift_margins(offsets))
            mass = self.weights * probabilities
            gradient = self._sum(mass) - self.hit_mass + strength * offsets
            curvature = self._sum(mass - mass * probabilities) + strength
            # Steps of at most 1: where the sigmoid is flat, Newton's method would step too far.
            step = np.clip(gradient / np.maximum(curvature, 1e-12), -1.0, 1.0)
            offsets = np.clip(np.where(self.has_pairs, offsets - step, 0.0), -_FARTHEST, _FARTHEST)
            if np.abs(step[self.has_pairs]).max(initial=0.0) < tolerance:
                break
        shifted_margins = self._shift_margins(offsets)
        probabilities = sigmoid(shifted_margins)
        # Laplace's approximation: a Gaussian around each offset, whose variance is 1 / curvature.
        curvature = self._sum(self.weights * probabilities * (1 - probabilities)) + strength
        penalty = 0.5 * strength * offsets**2
        log_ratio = 0.5 * np.log(np.maximum(strength, 1e-300) / np.maximum(curvature, 1e-300))
        return offsets, np.where(self.has_pairs, log_ratio - self._loss(shifted_margins, offsets) - penalty, 0.0)


@dataclass(frozen=True, eq=False)
class TagOffsets(Serializable):
    """Fitted offsets in log-odds that are added to mapped scores: one for the group of the tag, and one for the tag.

    L2 penalties shrink offsets towards 0, so that tags with few pairs stay close to their group, and groups with few pairs
    change little. A tag without pairs has an offset of 0. tags, groups (Offsets): The offset of each tag, and of each group.
    """

    tags: Offsets = saved_field(Offsets.read)
    groups: Offsets = saved_field(Offsets.read)

    @classmethod
    def fit(cls, scores: Floats, hits: NDArray[np.bool_], tags: Ints, n_tags: int, groups: Ints, n_groups: int) -> TagOffsets:
        """Fit offsets of groups, then of tags, to n pairs.

        scores, hits, tags, groups: Score after the maps, whether it hits, tag and group of each pair, (n,). n_tags, n_groups
            (int): Tags and groups below these numbers get an offset. Higher tags, and the group -1 (none), get no offset.
        """
        margins = log_odds(scores)
        group_offsets = fit_offsets(margins, hits, groups, n_groups)
        margins = margins + look_up_offsets(group_offsets.values, groups)
        return cls(fit_offsets(margins, hits, np.where(tags < n_tags, tags, -1), n_tags), group_offsets)

    def predict(self, scores: Floats, tags: Ints, groups: Ints) -> Floats:
        """Return scores after the offsets of their tag and group; unchanged where these add to 0."""
        offsets = self.sum_offsets(tags, groups)
        index = np.flatnonzero(offsets != 0)
        adjusted_scores = scores.copy()
        adjusted_scores[index] = sigmoid(log_odds(scores[index]) + offsets[index])
        return adjusted_scores

    def adjust_margins(self, margins: Floats, tags: Ints, groups: Ints) -> Floats:
        """Return margins (log-odds) plus the offsets of tag and group. As in `predict`, margins with an offset are clipped."""
        offsets = self.sum_offsets(tags, groups)
        return np.where(offsets == 0, margins, np.clip(margins, -FARTHEST_MARGIN, FARTHEST_MARGIN) + offsets)

    def sum_offsets(self, tags: Ints, groups: Ints) -> Floats:
        """Return the offset of each pair's tag plus that of its group, shape (n,)."""
        return look_up_offsets(self.groups.values, groups) + look_up_offsets(self.tags.values, tags)

    def describe(self) -> dict[str, float | None]:
        """Return the penalties "strength" (of tags) and "group_strength"; None for infinity (all offsets are 0)."""
        strengths = {"strength": self.tags.strength, "group_strength": self.groups.strength}
        return {name: None if np.isinf(value) else value for name, value in strengths.items()}

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of tags and of groups that the offsets were fitted to."""
        return len(self.tags.values), len(self.groups.values)


def look_up_offsets(values: Floats, units: Ints) -> Floats:
    """Return values[unit] for each of n units, shape (n,); 0 for units below 0 or past the end."""
    padded_values = np.append(values, 0.0)
    return padded_values[np.where((units >= 0) & (units < len(values)), units, len(values))]
