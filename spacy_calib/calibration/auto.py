"""Choosing scaling, grouping, map and tag offsets at a fit, where documents are enough. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import calib_error
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.bins import check_count
from ..pairs.documents import DOCUMENT
from ..pairs.progress import UNREPORTED, Progress
from ..schema import flag, listed, maybe, number, record, text, whole
from ..types import Floats, Grouping, Groups, Ints
from .candidates import BEHIND, CONTEXT, NOTHING, Candidate, ScaledScores, select_method
from .grouping.fixed import one_group_per_tag
from .grouping.tag_frequency import tag_frequency_groups
from .recalibrators import Identity, Recalibrator, Temperature
from .scaling import LogLinearScaling, Scaling, TemperatureScaling, fit_cautiously
from .sufficiency import DOCUMENTS_TO_CHOOSE, FEW_PAIRS, too_few_to_choose
from .tag_offsets import TagOffsets
from .token_fit import Chosen, ContextFit, LearnContext, TokenData

# With fewer pairs nothing is learned in context.
_PAIRS_FOR_CONTEXT = 200
# The stages of a selection, with their shares of its time.
STAGES = {"Learning the context": 2, "Fitting scalings": 2, "Comparing methods": 2}

# The saved form of what a selection chose from.
_TRIAL = record(
    {
        "candidate": text, "scaling": text, "groups": maybe(whole(1)), "method": text, "pooled": flag, "loss": number(),
        "difference": number(), "error": number(), "size": whole(),
    }
)  # fmt: skip
SELECTION = record(
    {
        "chosen": text, "too_few": text, "dropped": whole(), "folds": whole(), "pairs": whole(),
        "documents": whole(), "trials": listed(_TRIAL),
    }
)  # fmt: skip


class Selector:
    """Chooses scaling, grouping, map and tag offsets for a fit.

    methods (Mapping[str, Recalibrator]): Name -> prototype of a map to try. scalings (Mapping[str, Scaling]): Name ->
        prototype of a scaling to try, beside none. n_folds (int): Of the cross-validation.
    n_groups (Sequence[int]): Numbers of tag frequency groups to try. one_vs_rest (bool): Whether each alone.
    RAISES C001: a setting out of range.
    """

    def __init__(
        self,
        methods: Mapping[str, Recalibrator],
        scalings: Mapping[str, Scaling],
        n_folds: int = 5,
        n_groups: Sequence[int] = (1, 3, 5, 12),
        one_vs_rest: bool = True,
    ):
        if check_count("n_folds", n_folds) < 2:
            raise calib_error("C001", name="n_folds", wanted="at least 2", given=n_folds)
        if not methods:
            raise calib_error("C001", name="methods", wanted="at least one method", given="none")
        self.n_folds = n_folds
        self.numbers: list[int | None] = [check_count("n_groups", number) for number in n_groups]
        self.numbers += [None] if one_vs_rest else []
        if not self.numbers:
            raise calib_error("C001", name="n_groups", wanted="at least one number of groups", given="none")
        self.methods = dict(methods)
        self.scalings = dict(scalings)

    @property
    def lowest(self) -> float:
        """Scores below it take no part in any scaling."""
        return min((scaling.floor for scaling in self.scalings.values()), default=1.0)

    def __call__(
        self,
        data: TokenData,
        group: Callable[[Grouping], Groups],
        scalable: bool = True,
        learn_context: LearnContext | None = None,
        progress: Progress = UNREPORTED,
    ) -> Chosen:
        """What `select_method` chooses; with too little data one temperature for all tags, a scaling, or none.

        group: Grouping -> Groups of the labels. scalable (bool): False where a token may have several labels, which are
            not scaled beside one another.
        learn_context (LearnContext | None): Learns the context, which is tried like a scaling; None leaves it out.
        """
        pairs, documents = data.kept_pairs, data.kept_documents
        # Several labels of one document are nearly independent; those of a token are nearly one.
        alone = data.unit == DOCUMENT and not scalable
        n_questions = len(pairs) if alone else len(np.unique(pairs.rows))
        few = too_few_to_choose(len(np.unique(documents)), n_questions, len(pairs), data.unit)
        learning, scaling, comparing = progress.stages(STAGES)
        context, front = self._in_context(data, scalable, learn_context, learning)
        settled = (
            context is not None
            and not context.why
            and (context.always or self._needs_no_rival(data, context.held_out, scalable))
        )
        if few and not settled:
            return replace(self._smallest(data, group, few, scalable), context=context)
        if few:
            table = _untried(Candidate(1, NOTHING, False, CONTEXT if front is None else BEHIND), few)
            return Chosen(grouping_of(1), Identity(), None, front, data.pairs.scores, table, context).in_context(data)
        in_context = []
        if context is not None and not context.why and (settled or front is None):
            in_context = [ScaledScores(CONTEXT if front is None else BEHIND, context.held_out, context.size, True)]
        scalings = {name: prototype.clone() for name, prototype in self.scalings.items() if scalable and not settled}
        every, scaled = self._scale(scalings, data, data.documents, scaling)
        found = select_method(
            pairs,
            documents,
            lambda number: group(grouping_of(number)),
            self.methods,
            self.numbers,
            n_folds=self.n_folds,
            scaled=[*scaled, *in_context],
            bare=not settled,
            progress=comparing,
        )
        chosen = found.chosen
        made = Chosen(
            grouping_of(chosen.n_groups),
            {NOTHING: Identity(), **self.methods}[chosen.method].clone(),
            TagOffsets() if chosen.offsets else None,
            front if chosen.in_context else scalings.get(chosen.scaling),
            every.get(chosen.scaling, data.pairs.scores),
            found.to_dict(),
            context,
        )
        return made.in_context(data) if chosen.in_context else made

    def _scale(
        self, scalings: Mapping[str, Scaling], data: TokenData, units: Ints, progress: Progress = UNREPORTED
    ) -> tuple[dict[str, Floats], list[ScaledScores]]:
        """Fit these scalings: (held-out score of each pair, the same of pairs that reach the threshold), by name."""
        parts = progress.parts(*[1] * len(scalings))
        every = {
            name: one.cross_fit(data.pairs, units, data.n_tags, self.n_folds, part)
            for (name, one), part in zip(scalings.items(), parts, strict=True)
        }
        return every, [ScaledScores(name, every[name][data.kept], one.size(), one.biased) for name, one in scalings.items()]

    def _in_context(
        self, data: TokenData, scalable: bool, learn_context: LearnContext | None, progress: Progress
    ) -> tuple[ContextFit | None, Scaling | None]:
        """(the context, the scaling before it). Few pairs get one unless it clearly loses, held out."""
        if learn_context is None:
            return None, None
        pairs, documents, others = data.kept_pairs, data.kept_documents, data.others.take(data.kept_others)
        prototype = next((one for one in self.scalings.values() if isinstance(one, LogLinearScaling)), None)
        twice = scalable and prototype is not None and _PAIRS_FOR_CONTEXT <= len(pairs) < FEW_PAIRS
        first, second = progress.parts(1, twice)
        alone = learn_context(pairs, others, documents, data.words, first)
        if alone.why or prototype is None or not twice:
            return alone, None
        front, held_out = fit_cautiously(prototype, data.pairs, data.documents, data.n_tags, self.n_folds)
        scaled, moved = pairs.with_scores(held_out[data.kept]), data.others.with_scores(front.scale_pairs(data.others))
        behind = learn_context(scaled, moved.take(data.kept_others), documents, data.words, second)
        less = log_losses(behind.held_out, pairs.hits) - log_losses(alone.held_out, pairs.hits)
        gained, error = mean_with_error(less, documents)
        return (alone, None) if gained > 2 * error else (behind, front)

    def _needs_no_rival(self, data: TokenData, in_context: Floats, scalable: bool) -> bool:
        """Whether few pairs take the context uncompared: it beats raw scores, or (few documents) one temperature.

        in_context (Floats): Held-out score of each pair that reaches the threshold.
        """
        pairs, alone = data.kept_pairs, data.pairs.scores
        if not _PAIRS_FOR_CONTEXT <= len(pairs) < FEW_PAIRS:
            return False
        if scalable and len(np.unique(data.kept_documents)) < DOCUMENTS_TO_CHOOSE:
            alone = TemperatureScaling().cross_fit(data.pairs, data.documents, data.n_tags, self.n_folds)
        before, after = (log_losses(scores, pairs.hits).sum() for scores in (alone[data.kept], in_context))
        return bool(after < before)

    def _smallest(self, data: TokenData, group: Callable[[Grouping], Groups], why: str, scalable: bool) -> Chosen:
        """One temperature for all tags; nothing where held-out documents (or blocks) lose by over a standard error.

        A scaling that moves tags against one another takes its place where it is better by so much, on documents enough
        to say so: a head, or a language model, that prefers some labels.

        why (str): Why no more is tried. scalable (bool): As in `__call__`.
        """
        pairs, documents = data.kept_pairs, data.kept_documents
        blocks = len(np.unique(documents)) < DOCUMENTS_TO_CHOOSE
        units, of_all = (pairs.rows, data.pairs.rows) if blocks else (documents, data.documents)
        line = TemperatureScaling()
        safe: dict[str, Recalibrator] = {NOTHING: Identity(), **({} if scalable else {Temperature.short: Temperature()})}
        scalings: dict[str, Scaling] = {line.short: line} if scalable else {}
        if len(np.unique(units)) < 2:
            chosen = Candidate(1, NOTHING, False)
            return Chosen(grouping_of(1), Identity(), None, None, data.pairs.scores, _untried(chosen, why))
        if scalable and not blocks:
            scalings |= {name: one.clone() for name, one in self.scalings.items()}
        held_out, tried = self._scale(scalings, data, of_all)
        groups = group(grouping_of(1))
        found = select_method(pairs, units, lambda _: groups, safe, [1], n_folds=self.n_folds, scaled=tried, offsets=None)
        # With so little data comparing is mostly chance: the temperature goes only where it is clearly worse.
        near = [trial for trial in found.trials if trial.difference <= trial.error]
        chosen = min(near, key=lambda trial: (trial.size != 1, trial.size)).candidate
        scaled = held_out.get(chosen.scaling, data.pairs.scores)
        made = scalings.get(chosen.scaling)
        return Chosen(grouping_of(1), safe[chosen.method].clone(), None, made, scaled, _untried(chosen, why))


def _untried(chosen: Candidate, why: str) -> dict[str, Any]:
    """The table of a choice without trials. why (str): Why there are none."""
    return {"chosen": str(chosen), "too_few": why, "dropped": 0, "folds": 0, "pairs": 0, "documents": 0, "trials": []}


def grouping_of(number: int | None) -> Grouping:
    """Tag frequency groups of this number; None groups each tag by itself."""
    return one_group_per_tag if number is None else partial(tag_frequency_groups, n_groups=number)
