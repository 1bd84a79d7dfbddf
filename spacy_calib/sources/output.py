"""Sources that read what a component with a model has written on the Doc."""

from __future__ import annotations

from typing import Any

from spacy.language import Language

from .base import Source, all_finite, has_weights


class OutputSource(Source):
    """Its component has to run first; whatever runs behind that is no obstacle."""

    def is_trained(self, pipe: Any) -> bool:
        return bool(pipe.labels) and has_weights(pipe)

    def has_finite_weights(self, pipe: Any) -> bool:
        return all_finite(pipe)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return ""

    def reads_output(self, pipe: Any) -> bool:
        return True
