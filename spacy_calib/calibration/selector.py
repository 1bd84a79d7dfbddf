"""The setting that lets a fit choose its steps; `choice` has the code of the choice, which is imported only by a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import calib_error
from ..pairs.bins import check_count
from ..registry import recalibrators
from .recalibrators import Recalibrator


@dataclass(frozen=True)
class Selector:
    """The candidates among which a fit chooses its steps: it takes the one of minimum cross-validated log loss.

    Candidates are vector scaling, a context alone or after vector scaling, and each method with each number of tag frequency
    groups. If a token may have several labels, Platt scaling with these numbers of groups replaces vector scaling. Raw scores
    are chosen only if all others lose by more than a standard error. Folds are of documents; with few documents they are of
    blocks of tokens, and only vector (or Platt) scaling and a required context are tried.
    methods (Mapping[str, Recalibrator]): Name -> prototype of a map. n_groups (Sequence[int]): Numbers of groups to try.
    """

    methods: Mapping[str, Recalibrator]
    n_groups: Sequence[int]


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
    if not n_groups:
        raise calib_error("C001", name="n_groups", wanted="at least one number of groups", given="none")
    return Selector({name: prototypes[name] for name in methods}, [check_count("n_groups", n) for n in n_groups])
