"""What typer cannot read: dotted settings of the pipe."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...errors import calib_error
from .command import MORE_OPTIONS, CalibCommand

_DOTTED = re.compile(r"--[^=\s]+\.[^=\s]+(=.*)?", re.DOTALL)


class WithOverrides(CalibCommand):
    """A command that takes dotted settings wherever they stand; every other option that it does not know stays an error.

    `spacy train` lets all unknown options pass instead, and then takes them for its arguments where one of those is missing.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        others, dotted = split_overrides(args)
        ctx.meta[MORE_OPTIONS] = {"overrides": partial(read_overrides, dotted)}
        return super().parse_args(ctx, others)


def read_overrides(dotted: Sequence[str]) -> dict[str, Any]:
    """Dotted settings by name. Values are read as in `spacy train`, but numbers to the last bit, as in other options."""
    settings: dict[str, Any] = {}
    left = list(dotted)
    while left:
        setting, equals, value = left.pop(0).removeprefix("--").partition("=")
        if not equals:
            value = left.pop(0) if left and not left[0].startswith("--") else "true"
        try:
            settings[setting] = json.loads(value, parse_constant=str)  # NaN and Infinity are no values of a config
        except ValueError:
            settings[setting] = value
    return settings


def split_overrides(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without the dotted settings, and those with their values; a setting without a value is true."""
    others: list[str] = []
    dotted: list[str] = []
    left = list(args)
    while left:
        argument = left.pop(0)
        if argument == "--":
            return [*others, argument, *left], dotted
        if not _DOTTED.fullmatch(argument):
            others.append(argument)
            continue
        dotted.append(argument)
        if "=" not in argument and left and not left[0].startswith("--"):
            dotted.append(left.pop(0))
    return others, dotted


def override_path(name: str, setting: str) -> list[str]:
    """Where a dotted setting belongs in the block of the pipe with this name.

    RAISES C170: in no place of it.
    """
    prefix = f"components.{name}."
    path = setting.removeprefix(prefix).split(".")
    if not setting.startswith(prefix) or not all(path):
        raise calib_error("C170", option=f"--{setting}", name=name, prefix=f"--{prefix}")
    return path


def override(name: str, settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the pipe with this name, with the dotted ones in their places; the settings given are not changed.

    Where another function is named (@calib_recalibrators), the settings of the one before are dropped.
    RAISES C170: see `override_path`.
    """
    changed = copy.deepcopy(dict(settings))
    places = [(override_path(name, setting), value) for setting, value in overrides.items()]
    for path, value in sorted(places, key=lambda place: (not place[0][-1].startswith("@"), place[0])):
        block = changed
        for part in path[:-1]:
            if not isinstance(block.get(part), dict):
                block[part] = {}
            block = block[part]
        if path[-1].startswith("@") and block.get(path[-1]) != value:
            block.clear()
        block[path[-1]] = value
    return changed
