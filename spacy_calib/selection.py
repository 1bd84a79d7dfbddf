"""Choosing grouping, map and pooling by cross-validation over documents. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .binning import check_count
from .errors import calib_error
from .grouped import GroupedRecalibrator
from .grouping.one_vs_rest import one_group_per_tag
from .grouping.tag_frequency import tag_frequency_groups
from .metrics.proper import log_losses
from .pooling import TagOffsets
from .recalibrators import Beta, HistogramBinning, Identity, IsotonicRegression, Platt, Recalibrator, Temperature
from .types import Floats, Groups, Ints, Pairs

Grouping = Callable[[Sequence[str], Mapping[str, int]], Groups]

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


@dataclass(frozen=True)
class Candidate:
    """One way to calibrate.

    n_groups (int | None): Tag frequency groups; None gives each tag a group of its own. method (str): Name of the map's prototype.
    pooled (bool): Whether each tag has an offset of its own besides, shrunk to its group.
    """

    n_groups: int | None
    method: str
    pooled: bool

    def __str__(self) -> str:
        groups = "one-vs-rest" if self.n_groups is None else f"TFG-{self.n_groups}"
        return f"{groups} {self.method}{' + tag offsets' if self.pooled else ''}"


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
            "groups": self.candidate.n_groups,
            "method": self.candidate.method,
            "pooled": self.candidate.pooled,
            "loss": self.loss,
            "difference": self.difference,
            "error": self.error,
            "size": self.size,
        }


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


def contiguous_folds(documents: Ints, n_folds: int) -> Ints:
    """The fold of each pair: documents that follow one another share a fold, and folds hold about equally many pairs.

    So parts of one text that a converter cut into several documents seldom stand on both sides.

    documents (Ints): Of the pairs, ascending.
    """
    _, starts, counts = np.unique(documents, return_index=True, return_counts=True)
    middle = starts + counts / 2
    of_document = np.minimum((middle * n_folds / max(1, len(documents))).astype(np.intp), n_folds - 1)
    _, of_document = np.unique(of_document, return_inverse=True)  # a very long document leaves folds beside it empty
    return np.repeat(of_document, counts)


def thin_out(pairs: Pairs, documents: Ints, most: int = MOST_PAIRS) -> tuple[Pairs, Ints]:
    """At most about this many pairs: whole documents, at equal distances."""
    if len(pairs) <= most:
        return pairs, documents
    _, codes = np.unique(documents, return_inverse=True)
    n = int(codes.max()) + 1
    kept = min(n, max(2, int(n * most / len(pairs))))  # two are the fewest that can be compared
    wanted = np.zeros(n, dtype=bool)
    wanted[np.arange(kept) * n // kept] = True
    return pairs.take(np.flatnonzero(wanted[codes])), documents[wanted[codes]]


def select(
    pairs: Pairs,
    documents: Ints,
    make_groups: Callable[[int | None], Groups],
    prototypes: Mapping[str, tuple[Recalibrator, int]],
    numbers_of_groups: Sequence[int | None],
    *,
    n_folds: int = 5,
    pooling: TagOffsets | None = None,
) -> Selection:
    """Compare every number of groups with every map, with and without tag offsets, by log loss on held-out documents.

    Chosen is the smallest candidate that is no worse than the best by more than one standard error of their difference.

    documents (Ints): The document of each pair, ascending. make_groups: Number of groups (None: one-vs-rest) -> Groups.
    prototypes: Name -> (prototype, its free numbers). pooling (TagOffsets | None): Its prototype; the strength is learned by default.
    RAISES C007: fewer than two documents have pairs. C006: outside some fold are fewer pairs than any map needs.
    """
    some, of_pair = thin_out(pairs, documents)
    n_documents = len(np.unique(of_pair))
    if n_documents < 2:
        raise calib_error("C007", n=n_documents)
    folds = contiguous_folds(of_pair, min(n_folds, n_documents))
    candidates, losses = _losses(some, folds, make_groups, prototypes, numbers_of_groups, pooling or TagOffsets())
    if not candidates:
        fewest = min(prototype.min_pairs for prototype, _ in prototypes.values())
        raise calib_error("C006", n_pairs=len(some) - int(np.bincount(folds).max()), what="every method", wanted=fewest)
    trials = _compare(candidates, losses, of_pair)
    near = [trial for trial in trials if trial.difference <= trial.error]
    chosen = min(near, key=lambda trial: (trial.size, trial.loss))
    return Selection(chosen.candidate, trials, int(folds.max()) + 1, len(some), n_documents)


def _losses(
    pairs: Pairs,
    folds: Ints,
    make_groups: Callable[[int | None], Groups],
    prototypes: Mapping[str, tuple[Recalibrator, int]],
    numbers_of_groups: Sequence[int | None],
    pooling: TagOffsets,
) -> tuple[list[tuple[Candidate, int]], list[Floats]]:
    """(candidates with their size, held-out log loss of every pair under each)."""
    n_tags = len(np.unique(pairs.tags))
    tried: set[tuple[int, ...]] = set()
    candidates: list[tuple[Candidate, int]] = []
    losses: list[Floats] = []
    for number in numbers_of_groups:
        groups = make_groups(number)
        layout = _layout(groups)
        if layout in tried:
            continue
        tried.add(layout)
        for method, (prototype, size) in prototypes.items():
            both = _held_out(pairs, folds, GroupedRecalibrator(prototype, groups), pooling)
            if both is None:
                continue
            for pooled, scores in zip((False, True), both, strict=True):
                candidates.append((Candidate(number, method, pooled), size * len(groups) + (n_tags if pooled else 0)))
                losses.append(log_losses(scores, pairs.hits))
    return candidates, losses


def _layout(groups: Groups) -> tuple[int, ...]:
    """Equal for groups that hold the same tags, in whatever order; tags without a group are -1."""
    number = {-1: -1}
    return tuple(number.setdefault(group, len(number)) for group in groups.of_tag.tolist())


def _held_out(pairs: Pairs, folds: Ints, blank: GroupedRecalibrator, pooling: TagOffsets) -> tuple[Floats, Floats] | None:
    """(scores without, scores with tag offsets) of every pair by maps that did not see its fold; None where they cannot be fitted."""
    plain, corrected = np.empty(len(pairs)), np.empty(len(pairs))
    for fold in range(int(folds.max()) + 1):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        learned = pairs.take(outside)
        if len(learned) < max(1, blank.prototype.min_pairs):
            return None
        maps = GroupedRecalibrator(blank.prototype, blank.groups).fit(learned)
        plain[inside] = maps.predict(pairs.scores[inside], pairs.tags[inside])
        corrected[inside] = maps.pool(learned, pooling).predict(pairs.scores[inside], pairs.tags[inside])
    return plain, corrected


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
    """Chooses grouping, map and pooling for a fit.

    n_folds (int): Of the cross-validation. n_groups (Sequence[int]): Numbers of tag frequency groups to try; one_vs_rest (bool): And each
        tag alone. methods (Sequence[str]): Keys of METHODS.
    RAISES C001: a setting out of range.
    """

    def __init__(
        self,
        n_folds: int = 5,
        n_groups: Sequence[int] = (1, 2, 3, 5, 8, 12, 20),
        one_vs_rest: bool = True,
        methods: Sequence[str] = ("temperature", "platt", "beta", "histogram", "isotonic"),
    ):
        if check_count("n_folds", n_folds) < 2:
            raise calib_error("C001", name="n_folds", wanted="at least 2", given=n_folds)
        unknown = [method for method in methods if method not in METHODS]
        if unknown or not methods:
            raise calib_error("C001", name="methods", wanted=f"some of {', '.join(METHODS)}", given=unknown or "none")
        self.n_folds = n_folds
        self.numbers: list[int | None] = [check_count("n_groups", number) for number in n_groups]
        self.numbers += [None] if one_vs_rest else []
        if not self.numbers:
            raise calib_error("C001", name="n_groups", wanted="at least one number of groups", given="none")
        self.methods = tuple(methods)

    def __call__(
        self, pairs: Pairs, documents: Ints, group: Callable[[Grouping], Groups]
    ) -> tuple[Grouping, Recalibrator, TagOffsets | None, dict[str, Any]]:
        """(grouping, prototype, pooling, the table of all trials).

        group: Grouping -> Groups of the labels, with those labels apart that stand alone.
        RAISES C007: fewer than two documents have pairs.
        """
        found = select(
            pairs,
            documents,
            lambda number: group(grouping_of(number)),
            {method: METHODS[method] for method in self.methods},
            self.numbers,
            n_folds=self.n_folds,
        )
        chosen = found.chosen
        table = {
            "chosen": str(chosen),
            "folds": found.folds,
            "pairs": found.pairs,
            "documents": found.documents,
            "trials": [trial.to_dict() for trial in found.trials],
        }
        return grouping_of(chosen.n_groups), METHODS[chosen.method][0].clone(), TagOffsets() if chosen.pooled else None, table


def grouping_of(number: int | None) -> Grouping:
    """Tag frequency groups of this number; None gives each tag a group of its own."""
    return one_group_per_tag if number is None else partial(tag_frequency_groups, n_groups=number)


def make_selector(
    n_folds: int = 5,
    n_groups: list[int] = [1, 2, 3, 5, 8, 12, 20],  # noqa: B006  (the config's default; never changed)
    one_vs_rest: bool = True,
    methods: list[str] = ["temperature", "platt", "beta", "histogram", "isotonic"],  # noqa: B006
) -> Selector:
    """Registered as spacy-calib.Auto.v1. See Selector."""
    return Selector(n_folds, n_groups, one_vs_rest, methods)
