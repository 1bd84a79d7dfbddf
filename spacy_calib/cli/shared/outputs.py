"""Checks before a command starts: its outputs can be written, and replace nothing but what the user allowed."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import srsly
from confection import Config

from ...errors import calib_error
from .command import check_option
from .records import readable_suffixes, suffix_of
from .screen import first_of

PICTURES = (".png", ".svg", ".pdf")
# Names of files and folders that spaCy's components and those of this package write into their folders.
_COMPONENT_FILES = {
    "calibration.msgpack", "cfg", "key2row", "lexemes.bin", "lookups", "lookups.bin", "model", "moves", "patterns",
    "patterns.jsonl", "strings.json", "trees", "vectors", "vectors.cfg", "vocab"
}  # fmt: skip
# Factories whose components write only _COMPONENT_FILES; components of other factories may write any file.
_KNOWN_FACTORIES = {
    "attribute_ruler", "beam_ner", "beam_parser", "calib", "calib_beam_ner", "calib_ent", "calib_ner",
    "calib_parser", "curated_transformer", "entity_ruler", "lemmatizer", "morphologizer", "ner", "parser", "sentencizer",
    "senter", "span_ruler", "spancat", "spancat_singlelabel", "tagger", "textcat", "textcat_multilabel", "tok2vec",
    "trainable_lemmatizer"
}  # fmt: skip
# Files that spaCy, `spacy package`, git and model hubs put beside the components. A new pipeline in their place keeps _KEPT.
_WRITTEN = ("config.cfg", "meta.json", "tokenizer", "vocab", "accuracy.json", ".cache", ".DS_Store", "*-py3-none-any.whl")
_KEPT = ("README*", "LICENSE*", ".git*")


class Output(NamedTuple):
    """The path of an output, and the option or argument that it was given by."""

    option: str
    path: Path


def output_files(output: Path | None) -> list[Output]:
    """Return the path of --output as a list of Outputs for `check_files`; [] for None."""
    return [] if output is None else [Output("--output", output)]


def check_files(
    outputs: Sequence[Output], force: bool, *, inputs: Iterable[Path | None] = (), model: str = "", folder: Path | None = None
) -> None:
    """Check that all these files can be written.

    force (bool): Whether existing files may be replaced. inputs (Iterable[Path | None]): Files and folders that are read. model
    (str): Path or package of the pipeline that is read. folder (Path | None): A folder that the same run writes. RAISES C054: a
    file exists. C055: it is a folder or a socket, or cannot be written. C056: it is one of the inputs, or the next run would
    read it as one. C061: matplotlib is not installed. C100: it is inside a pipeline. C102: two outputs overwrite each other.
    """
    if any(output.path.suffix.lower() in PICTURES for output in outputs):
        from ...optional import figure_class

        figure_class()  # raises C061
    input_paths = [path for path in inputs if path is not None]
    for output in outputs:
        with path_errors(output.path):
            _check_file(output, force, input_paths, model)
    for first, second in itertools.combinations(outputs, 2):
        if is_same(first.path, second.path):
            raise calib_error("C102", first=first.option, second=second.option, path=first.path)
    for output in outputs:
        if folder is not None and _resolve(folder) in (_resolve(output.path), *_resolve(output.path).parents):
            raise calib_error("C102", first=output.option, second=f"the folder {folder}", path=output.path)


def _check_file(output: Output, force: bool, inputs: Sequence[Path], model: str) -> None:
    """Check that one file can be written. force, inputs, model, RAISES C054, C055, C056, C100: As for `check_files`."""
    option, path = output
    if path.is_dir():
        raise calib_error("C055", path=path, why="it is a folder; name a file in it.")
    if path.is_socket():
        raise calib_error("C055", path=path, why="it is a socket.")
    for input_path in inputs:
        if input_path.is_dir():  # the next run would read a readable file in it
            is_input = suffix_of(path) in readable_suffixes() and _resolve(input_path) in _resolve(path).parents
            check_option(option, not is_input, "outside the folder of the data", path)
        else:
            check_option(option, not is_same(path, input_path), "none of the files that are read", path)
    if is_stream(path):
        return
    _check_outside_pipelines(path, model)
    if path.exists() and not force:
        raise calib_error("C054", path=path)
    _check_writable(_resolve(path))


def check_folder(target: Path, force: bool) -> None:
    """Check that a pipeline may be written to a folder, and put an old pipeline back that a killed run moved aside.

    force (bool): Whether a pipeline there may be replaced. RAISES C054: the folder exists, and not `force`. C055: it contains
    something else, or cannot be written. C070: it is a pipeline with other files too (`foreign_files`). C100: it is inside one.
    """
    with path_errors(target):
        restore_folder(_resolve(target))
        _check_outside_pipelines(target)
        _check_writable(_resolve(target))
        if not os.path.lexists(target):
            return
        is_whole = is_pipeline(target)
        foreign = foreign_files(target) if is_whole else []
        if foreign:
            raise calib_error("C070", path=target, names=first_of(foreign, 3))
        if not force:
            raise calib_error("C054", path=target)
        is_empty = target.is_dir() and not any(target.iterdir())
        if not is_empty and not is_whole:
            raise calib_error(
                "C055", path=target, why="it contains something that is not a spaCy pipeline, which --force would delete"
            )


def check_folder_of_files(folder: Path, force: bool) -> None:
    """Check that files may be written into a folder. RAISES C054: it is not empty, and not `force`. C055: an invalid path."""
    with path_errors(folder):
        if not force and folder.is_dir() and any(folder.iterdir()):
            raise calib_error("C054", path=folder)


def check_pipeline_folder(
    target: Path, force: bool, *, inputs: Iterable[Path | None] = (), model: str = "", option: str = "OUTPUT"
) -> None:
    """Check that a pipeline can be written to a folder, which may be the one that the pipeline was loaded from.

    inputs, model: As for `check_files`. force: As for `check_folder`. option (str): Which option or argument names the folder.
    RAISES C054, C055, C070, C100: as `check_folder`. C056: the folder is, or is inside, a folder of the data. C100: it is
    inside the loaded pipeline. C101: an input, or the loaded pipeline, is inside it.
    """
    folder = _resolve(target)
    for input_path in filter(None, inputs):
        if input_path.is_dir():
            is_input = _resolve(input_path) in (folder, *folder.parents)
            check_option(option, not is_input, "outside the folder of the data", target)
        if folder in (_resolve(input_path), *_resolve(input_path).parents):
            raise calib_error("C101", path=target, given=input_path)
    loaded_folder = model_folder(model)
    if loaded_folder is not None and loaded_folder in folder.parents:
        raise calib_error("C100", path=target, folder=loaded_folder)
    if loaded_folder is not None and folder in loaded_folder.parents:
        raise calib_error("C101", path=target, given=loaded_folder)
    check_folder(target, force)


def _check_outside_pipelines(path: Path, model: str = "") -> None:
    """Check that a path is not inside a pipeline, the loaded `model` or any other. RAISES C100: it is."""
    parents = _resolve(path).parents
    loaded_folder = model_folder(model)
    for folder in parents:
        if folder == loaded_folder or has_pipeline_files(folder):
            raise calib_error("C100", path=path, folder=folder)


def _check_writable(path: Path) -> None:
    """Check that a file can be created. RAISES C055: its parent is a file, or a folder without write permission."""
    parent = next((folder for folder in path.parents if folder.exists()), path)
    if not parent.is_dir():
        raise calib_error("C055", path=path, why=f"{parent} is not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise calib_error("C055", path=path, why="Permission denied")


@contextlib.contextmanager
def path_errors(path: Path) -> Iterator[None]:
    """Turn an OSError of the block, or about the path itself (its name is too long, its links form a circle), into C055."""
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
        yield
    except OSError as error:
        raise calib_error("C055", path=path, why=error.strerror or error) from None


def is_stream(path: Path) -> bool:
    """Whether a path is written in place, not replaced: a device or a FIFO."""
    return path.exists() and not path.is_file() and not path.is_dir()


def is_same(a: Path, b: Path) -> bool:
    """Whether the paths `a` and `b` name the same file, or would if they existed; False for the same device."""
    if a.exists() and b.exists():
        return not is_stream(a) and a.samefile(b)
    return _resolve(a) == _resolve(b)


def is_pipeline(folder: Path) -> bool:
    """Whether a folder has the files that `nlp.to_disk` writes: config, meta, vocab, and one component if it has any."""
    if not has_pipeline_files(folder) or not (folder / "vocab").is_dir():
        return False
    try:
        meta = srsly.read_json(folder / "meta.json")
        names = {file.stem for file in folder.iterdir()} | {file.name for file in folder.iterdir()}
        has_nlp = "[nlp]" in (folder / "config.cfg").read_text(encoding="utf8")
        has_component = not meta["pipeline"] or any(name in names for name in meta["pipeline"])
        return has_nlp and isinstance(meta["lang"], str) and has_component
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def foreign_files(folder: Path) -> list[str]:
    """Return the sorted relative paths of the files and folders in the folder of a pipeline that are no part of the pipeline.

    Part of it are files of its components, and files that spaCy, `spacy package`, git and model hubs write there.
    """
    factories = dict.fromkeys(srsly.read_json(folder / "meta.json")["pipeline"])
    with contextlib.suppress(ValueError):
        config = Config().from_disk(folder / "config.cfg", interpolate=False)
        factories |= {name: block.get("factory") for name, block in config.get("components", {}).items()}
    foreign: list[Path] = []
    for path in folder.iterdir():
        component = path.name if path.name in factories else path.stem
        has_known_files = path.name == "vocab" or factories.get(component) in _KNOWN_FACTORIES
        # A component NAME writes a folder or file NAME, NAME.json or NAME.jsonl; one of an unknown factory any NAME.* too.
        is_written_name = path.name == component or path.suffix in (".json", ".jsonl") or not has_known_files
        is_of_component = component in factories and is_written_name
        if not (is_of_component or is_named(path, (*_WRITTEN, *_KEPT))):
            foreign.append(path)
        elif has_known_files and path.is_dir():
            foreign += [file for file in path.rglob("*") if file.name not in _COMPONENT_FILES]
    return sorted(f"{path.relative_to(folder)}{os.sep if path.is_dir() else ''}" for path in foreign)


def kept_files(folder: Path) -> list[Path]:
    """Return the paths in a pipeline that a new pipeline in its place keeps: README, LICENSE, and files and folders of git."""
    return [path for path in folder.iterdir() if is_named(path, _KEPT)]


def is_named(path: Path, patterns: Iterable[str]) -> bool:
    """Whether the name of a path matches one of these patterns."""
    return any(path.match(pattern) for pattern in patterns)


def hidden_path(target: Path, ending: str) -> Path:
    """Return a hidden path next to the target, the same in each run. ending (str): "partial" (unfinished) or "old"."""
    name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]  # short, as names are limited
    return target.with_name(f".calib-{name}.{ending}")


def restore_folder(target: Path) -> None:
    """Put the old pipeline of a folder back if a run moved it aside and was killed before the new one was in place."""
    if not target.name:  # the root
        return
    old = hidden_path(target, "old")
    if old.is_dir() and not os.path.lexists(target):
        old.rename(target)


def has_pipeline_files(folder: Path) -> bool:
    """Whether a folder has the two files by which spaCy recognizes a pipeline."""
    return all((folder / name).is_file() for name in ("config.cfg", "meta.json"))


def model_folder(model: str) -> Path | None:
    """Return the folder of a pipeline, given by its path or package name; None if there is none."""
    if not model:
        return None
    if os.path.exists(model):
        return _resolve(Path(model))
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(model)
        if spec is not None and spec.origin is not None:
            return _resolve(Path(spec.origin).parent)
    return None


def _resolve(path: Path) -> Path:
    """Return the absolute path without symbolic links; unlike `Path.resolve` it keeps names with bytes that are not UTF-8."""
    return Path(os.path.realpath(path))
