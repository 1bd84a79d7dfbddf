"""Warnings after a fit: sets of tags that promise nothing for some tokens, and settings that change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, Any

from ...calibration.sufficiency import tokens_for_sets
from ...errors import calib_error
from ..shared.screen import first_of, msg, number

if TYPE_CHECKING:
    from ...pipe.fit_info import FitInfo

_TAGS_NAMED = 8


def warn_of_promises(info: FitInfo) -> None:
    """Warn where the sets promise nothing, and where tag offsets are all 0."""
    if info.sets:
        warn_of_sets(info.sets, f"{info.row_unit}s")
    if info.pooling and info.pooling["strength"] is info.pooling["group_strength"] is None:
        warn_of_offsets(info.scaling)


def check_sets(info: FitInfo) -> None:
    """RAISES C131: there are so few tokens that no set short of all tags keeps the promise."""
    sets = info.sets
    if sets and sets["tokens"] < tokens_for_sets(sets["alpha"])[0]:
        alpha, n = sets["alpha"], sets["tokens"]
        reached = ceil(1000 / (n + 1)) / 1000
        raise calib_error("C131", alpha=alpha, rows=f"{info.row_unit}s", n=n, least=tokens_for_sets(alpha)[0], reached=reached)


def warn_of_sets(sets: Mapping[str, Any], rows: str) -> None:
    """Say for which tags, or for how many tokens, the sets promise nothing, and how many would be empty. rows (str): What has sets."""
    worth = tokens_for_sets(sets["alpha"])[1]
    if sets["tokens"] < worth:
        msg.warn(
            f"The sets are made of {sets['tokens']:,} {rows}: what they miss may be far from {100 * sets['alpha']:g} %, for which {worth:,} "
            "at least are wanted; give more data or ask for less (--sets)"
        )
    share = f"{number(100 * sets['out_of_reach'], 1)} % of the fit {rows}"
    tags = sets["unreached"]
    if tags:
        others = sets["tags"] - len(tags)
        held = f"; it holds for each of the other {others}" if others else ", so that there are no sets"
        msg.warn(
            f"The sets can promise nothing for {len(tags)} tags ({share}), seen too seldom or scored too low: {name_tags(tags)}{held}"
        )
    elif sets["out_of_reach"]:
        msg.warn(
            f"The sets can promise nothing for {share}, which have none: "
            f"there are too few {rows}, or the right tag is below the threshold too often; ask for less (--sets)"
        )
    if sets["empty"]:
        what = (
            "their sets hold the likeliest tag alone (--allow-empty-sets leaves them empty)"
            if sets["nonempty"]
            else "their sets are empty (without --allow-empty-sets they hold the likeliest tag)"
        )
        msg.warn(
            f"No tag of {number(100 * sets['empty'], 1)} % of the fit {rows} is sure enough for sets that may miss "
            f"{100 * sets['alpha']:g} %: {what}; ask for less than the error rate (--sets) to have none of these"
        )


def warn_of_offsets(scaling: Mapping[str, Any] | None) -> None:
    """Say that tag offsets were asked for and are all 0."""
    biased = scaling is not None and scaling.get("biased")
    why = "the scaling has a bias for each tag already" if biased else "no tag differs from its group by more than chance"
    msg.warn(f"The tag offsets change nothing: all are 0, as {why}; leave out --tag-offsets")


def name_tags(tags: list[str]) -> str:
    """The first few tags, and how many more there are."""
    return first_of(tags, _TAGS_NAMED)
