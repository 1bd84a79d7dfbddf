"""What earlier runs wrote, many files of it added up: statistics of `calib collect`, and windows of `calib watch`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...corpus.visible import shown_path
from ...errors import CalibError, calib_error
from ...pipe.loading import reason
from .arguments import SUFFIX
from .examples import text_files
from .outputs import is_same

if TYPE_CHECKING:
    from ...pipe.component import Calibrator
    from ...pipe.monitor import Monitor
    from ...statistics.collected import FitStatistics
    from ...statistics.judged import JudgedStatistics


S = TypeVar("S")


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

    identity, pipe, event = found.identity, {}, {}
    if isinstance(found, FitStatistics):
        layer, event, pairs, tokens = identity.layer, {"event": identity.event}, found.pairs.total, found.totals.n_with_gold
        sampled = {"sampled_documents": found.sample.readings.n_documents, "sampled_pairs": found.sample.n_pairs}
        counts: dict[str, Any] = {"pairs_in_all": found.size, **sampled}
    else:
        layer, pipe, pairs, tokens = found.about["layer"], {"pipe": found.about["name"]}, found.tokens.total, found.tokens.units
        counts = {"spans": None if found.spans is None else found.spans.total}
    return {
        "statistics_for": "evaluate" if pipe else "fit",
        **pipe,
        "component": identity.component,
        "layer": layer,
        "labels": list(identity.labels),
        "threshold": identity.threshold,
        **event,
        "weights": identity.weights,
        "reading": identity.reading,
        "key": identity.key or None,
        "documents": found.n_documents,
        "tokens": tokens,
        "pairs": pairs,
        **counts,
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
