"""What stands in the registries, by the short names of the command line and of the settings; and the selection that asks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..calibration import registered
from ..calibration.auto import Selector
from ..calibration.recalibrators import Recalibrator
from ..calibration.registered import by_short
from ..calibration.scaling import Scaling
from ..context.surroundings import FEATURES
from ..context.tokens import FurtherScores, TokenContext
from ..errors import calib_error

Prototype = TypeVar("Prototype", Recalibrator, Scaling)


def metrics() -> dict[str, Any]:
    """Short name -> metric. RAISES C185: two of them have one short name."""
    return by_short("calib_metrics")


def make_selector(
    n_folds: int = 5,
    n_groups: list[int] = [1, 3, 5, 12],  # noqa: B006  (the config's default; never changed)
    one_vs_rest: bool = True,
    methods: list[str] | None = None,
    scalings: list[str] | None = None,
) -> Selector:
    """Registered as spacy-calib.Auto.v1. The selection of a config, by names in the registries.

    methods, scalings (list[str] | None): Short names; None tries every registered one whose class says `tried_by_auto`.
    RAISES C001: a setting out of range. C185: two registered things have one short name.
    """
    maps: dict[str, Recalibrator] = _named("methods", methods, registered.recalibrators())
    before: dict[str, Scaling] = _named("scalings", scalings, registered.scalings())
    return Selector(maps, before, n_folds, n_groups, one_vs_rest)


def make_context(when: str = "always", features: list[str] | None = None, shrink: float = 0.0) -> TokenContext:
    """Registered as spacy-calib.Context.v1. The context of a config.

    features (list[str] | None): Names, of FEATURES; None takes all.
    shrink (float): How far scores shrink towards a straight line through the raw log-odds, which is fitted where the gold
        has no other convention: 0 not at all, 1 all the way.
    RAISES C001: a setting out of range, or another name.
    """
    names = list(FEATURES) if features is None else features
    unknown = [name for name in names if name not in FEATURES]
    if unknown:
        raise calib_error("C001", name="features", wanted=f"some of {', '.join(FEATURES)}", given=unknown)
    return TokenContext([FEATURES[name] for name in dict.fromkeys(names)], when, shrink)


def make_further_scores() -> FurtherScores:
    """Registered as spacy-calib.FurtherScores.v1. By this name what a fit learned of them is found again; it is no setting."""
    return FurtherScores()


def _named(setting: str, names: Sequence[str] | None, known: Mapping[str, Prototype]) -> dict[str, Prototype]:
    """Those of these names, in their order; None for those that `auto` tries by itself. RAISES C001: a name that is not known."""
    if names is None:
        return {name: prototype for name, prototype in known.items() if prototype.tried_by_auto}
    unknown = [name for name in names if name not in known]
    if unknown or (setting == "methods" and not names):
        raise calib_error("C001", name=setting, wanted=f"some of {', '.join(known)}", given=unknown or "none")
    return {name: known[name] for name in names}
