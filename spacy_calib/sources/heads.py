"""What runs the model of a spaCy component: its input on a Doc, its output for tokens, its scores of parser states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.ml.parser_model import precompute_hiddens
from spacy.tokens import Doc
from thinc.api import CupyOps, Model, set_dropout_rate

from ..errors import calib_error
from ..spacy_private import has_mixed_precision, torch_module


def missing_input(pipe: Any, docs: Sequence[Doc]) -> list[str]:
    """Return for each Doc why the model of a component cannot be run on it, "" if it can."""
    reasons = [""] * len(docs)
    for node in pipe.model.walk():
        if node.name in _LISTENERS:
            reasons = [why or _LISTENERS[node.name](node, doc) for why, doc in zip(reasons, docs, strict=True)]
    return reasons


def is_listener(node: Any) -> bool:
    """Return whether a node of a model is a listener, which reads what an embedding component wrote on the Doc."""
    return node.name.endswith(("-listener", "_listener"))  # "_listener": of curated transformers


def overwriting_pipe(nlp: Language, name: str, pipe: Any) -> str:
    """Return in words which pipe before the pipe `name` overwrites the token vectors that a component listens to, or "".

    A second embedding component of the same width leaves other vectors in doc.tensor: the head would give garbage without an error.
    """
    pipe_name = embedding = ""  # names of the component and of the first embedding component after it
    for component_name, component in nlp.pipeline:
        if component_name == name:
            break
        if component is pipe:
            pipe_name = component_name
        elif pipe_name and not embedding and hasattr(component, "listeners"):
            embedding = component_name
    else:
        return ""
    if not embedding or not any(is_listener(node) for node in pipe.model.walk()):
        return ""
    return f"'{embedding}' stands between '{pipe_name}' and it and overwrites the token vectors"


def _no_token_vectors(node: Any, doc: Doc) -> str:
    if doc.tensor.ndim == 2 and doc.tensor.shape == (len(doc), node.get_dim("nO")):
        return ""
    return "doc.tensor does not hold the token vectors; run the tok2vec component on the Doc first"


def _no_transformer_data(node: Any, doc: Doc) -> str:
    return "" if doc._.trf_data is not None else "doc._.trf_data is None; run the transformer on the Doc first"


# Name of a listener -> function (node, Doc) that returns what the Doc lacks, "" for nothing.
_LISTENERS = {
    "tok2vec-listener": _no_token_vectors,
    "transformer-listener": _no_transformer_data,
    "transformer_layers_listener": _no_transformer_data,
    "last_transformer_layer_listener": _no_transformer_data,
    "scalar_weighting_listener": _no_transformer_data,
}


def to_numpy(array: Any) -> NDArray[Any]:
    """Convert a numpy, cupy or torch array to a numpy array on the CPU."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):  # torch
        return array.detach().cpu().numpy()
    if hasattr(array, "get"):  # cupy
        return array.get()
    return np.asarray(array)


def has_weights(pipe: Any) -> bool:
    """Return whether every parameter of a component's model has a value."""
    return all(node.has_param(name) for node in pipe.model.walk() for name in node.param_names)


def is_trained(pipe: Any) -> bool:
    """Whether a component has what it runs with: all weights of its model, and something in its knowledge base."""
    is_empty = getattr(getattr(pipe, "kb", None), "is_empty", bool)()
    return not is_empty and (not isinstance(getattr(pipe, "model", None), Model) or has_weights(pipe))


def all_finite(pipe: Any) -> bool:
    """Return whether all weights of a component's model are finite."""
    weights = (node.get_param(name) for node in pipe.model.walk() for name in node.param_names)
    return all(bool(np.isfinite(to_numpy(weight)).all()) for weight in weights)


def run_tokens(model: Any, docs: list[Doc]) -> Any:
    """Return a model's output for the tokens of all Docs as one array, without cutting it by Doc and joining it again."""
    head = model.layers[-1]
    if len(model.layers) == 2 and head.name.startswith("with_array(") and model.name.endswith(f">>{head.name}"):
        return head.predict(model.ops.flatten(model.layers[0].predict(docs)))
    return model.ops.flatten(model.predict(docs))


class StepScorer:
    """spaCy's step model for a batch of Docs, called with state features; nothing else depends on how spaCy encodes states.

    pipe (Any): A parser or recognizer. step_model (ParserStepModel): Its model for the batch. unseen_score (float | None): Score of
    the classes not seen in training; None for the lowest of each state.
    """

    def __init__(self, pipe: Any, step_model: Any, docs: Sequence[Doc], unseen_score: float | None):
        self._docs, self._component, self._unseen_score = docs, pipe.name, unseen_score
        self.step_model, self._unseen_classes = step_model, sorted(pipe.model.attrs["unseen_classes"])
        state2vec = step_model.state2vec
        if state2vec.get_dim("nP") == 1:
            # With one maxout piece spaCy's greedy parser leaves out the ReLU of its step model.
            state2vec = precompute_hiddens(len(docs), step_model.tokvecs, pipe.model.get_ref("lower"), activation="maxout")
        if isinstance(state2vec.ops, CupyOps):
            # On a GPU it would only compute the mask for a backward pass, and send data there at each step.
            state2vec.ops = state2vec.numpy_ops
        self._state2vec, self.width = state2vec, state2vec.get_dim("nF")

    def __call__(self, features: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the scores of all classes, shape (n_states, n_classes). RAISES C024: NaN or infinite scores.

        features: Token of each state feature, -1 for none, shape (n_states, width).
        """
        vectors, vec2scores = self._state2vec.predict(features), self.step_model.vec2scores
        scores = np.ascontiguousarray(vectors if vec2scores is None else vec2scores.predict(vectors))
        if not np.isfinite(scores.sum()):
            rows = np.flatnonzero(~np.isfinite(scores).all(axis=1))
            if len(rows):
                ends = np.cumsum([len(doc) for doc in self._docs])
                doc = self._docs[int(np.searchsorted(ends, features[rows[0]].max(), side="right"))]
                raise calib_error("C024", component=self._component, text=doc.text[:40])
        if len(self._unseen_classes):
            lowest = scores.min(axis=1, keepdims=True) if self._unseen_score is None else self._unseen_score
            scores[:, self._unseen_classes] = lowest
        return scores


@contextmanager
def step_scorer(
    pipe: Any, docs: Sequence[Doc], widths: Sequence[int], code: str, unseen_score: float | None = None
) -> Iterator[StepScorer]:
    """Run a parser or recognizer on non-empty Docs, and give the scorer of their states. RAISES code: another width."""
    set_dropout_rate(pipe.model, 0.0)
    step_model = pipe.model.predict(docs)
    try:
        scorer = StepScorer(pipe, step_model, docs, unseen_score)
        if scorer.width not in widths:
            raise calib_error(code, component=pipe.name, given=scorer.width, wanted=" or ".join(map(str, widths)))
        yield scorer
    finally:
        step_model.clear_memory()


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
