"""Finding the component that a source reads, and seeing whether its input is still what it read."""

from __future__ import annotations

from typing import Any

from spacy.language import Language

from .errors import calib_error
from .marginals.base import Source


def find_component(nlp: Language, source: Source, kind: str, labels: tuple[str, ...]) -> Any:
    """The component by name, else (renamed since the fit) the only one of its type whose labels begin with those fitted.

    kind (str): Its type at fit time, "" before the fit. labels (tuple[str, ...]): Its labels at fit time.
    RETURNS: The component, or None.
    RAISES C022: the component of this name has no head that the source reads.
    """
    by_name = dict(nlp.components)
    if source.component in by_name:
        pipe = by_name[source.component]
        if not source.supports(pipe):
            from .marginals.softmax import SUPPORTED

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


def overwriting_pipe(nlp: Language, name: str, source: Source, pipe: Any) -> str:
    """Why the head's input was overwritten between its component and the pipe `name`; "" if it was not.

    A second embedding component of the same width leaves other vectors in doc.tensor: the head would give garbage without an error.
    """
    order = nlp.pipe_names
    if pipe is None or name not in order:
        return ""
    start = next((i for i, other in enumerate(order) if nlp.get_pipe(other) is pipe), None)
    if start is None:
        return ""
    if not any(node.name.endswith("-listener") for node in pipe.model.walk()):
        return ""
    for other in order[start + 1 : order.index(name)]:
        if hasattr(nlp.get_pipe(other), "listeners"):
            return f"'{other}' stands between '{order[start]}' and it and overwrites the token vectors"
    return ""
