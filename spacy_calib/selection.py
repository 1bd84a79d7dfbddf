"""Choosing scaling, grouping, map and pooling by cross-validation over documents. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .binning import check_count
from .errors import calib_error
from .folds import contiguous_folds, thin_out
from .grouped import GroupedRecalibrator
from .grouping.one_vs_rest import one_group_per_tag
from .grouping.tag_frequency import tag_frequency_groups
from .metrics.proper import log_losses
from .pooling import TagOffsets
from .recalibrators import Beta, HistogramBinning, Identity, IsotonicRegression, Platt, Recalibrator, Temperature
from .scaling import MatrixScaling, Scaling, TemperatureScaling, VectorScaling
from .token_calibration import Chosen, TokenData
from .types import Floats, Grouping, Groups, Ints, Pairs

# Name of a map -> (its prototype, how many free numbers it has; for isotonic regression about as many as it has steps).
METHODS: dict[str, tuple[Recalibrator, int]] = {
    "identity": (Identity(), 0),
    "temperature": (Temperature(), 1),
    "platt": (Platt(), 2),
    "beta": (Beta(), 3),
    "histogram": (HistogramBinning(), 10),
    "isotonic": (IsotonicRegression(), 20),
}

# Pairs on which the candidates are compared; with more, whole documents are left out at equal distances.
MOST_PAIRS = 200_000


# Name of a scaling -> its prototype.
SCALINGS: dict[str, Scaling] = {
    "temperature": TemperatureScaling(),
    "vector": VectorScaling(),
    "matrix": MatrixScaling(),
}
# After a scaling the tags have been told apart already: what follows is tried with few groups only.
_MOST_GROUPS_AFTER_SCALING = 5


@dataclass(frozen=True)
class Candidate:
    """One way to calibrate.

    n_groups (int | None): Tag frequency groups; None gives each tag a group of its own. method (str): Name of the map's prototype.
    pooled (bool): Whether each tag has an offset of its own besides, shrunk to its group. scaling (str): What stands before the maps, "" for nothing.
    """

    n_groups: int | None
    method: str
    pooled: bool
    scaling: str = ""

    def __str__(self) -> str:
        groups = "one-vs-rest" if self.n_groups is None else f"TFG-{self.n_groups}"
        maps = f"{groups} {self.method}{' + tag offsets' if self.pooled else ''}"
        if not self.scaling:
            return maps
        return f"{self.scaling} scaling" + ("" if self.method == "identity" and not self.pooled else f", {maps}")


@dataclass(frozen=True)
class Trial:
    """What cross-validation said of a candidate.

    loss (float): Mean log loss per pair. difference (float): Of its loss from the best one's. error (float): Standard error of that
        difference, over documents. size (int): Free numbers of the candidate.
    """

    candidate: Candidate
    loss: float
    difference: float
    error: float
    size: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "candidate": str(self.candidate),
            "scaling": self.candidate.scaling,
            "groups": self.candidate.n_groups,
            "method": self.candidate.method,
            "pooled": self.candidate.pooled,
            "loss": self.loss,
            "difference": self.difference,
            "error": self.error,
            "size": self.size,
        }


@dataclass(frozen=True, eq=False)
class ScaledScores:
    """The scores of pairs after a scaling, each by one that did not see its document.

    name (str): Of the scaling. scores (Floats): One per pair. size (int): Free numbers of the scaling. biased (bool): Whether it has a
        bias for each tag, beside which offsets of the tags say nothing new.
    """

    name: str
    scores: Floats
    size: int
    biased: bool


@dataclass(frozen=True)
class Selection:
    """The candidate that was chosen, and all trials, the best first.

    folds (int): Of the cross-validation. pairs, documents (int): What the candidates were compared on.
    """

    chosen: Candidate
    trials: list[Trial]
    folds: int
    pairs: int
    documents: int


def select(
    pairs: Pairs,
    documents: Ints,
    make_groups: Callable[[int | None], Groups],
    prototypes: Mapping[str, tuple[Recalibrator, int]],
    numbers_of_groups: Sequence[int | None],
    *,
    n_folds: int = 5,
    pooling: TagOffsets | None = None,
    scaled: Sequence[ScaledScores] = (),
) -> Selection:
    """Compare every number of groups with every map, with and without tag offsets, by log loss on held-out documents.

    Chosen is, after the scaling of the best candidate, the smallest one that is no worse than the best by more than one standard error of
    their difference. (A scaling is drawn to one that changes nothing as far as held-out documents say, and needs no such rule.)

    documents (Ints): The document of each pair, ascending. make_groups: Number of groups (None: one-vs-rest) -> Groups.
    prototypes: Name -> (prototype, its free numbers). pooling (TagOffsets | None): Its prototype; the strength is learned by default.
    scaled (Sequence[ScaledScores]): After each of them the same maps are tried (and none) with few groups, offsets where it is not biased.
    RAISES C007: fewer than two documents have pairs. C006: outside some fold are fewer pairs than any map needs.
    """
    index = thin_out(documents, MOST_PAIRS)
    some, of_pair = pairs.take(index), documents[index]
    n_documents = len(np.unique(of_pair))
    if n_documents < 2:
        raise calib_error("C007", n=n_documents)
    folds = contiguous_folds(of_pair, min(n_folds, n_documents))
    comparison = _Comparison(folds, make_groups, pooling or TagOffsets())
    comparison.try_all(some, prototypes, numbers_of_groups, ScaledScores("", some.scores, 0, False))
    few = [number for number in numbers_of_groups if number is not None and number <= _MOST_GROUPS_AFTER_SCALING]
    for one in scaled:
        after = ScaledScores(one.name, one.scores[index], one.size, one.biased)
        # Groups do not bear on identity: as many as there may be, for those who want to judge by them.
        comparison.try_all(some, {"identity": (Identity(), 0)}, [max(few, default=1)], after, also_pooled=False)
        comparison.try_all(some, _but_identity(prototypes), few or [1], after, also_pooled=not one.biased)
    if not comparison.candidates:
        fewest = min(prototype.min_pairs for prototype, _ in prototypes.values())
        raise calib_error("C006", n_pairs=len(some) - int(np.bincount(folds).max()), what="every method", wanted=fewest)
    trials = _compare(comparison.candidates, comparison.losses, of_pair)
    scaling = trials[0].candidate.scaling
    near = [trial for trial in trials if trial.difference <= trial.error and trial.candidate.scaling == scaling]
    chosen = min(near, key=lambda trial: (trial.size, trial.loss))
    return Selection(chosen.candidate, trials, int(folds.max()) + 1, len(some), n_documents)


def _but_identity(prototypes: Mapping[str, tuple[Recalibrator, int]]) -> dict[str, tuple[Recalibrator, int]]:
    return {name: both for name, both in prototypes.items() if name != "identity"}


class _Comparison:
    """Candidates with their size, and the held-out log loss of every pair under each."""

    def __init__(self, folds: Ints, make_groups: Callable[[int | None], Groups], pooling: TagOffsets):
        self.folds, self.make_groups, self.pooling = folds, make_groups, pooling
        self.candidates: list[tuple[Candidate, int]] = []
        self.losses: list[Floats] = []

    def try_all(
        self,
        pairs: Pairs,
        prototypes: Mapping[str, tuple[Recalibrator, int]],
        numbers_of_groups: Sequence[int | None],
        scaled: ScaledScores,
        also_pooled: bool = True,
    ) -> None:
        """Every number of groups with every map, on the scaled scores."""
        given = replace(pairs, scores=scaled.scores)
        n_tags = len(np.unique(pairs.tags))
        tried: set[tuple[int, ...]] = set()
        for number in numbers_of_groups:
            groups = self.make_groups(number)
            layout = _layout(groups)
            if layout in tried:
                continue
            tried.add(layout)
            for method, (prototype, size) in prototypes.items():
                both = _held_out(
                    given, self.folds, GroupedRecalibrator(prototype, groups), self.pooling if also_pooled else None
                )
                for pooled, scores in enumerate(both):
                    candidate = Candidate(number, method, bool(pooled), scaled.name)
                    self.candidates.append((candidate, scaled.size + size * len(groups) + (n_tags if pooled else 0)))
                    self.losses.append(log_losses(scores, pairs.hits))


def _layout(groups: Groups) -> tuple[int, ...]:
    """Equal for groups that hold the same tags, in whatever order; tags without a group are -1."""
    number = {-1: -1}
    return tuple(number.setdefault(group, len(number)) for group in groups.of_tag.tolist())


def _held_out(pairs: Pairs, folds: Ints, blank: GroupedRecalibrator, pooling: TagOffsets | None) -> list[Floats]:
    """[scores without, and scores with tag offsets if there is a pooling] of every pair by maps that did not see its fold; [] where they
    cannot be fitted.
    """
    found = [np.empty(len(pairs)) for _ in range(1 if pooling is None else 2)]
    for fold in range(int(folds.max()) + 1):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        learned = pairs.take(outside)
        if len(learned) < max(1, blank.prototype.min_pairs):
            return []
        maps = GroupedRecalibrator(blank.prototype, blank.groups).fit(learned)
        found[0][inside] = maps.predict(pairs.scores[inside], pairs.tags[inside])
        if pooling is not None:
            found[1][inside] = maps.pool(learned, pooling).predict(pairs.scores[inside], pairs.tags[inside])
    return found


def _compare(candidates: list[tuple[Candidate, int]], losses: list[Floats], documents: Ints) -> list[Trial]:
    """The trials, the best first."""
    means = [float(loss.mean()) for loss in losses]
    best = losses[int(np.argmin(means))]
    _, codes = np.unique(documents, return_inverse=True)
    n = len(documents)
    per_document = np.bincount(codes)
    trials = []
    for (candidate, size), loss, mean in zip(candidates, losses, means, strict=True):
        difference = float((loss - best).mean())
        sums = np.bincount(codes, weights=loss - best)
        error = float(np.sqrt(np.sum((sums - difference * per_document) ** 2)) / n)
        trials.append(Trial(candidate, mean, difference, error, size))
    return sorted(trials, key=lambda trial: (trial.loss, trial.size))


class Selector:
    """Chooses scaling, grouping, map and pooling for a fit.

    n_folds (int): Of the cross-validation. n_groups (Sequence[int]): Numbers of tag frequency groups to try; one_vs_rest (bool): And each
        tag alone. methods (Sequence[str]): Keys of METHODS. scalings (Sequence[str]): Keys of SCALINGS, tried beside none at all.
    RAISES C001: a setting out of range.
    """

    def __init__(
        self,
        n_folds: int = 5,
        n_groups: Sequence[int] = (1, 2, 3, 5, 8, 12, 20),
        one_vs_rest: bool = True,
        methods: Sequence[str] = ("temperature", "platt", "beta", "histogram", "isotonic"),
        scalings: Sequence[str] = ("temperature", "vector", "matrix"),
    ):
        if check_count("n_folds", n_folds) < 2:
            raise calib_error("C001", name="n_folds", wanted="at least 2", given=n_folds)
        for name, given, known in (("methods", methods, METHODS), ("scalings", scalings, SCALINGS)):
            unknown = [one for one in given if one not in known]
            if unknown or (name == "methods" and not given):
                raise calib_error("C001", name=name, wanted=f"some of {', '.join(known)}", given=unknown or "none")
        self.n_folds = n_folds
        self.numbers: list[int | None] = [check_count("n_groups", number) for number in n_groups]
        self.numbers += [None] if one_vs_rest else []
        if not self.numbers:
            raise calib_error("C001", name="n_groups", wanted="at least one number of groups", given="none")
        self.methods = tuple(methods)
        self.scalings = tuple(scalings)

    @property
    def lowest(self) -> float:
        """Scores below it take no part in a scaling."""
        return min((SCALINGS[name].floor for name in self.scalings), default=1.0)

    def __call__(self, data: TokenData, group: Callable[[Grouping], Groups], scalable: bool = True) -> Chosen:
        """What `select` chooses.

        group: Grouping -> Groups of the labels, with those labels apart that stand alone. scalable (bool): False where a token may have
            several labels, so that they cannot be scaled beside one another.
        RAISES C007: fewer than two documents have pairs.
        """
        kept = data.kept
        pairs, documents = data.pairs.take(kept), data.documents[kept]
        if len(np.unique(documents)) < 2:
            raise calib_error("C007", n=len(np.unique(documents)))
        scalings = {name: SCALINGS[name].clone() for name in self.scalings if scalable}
        every = {
            name: scaling.cross_fit(data.pairs, data.documents, data.n_tags, self.n_folds) for name, scaling in scalings.items()
        }
        found = select(
            pairs,
            documents,
            lambda number: group(grouping_of(number)),
            {method: METHODS[method] for method in self.methods},
            self.numbers,
            n_folds=self.n_folds,
            scaled=[ScaledScores(name, every[name][kept], one.size(), one.biased) for name, one in scalings.items()],
        )
        chosen = found.chosen
        table = {
            "chosen": str(chosen),
            "folds": found.folds,
            "pairs": found.pairs,
            "documents": found.documents,
            "trials": [trial.to_dict() for trial in found.trials],
        }
        return Chosen(
            grouping_of(chosen.n_groups),
            METHODS[chosen.method][0].clone(),
            TagOffsets() if chosen.pooled else None,
            scalings.get(chosen.scaling),
            every.get(chosen.scaling, data.pairs.scores),
            table,
        )


def grouping_of(number: int | None) -> Grouping:
    """Tag frequency groups of this number; None gives each tag a group of its own."""
    return one_group_per_tag if number is None else partial(tag_frequency_groups, n_groups=number)


def make_selector(
    n_folds: int = 5,
    n_groups: list[int] = [1, 2, 3, 5, 8, 12, 20],  # noqa: B006  (the config's default; never changed)
    one_vs_rest: bool = True,
    methods: list[str] = ["temperature", "platt", "beta", "histogram", "isotonic"],  # noqa: B006
    scalings: list[str] = ["temperature", "vector", "matrix"],  # noqa: B006
) -> Selector:
    """Registered as spacy-calib.Auto.v1. See Selector."""
    return Selector(n_folds, n_groups, one_vs_rest, methods, scalings)
