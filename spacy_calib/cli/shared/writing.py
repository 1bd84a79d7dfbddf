"""Writing results: files and folders, which a killed run leaves old or complete, never half, and the standard output."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import calib_error
from ...errors.visible import visible
from .outputs import check_folder, is_stream, standard_stream

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.strings import StringStore

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_LONGEST_NAME = 255  # in bytes, on every usual file system


def write_file(path: Path, content: bytes) -> None:
    """Write a file as `write_chunks` does. RAISES C055: it cannot be written."""
    write_chunks(path, (content,))


def write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file chunk by chunk. An older file stays until the new one is complete.

    The target of a link is replaced, not the link. A device, a FIFO and the standard output are written directly.
    RAISES C055: the file cannot be written.
    """
    try:
        if is_stream(path):
            _write_through(path, chunks)
        else:
            _replace_file(Path(os.path.realpath(path)), chunks)
    except OSError as error:
        raise calib_error("C055", path=path, why=error.strerror or error) from None


def _replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file beside `path` and rename it, so that an interrupted run leaves the old file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    partial = _partial_path(path)
    try:
        with partial.open("wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())  # on the disk before the rename is
        if path.exists():
            shutil.copymode(path, partial)
        partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _write_through(path: Path, chunks: Iterable[bytes]) -> None:
    """Write into a device or FIFO, or between the printed lines if the path is the file of the standard output."""
    number = standard_stream(path.stat())
    if number is not None:
        (sys.stdout if number == 1 else sys.stderr).flush()
    with open(path if number is None else os.dup(number), "wb") as stream:
        stream.writelines(chunks)


def write_folder(target: Path, write: Callable[[Path], None], force: bool = False) -> None:
    """Let `write` fill a new folder next to the target, then replace the target by it in one step.

    target (Path): The folder to create. write (Callable): Gets the path of an existing empty folder.
    force (bool): Whether a pipeline at the target may be replaced.
    RAISES C054, C055, C100: as `outputs.check_folder`; or the disk is full, or the folder not writable.
    """
    check_folder(target, force)
    target = target.resolve()  # a link stays, and what it names is replaced; "." gets a name
    partial = _partial_path(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)
        partial.mkdir()
        write(partial)
        for file in filter(Path.is_file, partial.rglob("*")):  # on the disk before the rename is
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
        if force and target.exists():
            check_folder(target, force)
            _exchange(partial, target)
        else:
            partial.rename(target)  # fails on a folder that somebody filled meanwhile
    except OSError as error:
        raise calib_error("C055", path=target, why=error.strerror or error) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _exchange(new: Path, old: Path) -> None:
    """Swap two folders: in one step on Linux, else by two renames."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):
            libc = ctypes.CDLL(None, use_errno=True)
            paths = (_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old))
            if libc.renameat2(*paths, _RENAME_EXCHANGE) == 0:
                return
    backup = hidden_name(old, f".{uuid.uuid4().hex[:8]}.old")
    old.rename(backup)
    try:
        new.rename(old)
    except OSError:
        backup.rename(old)
        raise
    shutil.rmtree(backup, ignore_errors=True)


# Pipelines, without the words that they read since they were loaded

_STRINGS = Path("vocab", "strings.json")


def write_pipeline(nlp: Language, target: Path, force: bool = False) -> None:
    """Write a pipeline as `write_folder` does, with only the strings of `loaded_strings`; its vocab in memory stays as it is.

    RAISES C054, C055, C100: as `write_folder`. C815: the saved pipeline could not be loaded.
    """
    write_folder(target, lambda folder: _save_without_new_strings(nlp, folder), force)


def loaded_strings(nlp: Language) -> StringStore:
    """Return the strings in the folder that a pipeline was loaded from, and its labels; without a folder all of the vocab."""
    from spacy.strings import StringStore

    if nlp.path is None:
        return nlp.vocab.strings
    strings = StringStore()
    for file in Path(nlp.path).rglob(_STRINGS.name):
        for string in StringStore().from_disk(file):
            strings.add(string)
    for _, pipe in nlp.components:
        for label in filter(lambda label: isinstance(label, str), getattr(pipe, "labels", ())):
            strings.add(label)
    return strings


def _save_without_new_strings(nlp: Language, folder: Path) -> None:
    """Save a pipeline so that no word of the gold is stored.

    Every strings.json (the vocab's, and a knowledge base's copy) gets only the strings that the pipeline was loaded with.
    RAISES C815: the saved state of a pipe of this package cannot be read. C490: another component cannot be saved.
    """
    from ...pipe.annotating import AnnotatingPipe
    from ...pipe.loading import component_faults

    strings = loaded_strings(nlp)
    with component_faults(nlp, passing=(OSError,)):
        nlp.to_disk(folder)
    for name, pipe in nlp.components:
        if isinstance(pipe, AnnotatingPipe):
            pipe.check_on_disk(folder / name)
    all_strings = (folder / _STRINGS).read_bytes()
    for file in folder.rglob(_STRINGS.name):
        if file.read_bytes() == all_strings:
            strings.to_disk(file)


# Partial files and folders, until they are complete

_ENDING_LENGTH = len(".0000000000-hhhhhhuuuuuu.partial")


def remove_leftovers(target: Path) -> None:
    """Remove the partial files and folders that killed runs on this machine left next to a target."""
    stem = _partial_path(target).name[:-_ENDING_LENGTH]
    pattern = re.compile(re.escape(stem) + rf"\.(\d+)-{_host_digest()}[0-9a-f]{{6}}\.partial")
    for path in target.parent.iterdir():
        match = pattern.fullmatch(path.name)
        if match and not _is_alive(int(match[1])):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()


def _partial_path(target: Path) -> Path:
    """Return the path of a target until it is complete; its name has the process and the machine."""
    return hidden_name(target, f".{os.getpid():010}-{_host_digest()}{uuid.uuid4().hex[:6]}.partial")


def _host_digest() -> str:
    """Return six hex digits for the machine: other machines that share a folder have processes with the same numbers."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:6]


def hidden_name(target: Path, ending: str) -> Path:
    """Return a hidden path next to the target with this ending; the name of the target is cut if it would be too long."""
    name = f".{target.name}"
    while len(os.fsencode(name + ending)) > _LONGEST_NAME:
        name = name[:-1]
    return target.with_name(name + ending)


def _is_alive(process: int) -> bool:
    """Whether a process with this number runs. True on systems without a harmless way to find out."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file with all digits of floats.

    srsly rounds to ten digits, which can lift a cut-off above the score that it was taken from.
    RAISES C055: the file cannot be written. An older file stays until the new one is complete.
    """
    write_pieces(path, json_pieces(data))


def json_pieces(data: Any) -> Iterator[str]:
    """Yield the text of a JSON file in pieces; items of lazy sequences are encoded one by one."""
    yield from json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False, default=for_json).iterencode(data)
    yield "\n"


def write_picture(path: Path, figure: Any, **settings: Any) -> None:
    """Write a figure of matplotlib to a file, in the format of its suffix. RAISES C055: the file cannot be written."""
    from ...optional import picture_bytes

    write_file(path, picture_bytes(figure, path.suffix, **settings))


def write_text(path: Path, text: str) -> None:
    r"""Write a text as UTF-8. Bytes of file names that are not UTF-8, lone surrogates in Python, become \udcNN.

    RAISES C055: the file cannot be written. An older file stays until the new one is complete.
    """
    write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write a text from pieces that are made on demand, as `write_text` does. RAISES C055: the file cannot be written."""
    write_chunks(path, (piece.encode("utf-8", "backslashreplace") for piece in pieces))


def deliver(result: Any, show: Callable[[], None], *, output: Path | None, format: str, silent: bool) -> None:
    """Write a result as JSON to `output`, and print it, as JSON or by `show`, unless silent.

    RAISES C055: the file cannot be written.
    """
    if output is not None:
        write_json(output, result)
    if silent:
        return
    if format == "json":
        print_json(result)
    else:
        show()


def print_json(result: Any) -> None:
    """Print a result as JSON on the standard output; a command then prints nothing else there."""
    print_exact(json_pieces(result), json=True)


def print_exact(pieces: Iterable[str], json: bool) -> None:
    """Print a text unchanged, which typer does not do; on a terminal with control characters escaped.

    pieces (Iterable[str]): Of the text, printed as they are made. json (bool): Whether to escape as JSON does.
    """
    needs_escapes = sys.stdout.isatty() or (json and not (sys.stdout.encoding or "").lower().startswith("utf"))
    for piece in pieces:
        sys.stdout.write(visible(piece.replace("\r\n", "\n"), keep="\n", json=json) if needs_escapes else piece)


def for_json(value: Any) -> list[Any]:
    """Convert a lazy sequence for a JSON encoder (its `default`), item by item. RAISES TypeError: it is no sequence."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    return _AsList(value)


class _AsList(list[Any]):
    """A lazy sequence that the json module encodes as a list."""

    def __init__(self, items: Sequence[Any]):
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Any:
        return iter(self._items)
