"""What typer cannot read: options with any number of values, which take the place of arguments, and dotted settings of the pipe."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import calib_error
from .checks import check_option
from .command import MORE_OPTIONS, CalibCommand, option

# Newer versions of typer have a click of their own.
_CLICK_ERRORS: Any = import_module(typer.BadParameter.__module__)


SUFFIX = ".npz"


From = Annotated[
    list[Path],
    option(
        "Statistics that `calib collect` wrote, files or folders of them, in the place of DATA", "--from", metavar="STATS..."
    ),
]


class TakesStatistics(CalibCommand):
    """A command whose option names any number of files of statistics, which take the place of some of its arguments.

    several (str): The option, whose values end with the next option. replaced (tuple[str, ...]): Arguments that are left out then.
    optional (tuple[str, ...]): Arguments that may be left out then.
    """

    several = "--from"
    replaced: tuple[str, ...] = ("data",)
    optional: tuple[str, ...] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if self.several not in args:
            return self._parse_instead(ctx, args)
        _leave_out(ctx, self.replaced)
        others, held = split_values(self.several, args)
        check_option(self.several, bool(held), "files or folders of statistics", "nothing")
        if len(held) > 1 and not held[-1].endswith(SUFFIX) and not os.path.exists(held[-1]):
            others, held = [*others, held[-1]], held[:-1]  # where the output will be
        try:
            return super().parse_args(ctx, spread(self.several, held, others))
        except _CLICK_ERRORS.MissingParameter:
            if len(held) < 2:
                raise
            # The last value is the argument that stands behind them.
            return super().parse_args(ctx, spread(self.several, held[:-1], [*others, held[-1]]))
        except _CLICK_ERRORS.UsageError as error:
            if "unexpected extra argument" not in str(error.message):
                raise
            raise calib_error("C433", option=self.several, given=self.replaced[0].upper()) from None

    def may_be_missing(self, args: list[str]) -> tuple[str, ...]:
        """The arguments that may be left out without statistics too."""
        return ()

    def _parse_instead(self, ctx: Any, args: list[str]) -> list[str]:
        """Where an argument is missing, those are that may be."""
        try:
            return super().parse_args(ctx, list(args))
        except _CLICK_ERRORS.MissingParameter:
            names = self.may_be_missing(args)
            if not names:
                raise
        _leave_out(ctx, names)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        left_out = {name for name, read in ctx.meta.get(MORE_OPTIONS, {}).items() if read is _nothing}
        if not left_out:
            return params
        kept = [copy.copy(one) if one.name in self.optional else one for one in params if one.name not in left_out]
        for one in kept:
            if one.name in self.optional:
                one.required = False
        return kept


def _nothing() -> None:
    """What stands for an argument that is left out."""


def _leave_out(ctx: Any, names: Iterable[str]) -> None:
    ctx.meta.setdefault(MORE_OPTIONS, {}).update(dict.fromkeys(names, _nothing))


def check_source(statistics: Sequence[Path], data: Path | None, of_documents: Mapping[str, Any]) -> None:
    """of_documents (Mapping): Option -> whether it is given, of those that look at documents. RAISES C433: both DATA and statistics, or neither.
    C435: such an option, beside statistics.
    """
    if bool(statistics) == (data is not None):
        raise calib_error("C433", option="--from", given="DATA")
    for flag, given in of_documents.items():
        if statistics and given:
            raise calib_error("C435", option=flag)


def split_values(option: str, args: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the other arguments, the values of an option): all that stands behind it up to the next option."""
    others: list[str] = []
    held: list[str] = []
    inside = False
    for one in args:
        if one == option or one.startswith(f"{option}="):
            inside = True
            held += [one.removeprefix(f"{option}=")] if one != option else []
        elif inside and not one.startswith("-"):
            held.append(one)
        else:
            inside = False
            others.append(one)
    return others, held


def spread(option: str, held: Sequence[str], others: Sequence[str]) -> list[str]:
    """The arguments with the option before each of its values."""
    return [*(word for value in held for word in (option, value)), *others]


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
    """Dotted settings by name, with values read as spaCy reads them."""
    from spacy.cli._util import parse_config_overrides

    return parse_config_overrides(list(dotted), env_var=None)


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
