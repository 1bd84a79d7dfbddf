"""A folder of shards: each written whole or not at all, beside a manifest that says what they are shards of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import calib_error
from ..shared.atomic import write_chunks
from ..shared.outputs import as_sentence
from ..shared.results import write_json
from .formats import SUFFIXES, format_of

# Programs that read a folder of Parquet leave out names that begin so.
MANIFEST = "_manifest.json"
VERSION = 1
_PREFIX = "part-"
# Setting -> what is said where it differs. {held}, {given}: Its two values.
_DIFFERENT = {
    "model": "another model wrote them, or it has changed since",
    "code": "other code (--code) was read",
    "texts": "they are of other texts, or the texts have changed since",
    "spacy": "spaCy {held} wrote them, and this is {given}",
    "spacy_calib": "spacy-calib {held} wrote them, and this is {given}",
}


@dataclass(frozen=True)
class Shards:
    """folder (Path): May not be there yet. form (str): Format. n_rows (int): Of the texts. size (int): Rows of the texts in a shard.
    settings (dict): All that the rows depend on, as plain data.
    """

    folder: Path
    form: str
    n_rows: int
    size: int
    settings: dict[str, Any]

    def __len__(self) -> int:
        return -(-self.n_rows // self.size)

    def file(self, number: int) -> Path:
        """Of the shard with this number; names sort as numbers do."""
        return self.folder / f"{_PREFIX}{number:08}{SUFFIXES[self.form]}"

    def rows_in(self, number: int) -> int:
        return min(self.size, self.n_rows - number * self.size)

    def finished(self) -> list[int]:
        """The numbers of the shards that are there. (They come into being by a rename, whole.)"""
        return [number for number in range(len(self)) if self.file(number).is_file()]

    def begin(self, force: bool) -> None:
        """Make the folder and its manifest, or see that they are of this run.

        force (bool): Remove what an older run wrote. RAISES C443: the shards are of another run. C444: the manifest is damaged. C445: something else
        is in the folder. C055: it cannot be written.
        """
        with as_sentence(self.folder):
            check_own(self.folder)
            manifest = self.folder / MANIFEST
            if force:
                self._clear()
            elif manifest.exists():
                self._check_same(read_manifest(manifest))
            elif any(self.folder.glob(f"{_PREFIX}*")):
                raise calib_error("C444", path=manifest, why="it is missing")
            self.folder.mkdir(parents=True, exist_ok=True)
            if not manifest.exists():
                write_json(manifest, self.manifest())

    def manifest(self) -> dict[str, Any]:
        from ...doc.score_rows import COLUMNS

        columns = {} if self.form == "spacy" else COLUMNS[self.settings["unit"]]
        return {
            "spacy_calib_scores": VERSION,
            "shards": len(self),
            "rows_of_texts": self.n_rows,
            "columns": {name: meaning for name, (_, meaning) in columns.items()},
            "settings": self.settings,
        }

    def write(self, number: int, pieces: Iterable[bytes]) -> None:
        """RAISES C055: it cannot be written."""
        write_chunks(self.file(number), pieces)

    def _check_same(self, held: dict[str, Any]) -> None:
        """RAISES C443: a setting differs."""
        for name, given in self.settings.items():
            older = held.get(name)
            if older != given:
                said = _DIFFERENT.get(name, "--" + name.replace("_", "-") + " was {held}, and now it is {given}")
                raise calib_error("C443", path=self.folder, why=said.format(held=_said(older), given=_said(given)))

    def _clear(self) -> None:
        """Remove the shards, and the manifest last: a killed run leaves shards that it tells the truth of."""
        for file in [*self.folder.glob(f"{_PREFIX}*"), self.folder / MANIFEST]:
            file.unlink(missing_ok=True)


def _said(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def check_own(folder: Path) -> None:
    """Whether all that is in a folder was written by this command. RAISES C445: something else is."""
    for file in folder.iterdir() if folder.is_dir() else ():
        partial = file.name.startswith(f".{_PREFIX}") or file.name.startswith(f".{MANIFEST}")
        shard = file.name.startswith(_PREFIX) and format_of(file) is not None
        if not (shard or partial or file.name == MANIFEST):
            raise calib_error("C445", path=folder, name=file.name)


def read_manifest(path: Path) -> dict[str, Any]:
    """The settings that shards were written with. RAISES C444: the manifest is damaged."""
    try:
        held = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise calib_error("C444", path=path, why=str(error).splitlines()[0]) from None
    if not isinstance(held, dict) or not isinstance(held.get("settings"), dict):
        raise calib_error("C444", path=path, why="it has no settings")
    if held.get("spacy_calib_scores") != VERSION:
        raise calib_error("C444", path=path, why=f"it is of version {held.get('spacy_calib_scores')}, and {VERSION} is known")
    return dict(held["settings"])
