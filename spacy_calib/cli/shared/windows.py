"""Windows that earlier runs of `calib watch` wrote, of many files added up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...corpus.visible import shown_path
from ...errors import CalibError, calib_error
from ...pipe.loading import reason
from .examples import text_files
from .outputs import is_same

if TYPE_CHECKING:
    from ...pipe.component import Calibrator
    from ...pipe.monitor import Monitor

WINDOWS = ".jsonl"


def holds_windows(path: Path) -> bool:
    """Whether there are windows at a path, and no texts: by the first line there that is not empty.

    RAISES C051, C073: there is nothing that can be read, see `text_files`.
    """
    from ...expect.windows import MARK

    file = text_files(path)[0]
    if file.suffix != WINDOWS or not file.is_file():
        return False
    first = next(_lines(file), None)
    return first is not None and isinstance(first[1], dict) and MARK in first[1]


def _lines(file: Path) -> Iterator[tuple[int, Any]]:
    """(number from 1, what stands there) of each line that is not empty; a line that is no JSON as None.

    RAISES C239: the file cannot be read.
    """
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        yield number, json.loads(line)
                    except (ValueError, RecursionError):
                        yield number, None
    except (OSError, UnicodeDecodeError) as error:
        raise calib_error("C239", where=file, why=reason(error)) from None


def read_windows(pipe: Calibrator, paths: Iterable[Path], rate: float = 1000, confidence: float = 0.95) -> Monitor:
    """A monitor with the windows of these files, or of the .jsonl files of these folders, all added up.

    rate, confidence (float): See `Monitor`. RAISES C237, C238, C239: a line is no window, or not one of this pipe, or they differ in size.
        C051, C073: there is no file. C243: a file is named twice. C236: the pipe keeps no record of its fit.
    """
    from ...expect.windows import read_line
    from ...pipe.monitor import Monitor
    from ...schema import Misfit

    files = window_files(paths)
    monitor = None
    for file in files:
        held = list(_lines(file))

        def where(place: int, file: Path = file, numbers: Sequence[int] = [number for number, _ in held]) -> str:
            return f"line {numbers[place - 1]} of {shown_path(file)}"

        if held and monitor is None:
            try:
                window = read_line(held[0][1]).window
            except Misfit as why:
                raise calib_error("C239", where=where(1), why=why) from None
            monitor = Monitor(pipe, window, rate, confidence=confidence)
        if monitor is not None:
            monitor.add_lines((line for _, line in held), where)
    if monitor is None:
        raise calib_error("C239", where=" and ".join(map(str, files)), why="there is no line")
    return monitor


def accuracy_of_fit(pipe: Calibrator) -> float:
    """That of the fit data, beside which windows are drawn. RAISES C236: the pipe keeps no record of its fit."""
    if pipe.learned.record is None:
        raise calib_error("C236", name=pipe.name)
    return pipe.learned.record.accuracy


def window_files(paths: Iterable[Path]) -> list[Path]:
    """The files at these paths. RAISES C051, C073: there is none. C243: one of them is named twice."""
    files: list[Path] = []
    for file in (file for path in paths for file in text_files(path)):
        if any(is_same(file, other) for other in files):
            raise calib_error("C243", path=file)
        files.append(file)
    return files


def windows_over_time(pipes: Sequence[Calibrator], path: Path) -> dict[str, Any]:
    """What the page shows of windows, judged by the pipe that they belong to.

    RAISES C237: they belong to none of these. C238, C239, C243: see `read_windows`.
    """
    from ...pages.series_plots import section_of

    for pipe in pipes:
        try:
            found = read_windows(pipe, [path]).snapshot(closing=True)
        except CalibError as error:
            if error.code not in ("C236", "C237") or pipe is pipes[-1]:
                raise
        else:
            break
    return section_of(found, f"{pipe.source.component or 'scores'} on {path.name}", accuracy_of_fit(pipe))
