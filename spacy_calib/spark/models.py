"""Pipelines on the workers: they travel by name or path, and each process loads them once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from spacy.language import Language

from ..pipe.component import Calibrator, pipes_named
from ..pipe.loading import INLINE_FACTORIES, check_readable, import_user_code, load_pipeline, load_with_factories
from ..pipe.upstream import map_labels
from ..sources.find import no_component, source_block
from ..sources.mapped import map_of


@dataclass(frozen=True)
class Model:
    """name (str): A package or a path. code (str | None): A file or a module that is imported before it."""

    name: str
    code: str | None = None

    @classmethod
    def named(cls, model: str | Path, code: str | Path | None = None) -> Model:
        """The model; relative paths become absolute, since workers stand elsewhere than the driver."""
        if code is not None:
            code = _from_anywhere(code) if str(code).endswith(".py") else str(code)
        return cls(_from_anywhere(model), code)

    def fitted(self, attr: str | None) -> tuple[Language, tuple[Calibrator, ...]]:
        """The pipeline, and its fitted calib pipes: those with this prefix, or all.

        RAISES C062: the code cannot be imported. C050, C010 to C020: the pipeline cannot be loaded. C027, C068: it has
            no such fitted pipe. C021, C069: see `check_readable`.
        """
        return _with_fitted(self, attr, self._written())

    def to_fit(
        self, component: str | None, settings: Mapping[str, Any] | None, labels: Mapping[str, str] | None
    ) -> tuple[Language, Calibrator]:
        """The pipeline with the calib pipe to be fitted: its own (the first that reads this component), or a new one.

        A new one has these settings. `labels` replaces its map of labels. A recognizer or a parser of spaCy makes way
        for ours with the same weights, which keeps its probabilities, as with `calib fit`.
        RAISES C062: the code cannot be imported. C050, C010 to C020: the pipeline cannot be loaded. C317, C318: it has
            no such component. C022: that cannot be calibrated. C163, C165: the labels cannot be mapped so.
        """
        given = [None if one is None else json.dumps(dict(one)) for one in (settings, labels)]
        return _to_fit(self, component, *given, self._written())

    def _written(self) -> int:
        """When a pipeline at this path was written, since a new one must be loaded again; 0 for a package."""
        try:
            return os.stat(os.path.join(self.name, "meta.json")).st_mtime_ns
        except OSError:
            return 0


def _from_anywhere(given: str | Path) -> str:
    return os.path.abspath(given) if os.path.exists(given) else str(given)


@lru_cache(maxsize=2)
def _with_fitted(model: Model, attr: str | None, written: int) -> tuple[Language, tuple[Calibrator, ...]]:
    import_user_code(model.code)
    nlp = load_pipeline(model.name)
    pipes = pipes_named(nlp, attr)
    for pipe in pipes:
        check_readable(nlp, pipe)
    return nlp, tuple(pipes)


@lru_cache(maxsize=2)
def _to_fit(
    model: Model, component: str | None, settings: str | None, labels: str | None, written: int
) -> tuple[Language, Calibrator]:
    import_user_code(model.code)
    nlp = load_pipeline(model.name)
    own = {one: pipe for one, pipe in nlp.components if isinstance(pipe, Calibrator)}
    own = {one: pipe for one, pipe in own.items() if component in (None, pipe.source.component)}
    older = next(iter(own.values()), None)
    if older is not None and settings is None:
        calib = older
    else:
        reads = component or ("tagger" if older is None else older.source.component)
        if reads not in nlp.component_names:
            raise no_component(nlp, reads)
        factory = nlp.get_pipe_meta(reads).factory
        if factory in INLINE_FACTORIES:
            nlp = load_with_factories(model.name, {reads: INLINE_FACTORIES[factory]})
        for name in own:
            nlp.remove_pipe(name)
        given = json.loads(settings or "{}")
        source = {**source_block(nlp.get_pipe(reads), reads), **given.pop("source", {})}
        calib = cast(Calibrator, nlp.add_pipe("calib", config={**given, "source": source}, after=reads))
    if labels is not None:
        map_labels(calib, json.loads(labels))
    elif older is not None and calib is not older:
        map_labels(calib, map_of(older.source))
    return nlp, calib
