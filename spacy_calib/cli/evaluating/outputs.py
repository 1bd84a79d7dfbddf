"""Outputs of `spacy calib evaluate`: JSON is the core's; plug-ins write other files, by suffix, and add tables to the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...calibration.registered import entry_points_of, load_point
from ...errors import CalibError, brief, calib_error
from ..shared.command import check_option, declared_parameters
from ..shared.outputs import is_stream

if TYPE_CHECKING:
    from .evaluation import Evaluation

NUMBERS = ".json"
# The name of an entry point that writes into a folder; others are suffixes, or name a table that is added without a file.
FOLDER = "folder"
# Entry points of plug-ins: the value is a `Writer`, or its function `write`.
ENTRY_POINTS = "spacy_calib_outputs"


class Section(NamedTuple):
    """A part of a result.

    pipe, unit (str): The table that it is added to: "tokens", "documents" or "entities" of a pipe; without a pipe it is only printed, after
    all tables. key (str): Its name in JSON. rows (Any): Plain data. show (Callable | None): Prints it, from the rows and the words for the units.
    """

    pipe: str
    unit: str
    key: str
    rows: Any
    show: Callable[[Any, str], None] | None = None


@dataclass(frozen=True)
class Writer:
    """What writes an output.

    write (Callable): (evaluation, paths, **options) -> the sections that it adds, or None. Its keyword parameters with an `option` are
    options of `evaluate`; it is called where a file is asked for, or such an option is given. files (Callable): (paths, **options) -> the
    files that it will write. RAISES CalibError: they do not fit. fitted_only (bool): Whether raw scores cannot be written.
    """

    write: Callable[..., Iterable[Section] | None]
    files: Callable[..., Iterable[Path]] = lambda paths, **options: paths
    fitted_only: bool = False

    def __call__(self, evaluation: Evaluation, paths: Sequence[Path], **options: Any) -> list[Section]:
        """Write the files; return what is added to the result. RAISES CalibError: there is nothing to write, or no place."""
        return list(self.write(evaluation, paths, **options) or ())


class Request(NamedTuple):
    """A writer, with the paths and the options that it was given."""

    writer: Writer
    paths: list[Path]
    options: dict[str, Any]

    def files(self) -> list[Path]:
        """Return the files that are written. RAISES CalibError: they do not fit."""
        return list(self.writer.files(self.paths, **self.options))

    def write(self, evaluation: Evaluation) -> list[Section]:
        """Return what the writer adds to the result. RAISES CalibError: see `Writer`."""
        return self.writer(evaluation, self.paths, **self.options)


def is_numbers(path: Path) -> bool:
    """Return whether a path gets the numbers, as JSON."""
    return is_stream(path) or path.suffix.lower() == NUMBERS


def option_functions() -> list[Callable[..., Any]]:
    """Return the functions whose parameters are options of `evaluate`. What cannot be imported has none."""
    functions = []
    for points in _points_by_value().values():
        try:
            functions.append(_load_writer(points[0]).write)
        except CalibError:
            continue
    return functions


def find_requests(paths: Sequence[Path], options: Mapping[str, Any]) -> list[Request]:
    """Return what the writers are asked for; tables without a file come first. RAISES C056, C749: no writer. C105: it is broken."""
    points_by_value, requests = _points_by_value(), []
    values = [_point_for(path).value for path in paths]
    for value, points in points_by_value.items():
        own_paths = [path for path, name in zip(paths, values, strict=True) if name == value]
        try:
            writer = _load_writer(points[0])
        except CalibError:
            if own_paths:
                raise
            continue
        parameters = declared_parameters(writer.write)
        own_options = {parameter.name: options.get(parameter.name, parameter.default) for parameter in parameters}
        if own_paths or any(own_options[parameter.name] not in (parameter.default, [], ()) for parameter in parameters):
            requests.append(Request(writer, own_paths, own_options))
    return requests


def _is_file(name: str) -> bool:
    return name.startswith(".") or name == FOLDER


def _points_by_value() -> dict[str, list[EntryPoint]]:
    """Return the entry points by what they load: one writer may have several suffixes. None of them replaces our own."""
    points = [point for point in entry_points_of(ENTRY_POINTS) if point.name != NUMBERS]
    by_value: dict[str, list[EntryPoint]] = {}
    for point in sorted(points, key=lambda point: (_is_file(point.name), point.name)):
        by_value.setdefault(point.value, []).append(point)
    return by_value


def _point_for(path: Path) -> EntryPoint:
    """RAISES C056: nothing writes such a file. C749: what does is not installed."""
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
        listed = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if suffixes[1:] else NUMBERS
        check_option("--output", False, f"a file that ends in {listed}{', or a folder' if FOLDER in points else ''}", path)
    return points[name]


def _load_writer(point: EntryPoint) -> Writer:
    """RAISES C105: it cannot be imported, or is no function."""
    thing = f"The writer of {point.name} of `evaluate`"
    loaded = load_point(point, thing)
    if not isinstance(loaded, Writer) and not callable(loaded):
        raise calib_error("C105", thing=thing, value=point.value, why=f"it is no function: {brief(repr(loaded))}")
    return loaded if isinstance(loaded, Writer) else Writer(loaded)
