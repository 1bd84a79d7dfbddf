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
    """Return whether a layer has 16-bit weights, or torch's mixed precision, which works on a GPU alone."""
    return any(
        _has_half_weights(node)
        or any(getattr(shim, "_mixed_precision", False) or _wraps_half_weights(shim) for shim in node.shims)
        for node in getattr(model, "walk", tuple)()
    )


def _has_half_weights(node: Any) -> bool:
    weights = (node.get_param(name) for name in node.param_names if node.has_param(name))
    return any(array.dtype.kind == "f" and array.dtype.itemsize < 4 for array in weights)


def _wraps_half_weights(shim: Any) -> bool:
    """Return whether a shim wraps a torch module with 16-bit weights."""
    parameters: Iterable[Any] = getattr(shim._model, "parameters", tuple)()
    return any(weight.is_floating_point() and weight.element_size() < 4 for weight in parameters)
