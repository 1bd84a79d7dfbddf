"""A run of `spacy calib evaluate`, and what each of its outputs is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import calib_error
from ..shared.command import check_option
from ..shared.outputs import PICTURES, Output, is_stream
from ..shared.run import GoldRun

PAGES = (".html", ".htm")
KINDS = ("reliability", "top", "groups", "errors", "coverage")
# --unit -> what is judged.
UNITS = {"token": "tokens", "entity": "entities", "document": "documents"}


@dataclass(frozen=True, kw_only=True)
class EvaluateRun(GoldRun):
    """The options of a run of `evaluate`. RAISES C056: options or outputs that do not fit. C097: one file for two pictures."""

    output: list[Path] = field(default_factory=list)
    kind: str | None = None
    tags: list[str] = field(default_factory=list)
    unit: str | None = None
    bins: int | None = None
    against: str | None = None
    find_slices: bool = False
    groups: int | None = None
    format: str = "table"

    def __post_init__(self) -> None:
        output: Any = self.output
        paths = [] if output is None else [output] if isinstance(output, (str, Path)) else output
        object.__setattr__(self, "output", [Path(path) for path in paths])
        object.__setattr__(self, "tags", list(self.tags or ()))
        for path in self.output:
            expected = "a file that ends in .json, .html, .png, .svg or .pdf, or a folder for pictures"
            check_option("--output", kind_of(path) != "", expected, path)
        self.pictures  # noqa: B018  (names what is asked for)

    @property
    def pages(self) -> list[Path]:
        """The files of the page."""
        return [path for path in self.output if kind_of(path) == "page"]

    @property
    def pictures(self) -> list[tuple[str, Path]]:
        """Name and file of each picture. RAISES C097: one file for several pictures."""
        pictures = []
        for path in self.output:
            kind = kind_of(path)
            if kind == "pictures":
                pictures += [(name, path / f"{name}.png") for name in self.names(KINDS)]
            elif kind == "picture":
                names = self.names(KINDS[:1])
                if len(names) > 1:
                    raise calib_error("C097", path=path, pictures=", ".join(names))
                pictures.append((names[0], path))
        return pictures

    def names(self, default: Sequence[str] = ()) -> list[str]:
        """The pictures that are asked for. default (Sequence[str]): Where no option says which."""
        if self.kind is None:
            kinds = [] if self.tags else list(default)
        else:
            kinds = list(KINDS) if self.kind == "all" else [self.kind]
        return [*kinds, *(["tags"] if self.tags else [])]

    def files(self) -> list[Output]:
        """The files that are written."""
        plain = [path for path in self.output if kind_of(path) in ("numbers", "page")]
        return [Output("--output", path) for path in (*plain, *(path for _, path in self.pictures))]


def kind_of(path: Path) -> str:
    """What a file is to hold, by its suffix: "numbers", "page", "picture", of a folder "pictures"; "" of any other."""
    kinds = {".json": "numbers", **dict.fromkeys(PAGES, "page"), **dict.fromkeys(PICTURES, "picture")}
    if is_stream(path):
        return "numbers"
    return kinds.get(path.suffix.lower()) or ("pictures" if path.is_dir() or not path.suffix else "")
