"""Loads a pipeline, after its code and GPU, and finds its fitted calib pipes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import calib_error
from ...pipe.loading import import_user_code, load_pipeline, pipe_of, reason

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator


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
