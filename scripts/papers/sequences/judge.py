"""What confidences are worth: finding wrong words, and being true; with intervals by resampling sentences, and after isotonic regression."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spacy_calib.calibration.recalibrators.isotonic import IsotonicRegression
from spacy_calib.metrics import calibration_error, log_losses
from spacy_calib.pairs.documents import cross_fit, folds_of
from spacy_calib.types import Floats, Ints

from .learning import COUNTS
from .runs import read_job

BINS = 20
FIRST = 5000
# Of sentences, for the isotonic regression.
FOLDS = 5
WAYS = ("kd_pc", "kd_fixed", "delta", "wkbv", "kbv", "crf")
FIGURES = ("average_precision", "found", "rmse", "too_sure", "log_loss")


@dataclass(frozen=True, eq=False)
class Way:
    """What a way says of the words of one quarter. sure (Floats): Its number for the label of each. right: Whether that is right. sentences
    (Ints): Of each word, from 0 up."""

    sure: Floats
    right: Any
    sentences: Ints

    @cached_property
    def order(self) -> Ints:
        return np.argsort(self.sure, kind="stable")

    @cached_property
    def ends(self) -> Ints:
        """The last place in `order` of each value; words that are equally sure have no order among them."""
        ordered = self.sure[self.order]
        return np.append(np.flatnonzero(np.diff(ordered) > 0), len(ordered) - 1)

    @cached_property
    def calibrated(self) -> Floats:
        """Isotonic regression of right on sure, fitted on other sentences of the quarter: a map belongs to one model."""
        return cross_fit(
            folds_of(self.sentences, FOLDS),
            lambda train, test: IsotonicRegression().fit(self.sure[train], self.right[train]).predict(self.sure[test]),
        )

    def figures(self, weights: Floats | None = None) -> dict[str, float]:
        """FIGURES. weights (Floats | None): How often each sentence is in the sample; None counts each once."""
        times = np.ones(len(self.sure)) if weights is None else weights[self.sentences]
        ordered = times[self.order]
        totals = np.cumsum(ordered)[self.ends]
        wrong = np.cumsum(ordered * ~self.right[self.order])[self.ends]
        new = np.diff(wrong, prepend=0.0)
        return {
            "average_precision": float((new * wrong / np.maximum(totals, 1e-9)).sum() / max(wrong[-1], 1e-9)),
            "found": float(np.interp(FIRST, np.append(0.0, totals), np.append(0.0, wrong))),
            "rmse": rmse_of(self.sure, self.right, times),
            "too_sure": float((times * (self.sure - self.right)).sum() / times.sum()),
            "log_loss": float((times * self.losses).sum() / times.sum()),
        }

    @cached_property
    def losses(self) -> Floats:
        return log_losses(np.clip(self.sure, 0.0, 1.0), self.right)

    def after(self) -> Way:
        return Way(self.calibrated, self.right, self.sentences)


def bins_of(scores: Floats) -> Ints:
    """The twentieth of [0, 1] that holds each."""
    return np.minimum((scores * BINS).astype(int), BINS - 1)


def rmse_of(scores: Floats, right: Any, times: Floats | None = None) -> float:
    """Root mean square error of the centres of 20 bins of equal width (section 5). times (Floats | None): How often each word counts."""
    bins, pair_weights = bins_of(scores), np.ones(len(scores)) if times is None else times
    counts = np.bincount(bins, weights=pair_weights, minlength=BINS)
    share = np.bincount(bins, weights=pair_weights * right, minlength=BINS) / np.maximum(counts, 1e-9)
    centres = (np.arange(BINS) + 0.5) / BINS
    return float(np.sqrt((counts * (centres - share) ** 2).sum() / counts.sum()))


@dataclass(frozen=True, eq=False)
class Quarters:
    """ways (dict): (learner, way) -> of each quarter. counts (dict): Learner -> COUNTS of each sentence, of each quarter. notes (list): Of
    each quarter."""

    ways: dict[tuple[str, str], list[Way]]
    counts: dict[str, list[Floats]]
    notes: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path, corpus: str) -> Quarters:
        new_quarters = cls({}, {}, [])
        for path in sorted(folder.glob(f"confidence-{corpus}-*.npz")):
            arrays, notes = read_job(path)
            new_quarters.notes.append(notes)
            sentences = np.repeat(np.arange(len(arrays["lengths"])), arrays["lengths"])
            for name, values in arrays.items():
                kind, _, key = name.partition("_")
                if kind == "counts":
                    new_quarters.counts.setdefault(key, []).append(values)
                elif kind == "sure":
                    learner, _, way = key.partition("_")
                    one = Way(values, arrays[f"right_{learner}"].astype(bool), sentences)
                    new_quarters.ways.setdefault((learner, way), []).append(one)
        return new_quarters

    @property
    def after(self) -> dict[tuple[str, str], list[Way]]:
        return {name: [one.after() for one in of_quarters] for name, of_quarters in self.ways.items()}


@dataclass(frozen=True, eq=False)
class Sampled:
    """A number and its resamples. estimate (float). draws (Floats): Of samples of sentences; the same samples for all numbers of a table."""

    estimate: float
    draws: Floats

    def __sub__(self, subtrahend: Sampled) -> Sampled:
        return Sampled(self.estimate - subtrahend.estimate, self.draws - subtrahend.draws)

    def __neg__(self) -> Sampled:
        return Sampled(-self.estimate, -self.draws)

    @property
    def interval(self) -> tuple[float, float]:
        low, high = np.quantile(self.draws, [0.025, 0.975])
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        """Of the claim that it is greater than 0."""
        low, high = self.interval
        return "held" if low > 0 else "not held" if high < 0 else "not shown"


def weights_of(sizes: Iterable[int], n_samples: int, seed: int = 0) -> list[Floats]:
    """How often each sentence is in each sample, of parts of so many sentences: shape (n_samples, n) each."""
    rng = np.random.default_rng(seed)
    return [rng.multinomial(n, np.full(n, 1 / n), size=n_samples).astype(float) for n in sizes]


def sample_ways(ways: Mapping[tuple[str, str], list[Way]], n_samples: int) -> dict[tuple[str, str], dict[str, Sampled]]:
    """FIGURES of each way, the mean over quarters."""
    return {name: _sample_way(of_quarters, n_samples) for name, of_quarters in ways.items()}


def _sample_way(of_quarters: list[Way], n_samples: int) -> dict[str, Sampled]:
    weights = weights_of((int(way.sentences.max()) + 1 for way in of_quarters), n_samples)
    draw_list = []
    for way, of_samples in zip(of_quarters, weights, strict=True):
        rows = [way.figures(), *(way.figures(sample) for sample in of_samples)]
        draw_list.append([[row[name] for name in FIGURES] for row in rows])
    mean = np.mean(draw_list, axis=0)  # (1 + samples, figures)
    return {name: Sampled(float(mean[0, i]), mean[1:, i]) for i, name in enumerate(FIGURES)}


def sample_counts(
    counts: Mapping[str, list[Floats]], measure: Callable[[Floats], Floats], n_samples: int
) -> dict[str, Sampled]:
    """A measure of the sums of COUNTS, the mean over parts. counts: Learner -> of each sentence, of each part."""
    draw_list = {}
    for name, of_parts in counts.items():
        weights = weights_of(map(len, of_parts), n_samples)
        estimate = float(np.mean([measure(part.sum(axis=0)) for part in of_parts]))
        draws = np.mean(
            [measure(quarter_weights @ part) for quarter_weights, part in zip(weights, of_parts, strict=True)], axis=0
        )
        draw_list[name] = Sampled(estimate, draws)
    return draw_list


def wrong_percent(sums: Floats) -> Floats:
    """sums: COUNTS, shape (..., 5)."""
    return 100 * sums[..., COUNTS.index("wrong")] / sums[..., COUNTS.index("words")]


def ece_of(of_quarters: list[Way]) -> float:
    """Of ten adaptive bins, the mean over quarters."""
    return float(np.mean([calibration_error(np.clip(way.sure, 0, 1), way.right, 10, norm="l1") for way in of_quarters]))
