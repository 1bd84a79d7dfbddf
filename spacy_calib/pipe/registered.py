"""What stands in the registries, by the short names of the command line and of the settings; and the selection that asks them."""

from __future__ import annotations

from typing import Any

from ..calibration import registered
from ..calibration.registered import by_short
from ..calibration.selector import Selector
from ..context.features import FEATURES
from ..context.tokens import FurtherScores, TokenContext
from ..errors import calib_error


def metrics() -> dict[str, Any]:
    """Short name -> metric. RAISES C185: two of them have one short name."""
    return by_short("calib_metrics")


def make_selector(
    methods: list[str] = ["isotonic"],  # noqa: B006  (the config's default; never changed)
    n_groups: list[int] = [1, 5],  # noqa: B006
) -> Selector:
    """Registered as spacy-calib.Auto.v1. The selection of a config.

    methods (list[str]): Short names of recalibrators that are compared besides vector scaling and the context.
    n_groups (list[int]): Numbers of tag frequency groups in which each is tried.
    RAISES C001: a setting out of range, or another name. C185: two registered things have one short name.
    """
    recalibrators = registered.recalibrators()
    unknown = [name for name in methods if name not in recalibrators]
    if unknown:
        raise calib_error("C001", name="methods", wanted=f"some of {', '.join(recalibrators)}", given=unknown)
    return Selector({name: recalibrators[name] for name in methods}, n_groups)


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
