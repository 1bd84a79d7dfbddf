"""The base classes of sources, and functions that several sources use."""

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
from ..pairs.scores import Scores
from ..types import Floats, Spans

# Doc -> the parser whose arc scores were read from it, as long as the Doc lives: whole trees are sampled from this parser.
PARSERS: MutableMapping[Doc, Any] = WeakKeyDictionary()


def reasons_not_to_run(pipe: Any, docs: Sequence[Doc]) -> list[str]:
    """Return for each Doc in words why the model of a component cannot be run on it, "" if it can."""
    reasons = [""] * len(docs)
    for node in pipe.model.walk():
        if node.name in _LISTENERS:  # it reads what an embedding component wrote on the Doc, which may be missing
            reasons = [why or _LISTENERS[node.name](node, doc) for why, doc in zip(reasons, docs, strict=True)]
    return reasons


def is_listener(node: Any) -> bool:
    """Return whether a node of a model is a listener, which reads what an embedding component wrote on the Doc."""
    return node.name.endswith(("-listener", "_listener"))  # "_listener": of curated transformers


def overwriting_pipe(nlp: Language, name: str, pipe: Any) -> str:
    """Return in words which pipe overwrites the token vectors that the model of `pipe` reads, "" if none does.

    name: The calib pipe that runs the model again. A second embedding component of the same width changes doc.tensor.
    """
    pipe_name = embedding = ""  # names of the component and of the first embedding component between it and `name`
    for component_name, component in nlp.pipeline:
        if component_name == name:
            break
        if component is pipe:
            pipe_name = component_name
        elif pipe_name and not embedding and hasattr(component, "listeners"):
            embedding = component_name
    else:  # the pipeline has no pipe `name`
        return ""
    if not embedding or not any(is_listener(node) for node in pipe.model.walk()):
        return ""
    return f"'{embedding}' stands between '{pipe_name}' and it and overwrites the token vectors"


def _why_no_token_vectors(node: Any, doc: Doc) -> str:
    if doc.tensor.ndim == 2 and doc.tensor.shape == (len(doc), node.get_dim("nO")):
        return ""
    return "doc.tensor does not hold the token vectors; run the tok2vec component on the Doc first"


def _why_no_transformer_data(node: Any, doc: Doc) -> str:
    return "" if doc._.trf_data is not None else "doc._.trf_data is None; run the transformer on the Doc first"


# Name of a listener -> function (node, Doc) that returns what the Doc lacks, "" for nothing.
_LISTENERS = {
    "tok2vec-listener": _why_no_token_vectors,
    "transformer-listener": _why_no_transformer_data,
    "transformer_layers_listener": _why_no_transformer_data,
    "last_transformer_layer_listener": _why_no_transformer_data,
    "scalar_weighting_listener": _why_no_transformer_data,
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
    """Return whether a component can run: its model, if any, has all weights, and its knowledge base, if any, is not empty."""
    knowledge_base: Any = getattr(pipe, "kb", None)
    model = getattr(pipe, "model", None)
    if hasattr(knowledge_base, "is_empty") and knowledge_base.is_empty():
        return False
    return not isinstance(model, Model) or has_weights(pipe)


class Source(ABC):
    """Base class of sources: reads the label probabilities that a component gives to Docs. `pipe` is always the component.

    reads (tuple[str, ...]): Factories of the components that the source can read, for errors; () if it reads only the Doc.
    events (tuple[str, ...]): Values of `calib fit --event`, each a definition of a right prediction; () for no choice.
    component (str): Name of the pipeline component; "" if the source reads only the Doc.
    singleton_labels (tuple[str, ...]): Labels, such as "O", that form a group each, before the groups that the grouping makes.
    user_data_keys (tuple[str, ...]): Keys of `Doc.user_data` that the source reads, and that gold files may therefore contain.
    further_score_names (tuple[str, ...]): Names of more scores that it reads for each span or document; () for none.
    distributions (bool): Whether a token has a score for every label, so that a scaling can compare labels; False if only one
        label of a token has a score. sets_labels (bool): Whether the calib pipe sets the top labels on a Doc without labels.
    auto_settings (tuple[str, ...]): Names of the settings that the fit chooses if they are None (`resolve_auto_settings`).
    settings_summary (str): The settings as `spacy calib info` prints them; "" for none.
    reads_doc_only (bool): Whether it reads only the component's output on the Doc, which another pipeline may have written.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    events: ClassVar[tuple[str, ...]] = ()
    component: str = ""
    singleton_labels: tuple[str, ...] = ()
    distributions: bool = True
    sets_labels: bool = False
    auto_settings: tuple[str, ...] = ()
    settings_summary: str = ""
    user_data_keys: tuple[str, ...] = ()
    further_score_names: tuple[str, ...] = ()
    reads_doc_only: bool = False

    def supports(self, pipe: Any) -> bool:
        """Return whether the source can read this component."""
        return True

    def claims(self, pipe: Any) -> bool:
        """Return whether this source is the default for a component, used if no setting names a source.

        It is called on every registered source that can be built without arguments.
        """
        return False

    def type_name(self, pipe: Any) -> str:
        """Return a stable name of the component's type, by which it is found after it was renamed in the pipeline."""
        return ""

    @abstractmethod
    def annotation(self, pipe: Any) -> Annotation:
        """Return the annotation that the labels belong to."""

    @abstractmethod
    def labels(self, pipe: Any) -> tuple[str, ...]:
        """Return the label of each score column."""

    def kept_labels(self) -> tuple[str, ...]:
        """Return labels that only settings or a fit know, which the pipe must save; () if the component has the labels."""
        return ()

    def restore_labels(self, saved_labels: Sequence[str]) -> bool:
        """Replace labels that a config changed (spaCy doubles "$") by the saved ones. RETURNS (bool): Whether any differed."""
        return False

    def is_trained(self, pipe: Any) -> bool:
        """Return whether the component has labels and weights."""
        return bool(self.labels(pipe))

    def has_finite_weights(self, pipe: Any) -> bool:
        """Return False if the component has NaN or infinite weights that `read` would not detect in its scores."""
        return True

    @abstractmethod
    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        """Return for each Doc in words why it cannot be read, "" if it can."""

    @abstractmethod
    def read(self, pipe: Any, docs: Sequence[Doc]) -> Scores:
        """Return P(label) for all units (tokens or documents) of the Docs, one after the other, and columns as in `labels`.

        docs (Sequence[Doc]): Docs with tokens, for each of which `missing` returns "".
        """

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        """Return in words why the calib pipe `name` cannot read the component from its place in the pipeline, "" if it can."""
        return overwriting_pipe(nlp, name, pipe)

    def reads_output(self, pipe: Any) -> bool:
        """Return whether the component must have run on the Docs; False if its model is run again."""
        return False

    def holds_preset(self, pipe: Any, doc: Doc) -> bool:
        """Return whether a Doc, before the component runs, has labels that could later be taken for the component's."""
        return False

    def frequency_label(self, label: str) -> str:
        """Return the label whose gold frequency decides on the group of this one: for a BILUO tag its entity type."""
        return label

    @property
    def has_auto_settings(self) -> bool:
        """Whether the fit has to choose a setting."""
        return any(getattr(self, name) is None for name in self.auto_settings)

    def resolve_auto_settings(
        self, pipe: Any, examples: Sequence[Example], progress: Callable[[Iterable[int]], Iterable[int]] = iter
    ) -> None:
        """Choose the `auto_settings` that are None by the examples of the fit. progress: Wraps an iterable to show progress."""
        raise NotImplementedError

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        """Return the labels of the source's spans; () for a source of token labels only."""
        return ()

    def raw_span_scores(self, spans: Spans) -> Floats:
        """Return the uncalibrated probability of each span: the product of the probabilities of its tokens."""
        return product_of(spans)

    def count_gold(self, pipe: Any, docs: Iterable[Doc]) -> Counter[str]:
        """Return gold label -> how often it occurs in gold Docs, even if the component does not know the label."""
        return self.annotation(pipe).count_gold(docs)


def named_source(pipe: Any) -> dict[str, Any]:
    """Return the config block of the source that a component names in its attribute `calib_source`; {} without one."""
    block = getattr(pipe, "calib_source", None)
    return dict(block) if isinstance(block, Mapping) else {}


@contextlib.contextmanager
def restore_on_failure(source: Source) -> Iterator[None]:
    """Restore the labels and settings of a source if the body of the `with` statement fails, and raise its error again."""
    labels, settings = source.kept_labels(), dict(vars(source))
    try:
        yield
    except BaseException:
        vars(source).update(settings)
        source.restore_labels(labels)  # a source may keep them elsewhere than in its attributes
        raise


class ComponentSource(Source):
    """Base class of sources for components of certain classes. component_classes: The classes, subclasses first."""

    component_classes: ClassVar[tuple[type, ...]]

    def __init__(self, component: str):
        self.component = component

    def supports(self, pipe: Any) -> bool:
        return isinstance(pipe, self.component_classes)

    def claims(self, pipe: Any) -> bool:
        return self.supports(pipe)

    def type_name(self, pipe: Any) -> str:
        return next(kind.__name__ for kind in self.component_classes if isinstance(pipe, kind))

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return tuple(pipe.labels)

    def is_trained(self, pipe: Any) -> bool:
        return bool(pipe.labels) and has_weights(pipe)


class OutputSource(ComponentSource):
    """Base class of sources that read the output of their component from the Doc, whatever runs after the component."""

    def has_finite_weights(self, pipe: Any) -> bool:
        weights = (node.get_param(name) for node in pipe.model.walk() for name in node.param_names)
        return all(bool(np.isfinite(to_numpy(weight)).all()) for weight in weights)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return ""

    def reads_output(self, pipe: Any) -> bool:
        return True
