"""Outputs of `spacy calib evaluate`: JSON by the core; other files, by suffix, and further sections by plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...calibration.registered import entry_points_of, load_point
from ...errors import CalibError, brief, calib_error
from ..shared.command import check_option, read_parameters
from ..shared.outputs import is_stream

if TYPE_CHECKING:
    from .evaluation import Evaluation

NUMBERS = ".json"
# Name of the entry point that writes into a folder. Other names are suffixes, or names of tables that are added without a file.
FOLDER = "folder"
# Group of entry points of plug-ins: the value is a `Writer`, or a function as its `write`.
ENTRY_POINTS = "spacy_calib_outputs"


class Section(NamedTuple):
    """A section that is added to the tables.

    pipe, unit (str): The table that it is added to: "tokens", "documents" or "entities" of a pipe; without a pipe it is only
    printed, after all tables. key (str): Its key in JSON. rows (Any): Plain data. show (Callable | None): (rows, plural noun of
    the units) -> None, prints it.
    """

    pipe: str
    unit: str
    key: str
    rows: Any
    show: Callable[[Any, str], None] | None = None


@dataclass(frozen=True)
class Writer:
    """A writer of outputs.

    write (Callable): (evaluation, paths, **options) -> sections to add, or None. Its keyword parameters with an `option` are
    options of `evaluate`; it is called if a file is requested, or such an option is given. files (Callable): (paths, **options)
    -> the files that it will write; raises CalibError if these do not fit. fitted_only (bool): True if not for raw scores.
    """

    write: Callable[..., Iterable[Section] | None]
    files: Callable[..., Iterable[Path]] = lambda paths, **options: paths
    fitted_only: bool = False

    def __call__(self, evaluation: Evaluation, paths: Sequence[Path], **options: Any) -> list[Section]:
        """Write the files; return the sections to add. RAISES CalibError: nothing to write, or a file cannot be written."""
        return list(self.write(evaluation, paths, **options) or ())


class Request(NamedTuple):
    """A writer with the paths and the options that the user gave for it."""

    writer: Writer
    paths: list[Path]
    options: dict[str, Any]

    def files(self) -> list[Path]:
        """Return the files to write. RAISES CalibError: paths and options do not fit."""
        return list(self.writer.files(self.paths, **self.options))

    def write(self, evaluation: Evaluation) -> list[Section]:
        """Write the files; return the sections to add. RAISES CalibError: nothing to write, or a file cannot be written."""
        return self.writer(evaluation, self.paths, **self.options)


def is_json_output(path: Path) -> bool:
    """Whether the result is written to this path as JSON."""
    return is_stream(path) or path.suffix.lower() == NUMBERS


def option_functions() -> list[Callable[..., Any]]:
    """Return the functions of writers whose parameters are options of `evaluate`, of all writers that can be imported."""
    functions = []
    for points in _points_by_value().values():
        try:
            functions.append(_load_writer(points[0]).write)
        except CalibError:
            continue
    return functions


def find_requests(paths: Sequence[Path], options: Mapping[str, Any]) -> list[Request]:
    """Return the requests, those without a file first. RAISES C056, C749: no writer for a path. C105: a broken one."""
    points_by_value, requests = _points_by_value(), []
    values = [_point_for(path).value for path in paths]
    for value, points in points_by_value.items():
        writer_paths = [path for path, name in zip(paths, values, strict=True) if name == value]
        try:
            writer = _load_writer(points[0])
        except CalibError:
            if writer_paths:
                raise
            continue
        parameters = read_parameters(writer.write)
        writer_options = {parameter.name: options.get(parameter.name, parameter.default) for parameter in parameters}
        if writer_paths or any(writer_options[parameter.name] not in (parameter.default, [], ()) for parameter in parameters):
            requests.append(Request(writer, writer_paths, writer_options))
    return requests


def _is_file(name: str) -> bool:
    return name.startswith(".") or name == FOLDER


def _points_by_value() -> dict[str, list[EntryPoint]]:
    """Group the entry points by the writer that they load, which may have several suffixes; .json is left to the core."""
    points = [point for point in entry_points_of(ENTRY_POINTS) if point.name != NUMBERS]
    by_value: dict[str, list[EntryPoint]] = {}
    for point in sorted(points, key=lambda point: (_is_file(point.name), point.name)):
        by_value.setdefault(point.value, []).append(point)
    return by_value


def _point_for(path: Path) -> EntryPoint:
    """Return the entry point that writes a path. RAISES C056: no writer for such a file. C749: its package is not installed."""
    from ... import plugins

    points = {point.name: point for points in _points_by_value().values() for point in points if _is_file(point.name)}
    endings = "".join(path.suffixes).lower()
    name = max((name for name in points if endings.endswith(name)), key=len, default="")
    if not name:
        name = FOLDER if path.is_dir() or not path.suffix else path.suffix.lower()
    if name not in points:
        for package, names in plugins.OUTPUTS.items():
            if name in names:
                raise calib_error("C749", path=path, suffix=name, package=f"{plugins.__name__}.{package}")
        suffixes = [NUMBERS, *(name for name in points if name != FOLDER)]
        endings_text = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if suffixes[1:] else NUMBERS
        check_option(
            "--output", False, f"a file that ends in {endings_text}{', or a folder' if FOLDER in points else ''}", path
        )
    return points[name]


def _load_writer(point: EntryPoint) -> Writer:
    """Import a writer. RAISES C105: it cannot be imported, or is no function."""
    thing = f"The writer of {point.name} of `evaluate`"
    writer = load_point(point, thing)
    if not isinstance(writer, Writer) and not callable(writer):
        raise calib_error("C105", thing=thing, value=point.value, why=f"it is no function: {brief(repr(writer))}")
    return writer if isinstance(writer, Writer) else Writer(writer)
