"""How tokens are to be calibrated: the steps of the settings, or those that a selection chose, and the tag groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..metrics.proper import log_losses
from ..pairs.progress import UNREPORTED, Progress
from ..types import Grouping, Groups
from .auto import Selector
from .recalibrators import Recalibrator
from .scaling import Scaling
from .steps import Predictions, walk
from .tag_offsets import TagOffsets
from .token_fit import Chosen, LearnContext, TokenData
from .tokens import TokenCalibration, lowest_score


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


def lowest_taken(settings: StepSettings) -> float:
    """Scores below it take no part in a fit."""
    if settings.selection is not None:
        return min(settings.threshold, settings.selection.lowest)
    return lowest_score(settings.threshold, settings.scaling)


def make_plan(
    settings: StepSettings,
    data: TokenData,
    group: Callable[[Grouping], Groups],
    scalable: bool = True,
    learn_context: LearnContext | None = None,
    progress: Progress = UNREPORTED,
) -> Plan:
    """The steps of the settings, or those that the selection chose, and the groups of the tags.

    group (Callable): Grouping -> Groups of labels. scalable (bool): False where a token may have several labels, which are
        not scaled beside one another.
    learn_context (LearnContext | None): Learns the context; None leaves it out.
    """
    chosen = _chosen(settings, data, group, scalable, learn_context, progress)
    groups = group(chosen.grouping)
    return Plan(chosen, groups, groups if settings.selection is None else group(settings.grouping))


def _chosen(
    settings: StepSettings,
    data: TokenData,
    group: Callable[[Grouping], Groups],
    scalable: bool,
    learn_context: LearnContext | None,
    progress: Progress,
) -> Chosen:
    if settings.selection is not None:
        return settings.selection(data, group, scalable, learn_context, progress)
    fitting, learning = progress.stages({"Fitting scalings": 1, "Learning the context": 1})
    scaling = None if settings.scaling is None else settings.scaling.clone()
    scaled = (
        data.pairs.scores if scaling is None else scaling.cross_fit(data.pairs, data.documents, data.n_tags, progress=fitting)
    )
    chosen = Chosen(settings.grouping, settings.recalibrator, settings.pooling, scaling, scaled)
    if learn_context is None:
        return chosen
    others = walk(TokenCalibration(scaling=scaling).steps, Predictions.of_pairs(data.others, data.threshold))
    kept_others = data.others.take(data.kept_others).with_scores(others.scores)
    found = learn_context(chosen.pairs_of(data), kept_others, data.kept_documents, data.words, learning)
    chosen = replace(chosen, context=found)
    pairs = chosen.pairs_of(data)
    before, after = (log_losses(scores, pairs.hits).mean() for scores in (pairs.scores, found.held_out))
    return chosen.in_context(data) if not found.why and (found.always or after <= before) else chosen
