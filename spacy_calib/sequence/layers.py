"""The head of a sequence model as a thinc layer: scores of labels for each token, and weights of transitions."""

# No `from __future__ import annotations` here: confection (of spaCy before 3.8.12) resolves no types given as strings.
from collections.abc import Callable
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Linear, Model, chain, with_array, zero_init
from thinc.types import Floats2d

from ..errors import calib_error
from ..schema import lengths
from ..sources.base import to_numpy
from .inference.chains import Potentials

_PARAMS = ("transitions", "starts", "ends")


def make_chain_model(
    tok2vec: Model[list[Doc], list[Floats2d]], nO: int | None = None, transition_rate: float = 1.0
) -> Model[list[Doc], list[Floats2d]]:
    """Registered as spacy-calib.Chain.v1. A linear layer over token vectors, whose output is the scores of a chain.

    tok2vec (Model): A tok2vec, a transformer, or a listener. nO (int | None): Number of labels; None takes the data's.
    transition_rate (float): How many times as fast as other weights transitions are learned. Adam moves a weight by
        about one learning rate a step, so with a transformer's small rates transitions would hardly leave 0.
    RAISES C001: the rate is not above 0.
    """
    if not 0 < transition_rate < float("inf"):
        raise calib_error("C001", name="transition_rate", wanted="a number above 0", given=transition_rate)
    width = tok2vec.get_dim("nO") if tok2vec.has_dim("nO") else None
    linear = Linear(nO, width, init_W=zero_init)
    weights = _potentials_layer(nO, transition_rate)
    model: Model[Any, Any] = chain(tok2vec, with_array(linear), weights)
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output_layer", linear)
    model.set_ref("potentials", weights)
    return model


def _potentials_layer(nO: int | None, rate: float) -> Model[list[Floats2d], list[Floats2d]]:
    """Holds the potentials, divided by `rate`; scores pass through it as they are."""
    dims = {"nO": nO, "nI": nO}
    return Model("chain_potentials", _forward, init=_init, dims=dims, params=dict.fromkeys(_PARAMS), attrs={"rate": rate})


def _forward(model: Any, scores: list[Floats2d], is_train: bool) -> tuple[list[Floats2d], Callable[[Any], Any]]:
    return scores, lambda gradient: gradient


def _init(model: Any, X: Any = None, Y: Any = None) -> None:
    if not model.has_dim("nO"):
        given = Y if Y is not None else X
        model.set_dim("nO", given[0].shape[1])
    n = model.get_dim("nO")
    if not model.has_dim("nI"):
        model.set_dim("nI", n)
    for name, shape in zip(_PARAMS, ((n, n), (n,), (n,)), strict=True):
        model.set_param(name, model.ops.alloc_f(shape))


def potentials_of(model: Model[Any, Any]) -> Potentials:
    """The potentials that a chain model holds."""
    layer = model.get_ref("potentials")
    return Potentials(*(layer.attrs["rate"] * layer.get_param(name) for name in _PARAMS))


def fault_of_weights(model: Model[Any, Any], n_labels: int, vocab: Vocab) -> str:
    """Why a chain model that was read from a file cannot score so many labels, "" if it can, or has no weights yet.

    vocab (Vocab): Whose vectors it may look up.
    """
    if not model.get_ref("potentials").has_param(_PARAMS[0]):
        return ""
    head = model.get_ref("output_layer")
    arrays = {name: to_numpy(getattr(potentials_of(model), name)) for name in _PARAMS}
    arrays["scores"] = to_numpy(head.predict(head.ops.alloc2f(2, head.get_dim("nI"))))
    shapes = {"transitions": (n_labels, n_labels), "starts": (n_labels,), "ends": (n_labels,), "scores": (2, n_labels)}
    if _is_known(model):
        made = Vocab()
        made.vectors = vocab.vectors
        (arrays["scores of a text"],) = map(to_numpy, model.predict([Doc(made, words=["a", "b"])]))
        shapes["scores of a text"] = (2, n_labels)
    # Token vectors that are no numbers are found where the component is asked for scores: it was trained so.
    own = [name for name in arrays if name != "scores of a text" and not np.isfinite(arrays[name]).all()]
    return lengths(shapes, arrays) or (f"'{own[0]}' holds NaN" if own else "")


def _is_known(model: Model[Any, Any]) -> bool:
    """Whether a Doc of mere words can try it: no layer listens to another component, or is of another package."""
    ours = {"spacy", "thinc", __name__.partition(".")[0]}
    return all(type(node) is Model and node._func.__module__.partition(".")[0] in ours for node in model.walk())


def add_gradient(model: Model[Any, Any], gradient: Potentials) -> None:
    """Add to the gradient of the potentials."""
    layer = model.get_ref("potentials")
    for name in _PARAMS:
        given: Any = layer.ops.asarray(getattr(gradient, name), dtype="float32")
        layer.inc_grad(name, layer.attrs["rate"] * given)
