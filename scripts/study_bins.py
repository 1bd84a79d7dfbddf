"""Which bins estimate a calibration error best, and how many pairs does it need? Made-up predictions whose true error is known, as Markdown.

    python scripts/study_bins.py
    python scripts/study_bins.py --n 200 500 1000 2000 5000 10000 20000 50000 --counts 10 --sizes 200
    python scripts/study_bins.py --n 1000 --truth identity power:2 step:0.1 --counts 5 10 20 --sizes 50 100 200

After the thesis, sections 4.3.2 and 4.3.3: scores are drawn from Beta(A, B), whose default resembles the scores of en_core_web_sm above .01
on the English Web Treebank; hits with a probability that --truth gives. Every sample is judged with all bins: the estimate
(Nguyen & O'Connor 2015, Algorithm 1), and whether its interval (Algorithm 2) holds the true error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from frame import head, make_parser, one_sentence, row
from numpy.typing import NDArray
from tqdm import tqdm

from spacy_calib.errors import calib_error
from spacy_calib.metrics import calibration_error, calibration_error_interval
from spacy_calib.pairs.bins import check_count
from spacy_calib.types import Floats


def _step(scores: Any, strength: float) -> Any:
    return np.clip(np.where(np.asarray(scores) <= 0.5, scores - strength, scores + strength), 0.0, 1.0)


# P(hit | score): the score itself (strength is not looked at); score ** strength; and the step of the thesis, section 4.3.1:
# strength less up to 0.5 and strength more above (which misprints min(1, .) as min(0, .)).
MAPS: dict[str, Callable[[Any, float], Any]] = {
    "identity": lambda scores, strength: scores,
    "power": lambda scores, strength: scores**strength,
    "step": _step,
}
_QUANTILES = 400_000


@cache
def _quantiles(a: float, b: float) -> Floats:
    """Of Beta(a, b), in equal steps."""
    from scipy.special import betaincinv

    return betaincinv(a, b, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)


@dataclass(frozen=True)
class Synthetic:
    """Scores q ~ Beta(a, b), and hits with a probability that is a known map of q (the thesis, section 4.3).

    a, b (float): Above 0; both below 1 pile the scores up at 0 and 1.
    map (str): One of MAPS. strength (float): Of the map, above 0 for a power.
    RAISES C001: an unknown map, or a, b or strength out of range.
    """

    a: float = 0.3
    b: float = 0.1
    map: str = "identity"
    strength: float = 0.0

    def __post_init__(self) -> None:
        if self.map not in MAPS:
            raise calib_error("C001", name="map", wanted=f"one of {', '.join(MAPS)}", given=repr(self.map))
        positive = {"a": self.a, "b": self.b} | ({"strength": self.strength} if self.map == "power" else {})
        for name, value in positive.items():
            if not (np.isfinite(value) and value > 0):
                raise calib_error("C001", name=name, wanted="a number above 0", given=repr(value))

    def chance(self, scores: Any) -> Any:
        """P(hit | score) of a score or an array of them."""
        return MAPS[self.map](scores, self.strength)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        """n scores and their hits.

        RAISES C001: n is not a whole number of at least 1.
        """
        scores = rng.beta(self.a, self.b, size=check_count("n", n))
        return scores, rng.random(n) < self.chance(scores)

    def error(self) -> float:
        """The true calibration error, sqrt(mean (q - P(hit | q))^2) (Nguyen & O'Connor 2015, definition 1), over quantiles of q."""
        scores = _quantiles(self.a, self.b)
        return float(np.sqrt(np.mean((scores - self.chance(scores)) ** 2)))


TITLES = "| true error | pairs | bins | pairs a bin | mean | bias | deviation | rmse | coverage | width |"


class Bins(NamedTuple):
    """name (str): What the table says. settings (Callable): Sample size -> n_bins or bin_size of a metric."""

    name: str
    settings: Callable[[int], dict[str, int]]

    def size(self, n: int) -> int:
        """Pairs a bin."""
        settings = self.settings(n)
        return settings["bin_size"] if "bin_size" in settings else round(n / settings["n_bins"])


def by_count(count: int) -> Bins:
    """So many adaptive bins."""
    return Bins(f"{count:g} adaptive bins", lambda n: {"n_bins": count})


def by_size(size: int) -> Bins:
    """Bins of so many pairs (beta)."""
    return Bins(f"bins of {size:g}", lambda n: {"bin_size": size})


def bin_study(
    source: Synthetic,
    n: int,
    bins: Sequence[Bins],
    repeats: int = 200,
    n_samples: int = 200,
    seed: int = 0,
    silent: bool = True,
) -> list[dict[str, Any]]:
    """Judge the same samples of n pairs with each of the bins: what they say of the true error.

    n_samples (int): Draws of an interval.
    RETURNS: For each of the bins "mean", "bias", "deviation" and "rmse" of the estimate, "coverage" and "width" of its interval.
    RAISES CalibError: a number below 1.
    """
    check_count("n", n)
    check_count("repeats", repeats)
    found = np.full((len(bins), repeats, 3), np.nan)
    for repeat in tqdm(range(repeats), desc=f"{n:,} pairs", disable=silent, leave=False):
        scores, hits = source.draw(n, np.random.default_rng([seed, n, repeat]))
        for place, one in enumerate(bins):
            given: dict[str, Any] = one.settings(n)
            interval = calibration_error_interval(scores, hits, **given, n_samples=n_samples, seed=seed + repeat)
            found[place, repeat] = calibration_error(scores, hits, **given), *(interval or (np.nan, np.nan))
    true = source.error()
    return [
        {"true": true, "n": n, "bins": one.name, "pairs_a_bin": one.size(n), **summary(true, of_bins)}
        for one, of_bins in zip(bins, found, strict=True)
    ]


def summary(true: float, found: Any) -> dict[str, float]:
    """found: The estimate of each sample and its interval, shape (repeats, 3)."""
    error, low, high = found.T
    return {
        "mean": float(error.mean()), "bias": float(error.mean() - true), "deviation": float(error.std()),
        "rmse": float(np.sqrt(np.mean((error - true) ** 2))),
        "coverage": float(np.mean((low <= true) & (true <= high))), "width": float(np.mean(high - low)),
    }  # fmt: skip


def best(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row with the least rmse."""
    return min(rows, key=lambda one: one["rmse"])


def show(rows: Sequence[dict[str, Any]]) -> None:
    head(TITLES, 0)
    for one in rows:
        figures = f"{one['mean']:.4f}", f"{one['bias']:+.4f}", f"{one['deviation']:.4f}", f"{one['rmse']:.4f}"
        sizes = f"{one['n']:,}", one["bins"], f"{one['pairs_a_bin']:,}"
        row(f"{one['true']:.4f}", *sizes, *figures, f"{100 * one['coverage']:.1f} %", f"{one['width']:.4f}")


def source_of(words: str, beta: Sequence[float]) -> Synthetic:
    """The truth of some words. RAISES CalibError: a setting out of range."""
    name, _, strength = words.partition(":")
    try:
        value = float(strength or 0)
    except ValueError:
        raise SystemExit(f"--truth wants MAP or MAP:STRENGTH with a number, but {words!r} was given") from None
    return Synthetic(beta[0], beta[1], name, value)


def make_options() -> argparse.ArgumentParser:
    parser = make_parser(__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=[10_000], help="pairs in a sample")
    parser.add_argument("--counts", type=int, nargs="*", default=[3, 7, 10, 15, 30, 70, 150], help="numbers of adaptive bins")
    parser.add_argument("--sizes", type=int, nargs="*", default=[20, 50, 100, 200, 500, 1000, 2000, 5000], help="sizes of bins")
    parser.add_argument("--beta", type=float, nargs=2, default=[0.3, 0.1], metavar=("A", "B"), help="scores ~ Beta(A, B)")
    truths, maps = ["identity", "power:1.3", "step:0.1"], ", ".join(MAPS)
    parser.add_argument("--truth", nargs="+", default=truths, metavar="MAP[:STRENGTH]", help=f"P(hit | score): {maps}")
    parser.add_argument("--repeats", type=int, default=200, help="samples drawn")
    parser.add_argument("--draws", type=int, default=200, help="draws of Algorithm 2 for an interval")
    parser.add_argument("--seed", type=int, default=0, help="of the samples and draws")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_options()
    options = parser.parse_args(arguments)
    bins = [*map(by_count, options.counts), *map(by_size, options.sizes)]
    if not bins:
        parser.error("--counts and --sizes are both empty; give at least one of them a value")
    with one_sentence():
        for truth in options.truth:
            given = (options.repeats, options.draws, options.seed, False)
            source = source_of(truth, options.beta)
            rows = [one for n in options.n for one in bin_study(source, n, bins, *given)]
            print(f"\nP(hit | score): {truth}\n")
            show(rows)
            if len(options.n) == 1:
                print(f"\nLeast rmse: {best(rows)['bins']} ({best(rows)['rmse']:.4f})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
