"""How tokens are calibrated: by the steps of the settings, or by the candidate of lowest cross-validated log loss. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..errors import calib_error
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.bins import check_count
from ..pairs.documents import cross_fit, folds_of
from ..pairs.progress import UNREPORTED, Progress
from ..schema import listed, number, record, text, whole
from ..types import Floats, Grouping, Groups, Ints
from .grouped import GroupedRecalibrator
from .grouping.tag_frequency import tag_frequency_groups
from .recalibrators import Identity, Platt, Recalibrator
from .scaling import Scaling, VectorScaling
from .steps import Predictions, walk
from .sufficiency import documents_or_blocks
from .tag_offsets import TagOffsets
from .token_fit import Chosen, ContextFit, LearnContext, TokenData
from .tokens import TokenCalibration, lowest_score

RAW, SCALED, CONTEXT = "raw scores", "vector scaling", "context"
_FOLDS = 5
# Penalties of vector scaling: the first is safe on 200 tokens, the second is for heads that prefer some labels.
STRONG_RIDGE, WEAK_RIDGE = 1000.0, 300.0
# The stages of a choice, with their shares of its time.
STAGES = {"Fitting the scaling": 1, "Learning the context": 4, "Comparing methods": 1}

_TRIAL = record({"candidate": text, "loss": number(), "difference": number(), "error": number(), "size": whole()})
# The saved form of what a choice compared.
SELECTION = record({"chosen": text, "pairs": whole(), "documents": whole(), "trials": listed(_TRIAL)})


class StepSettings(Protocol):
    """The settings of the steps: prototypes, which are not changed.

    threshold (float): Marginals below it take no part. grouping (Grouping), recalibrator (Recalibrator), pooling
        (TagOffsets | None), scaling (Scaling | None): The steps. selection (Selector | None): Chooses these.
    """

    @property
    def threshold(self) -> float: ...
    @property
    def grouping(self) -> Callable[..., Any]: ...
    @property
    def scaling(self) -> Scaling | None: ...
    @property
    def recalibrator(self) -> Recalibrator: ...
    @property
    def pooling(self) -> TagOffsets | None: ...
    @property
    def selection(self) -> Selector | None: ...


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps (Chosen), the groups of the maps, and those by which scores are promised and judged (Groups)."""

    chosen: Chosen
    groups: Groups
    judged_by: Groups


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to calibrate. steps (Chosen): Its steps. size (int): How many numbers it learned.

    scores (Floats): Of each pair that reaches the threshold, by steps that did not see its document.
    """

    name: str
    steps: Chosen
    size: int
    scores: Floats


class Selector:
    """Chooses the steps of a fit: the candidate of lowest log loss on held-out documents.

    Candidates are vector scaling, a context with and without it, and each method in each number of tag frequency groups;
    Platt scaling where a token may have several labels. Raw scores are kept only where all others lose more, by over a
    standard error. With few documents blocks of tokens are held out instead, and vector (or Platt) scaling alone is tried.

    methods (Mapping[str, Recalibrator]): Name -> prototype of a map. n_groups (Sequence[int]): Numbers of groups.
    RAISES C001: a setting out of range.
    """

    def __init__(self, methods: Mapping[str, Recalibrator], n_groups: Sequence[int] = (1, 5)):
        self.methods = dict(methods)
        self.n_groups = [check_count("n_groups", n) for n in n_groups]
        if not self.n_groups:
            raise calib_error("C001", name="n_groups", wanted="at least one number of groups", given="none")

    def __call__(
        self,
        data: TokenData,
        group: Callable[[Grouping], Groups],
        scalable: bool = True,
        learn_context: LearnContext | None = None,
        progress: Progress = UNREPORTED,
    ) -> Chosen:
        """The chosen steps.

        group (Callable): Grouping -> Groups of the labels. scalable (bool): False where a token may have several labels.
        learn_context (LearnContext | None): Learns the context; None leaves it out.
        """
        fitting, learning, comparing = progress.stages(STAGES)
        units = documents_or_blocks(data.pairs.rows, data.documents)
        kept_units = units[data.kept]
        is_comparable, few_documents = len(np.unique(kept_units)) > 1, units is not data.documents
        raw = Chosen(grouping_of(1), Identity(), None, None, data.pairs.scores)
        candidates = [Candidate(RAW, raw, 0, data.kept_pairs.scores)]
        if scalable and is_comparable:
            steps = _scale(raw, data, units, fitting)
            assert steps.scaling is not None
            candidates.append(Candidate(SCALED, steps, steps.scaling.size(), steps.pairs_of(data).scores))
        # With few documents the context is learned for spans alone.
        bases = candidates[-1:] if few_documents else candidates
        in_context = [] if learn_context is None else _context_candidates(bases, data, learn_context, learning)
        context = in_context[-1].steps.context if in_context else None
        is_required = context is not None and context.always
        usable = [item for item in in_context if item.steps.moves and (is_required or not few_documents)]
        if usable and is_required:
            candidates = usable
        elif is_comparable:
            methods = [] if few_documents else [(name, item, n) for n in self.n_groups for name, item in self.methods.items()]
            methods += [] if scalable else [(Platt.short, Platt(), 1)]
            candidates += [*usable, *_map_candidates(methods, data, group, kept_units, comparing)]
        best, trials = _compare(candidates, data, kept_units)
        n_documents = len(np.unique(data.kept_documents))
        table = {"chosen": best.name, "pairs": len(data.kept), "documents": n_documents, "trials": trials}
        return replace(best.steps, context=best.steps.context or context, table=table)


def grouping_of(number: int) -> Grouping:
    """Tag frequency groups of this number."""
    return partial(tag_frequency_groups, n_groups=number)


def lowest_taken(settings: StepSettings) -> float:
    """Scores below it take no part in a fit."""
    return lowest_score(settings.threshold, VectorScaling() if settings.selection is not None else settings.scaling)


def make_plan(
    settings: StepSettings,
    data: TokenData,
    group: Callable[[Grouping], Groups],
    scalable: bool = True,
    learn_context: LearnContext | None = None,
    progress: Progress = UNREPORTED,
) -> Plan:
    """The steps of the settings, or those that the selection chose, and the groups of the tags. Arguments as of `Selector`."""
    if settings.selection is not None:
        steps = settings.selection(data, group, scalable, learn_context, progress)
        return Plan(steps, group(steps.grouping), group(settings.grouping))
    fitting, learning = progress.stages({"Fitting the scaling": 1, "Learning the context": 1})
    steps = Chosen(settings.grouping, settings.recalibrator, settings.pooling, None, data.pairs.scores)
    if settings.scaling is not None:
        steps = _with_scaling(steps, settings.scaling.clone(), data, data.documents, fitting)
    if learn_context is not None:
        steps, context = _with_context(steps, data, learn_context, learning)
        pairs = steps.pairs_of(data)
        losses = [log_losses(scores, pairs.hits).mean() for scores in (pairs.scores, context.held_out)]
        if not context.why and (context.always or losses[1] <= losses[0]):
            steps = steps.in_context(data)
    groups = group(steps.grouping)
    return Plan(steps, groups, groups)


def _with_scaling(steps: Chosen, scaling: Scaling, data: TokenData, units: Ints, progress: Progress) -> Chosen:
    """The steps with this scaling, fitted. units (Ints): Of each pair, what is held out as a whole."""
    scores = scaling.cross_fit(data.pairs, units, data.n_tags, _FOLDS, progress)
    return replace(steps, scaling=scaling, scaled=scores)


def _with_context(steps: Chosen, data: TokenData, learn_context: LearnContext, progress: Progress) -> tuple[Chosen, ContextFit]:
    """(the steps with a context that is learned after their scaling and does not move scores yet, the context)."""
    others = walk(TokenCalibration(scaling=steps.scaling).steps, Predictions.of_pairs(data.others, data.threshold))
    kept_others = data.others.take(data.kept_others).with_scores(others.scores)
    context = learn_context(steps.pairs_of(data), kept_others, data.kept_documents, data.words, progress)
    return replace(steps, context=context), context


def _scale(steps: Chosen, data: TokenData, units: Ints, progress: Progress) -> Chosen:
    """The steps with vector scaling, of the strong ridge unless the weak one is clearly better on held-out data."""
    strong, weak = (
        _with_scaling(steps, VectorScaling(ridge), data, units, part)
        for ridge, part in zip((STRONG_RIDGE, WEAK_RIDGE), progress.parts(1, 1), strict=True)
    )
    losses = [log_losses(steps.pairs_of(data).scores, data.kept_pairs.hits) for steps in (strong, weak)]
    gain, error = mean_with_error(losses[0] - losses[1], units[data.kept])
    return weak if gain > 2 * error else strong


def _context_candidates(
    bases: Sequence[Candidate], data: TokenData, learn_context: LearnContext, progress: Progress
) -> list[Candidate]:
    """A context after each of these candidates, which moves scores if there was enough to learn from."""
    candidates = []
    for base, part in zip(bases, progress.parts(*[1] * len(bases)), strict=True):
        steps, context = _with_context(base.steps, data, learn_context, part)
        name = CONTEXT if steps.scaling is None else f"{CONTEXT} after {base.name}"
        steps = steps if context.why else steps.in_context(data)
        candidates.append(Candidate(name, steps, base.size + context.size, context.held_out))
    return candidates


def _map_candidates(
    methods: Sequence[tuple[str, Recalibrator, int]],
    data: TokenData,
    group: Callable[[Grouping], Groups],
    units: Ints,
    progress: Progress,
) -> Iterator[Candidate]:
    """Maps of raw scores, where pairs are enough; groups that turn out equal once.

    methods (Sequence): (name, prototype of a map, number of groups). units (Ints): Of each pair that reaches the threshold.
    """
    pairs, folds, titles = data.kept_pairs, folds_of(units, _FOLDS), set()
    n_fewest = len(pairs) - int(np.bincount(folds).max())
    for name, prototype, n_groups in progress.over(methods):
        groups = group(grouping_of(n_groups))
        title = f"{name}, {len(groups)} group{'s' if len(groups) > 1 else ''}"
        if n_fewest < max(1, prototype.min_pairs) or title in titles:
            continue
        titles.add(title)

        def score(train: Ints, test: Ints, prototype: Recalibrator = prototype, groups: Groups = groups) -> Floats:
            maps = GroupedRecalibrator(prototype, groups).fit(pairs.take(train))
            return maps.predict(pairs.scores[test], pairs.tags[test])

        scores = cross_fit(folds, score)
        steps = Chosen(grouping_of(n_groups), prototype.clone(), None, None, data.pairs.scores)
        yield Candidate(title, steps, prototype.n_parameters * len(groups), scores)


def _compare(candidates: Sequence[Candidate], data: TokenData, units: Ints) -> tuple[Candidate, list[dict[str, Any]]]:
    """(the candidate to take, the comparison of all as plain data, the best first). units (Ints): Of each pair."""
    hits = data.kept_pairs.hits
    losses = [log_losses(candidate.scores, hits) for candidate in candidates]
    order = sorted(range(len(candidates)), key=lambda k: (losses[k].mean(), candidates[k].size))
    differences = [mean_with_error(losses[k] - losses[order[0]], units) for k in order]
    trials = [
        {"candidate": candidates[k].name, "loss": float(losses[k].mean()), "difference": difference, "error": error,
         "size": candidates[k].size}
        for k, (difference, error) in zip(order, differences, strict=True)
    ]  # fmt: skip
    # Few data seldom tell raw scores from calibrated ones: they are kept only if they are clearly better.
    takes_second = len(order) > 1 and candidates[order[0]].name == RAW and differences[1][0] <= differences[1][1]
    return candidates[order[takes_second]], trials
