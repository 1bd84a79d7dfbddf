"""How tokens are calibrated: by the steps of the settings, or by the candidate of lowest cross-validated log loss. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..metrics.proper import log_losses, mean_with_error
from ..pairs.documents import cross_fit, folds_of
from ..pairs.progress import UNREPORTED, Progress
from ..types import Floats, Grouping, Groups, Ints
from .grouped import GroupedRecalibrator
from .grouping.tag_frequency import tag_frequency_groups
from .recalibrators import Identity, Platt, Recalibrator
from .scaling import Scaling, VectorScaling
from .steps import Predictions, walk
from .sufficiency import documents_or_blocks
from .tag_offsets import TagOffsets
from .token_fit import CalibrationPlan, ContextFit, FitData, LearnContext
from .tokens import TokenCalibration

if TYPE_CHECKING:
    from .selector import Selector

RAW, SCALED, CONTEXT = "raw scores", "vector scaling", "context"
_FOLDS = 5
ONE_GROUP: Grouping = partial(tag_frequency_groups, n_groups=1)
# Penalties of vector scaling: the first is safe on 200 tokens, the second is for heads that prefer some labels.
STRONG_RIDGE, WEAK_RIDGE = 1000.0, 300.0
# The stages of a choice.
STAGES = ("Fitting the scaling", "Learning the context", "Comparing methods")


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


def choose_plan(
    methods_by_name: Mapping[str, Recalibrator],
    n_groups: Sequence[int],
    data: FitData,
    group: Callable[[Grouping], Groups],
    scalable: bool = True,
    learn_context: LearnContext | None = None,
    progress: Progress = UNREPORTED,
) -> CalibrationPlan:
    """Choose the plan of lowest log loss on held-out documents, as a `Selector` does, with its settings.

    group (Callable): Makes groups of the labels. scalable (bool): False where a token may have several labels.
    """
    fitting, learning, comparing = progress.parts(1, 4, 1, stages=STAGES)
    units = documents_or_blocks(data.pairs.rows, data.documents)
    kept_units = units[data.kept]
    is_comparable, few_documents = len(np.unique(kept_units)) > 1, units is not data.documents
    raw_losses = log_losses(data.kept_pairs.scores, data.kept_pairs.hits)
    groups = group(ONE_GROUP)
    raw = CalibrationPlan(groups, groups, Identity(), data.pairs.scores, name=RAW, losses=raw_losses)
    candidates = [raw]
    if scalable and is_comparable:
        candidates.append(_scale(raw, data, units, fitting))
    # With few documents the context is learned for spans alone.
    bases = candidates[-1:] if few_documents else candidates
    in_context = [] if learn_context is None else _context_candidates(bases, data, learn_context, learning)
    context = in_context[-1].context if in_context else None
    is_required = context is not None and context.is_required
    usable = [plan for plan in in_context if plan.moves and (is_required or not few_documents)]
    if usable and is_required:
        candidates = usable
    elif is_comparable:
        methods = [] if few_documents else [(name, item, n) for n in n_groups for name, item in methods_by_name.items()]
        methods += [] if scalable else [(Platt.short, Platt(), n) for n in n_groups]
        candidates += [*usable, *_map_candidates(methods, data, group, kept_units, comparing)]
    ranking = sorted(candidates, key=lambda plan: (plan.losses.mean(), plan.size))
    differences = [mean_with_error(plan.losses - ranking[0].losses, kept_units) for plan in ranking]
    trials = [
        {"candidate": plan.name, "loss": float(plan.losses.mean()), "difference": mean, "error": error, "size": plan.size}
        for plan, (mean, error) in zip(ranking, differences, strict=True)
    ]
    # Few data seldom tell raw scores from calibrated ones: they are kept only if they are clearly better.
    takes_second = len(ranking) > 1 and ranking[0].name == RAW and differences[1][0] <= differences[1][1]
    best = ranking[takes_second]
    n_documents = len(np.unique(data.kept_documents))
    table = {"chosen": best.name, "pairs": len(data.kept), "documents": n_documents, "trials": trials}
    return replace(best, context=best.context or context, table=table)


def lowest_taken(settings: StepSettings) -> float:
    """The score below which entries take no part in a fit."""
    scaling = VectorScaling if settings.selection is not None else settings.scaling
    return settings.threshold if scaling is None else min(settings.threshold, scaling.floor)


def make_plan(
    settings: StepSettings,
    data: FitData,
    group: Callable[[Grouping], Groups],
    scalable: bool = True,
    learn_context: LearnContext | None = None,
    progress: Progress = UNREPORTED,
) -> CalibrationPlan:
    """The plan of the settings, or the one that the selection chooses. Arguments as of `Selector`."""
    groups = group(settings.grouping)
    if settings.selection is not None:
        return replace(settings.selection(data, group, scalable, learn_context, progress), evaluation_groups=groups)
    fitting, learning = progress.parts(1, 1, stages=STAGES[:2])
    plan = CalibrationPlan(groups, groups, settings.recalibrator, data.pairs.scores, settings.pooling)
    if settings.scaling is not None:
        scaling = settings.scaling.clone()
        scores = scaling.cross_fit(data.pairs, data.documents, data.n_tags, _FOLDS, fitting)
        plan = replace(plan, scaling=scaling, scores=scores)
    if learn_context is not None:
        plan, context = _with_context(plan, data, learn_context, learning)
        pairs = plan.pairs_of(data)
        losses = [log_losses(scores, pairs.hits).mean() for scores in (pairs.scores, context.held_out)]
        if not context.why and (context.is_required or losses[1] <= losses[0]):
            plan = plan.in_context(data)
    return plan


def _with_context(
    plan: CalibrationPlan, data: FitData, learn_context: LearnContext, progress: Progress
) -> tuple[CalibrationPlan, ContextFit]:
    """(the plan with a context that is learned after its scaling and does not move scores yet, the context)."""
    predictions = Predictions.of_pairs(data.unlabelled_pairs, data.threshold)
    scores = walk(TokenCalibration(scaling=plan.scaling).steps, predictions).scores
    unlabelled_pairs = data.unlabelled_pairs.take(data.kept_unlabelled).with_scores(scores)
    context = learn_context(plan.pairs_of(data), unlabelled_pairs, data.kept_documents, data.words, progress)
    return replace(plan, context=context), context


def _scale(raw: CalibrationPlan, data: FitData, units: Ints, progress: Progress) -> CalibrationPlan:
    """The candidate with vector scaling, of the strong ridge unless the weak one is clearly better on held-out data."""
    candidates = []
    for ridge, part in zip((STRONG_RIDGE, WEAK_RIDGE), progress.parts(1, 1), strict=True):
        scaling = VectorScaling(ridge)
        scores = scaling.cross_fit(data.pairs, units, data.n_tags, _FOLDS, part)
        losses = log_losses(scores[data.kept], data.kept_pairs.hits)
        candidates.append(replace(raw, name=SCALED, scaling=scaling, scores=scores, size=scaling.size(), losses=losses))
    strong, weak = candidates
    gain, error = mean_with_error(strong.losses - weak.losses, units[data.kept])
    return weak if gain > 2 * error else strong


def _context_candidates(
    bases: Sequence[CalibrationPlan], data: FitData, learn_context: LearnContext, progress: Progress
) -> list[CalibrationPlan]:
    """A context after each of these candidates, which moves scores if there was enough to learn from."""
    candidates = []
    for base, part in zip(bases, progress.parts(*[1] * len(bases)), strict=True):
        plan, context = _with_context(base, data, learn_context, part)
        name = CONTEXT if plan.scaling is None else f"{CONTEXT} after {base.name}"
        plan = plan if context.why else plan.in_context(data)
        losses = log_losses(context.held_out, data.kept_pairs.hits)
        candidates.append(replace(plan, name=name, size=base.size + int(context.about["size"]), losses=losses))
    return candidates


def _map_candidates(
    methods: Sequence[tuple[str, Recalibrator, int]],
    data: FitData,
    group: Callable[[Grouping], Groups],
    units: Ints,
    progress: Progress,
) -> Iterator[CalibrationPlan]:
    """Maps of raw scores where pairs are enough. methods: (name, prototype, number of groups). units: Of each kept pair."""
    pairs, folds, titles = data.kept_pairs, folds_of(units, _FOLDS), set()
    n_fewest = len(pairs) - int(np.bincount(folds).max())
    for name, prototype, n_groups in progress.over(methods):
        groups = group(partial(tag_frequency_groups, n_groups=n_groups))
        title = f"{name}, {len(groups)} group{'s' if len(groups) > 1 else ''}"
        if n_fewest < max(1, prototype.min_pairs) or title in titles:
            continue
        titles.add(title)

        def score(train: Ints, test: Ints, prototype: Recalibrator = prototype, groups: Groups = groups) -> Floats:
            maps = GroupedRecalibrator(prototype, groups).fit(pairs.take(train))
            return maps.predict(pairs.scores[test], pairs.tags[test])

        yield CalibrationPlan(
            groups,
            groups,
            prototype.clone(),
            data.pairs.scores,
            name=title,
            size=prototype.n_parameters * len(groups),
            losses=log_losses(cross_fit(folds, score), pairs.hits),
        )
