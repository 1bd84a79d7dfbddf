"""Chooses the steps that calibrate tokens: those of the settings, or the candidate with the lowest cross-validated log loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..metrics.proper import log_losses, mean_with_error
from ..pairs.documents import cross_fit, folds_of
from ..pairs.progress import UNREPORTED, Progress
from ..types import Floats, Grouping, Groups, Ints, Pairs
from .grouped import GroupedRecalibrator
from .grouping.fixed import shared_group
from .grouping.tag_frequency import tag_frequency_groups
from .recalibrators import Identity, Platt, Recalibrator
from .scaling import FLOOR, Scaling, VectorScaling
from .steps import Predictions, apply_steps
from .sufficiency import documents_or_blocks
from .token_fit import CalibrationPlan, ContextFit, FitData, LearnContext
from .tokens import TokenCalibration

if TYPE_CHECKING:
    from .selector import Selector

RAW, SCALED, CONTEXT = "raw scores", "vector scaling", "context"
_FOLDS = 5
# Penalties of vector scaling: the first is safe on 200 tokens, the second is for heads that are biased towards some labels.
STRONG_RIDGE, WEAK_RIDGE = 1000.0, 300.0
_FEW_DOCUMENTS, _NOTHING_HELD_OUT = "too few documents", "nothing can be held out"  # reasons not to compare a candidate
STAGES = ("Fitting the scaling", "Learning the context", "Comparing methods")


class StepSettings(Protocol):
    """The settings of a pipe that name the steps for tokens. A fit copies the objects in them and leaves them unchanged.

    threshold (float): Pairs with a lower raw score are dropped. grouping (Callable): Makes the groups of labels that share a
        map. scaling (Scaling | None): Applied before the threshold. recalibrator (Recalibrator): The map of each group.
    tag_offsets (bool): Whether tags have offsets after the maps. selector (Selector | None): Chooses all these steps instead.
    """

    @property
    def grouping(self) -> Callable[..., Any]: ...

    threshold: float
    scaling: Scaling | None
    recalibrator: Recalibrator
    tag_offsets: bool
    selector: Selector | None


@dataclass(frozen=True, eq=False)
class ChoiceInputs:
    """The data from which a selector chooses the steps for tokens.

    data (FitData): The pairs to fit on. group (Callable): Takes a grouping and returns the groups of the labels. scalable
    (bool): Whether a token has only one label. learn_context (LearnContext | None): Fits a context; None tries no context.
    """

    data: FitData
    group: Callable[[Grouping], Groups]
    scalable: bool = True
    learn_context: LearnContext | None = None

    @cached_property
    def units(self) -> Ints:
        """The unit of cross-validation of each pair: its document, or with few documents its block of consecutive tokens."""
        return documents_or_blocks(self.data.pairs.rows, self.data.documents)

    @property
    def few_documents(self) -> bool:
        """Whether there are too few documents for cross-validation, so that `units` are blocks of tokens."""
        return self.units is not self.data.documents  # `documents_or_blocks` returns either blocks, or this very array

    @cached_property
    def is_comparable(self) -> bool:
        """Whether cross-validation is possible: pairs that reach the threshold are of at least two documents (or blocks)."""
        return len(np.unique(self.units[self.data.kept_indices])) > 1


def choose_plan(selector: Selector, inputs: ChoiceInputs, progress: Progress = UNREPORTED) -> CalibrationPlan:
    """Return the candidate plan of lowest cross-validated log loss: raw scores only if the next one is clearly worse.

    selector (Selector): The methods and numbers of groups to try. inputs (ChoiceInputs): The data to fit and compare on.
    RETURNS (CalibrationPlan): The steps chosen; its `table` has the losses of the candidates, or why they are left out.
    """
    data, plans = inputs.data, candidates(selector, inputs, progress)
    comparable_plans = [plan for plan in plans if not plan.why]  # `why`: the reason not to compare a plan, or ""
    ranking = sorted(comparable_plans, key=lambda plan: (plan.losses.mean(), plan.size))
    trials = compare(ranking, inputs.units[data.kept_indices])
    best = ranking[pick(trials)]
    compared = {trial["candidate"] for trial in trials}  # two plans may have one name, of which one is compared
    left_out = {plan.name: plan.why for plan in plans if plan.why and plan.name not in compared}
    table = {
        "chosen": best.name, "pairs": len(data.kept_indices), "documents": len(np.unique(data.kept_documents)),
        "trials": trials, "left_out": [{"candidate": name, "why": why} for name, why in left_out.items()],
    }  # fmt: skip
    # A plan without context keeps the last one that was fitted: it changes no scores of tokens, but spans may use it.
    last_context = next((plan.context for plan in reversed(plans) if plan.context is not None), None)
    return replace(best, context=best.context or last_context, table=table)


def candidates(selector: Selector, inputs: ChoiceInputs, progress: Progress = UNREPORTED) -> list[CalibrationPlan]:
    """List the candidates: raw scores, vector scaling, contexts, the selector's maps. Those with a `why` are not compared."""
    fitting, learning, comparing = progress.parts(1, 4, 1, stages=STAGES)  # learning a context takes longest
    data, groups = inputs.data, inputs.group(shared_group)  # one group of all labels
    losses = log_losses(data.kept_pairs.scores, data.kept_pairs.hits)
    # Groups: for the maps, and for evaluation. Scores: of all pairs, since a scaling reads those below the threshold too.
    raw = CalibrationPlan(groups, groups, Identity(), data.pairs.scores, name=RAW, losses=losses)
    plans = [raw, _scaling_plan(raw, inputs, fitting)]
    bases = [plan for plan in plans if not plan.why]  # each gets a context; with few documents only the last one does
    contexts = [*_context_plans(bases[-1:] if inputs.few_documents else bases, inputs, learning)]
    why = "" if inputs.is_comparable else _NOTHING_HELD_OUT
    if any(plan.uses_context and plan.context is not None and plan.context.is_required for plan in contexts):
        why = "the context is required"  # so plans without it are not compared
        plans = [replace(plan, why=plan.why or why) for plan in plans]
    return [*plans, *contexts, *_map_plans(raw, selector, inputs, why, comparing)]


def compare(ranking: Sequence[CalibrationPlan], units: Ints) -> list[dict[str, Any]]:
    """Return a dict per plan with its mean log loss, and the difference of this loss from the first plan's.

    ranking: Plans, lowest loss first. units (Ints): Document, or block of tokens, of each of a plan's `losses`, for the error.
    RETURNS (list): Dicts of "candidate" (name), "loss", "difference", its standard "error", and "size" (of parameters).
    """
    differences = [mean_with_error(plan.losses - ranking[0].losses, units) for plan in ranking]
    return [
        {"candidate": plan.name, "loss": float(plan.losses.mean()), "difference": mean, "error": error, "size": plan.size}
        for plan, (mean, error) in zip(ranking, differences, strict=True)
    ]


def pick(trials: Sequence[Mapping[str, Any]]) -> int:
    """Return the index of the trial (of `compare`) to choose: 0, or 1 if 0 is the raw scores and 1 loses by at most "error"."""
    is_unclear = len(trials) > 1 and trials[0]["candidate"] == RAW and trials[1]["difference"] <= trials[1]["error"]
    return 1 if is_unclear else 0


def lowest_taken(settings: StepSettings) -> float:
    """Return the lowest raw score that a fit by these settings reads: `threshold`; with a scaling min(threshold, FLOOR)."""
    has_scaling = settings.scaling is not None or settings.selector is not None  # a selector tries vector scaling
    return min(settings.threshold, FLOOR) if has_scaling else settings.threshold


def make_plan(
    settings: StepSettings,
    data: FitData,
    group: Callable[[Grouping], Groups],
    scalable: bool = True,
    learn_context: LearnContext | None = None,
    progress: Progress = UNREPORTED,
) -> CalibrationPlan:
    """Make the plan that the settings name, or let their selector choose one; scaling and context are fitted to the data.

    group (Callable): Takes a grouping and returns the groups of the labels. scalable (bool): False if a token may have several
        labels. learn_context (LearnContext | None): Fits a context, which is used if it is required or does not raise the
        out-of-fold log loss; None for no context. RETURNS (CalibrationPlan): Its maps are still to be fitted.
    """
    groups = group(settings.grouping)  # scores are evaluated by these, even if a selector chooses other groups for the maps
    if settings.selector is not None:
        best = choose_plan(settings.selector, ChoiceInputs(data, group, scalable, learn_context), progress)
        return replace(best, evaluation_groups=groups)
    fitting, learning = progress.parts(1, 1, stages=STAGES[:2])
    plan = CalibrationPlan(groups, groups, settings.recalibrator, data.pairs.scores, settings.tag_offsets)
    if settings.scaling is not None:
        has_documents = len(np.unique(data.documents)) > 1  # else folds are of blocks of tokens
        units = data.documents if has_documents else documents_or_blocks(data.pairs.rows, data.documents)
        scaling = settings.scaling.clone()
        plan = replace(plan, scaling=scaling, scores=scaling.cross_fit(data.pairs, units, data.n_tags, fitting))
    if learn_context is None:
        return plan
    plan, context = _with_context(plan, data, learn_context, learning)
    pairs = plan.pairs_of(data)
    loss, context_loss = log_losses(pairs.scores, pairs.hits).mean(), log_losses(context.held_out, pairs.hits).mean()
    is_used = not context.why and (context.is_required or context_loss <= loss)
    return plan.with_context_scores(data) if is_used else plan


def _with_context(
    plan: CalibrationPlan, data: FitData, learn_context: LearnContext, progress: Progress
) -> tuple[CalibrationPlan, ContextFit]:
    """Fit a context to the scores after the plan's scaling; return the plan with it (same scores), and the fitted context."""
    predictions = Predictions.of_pairs(data.unlabelled_pairs, data.threshold)
    scores = apply_steps(TokenCalibration(scaling=plan.scaling).steps, predictions).scores
    # The steps have cut off pairs below the threshold, so these scores are of the kept ones.
    unlabelled_pairs = data.unlabelled_pairs.take(data.kept_unlabelled).with_scores(scores)
    context = learn_context(plan.pairs_of(data), unlabelled_pairs, data.kept_documents, data.words, progress)
    return replace(plan, context=context), context


def _scaling_plan(raw: CalibrationPlan, inputs: ChoiceInputs, progress: Progress) -> CalibrationPlan:
    """Return the raw plan with vector scaling fitted to the inputs; where this is impossible, not fitted and with a `why`.

    The L2 penalty is weak if that lowers the log loss by more than two standard errors, else strong.
    """
    data, plans = inputs.data, []
    if not inputs.scalable:
        return replace(raw, name=SCALED, why="a token may have several labels")
    if not inputs.is_comparable:
        return replace(raw, name=SCALED, why=_NOTHING_HELD_OUT)
    for ridge, progress_part in zip((STRONG_RIDGE, WEAK_RIDGE), progress.parts(1, 1), strict=True):
        scaling = VectorScaling(ridge)
        scores = scaling.cross_fit(data.pairs, inputs.units, data.n_tags, progress_part)
        losses = log_losses(scores[data.kept_indices], data.kept_pairs.hits)
        plans.append(replace(raw, name=SCALED, scaling=scaling, scores=scores, size=scaling.size(), losses=losses))
    strong, weak = plans
    gain, error = mean_with_error(strong.losses - weak.losses, inputs.units[data.kept_indices])
    return weak if gain > 2 * error else strong


def _context_plans(bases: Sequence[CalibrationPlan], inputs: ChoiceInputs, progress: Progress) -> Iterator[CalibrationPlan]:
    """Yield each base plan with a context fitted to its scores. With few documents it is compared only if it must be used."""
    data, learn_context = inputs.data, inputs.learn_context
    if learn_context is None:
        return
    for base, progress_part in zip(bases, progress.parts(*[1] * len(bases)), strict=True):
        plan, context = _with_context(base, data, learn_context, progress_part)
        if not context.why:  # `why`, if not "", is the reason that the context changes no scores of tokens
            plan = plan.with_context_scores(data)
        why_not_compared = context.why or (_FEW_DOCUMENTS if inputs.few_documents and not context.is_required else "")
        name = CONTEXT if plan.scaling is None else f"{CONTEXT} after {base.name}"
        losses = log_losses(context.held_out, data.kept_pairs.hits)  # held_out: out-of-fold scores, or unchanged ones
        yield replace(plan, name=name, why=why_not_compared, size=base.size + int(context.about["size"]), losses=losses)


def _map_plans(
    raw: CalibrationPlan, selector: Selector, inputs: ChoiceInputs, why: str, progress: Progress
) -> Iterator[CalibrationPlan]:
    """Yield a plan for each method with each number of groups of the selector: a map per group, and out-of-fold log losses.

    With few documents these plans are not compared. If a token may have several labels, Platt scaling replaces vector scaling
    and is compared even then. raw: The plan that gets the maps. inputs: The data. why (str): Why no plan is compared, or "".
    """
    # Each trial: name of the method, prototype of its maps, number of groups, and why it is not compared (or "").
    method_why = why or (_FEW_DOCUMENTS if inputs.few_documents else "")
    trials = [(name, prototype, n, method_why) for n in selector.n_groups for name, prototype in selector.methods.items()]
    if not inputs.scalable:
        trials += [(Platt.short, Platt(), n, why) for n in selector.n_groups]
    pairs, compared_names = inputs.data.kept_pairs, set()
    folds = folds_of(inputs.units[inputs.data.kept_indices], _FOLDS)
    n_fewest_train = len(folds) - int(np.bincount(folds, minlength=1).max())  # outside the largest fold; 0 without pairs
    for method, prototype, n_groups, trial_why in progress.track(trials):
        groups = inputs.group(partial(tag_frequency_groups, n_groups=n_groups))
        name = f"{method}, {len(groups)} group{'s' if len(groups) > 1 else ''}"
        if not trial_why and n_fewest_train < max(1, prototype.min_pairs):
            trial_why = "too few pairs"
        if not trial_why and name in compared_names:  # with few labels there are fewer groups than asked for
            trial_why = "compared already"
        if trial_why:
            yield replace(raw, name=name, why=trial_why)
            continue
        compared_names.add(name)
        losses = log_losses(score_by_group(prototype, groups, pairs, folds), pairs.hits)
        plan = replace(raw, name=name, groups=groups, evaluation_groups=groups, prototype=prototype.clone())
        yield replace(plan, losses=losses, size=prototype.n_parameters * len(groups))


def score_by_group(prototype: Recalibrator, groups: Groups, pairs: Pairs, folds: Ints) -> Floats:
    """Return the score of each pair by maps (prototype copies, one per group) fitted to other folds. folds: Of each pair."""

    def score(train: Ints, test: Ints) -> Floats:
        maps = GroupedRecalibrator(prototype, groups).fit(pairs.take(train))
        return maps.predict(pairs.scores[test], pairs.tags[test])

    return cross_fit(folds, score)
