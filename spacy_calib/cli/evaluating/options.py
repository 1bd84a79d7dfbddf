"""The options of a run of `spacy calib evaluate`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..shared.command import check_option
from ..shared.outputs import Output, check_folder_of_files
from ..shared.run import GoldRun
from .outputs import KINDS, NUMBERS, PAGE, PICTURE, PICTURE_KINDS, kind_of, picture_files


@dataclass(frozen=True, kw_only=True)
class EvaluateRun(GoldRun):
    """The options of a run of `evaluate`.

    everything (bool): Whether the printed tables have all columns. kind, tags: Of pictures.

    RAISES C056: an output of another suffix. CalibError: options and files that do not fit together.
    """

    output: list[Path] = field(default_factory=list)
    kind: str | None = None
    tags: list[str] | None = None
    groups: int | None = None
    everything: bool = False
    format: str = "table"

    def __post_init__(self) -> None:
        output: Any = self.output
        paths = [] if output is None else [output] if isinstance(output, (str, Path)) else output
        object.__setattr__(self, "output", [Path(path) for path in paths])
        kinds = (*PICTURE_KINDS, "all")
        check_option("--kind", self.kind in (None, *kinds), f"one of {', '.join(kinds)}", self.kind)
        self.files()

    @cached_property
    def _by_kind(self) -> dict[str, list[Path]]:
        kinds = [(kind_of(path), path) for path in self.output]
        return {kind: [path for own_kind, path in kinds if own_kind == kind] for kind in KINDS.values()}

    @property
    def numbers(self) -> list[Path]:
        """The files that get the numbers as JSON."""
        return self._by_kind[NUMBERS]

    @property
    def pages(self) -> list[Path]:
        return self._by_kind[PAGE]

    @property
    def pictures(self) -> list[Path]:
        """The files and folders of pictures."""
        return self._by_kind[PICTURE]

    @property
    def has_pictures(self) -> bool:
        """Whether pictures are written, or their numbers are asked for."""
        return bool(self.pictures or self.kind or self.tags)

    def files(self) -> list[Output]:
        """Return all files to write. RAISES C054: a folder for them is not empty, and there is no --force."""
        files = [*self.numbers, *self.pages, *(path for _, path in picture_files(self.pictures, self.kind, self.tags))]
        for folder in {path.parent for path in files} & set(self.output):
            check_folder_of_files(folder, self.force)
        return [Output("--output", path) for path in files]
