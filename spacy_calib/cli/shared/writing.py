"""Write results to the standard output and to files and folders, which a killed run leaves either old or complete."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.strings import StringStore

from ...errors import CalibError, calib_error
from ...errors.visible import visible
from ...pipe.pipeline import component_faults, load_pipeline
from .outputs import check_folder, hidden_path, is_stream, kept_files, path_errors

if TYPE_CHECKING:
    from spacy.language import Language


def write_file(path: Path, content: bytes) -> None:
    """Write a file. An older file stays until the new one is complete. RAISES C055: the file cannot be written."""
    write_chunks(path, (content,))


def write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """Write the chunks to a file; an older file stays until the new one is complete. RAISES C055: it cannot be written."""
    with path_errors(path):
        if is_stream(path):  # a device is written directly
            with path.open("wb") as stream:
                stream.writelines(chunks)
            return
        target = path.resolve()
        with _partial(target) as partial:
            with partial.open("wb") as file:
                file.writelines(chunks)
            if target.exists():
                shutil.copymode(target, partial)
            partial.replace(target)


def write_folder(target: Path, write: Callable[[Path], None], force: bool = False) -> None:
    """Let `write` fill a new folder next to the target, then put it in place of the target.

    target (Path): The folder to create. write (Callable): Called with the path of the new, empty folder.
    force (bool): Whether a pipeline at the target may be replaced; its README, LICENSE and .git* are kept.
    RAISES C054: the target exists, and not `force`. C055: it is no pipeline, or cannot be written. C070: it is a pipeline with
    other files in it. C100: it is inside another pipeline.
    """
    check_folder(target, force)
    target = target.resolve()
    with path_errors(target), _partial(target) as partial:
        partial.mkdir()
        write(partial)
        check_folder(target, force)  # again: it may have changed
        if not target.exists():
            partial.rename(target)
            return
        for path in kept_files(target):
            if path.is_dir() and not path.is_symlink():
                shutil.copytree(path, partial / path.name, symlinks=True)
            else:
                shutil.copy2(path, partial / path.name, follow_symlinks=False)
        _exchange(partial, target)  # `partial` is the old folder then, and is removed


def _exchange(new: Path, old: Path) -> None:
    """Swap two folders: in one step if Linux can, else by three renames. `restore_folder` undoes the first after a crash."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # an old C library has no renameat2
            in_working_folder, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
            paths = (in_working_folder, os.fsencode(new), in_working_folder, os.fsencode(old))
            if ctypes.CDLL(None).renameat2(*paths, exchange) == 0:
                return  # other results: the file system cannot swap
    aside = hidden_path(old, "old")
    _remove(aside)
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    aside.rename(new)


@contextlib.contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """Yield a hidden path next to the target for the block to write to. It is cleared before the block, and after the block."""
    partial = hidden_path(target, "partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove(partial)
    try:
        yield partial
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    """Remove a file or a folder if it exists and can be removed."""
    if os.name == "nt" and path.is_dir():
        for file in path.rglob("*"):
            file.chmod(0o700)  # Windows deletes no read-only files, and some files of git are read-only
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        path.unlink()


_STRINGS = Path("vocab", "strings.json")
_TRIAL = "Anna Kovac joined Acme Corp in Paris in 2019."  # scored by each pipeline before its folder is put in place


def write_pipeline(nlp: Language, target: Path, force: bool = False) -> None:
    """Write a pipeline to a folder, without the strings that it got after it was loaded, such as words of the gold.

    force: Whether to replace an old pipeline. RAISES C054, C055, C070, C100: the folder cannot be used (see `write_folder`).
    C815: the saved pipeline cannot be loaded, fails on a text, or gives no scores.
    """

    def write(folder: Path) -> None:
        _save_without_new_strings(nlp, folder)
        _check_scores(folder)

    write_folder(target, write, force)


def _check_scores(folder: Path) -> None:
    """Load the pipeline in a folder and score a text. RAISES C815: it fails, or a component's calib pipe gives no scores."""
    from ...pipe.component import Calibrator

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            nlp = load_pipeline(str(folder))
            with component_faults(nlp, nlp.pipe_names):
                nlp(_TRIAL)
    except CalibError as error:
        raise calib_error("C815", why=error.message.replace(str(folder), "its folder")) from None
    pipes = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, Calibrator)]
    # Other calib pipes read scores that user code or another pipeline has put on a Doc; the trial text has none.
    names = [pipe.name for pipe in pipes if pipe.source.component and not pipe.source.reads_doc_only]
    for message in (str(warning.message) for warning in caught):
        if any(message.startswith(f"[CW02] The pipe '{name}' ") for name in names):  # CW02: it gives no scores
            raise calib_error("C815", why=message.removeprefix("[CW02] ").rstrip("."))


def loaded_strings(nlp: Language) -> StringStore:
    """Return the strings in the folder that a pipeline was loaded from and its pipes' labels; without a folder, its vocab's."""
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
    """Save a pipeline so that no word of the gold is stored. RAISES C490: a component cannot be saved."""
    strings = loaded_strings(nlp)
    with component_faults(nlp, passing=(OSError,)):
        nlp.to_disk(folder)
    # All strings are in each strings.json: the vocab's, and a knowledge base's copy.
    all_strings = (folder / _STRINGS).read_bytes()
    for file in folder.rglob(_STRINGS.name):
        if file.read_bytes() == all_strings:
            strings.to_disk(file)


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file with all digits of floats. It replaces an older one once complete. RAISES C055: it is not writable."""
    write_text(path, json_pieces(data))  # not srsly, whose ten digits can lift a cut-off above its own score


def json_pieces(data: Any) -> Iterator[str]:
    """Yield data as indented JSON text, in pieces."""
    yield from json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False).iterencode(data)
    yield "\n"


def write_text(path: Path, pieces: Iterable[str]) -> None:
    r"""Write the pieces of a text as a UTF-8 file while they are made. An older file stays until the new one is complete.

    Lone surrogates, Python's form of bytes in file names that are no UTF-8, become \udcNN. RAISES C055: it cannot be written.
    """
    write_chunks(path, (piece.encode("utf-8", "backslashreplace") for piece in pieces))


def print_result(result: Any, show: Callable[[], None], format: str, silent: bool) -> None:
    """Print a result unless silent: as JSON if the format is "json", else by calling `show`, which prints it in words."""
    if silent:
        return
    if format == "json":
        print_json(result)
    else:
        show()


def print_json(result: Any) -> None:
    """Print a result as JSON on the standard output. The command should print nothing else there."""
    print_exact(json_pieces(result), json=True)


def print_exact(pieces: Iterable[str], json: bool) -> None:
    """Print the pieces of a text as they are made. On a terminal control characters are escaped; else the text is unchanged.

    json (bool): Whether the text is JSON; it is escaped as in JSON, also for an output that is not UTF-8.
    """
    needs_escapes = is_terminal() or (json and not (sys.stdout.encoding or "").lower().startswith("utf"))
    for piece in pieces:
        sys.stdout.write(visible(piece.replace("\r\n", "\n"), keep="\n", json=json) if needs_escapes else piece)


def is_terminal() -> bool:
    return sys.stdout.isatty()
