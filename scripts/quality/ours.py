"""The methods of this package that the quality benchmark compares, as functions from a data set to the scores of its test pairs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from quality.data import THRESHOLD, DataSet, Split

from spacy_calib.calibration.choice import ChoiceInputs, choose_plan
from spacy_calib.calibration.grouping.fixed import one_group_per_tag
from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.calibration.recalibrators import (
    Beta,
    HistogramBinning,
    IsotonicRegression,
    Platt,
    Recalibrator,
    ScalingBinning,
    Temperature,
)
from spacy_calib.calibration.scaling import FLOOR, MatrixScaling, Scaling, TemperatureScaling, VectorScaling
from spacy_calib.calibration.selector import make_selector
from spacy_calib.calibration.token_fit import CalibrationPlan, FitData, LearnContext, fit_tokens
from spacy_calib.calibration.tokens import TokenCalibration
from spacy_calib.context.fit import fit_token_context
from spacy_calib.context.tokens import make_context
from spacy_calib.pairs.pairing import pair_up
from spacy_calib.pairs.scores import LogitScores
from spacy_calib.types import Floats, Grouping, Groups, Ints, Pairs

PAPER = ("histogram", "isotonic", "scaling binning")
AUTO = "auto"


class Task:
    """A data set as the package sees it.

    data (FitData): To fit on, with its words (Words). test_scores (LogitScores), test_words (Words): Of all tokens to judge.
    test (Pairs): The pairs to judge: those that reach the threshold.
    documents (Ints): The document of each test pair. groups (Groups): Five tag frequency groups, by which all methods are judged.
    """

    def __init__(self, held: DataSet):
        self.held = held
        self.labels = list(held.labels)
        self.counts = dict(zip(held.labels, held.counts, strict=True))
        self.test_scores = LogitScores(np.asarray(held.test.logits))
        self.test_words = held.test.words
        self.data = _token_data(held.fit, len(held.labels))
        self.test = pair_up(self.test_scores.marginals_above(THRESHOLD), held.test.gold)
        self.documents: Ints = np.asarray(held.test.documents)[self.test.rows]
        self.groups = self.group(partial(tag_frequency_groups, n_groups=5))

    @cached_property
    def fit_pairs(self) -> Pairs:
        """The fit pairs that reach the threshold."""
        return self.data.kept_pairs

    @cached_property
    def chosen(self) -> tuple[CalibrationPlan, float]:
        """(what `--method auto` chooses, which may look at the words; seconds that it took)."""
        return self._choose(partial(fit_token_context, make_context("no_worse"), n_tags=len(self.labels)))

    @cached_property
    def chosen_alone(self) -> tuple[CalibrationPlan, float]:
        """The same where only scores are looked at."""
        return self._choose(None)

    def _choose(self, learn_context: LearnContext | None) -> tuple[CalibrationPlan, float]:
        start = time.perf_counter()
        plan = choose_plan(make_selector(), ChoiceInputs(self.data, self.group, learn_context=learn_context))
        return plan, time.perf_counter() - start

    def group(self, grouping: Grouping) -> Groups:
        return grouping(self.labels, self.counts)


def _token_data(split: Split, n_tags: int) -> FitData:
    pairs = pair_up(LogitScores(np.asarray(split.logits)).marginals_above(FLOOR), split.gold)
    documents = np.asarray(split.documents)[pairs.rows]
    return FitData(pairs, np.asarray(split.gold), documents, n_tags, THRESHOLD, words=split.words)


@dataclass(frozen=True, eq=False)
class Outcome:
    """scores (Floats): One per test pair. seconds (float): Fit and predict."""

    scores: Floats
    seconds: float


Method = Callable[[Task], Outcome]


def timed(run: Callable[[Task], Floats]) -> Method:
    """A method whose scores are those of a function, with the seconds that it takes."""

    def method(task: Task) -> Outcome:
        start = time.perf_counter()
        scores = run(task)
        return Outcome(scores, time.perf_counter() - start)

    return method


def fixed(
    grouping: Callable[[Task], Groups],
    prototype: Recalibrator,
    has_offsets: bool = False,
    scaling: Scaling | None = None,
    normalize: bool = False,
) -> Method:
    """A method without a choice."""

    def run(task: Task) -> Floats:
        data, scaler = task.data, None if scaling is None else scaling.clone()
        scores = data.pairs.scores if scaler is None else scaler.cross_fit(data.pairs, data.documents, data.n_tags)
        plan = CalibrationPlan(grouping(task), task.groups, prototype, scores, has_offsets, scaler)
        return apply_model(fit_tokens(data, plan, normalize), task)

    return timed(run)


def scaled_only(scaling: Scaling) -> Method:
    """A scaling with no map after it."""

    def run(task: Task) -> Floats:
        scaler = scaling.clone()
        scaler.cross_fit(task.data.pairs, task.data.documents, task.data.n_tags)
        return apply_model(TokenCalibration(scaling=scaler), task)

    return timed(run)


def chosen(normalize: bool = False, alone: bool = False) -> Method:
    """What `--method auto` chooses. alone (bool): Where only scores are looked at."""

    def run(task: Task) -> Outcome:
        plan, seconds = task.chosen_alone if alone else task.chosen
        fit = timed(lambda task: apply_model(fit_tokens(task.data, plan, normalize), task))
        model = fit(task)
        return Outcome(model.scores, seconds + model.seconds)

    return run


def apply_model(model: TokenCalibration, task: Task) -> Floats:
    """The scores of the test pairs."""
    scores = model.calibrate(task.test_scores, THRESHOLD, task.test_words)
    has_gold = np.asarray(task.held.test.gold)[scores.marginals.rows] != -2
    return scores.scores[has_gold]


def raw(task: Task) -> Outcome:
    return Outcome(task.test.scores, 0.0)


def tfg(n_groups: int) -> Callable[[Task], Groups]:
    return lambda task: task.group(partial(tag_frequency_groups, n_groups=n_groups))


def methods() -> Iterator[tuple[str, Method]]:
    """(name, method) of all that data sets are calibrated with."""
    yield "raw", raw
    maps = {
        "histogram": HistogramBinning(), "isotonic": IsotonicRegression(), "scaling binning": ScalingBinning(),
        "temperature": Temperature(), "platt": Platt(), "beta": Beta(),
    }  # fmt: skip
    for method in PAPER:
        yield f"SCW {method}", fixed(tfg(1), maps[method])
    for method, prototype in maps.items():
        yield f"TFG-5 {method}", fixed(tfg(5), prototype)
    for method in ("platt", "beta", "isotonic"):
        for n_groups in (1, 5, 12):
            if n_groups > 5:
                yield f"TFG-{n_groups} {method}", fixed(tfg(n_groups), maps[method])
            yield f"TFG-{n_groups} {method} + tag offsets", fixed(tfg(n_groups), maps[method], True)
        yield f"one-vs-rest {method}", fixed(lambda task: task.group(one_group_per_tag), maps[method])
    for scaling in (TemperatureScaling(), VectorScaling(), MatrixScaling()):
        kind = type(scaling).__name__.removesuffix("Scaling").lower()
        yield f"{kind} scaling", scaled_only(scaling)
        yield f"{kind} scaling, TFG-5 beta", fixed(tfg(5), maps["beta"], scaling=scaling)
        yield f"{kind} scaling, SCW isotonic", fixed(tfg(1), maps["isotonic"], scaling=scaling)
    yield "TFG-5 isotonic, kept tags sum to 1", fixed(tfg(5), maps["isotonic"], normalize=True)
    yield AUTO, chosen()
    yield "auto, kept tags sum to 1", chosen(True)
    yield "auto, scores alone", chosen(alone=True)


def write_pairs(task: Task, folder: Path) -> None:
    """The pairs beside the logits, for the peers: see quality/peer_worker.py."""
    for part, pairs in (("fit", task.fit_pairs), ("test", task.test)):
        arrays = {
            "rows": pairs.rows, "tags": pairs.tags, "scores": pairs.scores, "hits": pairs.hits, "groups": task.groups.find(pairs.tags),
        }  # fmt: skip
        for name, array in arrays.items():
            file = folder / f"{part}_{name}.npy"
            if not file.exists() or not np.array_equal(np.load(file), array):
                np.save(file, array)
