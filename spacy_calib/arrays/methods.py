"""An estimator's parameters -> the steps of a calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ..calibration.auto import Selector
from ..calibration.grouping.tag_frequency import tag_frequency_groups
from ..calibration.recalibrators import IsotonicRegression, Recalibrator
from ..calibration.registered import recalibrators, scalings
from ..calibration.scaling import Scaling
from ..calibration.sets import ConformalSets
from ..calibration.tag_offsets import TagOffsets
from ..errors import calib_error
from ..pairs.bins import check_count
from ..pairs.marginals import check_threshold
from ..types import Grouping

Part = TypeVar("Part", Recalibrator, Scaling)

AUTO = "auto"


@dataclass(frozen=True, eq=False, kw_only=True)
class ArraySteps:
    """The steps that an estimator's parameters ask for; a `StepSettings`, with what is promised of the scores beside it."""

    threshold: float
    grouping: Grouping
    scaling: Scaling | None
    recalibrator: Recalibrator
    pooling: TagOffsets | None
    selection: Selector | None
    sets: ConformalSets | None


def steps_of(*, method: Any, n_groups: int, scaling: Any, tag_offsets: Any, threshold: float, sets: Any) -> ArraySteps:
    """The parameters as steps, see `TagCalibrator`.

    RAISES C001: one out of range. C293: scaling or tag offsets beside the method "auto".
    """
    grouping = partial(tag_frequency_groups, n_groups=check_count("n_groups", n_groups))
    pooling = tag_offsets if isinstance(tag_offsets, TagOffsets) else TagOffsets() if tag_offsets else None
    before = None if scaling is None else _named("scaling", scaling, scalings())
    selection = None
    if isinstance(method, str) and method == AUTO:
        for name, given in (("scaling", before), ("tag_offsets", pooling)):
            if given is not None:
                raise calib_error("C293", setting=name)
        tried = {name: one for name, one in recalibrators().items() if one.tried_by_auto}
        selection = Selector(tried, {name: one for name, one in scalings().items() if one.tried_by_auto})
        method = IsotonicRegression()
    return ArraySteps(
        threshold=check_threshold(threshold),
        grouping=grouping,
        scaling=before,
        recalibrator=_named("method", method, recalibrators(), (AUTO,)),
        pooling=pooling,
        selection=selection,
        sets=sets if sets is None or isinstance(sets, ConformalSets) else ConformalSets(sets, nonempty=True),
    )


def _named(setting: str, given: Any, known: Mapping[str, Part], others: tuple[str, ...] = ()) -> Part:
    """A part by its short or registered name; or itself, not fitted. RAISES C001: none of this name."""
    found = {**{one.registered: one for one in known.values()}, **known}
    if isinstance(given, str) and given in found:
        return found[given]
    if not isinstance(given, (Recalibrator, Scaling)) or not isinstance(given, Recalibrator if others else Scaling):
        kind = "a Recalibrator" if others else "a Scaling"
        raise calib_error("C001", name=setting, wanted=f"one of {', '.join((*others, *known))}, or {kind}", given=repr(given))
    return given.clone()  # type: ignore[return-value]
