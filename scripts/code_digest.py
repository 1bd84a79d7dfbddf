"""Digests of the code that the figures of the pages measure, and their record, docs/figures.json."""

from __future__ import annotations

import ast
import hashlib
import tokenize
from collections.abc import Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import srsly

RECORD = Path("docs") / "figures.json"
Entry = dict[str, Any]


@cache
def bare_code(source: str) -> str:
    """A module without comments, docstrings and empty lines: what a change of words leaves as it is."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            for at in range(body[0].lineno - 1, body[0].end_lineno or 0):
                lines[at] = ""
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            lines[line - 1] = lines[line - 1][:column]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def digest_of(rooms: Sequence[str], root: Path) -> str:
    """Of the code of these rooms (folders or modules of the package; a module behind a minus is left out)."""
    found = hashlib.sha256()
    package = root / "spacy_calib"
    left_out = {package / room[1:] for room in rooms if room.startswith("-")}
    for room in sorted(room for room in rooms if not room.startswith("-")):
        place = package / room
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        for file in (file for file in files if file not in left_out):
            found.update(f"{file.relative_to(root).as_posix()}\n{bare_code(file.read_text(encoding='utf8'))}\n".encode())
    return found.hexdigest()[:16]


def entries(root: Path) -> list[Entry]:
    return list(srsly.read_json(root / RECORD))


def stale(one: Entry, root: Path) -> bool:
    return bool(one["code"] != digest_of(one["measures"], root))
