"""How well a calibration error is estimated, by bins and by sample size, on made-up predictions whose true error is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from analysis.synthetic import Synthetic

from spacy_calib.errors import calib_error
from spacy_calib.metrics.bootstrap import calibration_error_interval
from spacy_calib.metrics.calibration_error import calibration_error, debiased_calibration_error
from spacy_calib.metrics.error_interval import error_interval
from spacy_calib.pairs.bins import check_count
from spacy_calib.types import Floats

# kind -> (value, sample size) -> the settings of a metric
KINDS: dict[str, Callable[[float, int], dict[str, int]]] = {
    "count": lambda value, n: {"n_bins": round(value)},
    "size": lambda value, n: {"bin_size": round(value)},
    "root": lambda value, n: {"bin_size": max(1, round(value * sqrt(n)))},
}


@dataclass(frozen=True)
class Bins:
    """How to bin.

    kind (str): "count": adaptive bins, this many. "size": bins of this many pairs (beta). "root": bins of this times sqrt(n) pairs (the
        thesis, section 4.3.3).
    value (float): How many.
    RAISES C001: another kind, or a value that is not positive (count, size: a whole number of at least 1).
    """

    kind: str = "count"
    value: float = 10

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise calib_error("C001", name="kind", wanted=f"one of {', '.join(KINDS)}", given=repr(self.kind))
        if self.kind != "root":
            check_count("value", self.value)  # type: ignore[arg-type]
        elif not (np.isfinite(self.value) and self.value > 0):
            raise calib_error("C001", name="value", wanted="a number above 0", given=repr(self.value))

    def settings(self, n: int) -> dict[str, int]:
        """n_bins or bin_size, for n pairs."""
        return KINDS[self.kind](self.value, n)


@dataclass(frozen=True)
class Estimates:
    """What repeated samples of n pairs say of the true calibration error.

    n (int): Pairs in a sample. bins (str), value (float): See Bins. pairs_a_bin (int): Of beta-sized bins their size, else n / bins.
    repeats (int): Samples. true (float): The true error.
    mean, bias, deviation, rmse (float): Of the estimate (Nguyen & O'Connor 2015, Algorithm 1): its mean, mean - true, standard deviation
        over the samples, and root mean squared distance to the truth.
    coverage (float): Share of the samples whose 95 % interval (Algorithm 2) holds the truth. width (float): Its mean width.
    bootstrap_coverage, bootstrap_width (float | None): The same of `error_interval`, which takes the bins' noise off; None where not asked for.
    debiased_bias, debiased_rmse (float): Of the debiased estimate (Kumar et al. 2019).
    """

    n: int
    bins: str
    value: float
    pairs_a_bin: int
    repeats: int
    true: float
    mean: float
    bias: float
    deviation: float
    rmse: float
    coverage: float
    width: float
    debiased_bias: float
    debiased_rmse: float
    bootstrap_coverage: float | None = None
    bootstrap_width: float | None = None


Progress = Callable[[Iterable[int]], Iterable[int]]


def bin_study(
    source: Synthetic,
    n: int,
    bins: Sequence[Bins],
    repeats: int = 200,
    n_samples: int = 200,
    seed: int = 0,
    bootstrap: bool = False,
    progress: Progress = iter,
) -> list[Estimates]:
    """Compare bins on the same samples (the thesis, section 4.3.2).

    source (Synthetic): What is drawn from. n (int): Pairs in a sample. bins (Sequence[Bins]): What is compared.
    repeats (int): Samples. n_samples (int): Draws of Algorithm 2. seed (int): Of both.
    bootstrap (bool): Look at the interval by bootstrap too, which takes several times as long.
    progress (Progress): Wraps the samples' numbers (tqdm).
    RETURNS (list[Estimates]): One for each of the bins.
    RAISES C001: n, repeats or n_samples below 1.
    """
    check_count("n", n)
    check_count("repeats", repeats)
    true = source.error()
    found = np.full((len(bins), repeats, 6), np.nan)
    for repeat in progress(range(repeats)):
        scores, hits = source.draw(n, np.random.default_rng([seed, n, repeat]))
        for place, one in enumerate(bins):
            found[place, repeat, :4] = _estimate(scores, hits, one.settings(n), n_samples, seed + repeat)
            if bootstrap:
                found[place, repeat, 4:] = _bootstrap(scores, hits, one.settings(n), n_samples, seed + repeat)
    return [_summary(n, one, true, of_bins) for one, of_bins in zip(bins, found, strict=True)]


def sample_size_study(
    source: Synthetic,
    sizes: Sequence[int],
    bins: Sequence[Bins],
    repeats: int = 200,
    n_samples: int = 200,
    seed: int = 0,
    bootstrap: bool = False,
    progress: Progress = iter,
) -> list[Estimates]:
    """The same over sample sizes (the thesis, section 4.3.3).

    sizes (Sequence[int]): Pairs in a sample. The other arguments: See `bin_study`.
    RETURNS (list[Estimates]): For each size, one for each of the bins.
    RAISES C001: a size, repeats or n_samples below 1.
    """
    return [row for n in sizes for row in bin_study(source, n, bins, repeats, n_samples, seed, bootstrap, progress)]


def best(rows: Sequence[Estimates]) -> Estimates:
    """The row with the least rmse."""
    return min(rows, key=lambda row: row.rmse)


def _estimate(scores: Floats, hits: Any, settings: dict[str, Any], n_samples: int, seed: int) -> tuple[float, ...]:
    """(error, debiased error, low, high)."""
    error = calibration_error(scores, hits, **settings)
    debiased = debiased_calibration_error(scores, hits, **settings)
    interval = calibration_error_interval(scores, hits, **settings, n_samples=n_samples, seed=seed)
    assert error is not None
    assert debiased is not None
    assert interval is not None
    return error, debiased, *interval


def _bootstrap(scores: Floats, hits: Any, settings: dict[str, Any], n_samples: int, seed: int) -> tuple[float, float]:
    """(low, high), every pair a document of its own."""
    found = error_interval(scores, hits, np.arange(len(scores)), **settings, n_samples=n_samples, seed=seed)
    if found is None or found.low is None or found.high is None:
        return np.nan, np.nan
    return found.low, found.high


def _summary(n: int, bins: Bins, true: float, found: Floats) -> Estimates:
    """found (Floats): The estimates of each sample, shape (repeats, 6); the bootstrap's NaN where not asked for."""
    error, debiased, low, high, boot_low, boot_high = found.T
    asked = not np.isnan(boot_low).all()
    settings = bins.settings(n)
    return Estimates(
        n=n,
        bins=bins.kind,
        value=bins.value,
        pairs_a_bin=settings["bin_size"] if "bin_size" in settings else round(n / settings["n_bins"]),
        repeats=len(error),
        true=true,
        mean=float(error.mean()),
        bias=float(error.mean() - true),
        deviation=float(error.std()),
        rmse=_distance(error, true),
        coverage=float(np.mean((low <= true) & (true <= high))),
        width=float(np.mean(high - low)),
        debiased_bias=float(debiased.mean() - true),
        debiased_rmse=_distance(debiased, true),
        bootstrap_coverage=float(np.mean((boot_low <= true) & (true <= boot_high))) if asked else None,
        bootstrap_width=float(np.mean(boot_high - boot_low)) if asked else None,
    )


def _distance(estimates: Floats, true: float) -> float:
    return float(np.sqrt(np.mean((estimates - true) ** 2)))
