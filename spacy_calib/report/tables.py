"""Pairs and calibrated scores -> the rows of a calibration table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..metrics.calibration_error import calibration_error, ece, group_slices, mean_of
from ..metrics.intervals import calibration_error_interval
from ..metrics.noise_floor import mean_gmce_floor, noise_floor
from ..metrics.proper import accuracy, brier, log_loss
from ..types import Floats, Groups, Pairs


@dataclass(frozen=True)
class ErrorRow:
    """Calibration error of one set of pairs; None where it holds none.

    group (str): "all" (SMCE), the name of a group (GMCE), or "mean" (unweighted mean GMCE).
    tags (int): Tags in it. pairs (int): Pairs in it.
    raw, calibrated (float): The error. low, high (float): 95 % interval of the calibrated one.
    floor, floor95 (float): Error that exactly true scores would show: mean and 95 % quantile.
    """

    group: str
    tags: int
    pairs: int
    raw: float | None
    calibrated: float | None
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    floor95: float | None = None


def error_row(group: str, tags: int, pairs: Pairs, calibrated: Floats, where: Any, n_bins: int, seed: int) -> ErrorRow:
    """The row of the pairs at `where`."""
    raw, new, hits = pairs.scores[where], calibrated[where], pairs.hits[where]
    low, high = calibration_error_interval(new, hits, n_bins, seed=seed) or (None, None)
    floor = noise_floor(new, n_bins, seed=seed)
    return ErrorRow(
        group,
        tags,
        len(raw),
        calibration_error(raw, hits, n_bins),
        calibration_error(new, hits, n_bins),
        low,
        high,
        floor.mean if floor else None,
        floor.q95 if floor else None,
    )


def calibration_table(pairs: Pairs, calibrated: Floats, groups: Groups, n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
    """Everything that `spacy calib evaluate` shows, as plain data.

    RETURNS (dict): "tokens", "pairs", "accuracy"; "errors": rows as in ErrorRow for all, each group and the mean;
        "scores": name -> {"raw", "calibrated"} for ece, brier and nll.
    """
    rows = [error_row("all", len(groups.of_tag), pairs, calibrated, slice(None), n_bins, seed)]
    rows += [
        error_row(name, size, pairs, calibrated, where, n_bins, seed)
        for name, size, where in zip(groups.names, groups.sizes, group_slices(pairs, groups), strict=True)
    ]
    own = rows[1:]
    mean = {key: mean_of([getattr(row, key) for row in own]) for key in ("raw", "calibrated", "floor")}
    floor = mean_gmce_floor(pairs, groups, calibrated, n_bins, seed=seed)
    n_tags, n_pairs = sum(row.tags for row in own), sum(row.pairs for row in own)
    rows.append(ErrorRow("mean", n_tags, n_pairs, **mean, floor95=floor.q95 if floor else None))
    both = {"raw": pairs.scores, "calibrated": calibrated}
    return {
        "tokens": pairs.n_units,
        "pairs": len(pairs),
        "accuracy": accuracy(pairs),
        "errors": [asdict(row) for row in rows],
        "scores": {
            "ece": {key: ece(pairs, values, n_bins) for key, values in both.items()},
            "brier": {key: brier(values, pairs.hits) for key, values in both.items()},
            "nll": {key: log_loss(values, pairs.hits) for key, values in both.items()},
        },
    }
