"""What the quality benchmark says of the methods on a data set: figures, and paired differences by document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spacy_calib.errors import calib_error
from spacy_calib.metrics import gmce, log_losses, smce, squared_losses
from spacy_calib.metrics.by_document import ROUNDING_NOISE, ResampledMean, check_coverage, resample_means
from spacy_calib.metrics.calibration_errors import mean_of
from spacy_calib.types import Floats, Groups, Ints, Pairs, as_finite, as_probabilities


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


def upper_bound(mean: ResampledMean, coverage: float = 0.95) -> float | None:
    """One-sided bound: the true mean is at most this; None with one document.

    RAISES C001: coverage not in (0, 1), or too near 1 for so few resamples.
    """
    rank = mean.rank(1 - check_coverage(coverage))
    return None if mean.documents < 2 else float(np.sort(mean.values)[-rank])


def p_value_of(mean: ResampledMean, margin: float = 0.0) -> float:
    """p value of "the true mean is `margin` or more": at most a exactly where upper_bound(mean, 1 - a) < margin; 1 with one document."""
    n_above = np.count_nonzero(mean.values >= margin)
    return 1.0 if mean.documents < 2 else (1 + n_above) / (1 + len(mean.values))


def holm(p_values: ArrayLike) -> Floats:
    """Adjusted p values (Holm 1979): rejecting those at most a keeps the chance of any false rejection at most a.

    p_values: m numbers in [0, 1], of tests that may depend on one another.
    RETURNS (Floats): Shape (m,), in the same order.
    RAISES C001: values out of range.
    """
    values = as_probabilities("p_values", p_values)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return adjusted


def holm_upper_bounds(
    differences: Sequence[ResampledMean], margins: ArrayLike | None = None, coverage: float = 0.95
) -> list[HolmBound]:
    """Simultaneous one-sided upper bounds of m differences that agree with Holm's tests of "difference k is margin k or more".

    With the chance `coverage` or more every true difference is at most its bound (Strassburger & Bretz 2008; Guilbaud 2008). Where Holm's
    procedure rejects, the bound is at most the margin; where it does not, it is not below it. While any difference is retained, rejected
    ones say no more than their margin, and the retained r are bounded at 1 - (1 - coverage) / r; once all are rejected each has the lower
    of its margin and its bound at 1 - (1 - coverage) / m.

    differences (Sequence[ResampledMean]): Of `resample_means`, of one data set or several. n_samples should be 20 m / (1 - coverage).
    margins: What each should stay under (1 % of the raw loss, say), shape (m,); None for 0.
    RAISES C001: margins not finite, resamples too few for m bounds. C002: lengths differ.
    """
    n = len(differences)
    limits = np.zeros(n) if margins is None else as_finite("margins", margins)
    if len(limits) != n:
        raise calib_error("C002", what="Holm's procedure", first="difference", second="margin", n_first=n, n_second=len(limits))
    share = 1 - check_coverage(coverage)
    if not n:
        return []
    for test in differences:
        test.rank(share / n)
    p_values = [p_value_of(test, float(margin)) for test, margin in zip(differences, limits, strict=True)]
    adjusted = holm(p_values)
    rejected = adjusted <= share + ROUNDING_NOISE
    n_left = int(np.count_nonzero(~rejected))
    bounds = []
    for k, (test, margin) in enumerate(zip(differences, limits.tolist(), strict=True)):
        bonferroni = upper_bound(test, 1 - share / n)
        if not rejected[k]:
            upper = upper_bound(test, 1 - share / n_left)
        else:
            upper = margin if n_left or bonferroni is None else min(margin, bonferroni)
        bounds.append(HolmBound(test.estimate, margin, p_values[k], float(adjusted[k]), bool(rejected[k]), upper, bonferroni))
    return bounds


# Margin of "never worse": this share of the raw loss.
MARGIN = 0.01
COVERAGE = 0.95
LOSSES = {"log_loss": log_losses, "brier": squared_losses}


@dataclass(frozen=True)
class Figures:
    """Of a method on a data set. log_loss, brier, smce, mean_gmce (float): as in docs/how-it-works.md, judged by five tag frequency groups."""

    log_loss: float
    brier: float
    smce: float
    mean_gmce: float


@dataclass(frozen=True)
class Never:
    """Whether auto is worse than a fixed method, by one loss.

    rival (str): The fixed method that is hardest to rule out. difference (float): auto - rival. upper (float): Holm's simultaneous bound.
    margin (float): What all bounds should stay under. best (str), best_difference (float): The rival of lowest loss. rivals (int): How many.
    held (bool): All bounds are at most the margin.
    """

    rival: str
    difference: float
    upper: float | None
    margin: float
    best: str
    best_difference: float
    rivals: int
    held: bool


def figures(pairs: Pairs, scores: Floats, groups: Groups) -> Figures:
    return Figures(
        float(log_losses(scores, pairs.hits).mean()),
        float(squared_losses(scores, pairs.hits).mean()),
        float(smce(pairs, scores) or 0.0),
        float(mean_of(gmce(pairs, groups, scores)) or 0.0),
    )


def never_worse(pairs: Pairs, documents: Ints, auto: Floats, rivals: Mapping[str, Floats], loss: str, n_samples: int) -> Never:
    """Holm's bounds of auto - rival over all fixed methods of ours and of the peers."""
    loss_of = LOSSES[loss]
    ours = loss_of(auto, pairs.hits)
    margin = MARGIN * float(loss_of(pairs.scores, pairs.hits).mean())
    names = list(rivals)
    differences = resample_means([ours - loss_of(rivals[name], pairs.hits) for name in names], documents, n_samples)
    bounds = holm_upper_bounds(differences, np.full(len(names), margin), COVERAGE)
    hardest = max(range(len(names)), key=lambda k: (bounds[k].p_value, differences[k].estimate))
    best = max(range(len(names)), key=lambda k: differences[k].estimate)
    return Never(
        names[hardest],
        differences[hardest].estimate,
        bounds[hardest].upper,
        margin,
        names[best],
        differences[best].estimate,
        len(names),
        all(bound.rejected for bound in bounds),
    )


def against(
    pairs: Pairs, documents: Ints, auto: Floats, rivals: Mapping[str, Floats], loss: str, n_samples: int
) -> dict[str, dict[str, Any]]:
    """The paired difference auto - rival with its two-sided interval, for each rival."""
    loss_of = LOSSES[loss]
    ours = loss_of(auto, pairs.hits)
    means = resample_means([ours - loss_of(scores, pairs.hits) for scores in rivals.values()], documents, n_samples)
    return {name: asdict(test.interval(COVERAGE)) for name, test in zip(rivals, means, strict=True)}
