"""Find the component that a pipe reads in its pipeline, the Docs that it can read, and what it writes about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..annotations import Hashes
from ..annotations.base import is_blank
from ..doc.write import CalibratedBatch
from ..errors import calib_error
from ..sources.base import Source
from ..sources.bound import BoundSource
from ..sources.find import find_component, look_up
from ..sources.fingerprint import WeightWatch, fingerprint
from .state import PipeState

if TYPE_CHECKING:
    from ..doc.top_labels import TopLabels

    pass


class Reader(Protocol):
    """A pipe that reads a component."""

    name: str
    source: Source
    learned: PipeState


class SourceLookup:
    """Asks a pipe's pipeline for the component that its source reads.

    pipe (Reader): Whose source, and whose component at the fit.
    nlp (Language): The pipeline that its factory was given, or that it was attached to: `add_pipe(source=...)` lets
        another one run the pipe and tells it nothing.
    """

    def __init__(self, pipe: Reader, nlp: Language):
        self.pipe = pipe
        self.nlp = nlp
        self._watch = WeightWatch()
        self._key: tuple[Any, ...] | None = None
        self._bound: BoundSource | None = None
        self._obstacle = ""

    @property
    def name(self) -> str:
        """The pipe's name in its pipeline: another pipeline that took the pipe may have given it a name since."""
        return next((name for name, pipe in self.nlp.components if pipe is self.pipe), "") or self.pipe.name

    def bind(self, vocab: Vocab | None = None) -> tuple[BoundSource | None, str]:
        """(the source with its component, looked up again where the pipeline has changed; why there is none).

        vocab (Vocab | None): Of Docs; those of another pipeline cannot be read.
        RAISES C020, C022: see `component`.
        """
        nlp, source, fitted, bound = self.nlp, self.pipe.source, self.pipe.learned.component, self._bound
        if vocab is not None and vocab is not nlp.vocab and (why := self._why_foreign()):
            return None, why
        # The binding stays as long as the pipeline runs the same components, and this one has the same labels and span group.
        key = (
            *nlp._components,
            *nlp._disabled,
            source,
            source.component,
            fitted,
            bound and getattr(bound.component, "key", None),
        )
        if bound is None or key != self._key or source.labels(bound.component) != bound.labels:
            self._bound = None
            found = look_up(nlp, source, fitted, self.pipe.name)
            if found.why:
                return None, found.why
            bound = BoundSource.from_component(source, found.component)
            self._obstacle = self.obstacle(found.component)
            if found.component is not None:
                self._key, self._bound = key, bound
        return bound, ""

    def _why_foreign(self) -> str:
        """Why Docs of another vocab cannot be read; "" where they can."""
        if not self.pipe.source.component or self.pipe.source.reads_doc_only:
            return ""
        return (
            "the vocab of the Docs is another pipeline's; make Docs by nlp.make_doc, and after add_pipe(source=...) call "
            f"nlp.get_pipe('{self.pipe.name}').attach(nlp), or save the pipeline and load it"
        )

    def attached(self, nlp: Language) -> SourceLookup:
        """The same in another pipeline, which stands for it from now on. RAISES C020, C022, C120: see `attach`."""
        pipe = self.pipe
        attached, component = SourceLookup(pipe, nlp), pipe.source.component
        _, why = attached.bind()
        if all(other is not pipe for _, other in nlp.components):
            why = "it does not stand there; call add_pipe(source=...) first"
        elif not why and attached.weights_changed():
            why = f"the component '{component}' has other weights there than at the fit"
        if why:
            raise calib_error("C120", name=pipe.name, why=why)
        return attached

    def component(self) -> Any:
        """The component that the source reads, or None where the pipeline has it no more (or the source needs none).

        RAISES C020: its labels were removed or reordered since the fit. C022: the source cannot read it.
        """
        bound, _ = self.bind()
        return None if bound is None else bound.component

    def labels(self) -> tuple[str, ...]:
        """The labels that the source has now; those fitted where its component is missing."""
        component = self.component()
        missing = component is None and self.pipe.source.component
        return self.pipe.learned.component.labels if missing else self.pipe.source.labels(component)

    def span_labels(self) -> tuple[str, ...]:
        """The labels of the spans that the source has now; those fitted where its component is missing; () for a source without."""
        component = self.component()
        if component is None and self.pipe.source.component:
            spans = self.pipe.learned.info.spans
            return () if spans is None else tuple(spans.labels)
        return self.pipe.source.span_labels(component)

    def to_fit(self, vocab: Vocab | None = None) -> Any:
        """The component that a fit would read; None where its source needs none.

        vocab (Vocab | None): Of the Docs.
        RAISES C120: the vocab is another pipeline's. C021: the component is missing. C022, C023, C035: it cannot be
            calibrated. C028: it stands behind this pipe. C034: what it reads is not what the component gave.
        """
        nlp, source, component = self.nlp, self.pipe.source, self.pipe.source.component
        if vocab is not None and vocab is not nlp.vocab and (why := self._why_foreign()):
            raise calib_error("C120", name=self.pipe.name, why=why)
        if not component:
            return None
        fitted = self.pipe.learned.component
        found = find_component(nlp, source, fitted.kind, fitted.labels)
        if found is None:
            raise calib_error("C021", component=component, available=", ".join(nlp.component_names) or "none")
        order, name = nlp.component_names, self.name
        if name in order and component in order and order.index(name) < order.index(component):
            raise calib_error("C028", name=name, component=component)
        if not source.is_trained(found):
            raise calib_error("C023", component=component)
        if not source.has_finite_weights(found):
            raise calib_error("C035", component=component)
        obstacle = self.obstacle(found)
        if obstacle:
            raise calib_error("C034", component=component, why=obstacle)
        return found

    def obstacle(self, component: Any) -> str:
        """Why the pipe cannot read the component where the two stand in the pipeline, with what to do; "" if it can."""
        why = self.pipe.source.obstacle(self.nlp, self.name, component)
        if not why:
            return ""
        from ..errors.advice import SECOND_PASS, advise  # scoring does not need it

        advice = advise(SECOND_PASS, self.pipe.learned.origin) if SECOND_PASS in why else ""
        return "; ".join(filter(None, (why, advice)))

    def restore_setting(self, setting: str, value: Any) -> None:
        """Write a setting of the source into the pipeline's config, so that it is saved as it was given."""
        config = self.nlp.get_pipe_config(self.name)
        if isinstance(config.get("source"), dict):
            config["source"][setting] = value

    def changes(self, component: Any, labels: tuple[str, ...]) -> tuple[str, dict[str, object]] | None:
        """(code, values) of the warning: new labels, which bring new weights, or else other weights for the same labels."""
        source, learned = self.pipe.source, self.pipe.learned
        fitted = learned.component.labels
        n_added = len(labels) - len(fitted)
        if source.component and fitted and n_added > 0:
            return "CW03", {"n": n_added, "component": source.component}
        if learned.weights and self._watch.has_changed(learned.weights, self.nlp, component):
            return "CW04", {"component": source.component}
        return None

    def weights_changed(self) -> bool | None:
        """Whether the component has other weights than at the fit: the maps belong to the scores of the old ones.

        RETURNS: None where that is not known: labels added since, or no component with weights.
        """
        (bound, _), learned = self.bind(), self.pipe.learned
        if not learned.weights or bound is None or bound.component is None or len(bound.labels) > len(learned.component.labels):
            return None
        return fingerprint(self.nlp, bound.component) != learned.weights

    def readable_docs(self, bound: BoundSource, docs: Sequence[Doc]) -> ReadableDocs:
        """Find the Docs with input and annotation."""
        annotation, source = bound.annotation, bound.source
        # An obstacle may be gone since the binding: a component may have got embeddings of its own.
        obstacle = self._obstacle and self.obstacle(bound.component)
        reasons = [obstacle] * len(docs) if obstacle else source.missing(bound.component, docs)
        readable = ReadableDocs(bound)
        for place, (doc, why) in enumerate(zip(docs, reasons, strict=True)):
            if annotation.n_units(doc) <= annotation.first:
                continue
            hashes = annotation.hashes(doc)
            is_bare = not np.count_nonzero(hashes) and not source.sets_labels
            nothing_found = (
                annotation.spans_are_units and is_bare and not annotation.spans_on(doc)
            )  # that is all there is to find
            if not why and is_bare and not nothing_found:
                why = f"no {annotation.unit} carries a {annotation.gold.name} annotation; put the pipe after the component that sets it, and enable that"
            if why:
                readable.reasons += [] if is_blank(annotation, doc).all() else [why]
            else:
                readable.places.append(place)
                readable.docs.append(doc)
                readable.hashes.append(hashes)
        return readable


@dataclass
class ReadableDocs:
    """The Docs of a batch that a source can read.

    source (BoundSource): The source. places (list[int]), docs (list[Doc]): Number in the batch, and the Doc itself.
    hashes (list[Hashes]): For each Doc the hash of the label that each of its units (tokens) carries.
    reasons (list[str]): Why others cannot be read; Docs without tokens are not among them.
    top_labels (TopLabels | None): For those of them that carry no label (sources with `sets_labels`).
    """

    source: BoundSource
    places: list[int] = field(default_factory=list)
    docs: list[Doc] = field(default_factory=list)
    hashes: list[Hashes] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    top_labels: TopLabels | None = None


@dataclass
class Reading:
    """The result of `predict`. places (list[int]): Numbers of the Docs that could be read. batch (CalibratedBatch | None): Their scores; None without
    such a Doc. top_labels (TopLabels | None): See ReadableDocs.
    """

    places: list[int] = field(default_factory=list)
    batch: CalibratedBatch | None = None
    top_labels: TopLabels | None = None
