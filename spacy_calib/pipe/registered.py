"""Metrics by their short names, and the functions that make a context."""

from __future__ import annotations

from typing import Any

from ..context.features import FEATURES
from ..context.tokens import TokenContext
from ..errors import calib_error
from ..registry import by_short


def metrics() -> dict[str, Any]:
    """Return short name -> metric. RAISES C185: two metrics have one short name."""
    return by_short("calib_metrics")


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
