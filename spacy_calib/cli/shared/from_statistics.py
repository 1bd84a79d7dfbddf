"""Statistics of shards on the command line: `--from STATS...` in the place of DATA, and the files that it names."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ...errors import CalibError, calib_error
from .checks import check_option
from .command import MORE_OPTIONS, CalibCommand

if TYPE_CHECKING:
    from ...statistics.collected import FitStatistics
    from ...statistics.judged import JudgedStatistics

# Newer versions of typer have a click of their own.
_CLICK_ERRORS: Any = import_module(typer.BadParameter.__module__)
S = TypeVar("S")
SUFFIX = ".npz"

From = Annotated[
    list[Path],
    typer.Option(
        "--from",
        metavar="STATS...",
        help="Statistics that `calib collect` wrote, files or folders of them, in the place of DATA",
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
    for option, given in of_documents.items():
        if statistics and given:
            raise calib_error("C435", option=option)


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


def statistics_files(paths: Iterable[Path]) -> list[Path]:
    """The files at these paths. RAISES C434: there is nothing, or a folder without any."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path] if path.is_file() else []
        if not inside:
            raise calib_error("C434", path=path, wanted=f"a folder with {SUFFIX} files" if path.is_dir() else "a file")
        found += inside
    return found


def read_all(paths: Iterable[Path], read: Callable[[bytes, Path], S], merged: Callable[[Sequence[S]], S]) -> S:
    """All statistics as one, with two files in memory at a time.

    read (Callable): The content and path of a file -> statistics. RAISES C434: see `statistics_files`. C436: a file holds a shard that another
        one holds, or is of another kind. And what else `read` and `merged` raise.
    """
    files = statistics_files(paths)
    found = read(_content(files[0]), files[0])
    for path in files[1:]:
        part = read(_content(path), path)
        try:
            found = merged([found, part])
        except CalibError as error:
            if error.code not in ("C425", "C426"):
                raise
            raise calib_error("C436", path=path, why=error.message) from None
    return found


def read_fit_statistics(paths: Iterable[Path]) -> FitStatistics:
    """What a fit is to learn from. RAISES C427 to C430, C434, C436: the files, and whether they go together."""
    from ...statistics.collected import FitStatistics

    found = read_all(paths, FitStatistics.from_bytes, FitStatistics.merged)
    found.check_complete()
    return found


def read_judged(paths: Iterable[Path]) -> JudgedStatistics:
    """What a pipe is to be judged on. RAISES C427 to C430, C434, C436: the files, and whether they go together."""
    from ...statistics.judged import JudgedStatistics

    found = read_all(paths, JudgedStatistics.from_bytes, JudgedStatistics.merged)
    found.check_complete()
    return found


def read_any(paths: Iterable[Path]) -> FitStatistics | JudgedStatistics:
    """What the files at these paths hold together, of all shards or of some, for whatever they were collected.

    RAISES C427, C429, C430, C434, C436.
    """
    from ...statistics.collected import FitStatistics
    from ...statistics.judged import JudgedStatistics

    files = statistics_files(paths)
    try:
        FitStatistics.from_bytes(_content(files[0]), files[0])
    except CalibError as error:
        if error.code != "C430":
            raise
        return read_all(files, JudgedStatistics.from_bytes, JudgedStatistics.merged)
    return read_all(files, FitStatistics.from_bytes, FitStatistics.merged)


def describe_statistics(found: FitStatistics | JudgedStatistics) -> dict[str, Any]:
    """What is in a file of statistics, as plain data."""
    from ...statistics.collected import FitStatistics

    return _of_fit(found) if isinstance(found, FitStatistics) else _of_judged(found)


def _of_judged(found: JudgedStatistics) -> dict[str, Any]:
    return {
        "statistics_for": "evaluate",
        "pipe": found.about["name"],
        "component": found.identity.component,
        "layer": found.about["layer"],
        "labels": list(found.identity.labels),
        "threshold": found.identity.threshold,
        "weights": found.identity.weights,
        "reading": found.identity.reading,
        "key": found.identity.key or None,
        "documents": found.n_documents,
        "tokens": found.tokens.units,
        "pairs": found.tokens.total,
        "spans": None if found.spans is None else found.spans.total,
        "shards": [vars(shard) for shard in found.shards],
    }


def _of_fit(found: FitStatistics) -> dict[str, Any]:
    identity = found.identity
    return {
        "statistics_for": "fit",
        "component": identity.component,
        "layer": identity.layer,
        "labels": list(identity.labels),
        "threshold": identity.threshold,
        "event": identity.event,
        "weights": identity.weights,
        "reading": identity.reading,
        "key": identity.key or None,
        "documents": found.n_documents,
        "tokens": found.totals.n_with_gold,
        "pairs": found.pairs.total,
        "pairs_in_all": found.size,
        "sampled_documents": found.sample.readings.n_documents,
        "sampled_pairs": found.sample.n_pairs,
        "shards": [vars(shard) for shard in found.shards],
    }


def holds_statistics(path: str) -> bool:
    """Whether a file of statistics is named, be it there or not, or a folder of them, and no pipeline."""
    folder = Path(path)
    if folder.is_dir():
        return not (folder / "config.cfg").exists() and any(folder.glob(f"*{SUFFIX}"))
    return path.endswith(SUFFIX)


def _content(path: Path) -> bytes:
    """RAISES C427: the system does not give it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise calib_error("C427", path=path, why=error.strerror or error) from None
