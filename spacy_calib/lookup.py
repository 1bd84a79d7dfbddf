"""Finding the component that a source reads."""

from __future__ import annotations

from typing import Any

from spacy.language import Language

from .errors import calib_error
from .marginals.base import Source

# What the sources of this package read, as factories are called.
SUPPORTED = ("tagger", "morphologizer", "trainable_lemmatizer", "senter", "ner", "beam_ner", "spancat", "spancat_singlelabel")


def find_component(nlp: Language, source: Source, kind: str, labels: tuple[str, ...]) -> Any:
    """The component by name, else (renamed since the fit) the only one of its type whose labels begin with those fitted.

    kind (str): Its type at fit time, "" before the fit. labels (tuple[str, ...]): Its labels at fit time.
    RETURNS: The component, or None.
    RAISES C022: the source does not read the component of this name.
    """
    by_name = dict(nlp.components)
    if source.component in by_name:
        pipe = by_name[source.component]
        if not source.supports(pipe):
            raise calib_error("C022", component=source.component, kind=type(pipe).__name__, supported=", ".join(SUPPORTED))
        return pipe
    if not labels:
        return None
    alike = [
        pipe
        for pipe in by_name.values()
        if source.supports(pipe) and source.kind(pipe) == kind and source.labels(pipe)[: len(labels)] == labels
    ]
    return alike[0] if len(alike) == 1 else None


def source_for(pipe: Any) -> str:
    """The registered name of the source that reads a component; that of softmax heads for one that none reads."""
    from spacy.pipeline import EntityRecognizer
    from spacy.pipeline.spancat import SpanCategorizer

    if isinstance(pipe, EntityRecognizer):
        return "spacy-calib.Ner.v1"
    return "spacy-calib.Spancat.v1" if isinstance(pipe, SpanCategorizer) else "spacy-calib.Softmax.v1"
