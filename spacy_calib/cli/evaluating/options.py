"""Options of `spacy calib evaluate`, and what it writes to each output, by the suffix: numbers, a page or pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import calib_error
from ..shared.command import check_option
from ..shared.outputs import PICTURES, Output, check_folder_of_files, is_stream
from ..shared.run import GoldRun

NUMBERS, PAGE, PICTURE = "numbers", "page", "pictures"
# Suffix of an output -> what is written to it.
KINDS = {".json": NUMBERS, ".htm": PAGE, ".html": PAGE, **dict.fromkeys(PICTURES, PICTURE)}
PICTURE_KINDS = ("reliability", "top", "groups", "errors", "coverage")  # what pictures show


def kind_of(path: Path) -> str:
    """Return what is written to a path: PICTURE (also a folder), PAGE, or NUMBERS (also a device). RAISES C056: bad suffix."""
    suffix = path.suffix.lower()
    if is_stream(path):
        return NUMBERS  # text, which a pipe or device such as /dev/stdout takes
    is_known = suffix in KINDS or not suffix or path.is_dir()
    check_option("--output", is_known, f"a file that ends in {', '.join(KINDS)}, or a folder", path)
    return KINDS.get(suffix, PICTURE)  # PICTURE: a folder


def picture_names(kind: str | None, tags: Sequence[str] | None, default: Sequence[str] = ()) -> list[str]:
    """Return the names of the pictures to draw: --kind ("all" for each kind), and "tags" for --tag; `default` without both."""
    tag_names = ["tags"] if tags else []
    if kind is None:
        return tag_names or list(default)
    return [*(PICTURE_KINDS if kind == "all" else [kind]), *tag_names]


def picture_files(paths: Iterable[Path], kind: str | None, tags: Sequence[str] | None) -> list[tuple[str, Path]]:
    """Return (picture name, its file) for the outputs `paths`, --kind and --tag. RAISES C097: several pictures for one file."""
    pictures: list[tuple[str, Path]] = []
    for path in paths:
        is_file = path.suffix.lower() in PICTURES
        names = picture_names(kind, tags, PICTURE_KINDS[:1] if is_file else PICTURE_KINDS)  # a folder gets all by default
        if is_file and len(names) > 1:
            raise calib_error("C097", path=path, pictures=", ".join(names))
        pictures += [(name, path if is_file else path / f"{name}.png") for name in names]
    return pictures


@dataclass(frozen=True, kw_only=True)
class EvaluateRun(GoldRun):
    """The options of a run of `spacy calib evaluate`, as fields; they are checked when it is created.

    output: Paths to write. kind, tags: Which pictures to draw. groups: Number of groups; None takes those of the fit.
    everything: Whether the printed tables have all columns. format: "table" or "json". RAISES C056: an output has
    an unknown suffix, or `kind` is unknown. C054: a folder is not empty, without `force`. C097: several pictures for a file.
    """

    output: list[Path] = field(default_factory=list)
    kind: str | None = None
    tags: list[str] | None = None
    groups: int | None = None
    everything: bool = False
    format: str = "table"

    def __post_init__(self) -> None:
        output: Any = self.output
        paths = [output] if isinstance(output, (str, Path)) else output or []
        object.__setattr__(self, "output", [Path(path) for path in paths])  # the class is frozen
        kinds = (*PICTURE_KINDS, "all")
        check_option("--kind", self.kind in (None, *kinds), f"one of {', '.join(kinds)}", self.kind)
        self.files()  # called only for its errors: an output that is impossible is reported before anything is loaded

    @cached_property
    def outputs(self) -> dict[str, list[Path]]:
        """What is written (NUMBERS, PAGE or PICTURE) -> the paths of --output that get it."""
        kinds = [(kind_of(path), path) for path in self.output]
        return {kind: [path for kind_of_path, path in kinds if kind_of_path == kind] for kind in KINDS.values()}

    @property
    def has_pictures(self) -> bool:
        """Whether an option asks for pictures (--output) or chooses what they show (--kind, --tag)."""
        return bool(self.outputs[PICTURE] or self.kind or self.tags)

    def files(self) -> list[Output]:
        """Return all files to write. RAISES C054: a folder is not empty, without --force. C097: several pictures for a file."""
        pictures = [path for _, path in picture_files(self.outputs[PICTURE], self.kind, self.tags)]
        files = [*self.outputs[NUMBERS], *self.outputs[PAGE], *pictures]
        for folder in {path.parent for path in files} & set(self.output):  # the outputs that are folders
            check_folder_of_files(folder, self.force)
        return [Output("--output", path) for path in files]
