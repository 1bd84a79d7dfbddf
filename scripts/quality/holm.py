"""Several differences at once: Holm's adjusted p values, and upper bounds that hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spacy_calib.errors import calib_error
from spacy_calib.metrics.resampling import ROUNDING_NOISE, Resampled, as_finite, check_coverage, rank_of
from spacy_calib.types import Floats, as_probabilities


@dataclass(frozen=True)
class HolmBound:
    """One of several differences after Holm's adjustment.

    estimate (float): The difference. margin (float): What it should stay under. p_value, adjusted (float): Of "it is margin or more".
    rejected (bool): It is under the margin: `adjusted` is at most 1 - coverage. upper (float): Simultaneous bound, at most the margin
        where rejected and above it elsewhere; None with one document.
    bonferroni (float): Simultaneous bound that knows no margin; None with one document.
    """

    estimate: float
    margin: float
    p_value: float
    adjusted: float
    rejected: bool
    upper: float | None
    bonferroni: float | None


def holm(p_values: ArrayLike) -> Floats:
    """Adjusted p values (Holm 1979): rejecting those at most a keeps the chance of any false rejection at most a.

    p_values: m numbers in [0, 1], of tests that may depend on one another.
    RETURNS (Floats): Shape (m,), in the same order.
    RAISES C001: values out of range.
    """
    given = as_probabilities("p_values", p_values)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty(len(given))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return adjusted


def holm_upper_bounds(
    differences: Sequence[Resampled], margins: ArrayLike | None = None, coverage: float = 0.95
) -> list[HolmBound]:
    """Simultaneous one-sided upper bounds of m differences that agree with Holm's tests of "difference k is margin k or more".

    With the chance `coverage` or more every true difference is at most its bound (Strassburger & Bretz 2008; Guilbaud 2008). Where Holm's
    procedure rejects, the bound is at most the margin; where it does not, it is not below it. While any difference is retained, rejected
    ones say no more than their margin, and the retained r are bounded at 1 - (1 - coverage) / r; once all are rejected each has the lower
    of its margin and its bound at 1 - (1 - coverage) / m.

    differences (Sequence[Resampled]): Of `resample_difference`, of one data set or several. n_samples should be 20 m / (1 - coverage).
    margins: What each should stay under (1 % of the raw loss, say), shape (m,); None for 0.
    RAISES C001: margins not finite, resamples too few for m bounds. C002: lengths differ.
    """
    n = len(differences)
    wanted = np.zeros(n) if margins is None else as_finite(margins)
    if len(wanted) != n:
        raise calib_error("C002", what="Holm's procedure", first="difference", second="margin", n_first=n, n_second=len(wanted))
    share = 1 - check_coverage(coverage)
    if not n:
        return []
    for one in differences:
        rank_of(share / n, len(one.distances))
    p_values = [one.p_value(float(margin)) for one, margin in zip(differences, wanted, strict=True)]
    adjusted = holm(p_values)
    rejected = adjusted <= share + ROUNDING_NOISE
    retained = int(np.count_nonzero(~rejected))
    bounds = []
    for k, (one, margin) in enumerate(zip(differences, wanted.tolist(), strict=True)):
        bonferroni = one.upper(1 - share / n)
        if not rejected[k]:
            upper = one.upper(1 - share / retained)
        else:
            upper = margin if retained or bonferroni is None else min(margin, bonferroni)
        bounds.append(HolmBound(one.estimate, margin, p_values[k], float(adjusted[k]), bool(rejected[k]), upper, bonferroni))
    return bounds
