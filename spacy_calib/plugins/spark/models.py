"""Pipelines on the workers: sent by name or path, and loaded once by each process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from spacy.language import Language

from ...pipe.component import Calibrator, pipes_named
from ...pipe.loading import check_readable, import_user_code, load_pipeline


@dataclass(frozen=True)
class Model:
    """name (str): A package or a path. code (str | None): A file or a module to import first."""

    name: str
    code: str | None = None

    @classmethod
    def named(cls, model: str | Path, code: str | Path | None = None) -> Model:
        """Return the model with absolute paths, as workers run elsewhere."""
        if code is not None:
            code = _from_anywhere(code) if str(code).endswith(".py") else str(code)
        return cls(_from_anywhere(model), code)

    def fitted(self, attr: str | None) -> tuple[Language, tuple[Calibrator, ...]]:
        """Return the pipeline, and its fitted calib pipes: those with this prefix, or all.

        RAISES C062: the code cannot be imported. C050, C010 to C020: the pipeline cannot be loaded. C027, C068: no such fitted
        pipe. C021, C069: see `check_readable`.
        """
        return _with_fitted(self, attr, self._time_written())

    def _time_written(self) -> int:
        """Return the time at which a pipeline at this path was written, as a new one must be loaded again; 0 for a package."""
        try:
            return os.stat(os.path.join(self.name, "meta.json")).st_mtime_ns
        except OSError:
            return 0


def _from_anywhere(path: str | Path) -> str:
    return os.path.abspath(path) if os.path.exists(path) else str(path)


@lru_cache(maxsize=2)
def _with_fitted(model: Model, attr: str | None, time_written: int) -> tuple[Language, tuple[Calibrator, ...]]:
    import_user_code(model.code)
    nlp = load_pipeline(model.name)
    pipes = pipes_named(nlp, attr)
    for pipe in pipes:
        check_readable(nlp, pipe)
    return nlp, tuple(pipes)
