"""Detection of models that compute scores at half precision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spacy.language import Language

from ..spacy_private import has_mixed_precision, torch_module


def half_precision_components(nlp: Language, component: str) -> list[str]:
    """Return which of a component and those that it listens to have a half-precision model. component (str): "" for none."""
    pipes = [(name, pipe) for name, pipe in nlp.components if component and hasattr(pipe, "model")]
    candidates = [
        (name, pipe) for name, pipe in pipes if name == component or component in getattr(pipe, "listening_components", ())
    ]
    return [name for name, pipe in candidates if has_half_precision(pipe.model)]


def has_half_precision(model: Any) -> bool:
    """Return whether a layer of thinc or torch has 16-bit weights, or uses torch's mixed precision (on a GPU only)."""
    for node in getattr(model, "walk", tuple)():
        arrays = [node.get_param(name) for name in node.param_names if node.has_param(name)]
        if any(array.dtype.kind == "f" and array.dtype.itemsize < 4 for array in arrays):
            return True
        for shim in node.shims:
            weights: Iterable[Any] = getattr(torch_module(shim), "parameters", tuple)()
            is_half = any(weight.is_floating_point() and weight.element_size() < 4 for weight in weights)
            if is_half or has_mixed_precision(shim):
                return True
    return False
