"""What the quality benchmark says of the methods on a data set: figures, paired differences by document, and the acceptance of the issue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spacy_calib.metrics import gmce, log_losses, mean_gmce_floor, noise_floor, smce, squared_losses
from spacy_calib.metrics.calibration_error import mean_of
from spacy_calib.metrics.resampling import resample_means
from spacy_calib.types import Floats, Groups, Ints, Pairs

from .holm import holm_upper_bounds

# Margin of "never worse": this share of the raw loss.
MARGIN = 0.01
COVERAGE = 0.95
LOSSES = {"log_loss": log_losses, "brier": squared_losses}


@dataclass(frozen=True)
class Figures:
    """Of a method on a data set. log_loss, brier, smce, mean_gmce (float): DESIGN section 2, judged by five tag frequency groups."""

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


def floors(pairs: Pairs, scores: Floats, groups: Groups) -> dict[str, float]:
    """The 95 % quantiles that SMCE and mean GMCE of perfectly calibrated scores like these have by chance."""
    smallest, mean = noise_floor(scores), mean_gmce_floor(pairs, groups, scores)
    return {"smce": smallest.q95 if smallest else 0.0, "mean_gmce": mean.q95 if mean else 0.0}


def never_worse(pairs: Pairs, documents: Ints, auto: Floats, rivals: Mapping[str, Floats], loss: str, n_samples: int) -> Never:
    """Holm's bounds of auto - rival over all fixed methods of ours and of the peers."""
    of = LOSSES[loss]
    ours = of(auto, pairs.hits)
    margin = MARGIN * float(of(pairs.scores, pairs.hits).mean())
    names = list(rivals)
    differences = resample_means([ours - of(rivals[name], pairs.hits) for name in names], documents, n_samples)
    assert differences is not None
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
    of = LOSSES[loss]
    ours = of(auto, pairs.hits)
    found = resample_means([ours - of(scores, pairs.hits) for scores in rivals.values()], documents, n_samples)
    assert found is not None
    return {name: asdict(one.interval(COVERAGE)) for name, one in zip(rivals, found, strict=True)}
