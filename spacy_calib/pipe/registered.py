"""Registered objects by their short names on the command line, and the functions that make a selection and a context."""

from __future__ import annotations

from typing import Any

from ..calibration import registered
from ..calibration.registered import by_short
from ..calibration.selector import Selector
from ..context.features import FEATURES
from ..context.tokens import FurtherScores, TokenContext
from ..errors import calib_error


def metrics() -> dict[str, Any]:
    """Return short name -> metric. RAISES C185: two metrics have one short name."""
    return by_short("calib_metrics")


def make_selector(
    methods: list[str] = ["isotonic"],  # noqa: B006  (the config's default; never changed)
    n_groups: list[int] = [1, 5],  # noqa: B006
) -> Selector:
    """Make the selection of a config. Registered as spacy-calib.Auto.v1.

    methods (list[str]): Short names of recalibrators to compare, in addition to vector scaling and the context.
    n_groups (list[int]): Numbers of tag frequency groups to try with each.
    RAISES C001: a setting out of range, or an unknown name. C185: two registered objects have one short name.
    """
    recalibrators = registered.recalibrators()
    unknown = [name for name in methods if name not in recalibrators]
    if unknown:
        raise calib_error("C001", name="methods", wanted=f"some of {', '.join(recalibrators)}", given=unknown)
    return Selector({name: recalibrators[name] for name in methods}, n_groups)


def make_context(when: str = "always", features: list[str] | None = None, shrink: float = 0.0) -> TokenContext:
    """Make the token context of a config. Registered as spacy-calib.Context.v1.

    when (str): "always", or "no_worse": only if the log loss on held-out documents is no higher with the context.
    features (list[str] | None): Names from FEATURES; None takes all.
    shrink (float): How far scores shrink towards a straight line through the raw log-odds, which is fitted where predictions
        and gold follow one convention: 0 not at all, 1 fully.
    RAISES C001: a setting out of range, or an unknown name.
    """
    names = list(FEATURES) if features is None else features
    unknown = [name for name in names if name not in FEATURES]
    if unknown:
        raise calib_error("C001", name="features", wanted=f"some of {', '.join(FEATURES)}", given=unknown)
    return TokenContext([FEATURES[name] for name in dict.fromkeys(names)], when, shrink)


def make_further_scores() -> FurtherScores:
    """Make an unfitted FurtherScores, for loading; it is no setting. Registered as spacy-calib.FurtherScores.v1."""
    return FurtherScores()
