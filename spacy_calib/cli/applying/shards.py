"""A folder of shards: each written whole or not at all, by one run at a time, beside a manifest that says what they are shards of."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import CalibError, brief, calib_error
from ..shared.outputs import as_sentence
from ..shared.writing import beside, write_chunks, write_json
from .formats import SUFFIXES, format_of, joined

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
    """output (Path): A folder, which may not be there yet, or the one file that they become. form (str): Format. n_rows (int): Of the texts. size (int): Rows
    of the texts in a shard. settings (dict): All that the rows depend on, as plain data. one_file (bool): Whether the output is a file.
    """

    output: Path
    form: str
    n_rows: int
    size: int
    settings: dict[str, Any]
    one_file: bool = False

    @property
    def folder(self) -> Path:
        """Where they are: a hidden folder beside the one file, until it is whole."""
        return beside(Path(os.path.realpath(self.output)), ".shards") if self.one_file else self.output

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

    @contextlib.contextmanager
    def begun(self, force: bool) -> Iterator[None]:
        """Begin a block in which shards are written, by nobody else. It makes the folder and its manifest, or sees that they are of this run; the one file
        is made at its end.

        force (bool): Remove what an older run wrote; of the one file the shards of another one only, as the file itself has to be named again with --force.
        RAISES C443: the shards are of another run. C444: the manifest is damaged. C445: something else is in the folder. C470: another run writes into it.
        C055: it cannot be written.
        """
        with as_sentence(self.folder):
            check_own(self.folder)
        with only_run(self.folder):
            with as_sentence(self.folder):
                self._begin(force)
            yield
            if self.one_file:
                write_chunks(self.output, joined(self.form, [self.file(number) for number in range(len(self))]))
                self._clear()

    def _begin(self, force: bool) -> None:
        fault = self._fault()
        if fault is not None and not force:
            raise fault
        if force and (fault is not None or not self.one_file):
            self._clear()
        manifest = self.folder / MANIFEST
        if not manifest.exists():
            write_json(manifest, self.manifest())

    def _fault(self) -> CalibError | None:
        """Why the shards that are there are not of this run; None where they are, or there are none."""
        manifest = self.folder / MANIFEST
        try:
            if manifest.exists():
                self._check_same(read_manifest(manifest))
            elif any(self.folder.glob(f"{_PREFIX}*")):
                raise calib_error("C444", path=manifest, why="it is missing")
        except CalibError as fault:
            return fault
        return None

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
        """Remove the shards, what killed runs left of some, and the manifest last: a killed run leaves shards that it tells the truth of."""
        of_shards = (f".{_PREFIX}*", f".{MANIFEST}*", f"{_PREFIX}*", MANIFEST)
        for file in (file for names in of_shards for file in list(self.folder.glob(names))):
            file.unlink(missing_ok=True)


def _said(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def check_own(folder: Path) -> None:
    """Whether all that is in a folder was written by this command. RAISES C445: something else is."""
    for file in folder.iterdir() if folder.is_dir() else ():
        partial = file.name.startswith(f".{_PREFIX}") or file.name.startswith(f".{MANIFEST}")
        shard = file.name.startswith(_PREFIX) and format_of(file) is not None
        if not (shard or partial or file.name in (MANIFEST, LOCK)):
            raise calib_error("C445", path=folder, name=file.name)


def check_apart(output: Path) -> None:
    """RAISES C472: the output would lie in a folder of shards, which could not be gone on with."""
    for folder in Path(os.path.realpath(output)).parents:
        with as_sentence(output):
            if (folder / MANIFEST).is_file():
                raise calib_error("C472", path=output, folder=folder)


def read_manifest(path: Path) -> dict[str, Any]:
    """The settings that shards were written with. RAISES C444: the manifest is damaged."""
    try:
        held = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise calib_error("C444", path=path, why=str(error).splitlines()[0]) from None
    if not isinstance(held, dict) or not isinstance(held.get("settings"), dict):
        raise calib_error("C444", path=path, why="it has no settings")
    if held.get("spacy_calib_scores") != VERSION:
        raise calib_error(
            "C444", path=path, why=f"it is of version {brief(held.get('spacy_calib_scores'))}, and {VERSION} is known"
        )
    return dict(held["settings"])


# Programs that read a folder of Parquet leave out names that begin so.
LOCK = "_lock"


@contextlib.contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Begin a block in which no other run writes into the folder, which is made where it is not there, and removed where it is empty in the end. The file of a
    run that was killed is taken over: the system let go of its lock.

    RAISES C055: it cannot be written. C470: another run writes into it.
    """
    path = folder / LOCK
    with as_sentence(folder):
        file = _held(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # while it is held: who opened it meanwhile sees that it is gone
        file.close()
        with contextlib.suppress(OSError):
            folder.rmdir()


def _held(path: Path) -> BinaryIO:
    """The open file, locked. RAISES C470."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the folder is removed by the run that is just ending
            file = path.open("ab")
            if not _lock(file):
                file.close()
                raise calib_error("C470", path=path.parent)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
            file.close()


def _lock(file: BinaryIO) -> bool:
    """Whether nobody else holds it. (A lock of this kind is not the worker processes', which may outlive a run that was killed.) Where the file system knows no
    locks, nobody does.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True
