"""Detection of changed weights: the maps of a pipe belong to the scores of one model, which training changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import Any

from spacy.language import Language

from .base import is_listener, to_numpy

# Every training step changes the biases, so the last small arrays of each model are compared whenever the pipe runs.
_MAX_SIZE, _N_ARRAYS = 4096, 3


def fingerprint(nlp: Language, component: Any) -> str:
    """Return a digest of all parameters of a component and the embeddings that it listens to; "" if it has none.

    Replacing a listener by its embedding layer does not change the digest. en_core_web_sm takes some 10 ms.
    """
    models = _models_of(nlp, component)
    digests = set()
    for values in (to_numpy(read()) for model in models for read in _parameters(model)):
        digest = blake2b(f"{values.dtype}{values.shape}".encode(), digest_size=16)
        digest.update(values.tobytes())
        digests.add(digest.hexdigest())
    return blake2b("".join(sorted(digests)).encode(), digest_size=16).hexdigest() if models else ""


class WeightWatch:
    """A cheap check whether weights changed since the fit: the full digest is computed only if a sample of arrays changed."""

    def __init__(self) -> None:
        self._model: Any = None
        self._reads: list[Any] = []
        self._sample: list[Any] | None = None
        self._has_changed = False

    def has_changed(self, fit_fingerprint: str, nlp: Language, component: Any) -> bool:
        """Return whether the weights differ from those of the fit."""
        model = getattr(component, "model", component)
        if self._model is not model:
            self._model = model
            self._reads = []
            for reads in map(_parameters, _models_of(nlp, component)):
                sizes = [(array.numel() if hasattr(array := read(), "numel") else array.size, read) for read in reads]
                self._reads += [read for size, read in sizes if size <= _MAX_SIZE][-_N_ARRAYS:]
            self._sample = None
        sample = [to_numpy(read()).tobytes() for read in self._reads]
        if sample != self._sample:
            self._sample = sample
            self._has_changed = fingerprint(nlp, component) != fit_fingerprint
        return self._has_changed

    def __getstate__(self) -> dict[str, Any]:
        """Return an empty state: a copy has another model."""
        return WeightWatch().__dict__


def _models_of(nlp: Language, component: Any) -> list[Any]:
    """Return the models of a component and of the embedding components that it listens to."""
    model: Any = getattr(component, "model", None)
    if model is None and hasattr(component, "learned_arrays"):
        return [component]
    if not hasattr(model, "walk"):
        return []
    listeners = {id(node) for node in model.walk() if is_listener(node)}
    pipes: list[Any] = [pipe for _, pipe in nlp.components]
    return [model, *(pipe.model for pipe in pipes if any(id(node) in listeners for node in getattr(pipe, "listeners", ())))]


def _parameters(model: Any) -> Iterator[Any]:
    """Yield a function for each array of a model, of torch modules in it, or of `learned_arrays()`, that returns it."""
    if hasattr(model, "learned_arrays"):
        yield from (lambda i=i: model.learned_arrays()[i] for i in range(len(model.learned_arrays())))
        return
    for node in model.walk():
        for name in node.param_names:
            if node.has_param(name):
                yield partial(node.get_param, name)
        for shim in node.shims:
            module: Any = getattr(shim, "_model", None)
            if hasattr(module, "parameters"):
                yield from (lambda parameter=parameter: parameter for parameter in module.parameters())
