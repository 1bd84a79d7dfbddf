"""Writes a pipeline without the words that it has read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .atomic import write_folder

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.strings import StringStore

_STRINGS = Path("vocab", "strings.json")


def write_pipeline(nlp: Language, target: Path, force: bool = False) -> None:
    """Write a pipeline as `write_folder` does, with the strings of `loaded_strings`; its vocab in memory stays as it is.

    RAISES C054, C055, C100: see `write_folder`.
    """
    write_folder(target, lambda folder: _write(nlp, folder), force)


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


def _write(nlp: Language, folder: Path) -> None:
    """Everywhere that spaCy writes all strings of the vocab: a knowledge base has a file of them too."""
    kept = loaded_strings(nlp)
    nlp.to_disk(folder)
    everything = (folder / _STRINGS).read_bytes()
    for file in folder.rglob(_STRINGS.name):
        if file.read_bytes() == everything:
            kept.to_disk(file)
