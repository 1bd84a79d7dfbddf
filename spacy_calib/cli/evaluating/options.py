"""The options of a run of `spacy calib evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from ..shared.outputs import Output, check_folder_of_files
from ..shared.run import GoldRun
from .outputs import Request, find_requests, is_json_output


@dataclass(frozen=True, kw_only=True)
class EvaluateRun(GoldRun):
    """The options of a run of `evaluate`.

    everything (bool): Whether the printed tables have all columns. added_options (Mapping): Options of writers.

    RAISES C056, C749: an output without a writer. CalibError: options and files that do not fit their writer.
    """

    output: list[Path] = field(default_factory=list)
    bins: int | None = None
    against: str | None = None
    groups: int | None = None
    everything: bool = False
    format: str = "table"
    added_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        output: Any = self.output
        paths = [] if output is None else [output] if isinstance(output, (str, Path)) else output
        object.__setattr__(self, "output", [Path(path) for path in paths])
        self.files()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> EvaluateRun:
        """Make a run from all options of the command by name, options of writers included."""
        names = {option.name for option in fields(cls)}
        added_options = {name: value for name, value in options.items() if name not in names}
        return cls(**{name: options[name] for name in options.keys() & names}, added_options=added_options)

    @cached_property
    def requests(self) -> list[Request]:
        return find_requests([path for path in self.output if not is_json_output(path)], self.added_options)

    @property
    def numbers(self) -> list[Path]:
        """The files that get the numbers as JSON."""
        return [path for path in self.output if is_json_output(path)]

    def files(self) -> list[Output]:
        """Return all files to write. RAISES C054: a folder for them is not empty, and there is no --force."""
        files = [*self.numbers, *(path for request in self.requests for path in request.files())]
        for folder in {path.parent for path in files} & set(self.output):
            check_folder_of_files(folder, self.force)
        return [Output("--output", path) for path in files]
