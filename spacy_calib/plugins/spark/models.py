"""Load pipelines on the workers, by name or path, once in each process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from spacy.language import Language

from ...pipe.component import Calibrator, pipes_named
from ...pipe.pipeline import check_readable, import_user_code, load_pipeline


@dataclass(frozen=True)
class Model:
    """How workers load a pipeline. name (str): Package or path. code (str | None): Python file or module to import first."""

    name: str
    code: str | None = None

    @classmethod
    def from_name(cls, model: str | Path, code: str | Path | None = None) -> Model:
        """Return a Model with absolute paths, as workers have other working directories."""
        if code is not None:
            code = _make_absolute(code) if str(code).endswith(".py") else str(code)
        return cls(_make_absolute(model), code)

    def load_fitted(self, attr: str | None) -> tuple[Language, tuple[Calibrator, ...]]:
        """Return the pipeline and its fitted calib pipes: the one with this prefix, or all.

        RAISES C062: the code cannot be imported. C050, C010 to C020: the pipeline cannot be loaded. C027, C068: no such fitted
        pipe. C021, C069, C084: the component of a pipe is missing or disabled.
        """
        return _load_fitted(self, attr, self._find_mtime())

    def _find_mtime(self) -> int:
        """Return when the pipeline was written, so that a new one at the same path is loaded again; 0 for a package."""
        try:
            return os.stat(os.path.join(self.name, "meta.json")).st_mtime_ns
        except OSError:
            return 0


def _make_absolute(path: str | Path) -> str:
    return os.path.abspath(path) if os.path.exists(path) else str(path)


@lru_cache(maxsize=2)
def _load_fitted(model: Model, attr: str | None, mtime: int) -> tuple[Language, tuple[Calibrator, ...]]:
    import_user_code(model.code)
    nlp = load_pipeline(model.name)
    pipes = pipes_named(nlp, attr)
    for pipe in pipes:
        check_readable(nlp, pipe)
    return nlp, tuple(pipes)
