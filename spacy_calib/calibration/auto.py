"""Choosing scaling, grouping, map and tag offsets at a fit, where there are documents enough to choose on. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import calib_error
from ..metrics.proper import log_losses
from ..pairs.bins import check_count
from ..pairs.documents import DOCUMENT
from ..schema import flag, listed, maybe, number, optional, record, text, whole
from ..types import Floats, Grouping, Groups, Pairs
from .candidates import CONTEXT, NOTHING, Candidate, ScaledScores, select_method
from .grouping.one_vs_rest import one_group_per_tag
from .grouping.tag_frequency import tag_frequency_groups
from .recalibrators import Identity, Recalibrator, Temperature
from .scaling import Scaling
from .sufficiency import too_few_to_choose
from .tag_offsets import TagOffsets
from .token_fit import Chosen, LearnContext, TokenData

# Of so many pairs and fewer than the second number the differences between candidates are mostly chance: a context, which is drawn towards a line for all tags, is
# taken without them where it is better than raw.
_PAIRS_FOR_CONTEXT, _PAIRS_TO_COMPARE = 200, 10_000

# The saved form of the table of what a selection chose from.
_TRIAL = record(
    {
        "candidate": text, "scaling": text, "groups": maybe(whole(1)), "method": text, "pooled": flag, "loss": number(),
        "difference": number(), "error": number(), "size": whole(),
    }
)  # fmt: skip
SELECTION = record(
    {
        "chosen": text, "too_few": optional(text, ""), "dropped": optional(whole(), 0), "folds": whole(), "pairs": whole(),
        "documents": whole(), "trials": listed(_TRIAL),
    }
)  # fmt: skip


class Selector:
    """Chooses scaling, grouping, map and tag offsets for a fit.

    methods (Mapping[str, Recalibrator]): Name -> prototype of a map to try. scalings (Mapping[str, Scaling]): Name -> prototype of a scaling
        to try, beside none at all.
    n_folds (int): Of the cross-validation. n_groups (Sequence[int]): Numbers of tag frequency groups to try. one_vs_rest (bool): Whether
        each tag alone is tried too.
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
        """Scores below it take no part in a scaling."""
        return min((scaling.floor for scaling in self.scalings.values()), default=1.0)

    def __call__(
        self,
        data: TokenData,
        group: Callable[[Grouping], Groups],
        scalable: bool = True,
        learn_context: LearnContext | None = None,
    ) -> Chosen:
        """What `select_method` chooses; one temperature for all tags, or none, where there is too little data to choose.

        group: Grouping -> Groups of the labels, with those labels apart that stand alone. scalable (bool): False where a token may have
            several labels, so that they cannot be scaled beside one another.
        learn_context (LearnContext | None): Learns the context, which is tried as a scaling is; None leaves it out.
        """
        pairs, documents = data.kept_pairs, data.kept_documents
        # Of a document with several labels each is a question of its own; of a token they are nearly one.
        alone = data.unit == DOCUMENT and not scalable
        n_questions = len(pairs) if alone else len(np.unique(pairs.rows))
        context = None
        if learn_context is not None:
            context = learn_context(pairs, data.others.take(data.kept_others), documents, data.words)
        few = too_few_to_choose(len(np.unique(documents)), n_questions, len(pairs), data.unit)
        in_context = []
        if context is not None and not context.why:
            in_context = [ScaledScores(CONTEXT, context.held_out, context.size, True)]
        settled = context is not None and bool(in_context) and (context.always or _needs_no_rival(pairs, context.held_out))
        if few:
            if not settled:
                return replace(self._smallest(data, group, few), context=context)
            table = _untried(Candidate(1, NOTHING, False, CONTEXT), few)
            return Chosen(grouping_of(1), Identity(), None, None, data.pairs.scores, table, context).in_context(data)
        scalings = {name: prototype.clone() for name, prototype in self.scalings.items() if scalable and not settled}
        every = {
            name: scaling.cross_fit(data.pairs, data.documents, data.n_tags, self.n_folds) for name, scaling in scalings.items()
        }
        scaled = [ScaledScores(name, every[name][data.kept], one.size(), one.biased) for name, one in scalings.items()]
        found = select_method(
            pairs,
            documents,
            lambda number: group(grouping_of(number)),
            self.methods,
            self.numbers,
            n_folds=self.n_folds,
            scaled=in_context if settled else [*scaled, *in_context],
            bare=not settled,
        )
        chosen = found.chosen
        made = Chosen(
            grouping_of(chosen.n_groups),
            {NOTHING: Identity(), **self.methods}[chosen.method].clone(),
            TagOffsets() if chosen.offsets else None,
            scalings.get(chosen.scaling),
            every.get(chosen.scaling, data.pairs.scores),
            found.to_dict(),
            context,
        )
        return made.in_context(data) if chosen.scaling == CONTEXT else made

    def _smallest(self, data: TokenData, group: Callable[[Grouping], Groups], why: str) -> Chosen:
        """One temperature for all tags, or nothing where held-out documents (of one document, blocks of tokens) see no use in it.

        why (str): There is too little data to try more.
        """
        pairs, documents = data.kept_pairs, data.kept_documents
        units = documents if len(np.unique(documents)) > 1 else pairs.rows
        safe: dict[str, Recalibrator] = {NOTHING: Identity(), Temperature.short: Temperature()}
        chosen = Candidate(1, NOTHING, False)
        if len(np.unique(units)) > 1:
            found = select_method(
                pairs,
                units,
                lambda number: group(grouping_of(number)),
                safe,
                [1],
                n_folds=self.n_folds,
                offsets=None,
            )
            chosen = found.chosen
        return Chosen(grouping_of(1), safe[chosen.method].clone(), None, None, data.pairs.scores, _untried(chosen, why))


def _needs_no_rival(pairs: Pairs, in_context: Floats) -> bool:
    """Whether a context is taken without a comparison. in_context (Floats): The score of each pair by one that did not see its document."""
    before, after = (log_losses(scores, pairs.hits).sum() for scores in (pairs.scores, in_context))
    return bool(_PAIRS_FOR_CONTEXT <= len(pairs) < _PAIRS_TO_COMPARE and after < before)


def _untried(chosen: Candidate, why: str) -> dict[str, Any]:
    """The table of a choice without trials. why (str): There is too little data for them."""
    return {"chosen": str(chosen), "too_few": why, "dropped": 0, "folds": 0, "pairs": 0, "documents": 0, "trials": []}


def grouping_of(number: int | None) -> Grouping:
    """Tag frequency groups of this number; None gives each tag a group of its own."""
    return one_group_per_tag if number is None else partial(tag_frequency_groups, n_groups=number)
