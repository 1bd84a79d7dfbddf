"""The contract of a source, and what sources share."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model

from ..annotations import Annotation
from ..calibration.spans import product_of
from ..pairs.build import Scores
from ..types import Floats, Spans

# The parser that the scores of a Doc's arcs are of, as long as the Doc lives: whole trees are sampled from it.
PARSERS: MutableMapping[Doc, Any] = WeakKeyDictionary()


def missing_input(pipe: Any, docs: Sequence[Doc]) -> list[str]:
    """Why the model of a component cannot be run on each Doc, "" if it can."""
    reasons = [""] * len(docs)
    for node in pipe.model.walk():
        if node.name in _LISTENERS:
            reasons = [why or _LISTENERS[node.name](node, doc) for why, doc in zip(reasons, docs, strict=True)]
    return reasons


def is_listener(node: Any) -> bool:
    """Whether a node of a model reads what another component wrote on the Doc; curated transformers call theirs "..._listener"."""
    return node.name.endswith(("-listener", "_listener"))


def overwriting_pipe(nlp: Language, name: str, pipe: Any) -> str:
    """Why the head's input was overwritten between its component and the pipe `name`; "" if it was not.

    A second embedding component of the same width leaves other vectors in doc.tensor: the head would give garbage without an error.
    """
    pipe_name = embedding = ""  # of the component in this pipeline, and of the first embedding component after it
    for place, component in nlp.pipeline:
        if place == name:
            break
        if component is pipe:
            pipe_name = place
        elif pipe_name and not embedding and hasattr(component, "listeners"):
            embedding = place
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


# Nodes that read what another component wrote on the Doc, and what they miss where it did not.
_LISTENERS = {
    "tok2vec-listener": _no_token_vectors,
    "transformer-listener": _no_transformer_data,
    "transformer_layers_listener": _no_transformer_data,
    "last_transformer_layer_listener": _no_transformer_data,
    "scalar_weighting_listener": _no_transformer_data,
}


def to_numpy(array: Any) -> NDArray[Any]:
    """A numpy array from a numpy, cupy or torch one; the device's copy is fetched once."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):  # torch
        return array.detach().cpu().numpy()
    if hasattr(array, "get"):  # cupy
        return array.get()
    return np.asarray(array)


def has_weights(pipe: Any) -> bool:
    """Whether all weights of a component's model are there."""
    return all(node.has_param(name) for node in pipe.model.walk() for name in node.param_names)


def is_trained(pipe: Any) -> bool:
    """Whether a component has what it runs with: all weights, and something in its knowledge base, if it has a model or such a base."""
    is_empty = getattr(getattr(pipe, "kb", None), "is_empty", bool)()
    return not is_empty and (not isinstance(getattr(pipe, "model", None), Model) or has_weights(pipe))


def all_finite(pipe: Any) -> bool:
    """Whether no weight of a component's model is NaN or infinite."""
    weights = (node.get_param(name) for node in pipe.model.walk() for name in node.param_names)
    return all(bool(np.isfinite(to_numpy(weight)).all()) for weight in weights)


class Source(ABC):
    """Reads the marginals of Docs. Holds settings only: the component is looked up by the pipe and handed in.

    reads (tuple[str, ...]): The factories whose components it reads, as errors name them; () for a source that reads nothing but the Doc.
    events (tuple[str, ...]): When what it reads may count as right, one of which `calib fit --event` names; () where there is no choice.
    component (str): Name of the pipeline component that is read; "" for a source that reads nothing but the Doc.
    alone (tuple[str, ...]): Labels that form a group of their own beside those that the grouping makes ("O").
    user_data_keys (tuple[str, ...]): Keys of `Doc.user_data` where it reads what gold files may bring along, an array with a row for each token for example.
    further_names (tuple[str, ...]): Names of further scores that it reads of each unit beside the first; () for none.
    distributions (bool): Whether the scores of a token say something of each label, so that a scaling may weigh them against each other;
        False where a token has the score of one label and nothing is known of the others.
    sets_labels (bool): Whether the calib pipe gives a Doc that carries no label the likeliest ones.
    unsettled (bool): Whether a setting was left to the fit. says (str): What `spacy calib info` says of its settings, "" for nothing.
    doc_alone (bool): Whether all that it reads of a component stands on the Doc, which may be any pipeline's then.
    keeps_span_scores (bool): Whether its component keeps scores beside its spans, where `write_span_scores` puts calibrated ones too.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    events: ClassVar[tuple[str, ...]] = ()
    component: str = ""
    alone: tuple[str, ...] = ()
    distributions: bool = True
    keeps_span_scores: bool = False
    sets_labels: bool = False
    unsettled: bool = False
    says: str = ""
    user_data_keys: tuple[str, ...] = ()
    further_names: tuple[str, ...] = ()
    doc_alone: bool = False

    def supports(self, pipe: Any) -> bool:
        """Whether the source can read this component."""
        return True

    def claims(self, pipe: Any) -> bool:
        """Whether it is this source that reads the component where no setting names one. Every registered source is asked, as its
        registered function makes it without arguments; one that needs arguments is not asked.
        """
        return False

    def kind(self, pipe: Any) -> str:
        """A stable name of the component's type, by which it is found again after a rename."""
        return ""

    @abstractmethod
    def annotation(self, pipe: Any) -> Annotation:
        """Which annotation the labels are of."""

    @abstractmethod
    def labels(self, pipe: Any) -> tuple[str, ...]:
        """The labels, one per column."""

    def kept_labels(self) -> tuple[str, ...]:
        """Labels that stand in the settings alone, which the pipe saves beside what it learned; () where a component has them."""
        return ()

    def restore_labels(self, labels: Sequence[str]) -> bool:
        """Take saved labels, where the config has other numbers of dollar signs. RETURNS (bool): They were others."""
        return False

    def is_trained(self, pipe: Any) -> bool:
        """Whether the component has labels and weights."""
        return bool(self.labels(pipe))

    def has_finite_weights(self, pipe: Any) -> bool:
        """False where NaN in the weights would not show in what `read` gives (the sources of heads find it there)."""
        return True

    @abstractmethod
    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        """Why each Doc cannot be read, "" if it can."""

    @abstractmethod
    def read(self, pipe: Any, docs: Sequence[Doc]) -> Scores:
        """The probabilities of all units (tokens) of Docs that are not missing anything and hold at least one token together."""

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        """Why the pipe `name` cannot read the component where the two stand in the pipeline; "" if it can."""
        return overwriting_pipe(nlp, name, pipe)

    def reads_output(self, pipe: Any) -> bool:
        """Whether the component must have run on the Docs: False if its model is run again."""
        return False

    def holds_preset(self, pipe: Any, doc: Doc) -> bool:
        """Whether a Doc on which the component has not run yet holds annotations that could not be told from its own afterwards."""
        return False

    def frequency_label(self, label: str) -> str:
        """The label whose frequency puts this one into a group: that of the type for a BILUO tag."""
        return label

    def settle(
        self, pipe: Any, examples: Sequence[Example], progress: Callable[[Iterable[int]], Iterable[int]] = iter
    ) -> dict[str, Any]:
        """Choose the settings that were left to the fit (`unsettled`) from its examples, whose predicted Docs hold what `read` reads.

        progress (Callable): Wraps the numbers of the steps, where there are many. RETURNS (dict): Setting -> value, which the config of the pipe then says.
        """
        return {}

    # Spans

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        """The labels of its spans; () for a source of token labels alone."""
        return ()

    def raw_span_scores(self, spans: Spans) -> Floats:
        """The probability of each chosen span before calibration: the product of its tokens' probabilities."""
        return product_of(spans)

    def write_span_scores(self, pipe: Any, doc: Doc, attr: str, scores: Mapping[tuple[int, int, str], float]) -> None:
        """Put calibrated scores beside those that its component keeps. scores: (start, end, label) -> probability."""
        raise NotImplementedError

    def count(self, pipe: Any, docs: Iterable[Doc]) -> Counter[str]:
        """Gold frequency of the labels (and of gold labels that the component does not know)."""
        return self.annotation(pipe).count(docs)


def named_source(pipe: Any) -> dict[str, Any]:
    """The source that a component names for what it leaves, as a config has it (`calib_source`); {} where it names none."""
    named = getattr(pipe, "calib_source", None)
    return dict(named) if isinstance(named, Mapping) else {}


@contextlib.contextmanager
def labels_unless_it_fails(source: Source) -> Iterator[None]:
    """Restore the source's labels and settings if the rest of a fit, or of loading one, fails."""
    labels, settings = source.kept_labels(), dict(vars(source))
    try:
        yield
    except BaseException:
        vars(source).update(settings)
        source.restore_labels(labels)
        raise


class ComponentSource(Source):
    """Reads the components of some classes. of (tuple[type, ...]): These classes, subclasses first."""

    of: ClassVar[tuple[type, ...]]

    def __init__(self, component: str):
        self.component = component

    def supports(self, pipe: Any) -> bool:
        return isinstance(pipe, self.of)

    def claims(self, pipe: Any) -> bool:
        return self.supports(pipe)

    def kind(self, pipe: Any) -> str:
        return next(kind.__name__ for kind in self.of if isinstance(pipe, kind))

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return tuple(pipe.labels)

    def is_trained(self, pipe: Any) -> bool:
        return bool(pipe.labels) and has_weights(pipe)


class OutputSource(ComponentSource):
    """Its component has to run first; whatever runs behind that is no obstacle."""

    def has_finite_weights(self, pipe: Any) -> bool:
        return all_finite(pipe)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return ""

    def reads_output(self, pipe: Any) -> bool:
        return True
