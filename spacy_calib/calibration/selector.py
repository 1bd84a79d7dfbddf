"""The setting that lets a fit choose its steps; the code of the choice is imported only by a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import calib_error
from ..pairs.bins import check_count
from ..pairs.progress import UNREPORTED, Progress
from ..registry import recalibrators
from ..types import Grouping, Groups
from .recalibrators import Recalibrator

if TYPE_CHECKING:
    from .token_fit import CalibrationPlan, FitData, LearnContext


class Selector:
    """Chooses the steps of a fit: the candidate of minimum cross-validated log loss.

    Candidates are vector scaling, a context alone or after vector scaling, and each method with each number of tag frequency
    groups. If a token may have several labels, Platt scaling with these numbers of groups replaces vector scaling. Raw scores
    are chosen only if all others lose by more than a standard error. Folds are of documents; with few documents they are of
    blocks of tokens, and only vector (or Platt) scaling is tried.

    methods (Mapping[str, Recalibrator]): Name -> prototype of a map. n_groups (Sequence[int]): Numbers of groups to try.
    RAISES C001: a setting out of range.
    """

    def __init__(self, methods: Mapping[str, Recalibrator], n_groups: Sequence[int] = (1, 5)):
        self.methods = dict(methods)
        self.n_groups = [check_count("n_groups", n) for n in n_groups]
        if not self.n_groups:
            raise calib_error("C001", name="n_groups", wanted="at least one number of groups", given="none")

    def __call__(
        self,
        data: FitData,
        group: Callable[[Grouping], Groups],
        scalable: bool = True,
        learn_context: LearnContext | None = None,
        progress: Progress = UNREPORTED,
    ) -> CalibrationPlan:
        """Choose the plan of the steps for these pairs.

        group (Callable): Takes a grouping and returns the groups of the labels. scalable (bool): False if a token may have
            several labels. learn_context (LearnContext | None): Fits a context; None tries no context.
        """
        from .choice import ChoiceInputs, choose_plan  # imported by a fit only

        return choose_plan(self, ChoiceInputs(data, group, scalable, learn_context), progress)


def make_selector(methods: Sequence[str] = ("isotonic",), n_groups: Sequence[int] = (1, 5)) -> Selector:
    """Make the selector of the setting `selection`.

    methods (list[str]): Short names of recalibrators to compare, in addition to vector scaling and the context.
    n_groups (list[int]): Numbers of tag frequency groups to try with each recalibrator.
    RAISES C001: a setting out of range, or an unknown name. C185: two registered objects have one short name.
    """
    prototypes = recalibrators()
    unknown = [name for name in methods if name not in prototypes]
    if unknown:
        raise calib_error("C001", name="methods", wanted=f"some of {', '.join(prototypes)}", given=unknown)
    return Selector({name: prototypes[name] for name in methods}, n_groups)
