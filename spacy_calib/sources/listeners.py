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
    own = other = ""  # the component's name in this pipeline, and that of the first embedding component behind it
    for at, component in nlp.pipeline:
        if at == name:
            break
        if component is pipe:
            own = at
        elif own and not other and hasattr(component, "listeners"):
            other = at
    else:
        return ""
    if not other or not any(is_listener(node) for node in pipe.model.walk()):
        return ""
    return f"'{other}' stands between '{own}' and it and overwrites the token vectors"


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
