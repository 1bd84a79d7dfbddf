"""Pipelines on the workers: they travel by name or path, and each process loads them once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..pipe.component import Calibrator
from ..pipe.fitted import pipes_named
from ..pipe.loading import INLINE_FACTORIES, check_readable, load_pipeline, load_with_factories
from ..sources.find import no_component, source_for


@dataclass(frozen=True)
class Model:
    """name (str): Of a package, or a path."""

    name: str

    @classmethod
    def named(cls, model: str | Path) -> Model:
        """A relative path is one from where the driver stands: workers stand elsewhere."""
        return cls(os.path.abspath(model) if os.path.exists(model) else str(model))

    def fitted(self, attr: str | None) -> tuple[Language, tuple[str, ...]]:
        """The pipeline, and the prefixes of its fitted calib pipes: that of this one, or of all.

        RAISES C050, C010 to C020: it cannot be loaded. C027, C068: it has no such fitted pipe. C021, C069, C120: see `check_readable`.
        """
        return _with_fitted(self.name, attr, self._written())

    def to_fit(self, component: str | None, settings: Mapping[str, Any] | None) -> tuple[Language, Calibrator]:
        """The pipeline with the calib pipe that is to be fitted: its own one that reads this component (its first, where none is named), or a new one
        with these settings. A recognizer or a parser of spaCy makes way for ours with the same weights, which keeps its probabilities, as with
        `calib fit`.

        RAISES C050, C010 to C020: it cannot be loaded. C317, C318: it has no such component. C022: that cannot be calibrated.
        """
        return _to_fit(self.name, component, None if settings is None else json.dumps(settings), self._written())

    def _written(self) -> int:
        """When a pipeline at this path was written, since one that is written anew is another; 0 for a package."""
        try:
            return os.stat(os.path.join(self.name, "meta.json")).st_mtime_ns
        except OSError:
            return 0


@lru_cache(maxsize=2)
def _with_fitted(name: str, attr: str | None, written: int) -> tuple[Language, tuple[str, ...]]:
    nlp = load_pipeline(name)
    pipes = pipes_named(nlp, attr)
    for pipe in pipes:
        check_readable(nlp, pipe)
    return nlp, tuple(pipe.attr for pipe in pipes)


@lru_cache(maxsize=2)
def _to_fit(name: str, component: str | None, settings: str | None, written: int) -> tuple[Language, Calibrator]:
    nlp = load_pipeline(name)
    own = {one: pipe for one, pipe in nlp.components if isinstance(pipe, Calibrator)}
    own = {one: pipe for one, pipe in own.items() if component in (None, pipe.source.component)}
    if own and settings is None:
        return nlp, next(iter(own.values()))
    reads = component or next((pipe.source.component for pipe in own.values()), "tagger")
    if reads not in nlp.component_names:
        raise no_component(nlp, reads)
    factory = nlp.get_pipe_meta(reads).factory
    if factory in INLINE_FACTORIES:
        nlp = load_with_factories(name, {reads: INLINE_FACTORIES[factory]})
    for older in own:
        nlp.remove_pipe(older)
    given = json.loads(settings or "{}")
    source = {"@calib_sources": source_for(nlp.get_pipe(reads)), "component": reads, **given.pop("source", {})}
    calib: Any = nlp.add_pipe("calib", config={**given, "source": source}, after=reads)
    return nlp, calib
