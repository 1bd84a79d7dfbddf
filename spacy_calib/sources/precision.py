"""Whether a component's scores are computed at half precision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spacy.language import Language


def half_precision_components(nlp: Language, component: str) -> list[str]:
    """Return the names of half-precision models among a component, "" for none, and those that it listens to."""
    pipes = [(name, pipe) for name, pipe in nlp.components if component and hasattr(pipe, "model")]
    read_by = [
        (name, pipe) for name, pipe in pipes if name == component or component in getattr(pipe, "listening_components", ())
    ]
    return [name for name, pipe in read_by if has_half_precision(pipe.model)]


def has_half_precision(model: Any) -> bool:
    """Return whether a layer has 16-bit weights, also in torch, or torch's mixed precision, which works on a GPU alone."""
    for node in getattr(model, "walk", tuple)():
        arrays = [node.get_param(name) for name in node.param_names if node.has_param(name)]
        if any(array.dtype.kind == "f" and array.dtype.itemsize < 4 for array in arrays):
            return True
        for shim in node.shims:
            weights: Iterable[Any] = getattr(shim._model, "parameters", tuple)()
            is_half = any(weight.is_floating_point() and weight.element_size() < 4 for weight in weights)
            if is_half or getattr(shim, "_mixed_precision", False):
                return True
    return False
