"""Dotted settings of the pipe on the command line, which typer cannot read."""

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
    """A command with dotted settings anywhere; other unknown options stay an error, unlike those of `spacy train`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        plain_arguments, dotted_settings = split_overrides(args)
        ctx.meta[MORE_OPTIONS] = {"overrides": partial(read_overrides, dotted_settings)}
        return super().parse_args(ctx, plain_arguments)


def read_overrides(dotted_settings: Sequence[str]) -> dict[str, Any]:
    """Return dotted settings by name. Values are read as in `spacy train`, but numbers to the last bit, as in other options."""
    settings: dict[str, Any] = {}
    remaining = list(dotted_settings)
    while remaining:
        setting, equals, value = remaining.pop(0).removeprefix("--").partition("=")
        if not equals:
            value = remaining.pop(0) if remaining and not remaining[0].startswith("--") else "true"
        try:
            settings[setting] = json.loads(value, parse_constant=str)  # NaN and Infinity are no values of a config
        except ValueError:
            settings[setting] = value
    return settings


def split_overrides(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return (the arguments without dotted settings, these with their values); a setting without a value is true."""
    plain_arguments: list[str] = []
    dotted_settings: list[str] = []
    remaining = list(args)
    while remaining:
        argument = remaining.pop(0)
        if argument == "--":
            return [*plain_arguments, argument, *remaining], dotted_settings
        if not _DOTTED.fullmatch(argument):
            plain_arguments.append(argument)
            continue
        dotted_settings.append(argument)
        if "=" not in argument and remaining and not remaining[0].startswith("--"):
            dotted_settings.append(remaining.pop(0))
    return plain_arguments, dotted_settings


def override_path(name: str, setting: str) -> list[str]:
    """Return the path of a dotted setting in the block of this pipe. RAISES C170: it names no place in it."""
    prefix = f"components.{name}."
    path = setting.removeprefix(prefix).split(".")
    if not setting.startswith(prefix) or not all(path):
        raise calib_error("C170", option=f"--{setting}", name=name, prefix=f"--{prefix}")
    return path


def override(name: str, settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with the dotted ones in place; a new function drops the old one's. RAISES C170: see `override_path`."""
    new_settings = copy.deepcopy(dict(settings))
    places = [(override_path(name, setting), value) for setting, value in overrides.items()]
    for path, value in sorted(places, key=lambda place: (not place[0][-1].startswith("@"), place[0])):
        block = new_settings
        for part in path[:-1]:
            if not isinstance(block.get(part), dict):
                block[part] = {}
            block = block[part]
        if path[-1].startswith("@") and block.get(path[-1]) != value:
            block.clear()
        block[path[-1]] = value
    return new_settings
