"""Outputs of `spacy calib evaluate`, by the suffix of their path: numbers, a page, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ...errors import calib_error
from ..shared.command import check_option
from ..shared.outputs import PICTURES, is_stream

NUMBERS, PAGE, PICTURE = "numbers", "page", "pictures"
# Suffix -> what is written.
KINDS = {".json": NUMBERS, ".htm": PAGE, ".html": PAGE, **dict.fromkeys(PICTURES, PICTURE)}
# What pictures show.
PICTURE_KINDS = ("reliability", "top", "groups", "errors", "coverage")


def kind_of(path: Path) -> str:
    """Return what is written to a path, a value of KINDS; a folder gets pictures. RAISES C056: another suffix."""
    suffix = path.suffix.lower()
    if is_stream(path):
        return NUMBERS
    is_known = suffix in KINDS or not suffix or path.is_dir()
    check_option("--output", is_known, f"a file that ends in {', '.join(KINDS)}, or a folder", path)
    return KINDS.get(suffix, PICTURE)


def picture_names(kind: str | None, tags: Sequence[str] | None, default: Sequence[str] = ()) -> list[str]:
    """Return the names of the requested pictures. default (Sequence[str]): Names without --kind and --tag."""
    kinds = (list(default) if not tags else []) if kind is None else list(PICTURE_KINDS) if kind == "all" else [kind]
    return [*kinds, *(["tags"] if tags else [])]


def picture_files(paths: Iterable[Path], kind: str | None, tags: Sequence[str] | None) -> list[tuple[str, Path]]:
    """Return (name, file) of each picture. RAISES C097: one file for several pictures."""
    pictures: list[tuple[str, Path]] = []
    for path in paths:
        if path.suffix.lower() not in PICTURES:
            pictures += [(name, path / f"{name}.png") for name in picture_names(kind, tags, PICTURE_KINDS)]
            continue
        names = picture_names(kind, tags, PICTURE_KINDS[:1])
        if len(names) > 1:
            raise calib_error("C097", path=path, pictures=", ".join(names))
        pictures.append((names[0], path))
    return pictures
