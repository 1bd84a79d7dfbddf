"""Results as files, which a killed run leaves as they were or whole, never half; and on the standard output."""

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
    """Write a file; see `write_chunks`."""
    write_chunks(path, (content,))


def write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file piece by piece, as they come. An older one stays until the new one is whole; a link stays, and what it names is
    replaced; into a device, a FIFO or the standard output the content is written as it is.

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
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    partial = _partial_of(path)
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
    """Write into an open stream. Where the path is the file that the standard output goes to, its content stands between what is printed before
    and after.
    """
    number = standard_stream(path.stat())
    if number is not None:
        (sys.stdout if number == 1 else sys.stderr).flush()
    with open(path if number is None else os.dup(number), "wb") as stream:
        stream.writelines(chunks)


def write_folder(target: Path, write: Callable[[Path], None], force: bool = False) -> None:
    """Let `write` fill a new folder beside the target, then put it in the target's place in one step.

    target (Path): The folder to make. write (Callable): Gets the path of an existing empty folder.
    force (bool): Replace a pipeline that is there.
    RAISES C054, C055, C100: see `outputs.check_folder`; or the disk is full, or the place not writable.
    """
    check_folder(target, force)
    target = target.resolve()  # a link stays, and what it names is replaced; "." gets a name
    partial = _partial_of(target)
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
    """Swap two folders: in one step where the system can (Linux), else by two renames."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):
            libc = ctypes.CDLL(None, use_errno=True)
            paths = (_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old))
            if libc.renameat2(*paths, _RENAME_EXCHANGE) == 0:
                return
    aside = beside(old, f".{uuid.uuid4().hex[:8]}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


# Pipelines, without the words that they have read

_STRINGS = Path("vocab", "strings.json")


def write_pipeline(nlp: Language, target: Path, force: bool = False) -> None:
    """Write a pipeline as `write_folder` does, with the strings of `loaded_strings`; its vocab in memory stays as it is.

    RAISES C054, C055, C100: see `write_folder`. C815: it could not be loaded.
    """
    write_folder(target, lambda folder: _save_without_new_strings(nlp, folder), force)


def loaded_strings(nlp: Language) -> StringStore:
    """All strings in the folder that a pipeline was loaded from, and its labels: not what it has read since. One from no folder keeps all."""
    from spacy.strings import StringStore

    if nlp.path is None:
        return nlp.vocab.strings
    kept = StringStore()
    for file in Path(nlp.path).rglob(_STRINGS.name):
        for one in StringStore().from_disk(file):
            kept.add(one)
    for _, pipe in nlp.components:
        for label in filter(lambda one: isinstance(one, str), getattr(pipe, "labels", ())):
            kept.add(label)
    return kept


def _save_without_new_strings(nlp: Language, folder: Path) -> None:
    """Save the pipeline, then replace every strings.json (the vocab's, and a knowledge base's copy) by the strings that it was loaded with,
    so that no word of the gold is stored.

    RAISES C815: what a pipe of ours saved cannot be read again. C490: another component cannot be saved.
    """
    from ...pipe.annotating import AnnotatingPipe
    from ...pipe.loading import component_faults

    kept = loaded_strings(nlp)
    with component_faults(OSError):
        nlp.to_disk(folder)
    for name, pipe in nlp.components:
        if isinstance(pipe, AnnotatingPipe):
            pipe.check_on_disk(folder / name)
    everything = (folder / _STRINGS).read_bytes()
    for file in folder.rglob(_STRINGS.name):
        if file.read_bytes() == everything:
            kept.to_disk(file)


# What is written until it is whole

_ENDING_LENGTH = len(".0000000000-hhhhhhuuuuuu.partial")


def remove_leftovers(target: Path) -> None:
    """Remove the partial files and folders that killed runs left beside this target: those whose process ran on this machine and is gone."""
    hidden = _partial_of(target).name[:-_ENDING_LENGTH]
    mark = re.compile(re.escape(hidden) + rf"\.(\d+)-{_host()}[0-9a-f]{{6}}\.partial")
    for found in target.parent.iterdir():
        match = mark.fullmatch(found.name)
        if match and not _is_alive(int(match[1])):
            if found.is_dir() and not found.is_symlink():
                shutil.rmtree(found, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    found.unlink()


def _partial_of(target: Path) -> Path:
    """The name until it is whole, with process and machine."""
    return beside(target, f".{os.getpid():010}-{_host()}{uuid.uuid4().hex[:6]}.partial")


def _host() -> str:
    """Six digits for the machine: others that share the folder have processes of the same number."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:6]


def beside(target: Path, ending: str) -> Path:
    """A hidden name beside the target, which is cut where the whole would be too long."""
    name = f".{target.name}"
    while len(os.fsencode(name + ending)) > _LONGEST_NAME:
        name = name[:-1]
    return target.with_name(name + ending)


def _is_alive(process: int) -> bool:
    """Whether a process of this number runs. True where the system has no harmless way to ask."""
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
    """Write a file with every digit of every number: srsly rounds at the tenth, which can lift a cut-off above the score that it was taken
    from.

    RAISES C055: the file cannot be written. An older file stays until the new one is whole.
    """
    write_pieces(path, json_pieces(data))


def json_pieces(data: Any) -> Iterator[str]:
    """The lines of a JSON file, piece by piece; items that are made on demand are written one by one."""

    yield from json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False, default=for_json).iterencode(data)
    yield "\n"


def write_picture(path: Path, figure: Any, **settings: Any) -> None:
    """Draw a figure of matplotlib into a file, by its suffix. RAISES C055: the file cannot be written."""
    from ...optional import picture_bytes

    write_file(path, picture_bytes(figure, path.suffix, **settings))


def write_text(path: Path, text: str) -> None:
    r"""Write a text as UTF-8. Bytes of file names that are not UTF-8, which Python holds as lone surrogates, become \udcNN.

    RAISES C055: the file cannot be written. An older file stays until the new one is whole.
    """
    write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write a text whose pieces are made while it is written. RAISES C055: see `write_text`."""
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
    """Print a result as JSON on the standard output; the commands then print nothing else there."""
    print_exact(json_pieces(result), json=True)


def print_exact(pieces: Iterable[str], json: bool) -> None:
    """Print the text of a file as it is, which typer does not; but on a terminal with control characters made visible.

    pieces (Iterable[str]): Of the text, printed as they are made. json (bool): Whether escapes are to be those of JSON.
    """
    unusual = sys.stdout.isatty() or (json and not (sys.stdout.encoding or "").lower().startswith("utf"))
    for piece in pieces:
        sys.stdout.write(visible(piece.replace("\r\n", "\n"), keep="\n", json=json) if unusual else piece)


def for_json(value: Any) -> list[Any]:
    """Make the items of a sequence one by one: the `default` of a JSON encoder. RAISES TypeError: no sequence."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"{type(value).__name__} is nothing that JSON knows")
    return _AsList(value)


class _AsList(list[Any]):
    """A sequence that the json module takes for a list."""

    def __init__(self, items: Sequence[Any]):
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Any:
        return iter(self._items)
