"""Functions that find the component of a source in a pipeline, bind both, and detect changed weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations import Annotation, Hashes, label_hashes
from ..errors import CalibError, brief, calib_error
from ..pairs.scores import Scores
from ..registry import prototypes
from ..spacy_private import torch_module
from .mapped import with_map
from .source import Source, is_listener, named_source, to_numpy

# Every training step changes the biases, so the last small arrays of each model are compared whenever the pipe runs.
_MAX_SIZE, _N_ARRAYS = 4096, 3
# Why components have no score to read, by the names of their classes.
_WHY_NOT = {
    **dict.fromkeys(("EntityRuler", "SpanRuler", "AttributeRuler", "Sentencizer", "Lemmatizer"), "a rule has no score"),
    **dict.fromkeys(("MultitaskObjective", "ClozeMultitask"), "it is a side task of training, and puts no label on a Doc"),
    **dict.fromkeys(("Tok2Vec", "Transformer", "CuratedTransformer"), "it gives vectors, and no label"),
}
# The source of components that no source claims; its method `supports` returns False for most of them.
_FALLBACK = "spacy-calib.Softmax.v1"


def fingerprint(nlp: Language, component: Any) -> str:
    """Return a digest of all parameters of a component and of the embedding components that it listens to; "" without a model.

    Replacing a listener by its embedding layer does not change the digest. en_core_web_sm takes some 10 ms.
    """
    models = _models_of(nlp, component)
    digests = set()  # a set, sorted in the end: neither order nor copies of arrays matter
    for array in (to_numpy(read_array()) for model in models for read_array in _parameters(model)):
        digest = blake2b(f"{array.dtype}{array.shape}".encode(), digest_size=16)
        digest.update(array.tobytes())
        digests.add(digest.hexdigest())
    return blake2b("".join(sorted(digests)).encode(), digest_size=16).hexdigest() if models else ""


class WeightWatch:
    """A cheap check whether weights changed since the fit: the full digest is computed only if a sample of arrays changed."""

    def __init__(self) -> None:
        self._model: Any = None  # the model that was checked last
        self._reads: list[Any] = []  # functions, each of which returns a small array of it, or of a model it listens to
        self._sample: list[Any] | None = None  # bytes of these arrays at the last check; None before
        self._has_changed = False  # result of the last full comparison

    def has_changed(self, fit_fingerprint: str, nlp: Language, component: Any) -> bool:
        """Return whether the component's weights differ from those of the fit. fit_fingerprint: From `fingerprint`."""
        model = getattr(component, "model", component)
        if self._model is not model:
            self._model = model
            self._reads = []
            for model_reads in map(_parameters, _models_of(nlp, component)):
                small_reads = [read for read in model_reads if _n_values(read()) <= _MAX_SIZE]
                self._reads += small_reads[-_N_ARRAYS:]  # some are biases, which every training step changes
            self._sample = None
        sample = [to_numpy(read()).tobytes() for read in self._reads]
        if sample != self._sample:
            self._sample = sample
            self._has_changed = fingerprint(nlp, component) != fit_fingerprint
        return self._has_changed

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a new object: a copy of the pipe has another model, which has not been checked."""
        return WeightWatch().__dict__


def _n_values(array: Any) -> int:
    """Return the number of values of an array of numpy, cupy or torch."""
    return int(array.numel() if hasattr(array, "numel") else array.size)


def _models_of(nlp: Language, component: Any) -> list[Any]:
    """Return the models of a component and of the embedding components that it listens to; [] without a model."""
    model: Any = getattr(component, "model", None)
    if model is None and hasattr(component, "learned_arrays"):
        return [component]  # in place of a model: `_parameters` reads its learned arrays
    if not hasattr(model, "walk"):
        return []
    listeners = {id(node) for node in model.walk() if is_listener(node)}
    pipes: list[Any] = [pipe for _, pipe in nlp.components]
    return [model, *(pipe.model for pipe in pipes if any(id(node) in listeners for node in getattr(pipe, "listeners", ())))]


def _parameters(model: Any) -> Iterator[Any]:
    """Yield for each array of a model, or of torch modules in it, a function that returns the array as it is when called."""
    if hasattr(model, "learned_arrays"):  # a component in place of a model, from `_models_of`
        yield from (lambda i=i: model.learned_arrays()[i] for i in range(len(model.learned_arrays())))
        return
    for node in model.walk():
        for name in node.param_names:
            if node.has_param(name):
                yield partial(node.get_param, name)
        for shim in node.shims:
            module = torch_module(shim)
            if hasattr(module, "parameters"):
                yield from (lambda parameter=parameter: parameter for parameter in module.parameters())


@dataclass(frozen=True, eq=False)
class BoundSource:
    """A source together with the component of a pipeline that it reads.

    component (Any): None for a source that reads only the Doc. annotation (Annotation): The annotation that the labels belong
    to. labels (tuple[str, ...]): Label of each score column. span_labels (tuple[str, ...]): Labels of spans; () without spans.
    """

    source: Source
    component: Any
    annotation: Annotation
    labels: tuple[str, ...]
    span_labels: tuple[str, ...]

    @classmethod
    def from_component(cls, source: Source, component: Any) -> BoundSource:
        """Bind a source to a component, and look up annotation and labels. RAISES C163: its labels cannot be mapped."""
        annotation, span_labels = source.annotation(component), tuple(source.span_labels(component))
        return cls(source, component, annotation, source.labels(component), span_labels)

    @cached_property
    def own_labels(self) -> tuple[str, ...]:
        """The labels of the component, before a label map merges them."""
        return with_map(self.source, None).labels(self.component)

    @cached_property
    def label_hashes(self) -> Hashes:
        """The hash of the label of each score column."""
        return label_hashes(self.labels)

    @property
    def name(self) -> str:
        """The name of the component for messages."""
        return self.source.component or "the source"

    def read(self, docs: Sequence[Doc]) -> Scores:
        """Return the scores of all tokens (or documents) of Docs that can be read: `missing` must return "" for each."""
        return self.source.read(self.component, docs)

    def missing(self, docs: Sequence[Doc]) -> list[str]:
        """Return for each Doc in words why it cannot be read, "" if it can."""
        return self.source.missing(self.component, docs)

    def count_gold(self, docs: Iterable[Doc]) -> Counter[str]:
        """Return gold label -> how often it occurs in gold Docs."""
        return self.source.count_gold(self.component, docs)

    def with_current_labels(self) -> BoundSource:
        """Return this source with the labels that the component has now; recognizers can get new labels while they run."""
        is_current = self.source.labels(self.component) == self.labels
        return self if is_current else BoundSource.from_component(self.source, self.component)


@dataclass(frozen=True)
class ComponentIdentity:
    """Type and labels of a component at the fit, by which the component is found if it was renamed; "" and () before a fit."""

    kind: str = ""
    labels: tuple[str, ...] = ()


def find_component(nlp: Language, source: Source, identity: ComponentIdentity) -> Any:
    """Find the component of a source: by its name or, if it was renamed, by its type and labels at the fit (identity).

    RETURNS: The component; None if the source needs none, or if none is found. A renamed component must be the only one of
        its type whose labels begin with the labels of the fit. RAISES C022: the source cannot read the component of this name.
    """
    if not source.component:
        return None
    by_name = dict(nlp.components)
    if source.component in by_name:
        pipe = by_name[source.component]
        if not source.supports(pipe):
            class_names = [cls.__name__ for cls in type(pipe).__mro__]
            why = next((f": {_WHY_NOT[name]}" for name in class_names if name in _WHY_NOT), "")
            kind, supported = type(pipe).__name__, _readable_factories()
            readable = ", ".join(readable_in(nlp)) or "none"
            raise calib_error("C022", component=source.component, kind=kind, why=why, supported=supported, readable=readable)
        return pipe
    if not identity.labels:
        return None
    same_type = [pipe for pipe in by_name.values() if source.supports(pipe) and source.type_name(pipe) == identity.kind]
    alike = [pipe for pipe in same_type if source.labels(pipe)[: len(identity.labels)] == identity.labels]
    return alike[0] if len(alike) == 1 else None


def count_new_labels(source: Source, component: Any, identity: ComponentIdentity, name: str) -> int:
    """Return how many labels a component got since the fit, when it had `identity`. RAISES C020: some are gone or moved."""
    labels, fit_labels = source.labels(component), identity.labels
    if labels[: len(fit_labels)] == fit_labels:
        return len(labels) - len(fit_labels)
    removed_labels = [label for label in fit_labels if label not in set(labels)]
    detail = f"'{brief(removed_labels[0])}' is gone" if removed_labels else "their order is another one"
    raise calib_error("C020", component=source.component, name=name, detail=detail)


def registered_sources() -> dict[str, Source]:
    """Return registered name -> source with default settings; first softmax heads, then our others, then other packages'."""
    sources = prototypes("calib_sources").items()  # (name, source)
    return dict(sorted(sources, key=lambda pair: (not _is_ours(pair[1]), pair[0] != _FALLBACK, pair[0])))


def source_name_for(pipe: Any) -> str:
    """Return the registered name of the default source for a component.

    Sources of other packages precede those of this one; softmax heads are last. RAISES C200: two other packages claim it.
    """
    claiming = {name: source for name, source in registered_sources().items() if source.claims(pipe)}
    third_party = [name for name, source in claiming.items() if not _is_ours(source)]
    if len(third_party) > 1:
        raise calib_error("C200", component=getattr(pipe, "name", type(pipe).__name__), sources=", ".join(third_party))
    return next(reversed(claiming), _FALLBACK)  # `registered_sources` ends with other packages


def source_block(pipe: Any, name: str) -> dict[str, Any]:
    """Return the config block of the default source for a component (pipe, name). RAISES C200: two packages claim it."""
    source_name, block = source_name_for(pipe), named_source(pipe)
    settings = block if block.get("@calib_sources") == source_name else {}  # the component may give settings of its source
    return {**settings, "@calib_sources": source_name, "component": name}


def readable_in(nlp: Language) -> list[str]:
    """Return the names of the trained components that some source can read by default, in the order of the pipeline."""
    sources = registered_sources().values()
    return [name for name, pipe in nlp.components if any(source.claims(pipe) and source.is_trained(pipe) for source in sources)]


def no_component_error(nlp: Language, component: str) -> CalibError:
    """Return the error for a pipeline without this component: C317 lists those to choose from, C318 if there are none."""
    readable = readable_in(nlp)
    if readable:
        return calib_error("C317", component=component, readable=", ".join(readable))
    available = ", ".join(nlp.component_names) or "no components"
    return calib_error("C318", component=component, available=available, supported=_readable_factories())


def _is_ours(source: Source) -> bool:
    """Return whether a source is one of this package."""
    return type(source).__module__.partition(".")[0] == __name__.partition(".")[0]


def _readable_factories() -> str:
    return ", ".join(dict.fromkeys(name for source in registered_sources().values() for name in source.reads))
