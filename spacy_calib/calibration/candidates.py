"""Ways to calibrate, compared by log loss on held-out documents. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import calib_error
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.documents import cross_fit, folds_of, thin_out
from ..pairs.progress import UNREPORTED, Progress
from ..types import Floats, Groups, Ints, Pairs
from .grouped import GroupedRecalibrator
from .recalibrators import Identity, Recalibrator
from .sufficiency import DOCUMENTS_TO_CHOOSE
from .tag_offsets import TagOffsets

# On how many pairs candidates are compared; with more, whole documents at equal distances are kept.
MOST_PAIRS = 200_000
# With more than twice FIRST_PAIRS pairs there are two rounds: all candidates on about so many pairs, in _FIRST_FOLDS
# folds, and then on all pairs those at most _FARTHEST standard errors above the least loss.
FIRST_PAIRS = 5000
_FIRST_FOLDS = 3
_FARTHEST = 1.5
# A scaling has corrected each tag already: after one, maps are tried with at most so many groups.
_MOST_GROUPS_AFTER_SCALING = 5


# The prototype of the tag offsets that are tried: the data choose its strengths.
TRIED_OFFSETS = TagOffsets()
# The name of the map that changes nothing.
NOTHING = Identity.short
# The name of the context, which stands before the maps as a scaling does.
CONTEXT = "context"
# The name of a context behind a scaling.
BEHIND = "context after a scaling"


@dataclass(frozen=True)
class Candidate:
    """One way to calibrate.

    n_groups (int | None): Tag frequency groups; None groups each tag by itself. method (str): Name of the map.
    offsets (bool): Whether each tag has an offset (`TagOffsets`). scaling (str): What stands before the maps: a
        scaling, CONTEXT, BEHIND, or "" for nothing.
    """

    n_groups: int | None
    method: str
    offsets: bool
    scaling: str = ""

    @property
    def mapped(self) -> bool:
        """Whether it changes the scores that it is given."""
        return self.method != NOTHING or self.offsets

    @property
    def in_context(self) -> bool:
        return self.scaling in (CONTEXT, BEHIND)

    def __str__(self) -> str:
        groups = "one-vs-rest" if self.n_groups is None else f"TFG-{self.n_groups}"
        maps = f"{groups} {self.method}{' + tag offsets' if self.offsets else ''}"
        if not self.scaling:
            return maps
        before = self.scaling if self.in_context else f"{self.scaling} scaling"
        return before + (f", {maps}" if self.mapped else "")


@dataclass(frozen=True)
class Trial:
    """What cross-validation said of a candidate.

    loss (float): Mean log loss per pair. difference (float): From the best one's. error (float): Standard error of the
        difference, over documents. size (int): Free numbers of the candidate.
    """

    candidate: Candidate
    loss: float
    difference: float
    error: float
    size: int

    def to_dict(self) -> dict[str, Any]:
        one = self.candidate
        named = {"scaling": one.scaling, "groups": one.n_groups, "method": one.method, "pooled": one.offsets}
        figures = {"loss": self.loss, "difference": self.difference, "error": self.error, "size": self.size}
        return {"candidate": str(one), **named, **figures}


@dataclass(frozen=True, eq=False)
class ScaledScores:
    """The scores of pairs after a scaling, each by one that did not see its document.

    name (str): Of the scaling. scores (Floats): One per pair. size (int): Its free numbers. biased (bool): Whether it
        has a bias for each tag, beside which tag offsets say nothing new.
    """

    name: str
    scores: Floats
    size: int
    biased: bool


@dataclass(frozen=True)
class Selection:
    """The candidate that was chosen, and all trials, the best first.

    dropped (int): Candidates that were too far behind on a part of the documents. folds (int): Of the cross-validation.
    pairs, documents (int): What the others were compared on.
    """

    chosen: Candidate
    trials: list[Trial]
    dropped: int
    folds: int
    pairs: int
    documents: int

    def to_dict(self) -> dict[str, Any]:
        """What `info` shows."""
        about = {name: getattr(self, name) for name in ("dropped", "folds", "pairs", "documents")}
        trials = [trial.to_dict() for trial in self.trials]
        return {"chosen": str(self.chosen), "too_few": "", **about, "trials": trials}


@dataclass(frozen=True, eq=False)
class _SharedFit:
    """A map for each group after a scaling, without and perhaps with tag offsets: two candidates from one fit.

    candidate (Candidate): Without offsets. offsets (bool): Whether it is tried with them. prototype, groups: Of maps.
    scaled (ScaledScores): What they are fitted on. size (int): Free numbers without offsets.
    """

    candidate: Candidate
    offsets: bool
    prototype: Recalibrator
    groups: Groups
    scaled: ScaledScores
    size: int

    @property
    def candidates(self) -> list[Candidate]:
        """The candidate without offsets, and with them where they are tried."""
        return [self.candidate, *([replace(self.candidate, offsets=True)] if self.offsets else [])]


def select_method(
    pairs: Pairs,
    documents: Ints,
    make_groups: Callable[[int | None], Groups],
    prototypes: Mapping[str, Recalibrator],
    numbers_of_groups: Sequence[int | None],
    *,
    n_folds: int = 5,
    scaled: Sequence[ScaledScores] = (),
    offsets: TagOffsets | None = TRIED_OFFSETS,
    bare: bool = True,
    progress: Progress = UNREPORTED,
) -> Selection:
    """Compare numbers of groups, maps and tag offsets by log loss on held-out documents.

    Chosen is the smallest that is no worse than the best by more than one standard error of the difference, of those
    with the best one's scaling (how far a scaling goes was chosen on held-out documents already, by its ridge). Many
    pairs take two rounds, the first on a few documents.

    documents (Ints): The document of each pair, ascending. make_groups: Number of groups (None: one-vs-rest) -> Groups.
    prototypes: Name -> prototype of a map.
    scaled (Sequence[ScaledScores]): After each no map, and maps with few groups, are tried; offsets if unbiased.
    offsets (TagOffsets | None): Prototype; None tries none. bare (bool): Whether maps are tried on raw scores.
    RAISES C007: fewer than two documents have pairs. C006: outside some fold are fewer pairs than any map needs.
    """
    index = thin_out(documents, MOST_PAIRS)
    if len(np.unique(documents[index])) < 2:
        raise calib_error("C007", n=len(np.unique(documents[index])))
    as_given = [ScaledScores("", pairs.scores, 0, False)] if bare else []
    fits = [
        *(fit for one in as_given for fit in _fits_of(prototypes, numbers_of_groups, make_groups, one, offsets is not None)),
        *(fit for one in scaled for fit in _fits_after(one, prototypes, numbers_of_groups, make_groups, offsets is not None)),
    ]
    comparison = _Comparison(pairs, documents, n_folds, offsets)
    n_candidates = sum(len(fit.candidates) for fit in fits)
    wanted, part = None, progress
    # With fewer documents the standard errors, by which candidates are left out, would say nothing.
    n_first = max(FIRST_PAIRS, DOCUMENTS_TO_CHOOSE * len(index) / len(np.unique(documents[index])))
    if len(index) > 2 * n_first:
        few, (before, part) = index[thin_out(documents[index], n_first)], progress.parts(1, 1)
        first = comparison.trials(fits, few, folds=comparison.folds(few, _FIRST_FOLDS), progress=before)
        wanted = {trial.candidate for trial in first if trial.difference <= _FARTHEST * trial.error}
        n_candidates = len(first)
    trials = comparison.trials(fits, index, wanted, progress=part)
    if not trials:
        fewest = min(prototype.min_pairs for prototype in prototypes.values())
        raise calib_error("C006", n_pairs=comparison.fewest_outside(index), what="every method", wanted=fewest)
    n_folds, n_documents = comparison.folds(index).max() + 1, len(np.unique(documents[index]))
    dropped = 0 if wanted is None else n_candidates - len(trials)
    return Selection(choose(trials), trials, dropped, int(n_folds), len(index), n_documents)


def choose(trials: Sequence[Trial]) -> Candidate:
    """The candidate to take, by the rule of `select_method`. trials: The best first."""
    scaling = trials[0].candidate.scaling
    near = [trial for trial in trials if trial.difference <= trial.error and trial.candidate.scaling == scaling]
    return min(near, key=lambda trial: (trial.size, trial.loss)).candidate


def _fits_of(
    prototypes: Mapping[str, Recalibrator],
    numbers_of_groups: Sequence[int | None],
    make_groups: Callable[[int | None], Groups],
    scaled: ScaledScores,
    offsets: bool,
) -> list[_SharedFit]:
    """Fits of every number of groups with every map, on the scaled scores; equal groups once."""
    found: list[_SharedFit] = []
    tried: set[tuple[int, ...]] = set()
    for number in numbers_of_groups:
        groups = make_groups(number)
        layout = _layout(groups)
        if layout in tried:
            continue
        tried.add(layout)
        for method, prototype in prototypes.items():
            candidate = Candidate(number, method, False, scaled.name)
            size = scaled.size + prototype.n_parameters * len(groups)
            found.append(_SharedFit(candidate, offsets, prototype, groups, scaled, size))
    return found


def _fits_after(
    scaled: ScaledScores,
    prototypes: Mapping[str, Recalibrator],
    numbers_of_groups: Sequence[int | None],
    make_groups: Callable[[int | None], Groups],
    offsets: bool,
) -> list[_SharedFit]:
    """Fits after a scaling: nothing more, or maps of few groups."""
    few = [number for number in numbers_of_groups if number is not None and number <= _MOST_GROUPS_AFTER_SCALING]
    maps = {name: prototype for name, prototype in prototypes.items() if name != NOTHING}
    # Groups do not matter to identity: as many as there may be, for verdicts by group.
    nothing = _fits_of({NOTHING: Identity()}, [max(few, default=1)], make_groups, scaled, False)
    return [*nothing, *_fits_of(maps, few or [1], make_groups, scaled, offsets and not scaled.biased)]


class _Comparison:
    """The held-out log loss of candidates on some of the pairs."""

    def __init__(self, pairs: Pairs, documents: Ints, n_folds: int, offsets: TagOffsets | None):
        self.pairs, self.documents, self.n_folds, self.offsets = pairs, documents, n_folds, offsets

    def folds(self, index: Ints, most: int | None = None) -> Ints:
        """The fold of each of these pairs. most (int | None): The most folds, where fewer than usual."""
        of_pair = self.documents[index]
        return folds_of(of_pair, min(most or self.n_folds, self.n_folds))

    def fewest_outside(self, index: Ints) -> int:
        """How many pairs stand outside the largest fold."""
        return len(index) - int(np.bincount(self.folds(index)).max())

    def trials(
        self,
        fits: Sequence[_SharedFit],
        index: Ints,
        wanted: set[Candidate] | None = None,
        folds: Ints | None = None,
        progress: Progress = UNREPORTED,
    ) -> list[Trial]:
        """What the candidates that can be fitted lose on these pairs, the best first.

        wanted (set[Candidate] | None): Leaves out all others. folds (Ints | None): Of these pairs, or the usual.
        """
        some, folds = self.pairs.take(index), self.folds(index) if folds is None else folds
        n_tags = len(np.unique(some.tags))
        candidates: list[tuple[Candidate, int]] = []
        losses: list[Floats] = []
        for fit in progress.over(fits):
            asked = [one for one in fit.candidates if wanted is None or one in wanted]
            if not asked:
                continue
            given = some.with_scores(fit.scaled.scores[index])
            blank = GroupedRecalibrator(fit.prototype, fit.groups)
            both = _held_out(given, folds, blank, self.offsets if any(one.offsets for one in asked) else None)
            for candidate, scores in zip(fit.candidates, both, strict=False):
                if candidate in asked:
                    candidates.append((candidate, fit.size + (n_tags if candidate.offsets else 0)))
                    losses.append(log_losses(scores, some.hits))
        return _compare(candidates, losses, self.documents[index]) if candidates else []


def _layout(groups: Groups) -> tuple[int, ...]:
    """A key that is equal for groups that hold the same tags, in any order."""
    number = {-1: -1}
    return tuple(number.setdefault(group, len(number)) for group in groups.of_tag.tolist())


def _held_out(pairs: Pairs, folds: Ints, blank: GroupedRecalibrator, offsets: TagOffsets | None) -> list[Floats]:
    """Held-out scores of every pair [without, and with tag offsets if any]; [] where the maps cannot be fitted."""
    if len(pairs) - int(np.bincount(folds).max()) < max(1, blank.prototype.min_pairs):
        return []

    def score(outside: Ints, inside: Ints) -> Floats:
        learned = pairs.take(outside)
        maps = GroupedRecalibrator(blank.prototype, blank.groups).fit(learned)
        scores, tags = pairs.scores[inside], pairs.tags[inside]
        found = [maps.predict(scores, tags)]
        if offsets is not None:
            found.append(maps.fit_offsets(learned, offsets).predict(scores, tags))
        return np.stack(found)

    return list(cross_fit(folds, score))


def _compare(candidates: list[tuple[Candidate, int]], losses: list[Floats], documents: Ints) -> list[Trial]:
    """The trials, the best first."""
    means = [float(loss.mean()) for loss in losses]
    best = losses[int(np.argmin(means))]
    trials = [
        Trial(candidate, mean, *mean_with_error(loss - best, documents), size)
        for (candidate, size), loss, mean in zip(candidates, losses, means, strict=True)
    ]
    return sorted(trials, key=lambda trial: (trial.loss, trial.size))
