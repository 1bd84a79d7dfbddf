"""Heads that read what a shared embedding component wrote on the Doc: whether it is there, and still theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc


def missing_input(pipe: Any, docs: Sequence[Doc]) -> list[str]:
    """Why the model of a component cannot be run on each Doc, "" if it can."""
    listeners = [node for node in pipe.model.walk() if node.name in _LISTENERS]
    return [next(filter(None, (_LISTENERS[node.name](node, doc) for node in listeners)), "") for doc in docs]


def is_listener(node: Any) -> bool:
    """Whether a node of a model reads what another component wrote on the Doc; curated transformers call theirs "..._listener"."""
    return node.name.endswith(("-listener", "_listener"))


def overwriting_pipe(nlp: Language, name: str, pipe: Any) -> str:
    """Why the head's input was overwritten between its component and the pipe `name`; "" if it was not.

    A second embedding component of the same width leaves other vectors in doc.tensor: the head would give garbage without an error.
    """
    order = nlp.pipe_names
    if pipe is None or name not in order:
        return ""
    start = next((i for i, other in enumerate(order) if nlp.get_pipe(other) is pipe), None)
    if start is None:
        return ""
    if not any(is_listener(node) for node in pipe.model.walk()):
        return ""
    for other in order[start + 1 : order.index(name)]:
        if hasattr(nlp.get_pipe(other), "listeners"):
            return f"'{other}' stands between '{order[start]}' and it and overwrites the token vectors"
    return ""


def _no_token_vectors(node: Any, doc: Doc) -> str:
    if doc.tensor.ndim == 2 and doc.tensor.shape == (len(doc), node.get_dim("nO")):
        return ""
    return "doc.tensor does not hold the token vectors; run the tok2vec component on the Doc first"


def _no_transformer_data(node: Any, doc: Doc) -> str:
    return "" if doc._.trf_data is not None else "doc._.trf_data is None; run the transformer on the Doc first"


# Nodes that read what another component wrote on the Doc, and what they miss where it did not.
_LISTENERS = {
    "tok2vec-listener": _no_token_vectors,
    "transformer-listener": _no_transformer_data,
    "transformer_layers_listener": _no_transformer_data,
    "last_transformer_layer_listener": _no_transformer_data,
    "scalar_weighting_listener": _no_transformer_data,
}
