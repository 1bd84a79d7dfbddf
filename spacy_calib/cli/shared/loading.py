"""Loads a pipeline, after its code and GPU, and finds its fitted calib pipes; writes one without the words that it has read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import calib_error
from ...pipe.loading import import_user_code, load_pipeline, pipe_of, reason
from .atomic import write_folder

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.strings import StringStore

    from ...pipe.component import Calibrator

_STRINGS = Path("vocab", "strings.json")


def use_gpu(gpu_id: int) -> None:
    """RAISES C060: there is no such GPU."""
    if gpu_id >= 0:
        from thinc.api import require_gpu

        try:
            require_gpu(gpu_id)
        except Exception as error:
            raise calib_error("C060", gpu=gpu_id, why=reason(error)) from None


def open_model(model: str, *, code: Path | None = None, gpu_id: int = -1) -> Language:
    """RAISES C062, C060, C050: the code cannot be imported, there is no such GPU, the model cannot be loaded."""
    import_user_code(code)
    use_gpu(gpu_id)
    return load_pipeline(model)


def open_pipeline(
    model: str, attr: str | None = None, *, code: Path | None = None, gpu_id: int = -1
) -> tuple[Language, Calibrator]:
    """The pipeline and its calib pipe. RAISES: see `open_model` and `pipe_of`."""
    nlp = open_model(model, code=code, gpu_id=gpu_id)
    return nlp, pipe_of(nlp, attr)


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
