"""What a pipe reads: the component of its source, in the pipeline that the pipe belongs to."""

from __future__ import annotations

from typing import Any, Protocol

from spacy.language import Language
from spacy.vocab import Vocab

from ..errors import calib_error
from ..sources.base import Source
from ..sources.find import Found, find_component, look_up
from ..sources.fingerprint import WeightWatch, fingerprint
from .state import PipeState


class Reader(Protocol):
    """What is to be known of a pipe that reads a component."""

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
        self._asked: tuple[Any, ...] | None = None
        self._found = Found(None)
        self._labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The pipe's name in its pipeline: another pipeline that took the pipe may have given it a name since."""
        return next((name for name, own in self.nlp.components if own is self.pipe), self.pipe.name)

    def find(self, vocab: Vocab | None = None) -> Found:
        """See `look_up`; nothing where the vocab, which is that of Docs, is another pipeline's."""
        if self._is_foreign(vocab):
            return Found(None, self._foreign())
        source, fitted = self.pipe.source, self.pipe.learned.component
        # As long as the pipeline has the same components, and this one the same labels, what was found is still there.
        asked = (tuple(self.nlp.components), source, source.component, fitted)
        if asked != self._asked or source.labels(self._found.component) != self._labels:
            self._asked = None
            self._found = look_up(self.nlp, source, fitted, self.pipe.name)
            if self._found.component is not None:
                self._asked, self._labels = asked, source.labels(self._found.component)
        return self._found

    def _is_foreign(self, vocab: Vocab | None) -> bool:
        source = self.pipe.source
        foreign = vocab is not None and vocab is not self.nlp.vocab
        return foreign and bool(source.component) and not source.doc_alone

    def _foreign(self) -> str:
        return (
            "the vocab of the Docs is another pipeline's; make Docs by nlp.make_doc, and after add_pipe(source=...) call "
            f"nlp.get_pipe('{self.pipe.name}').attach(nlp), or save the pipeline and load it"
        )

    def attached(self, nlp: Language) -> SourceLookup:
        """The same in another pipeline, which stands for it from now on. RAISES C020, C022, C120: see `attach`."""
        pipe = self.pipe
        attached = SourceLookup(pipe, nlp)
        found, component = attached.find(), pipe.source.component
        why = found.why
        if all(own is not pipe for _, own in nlp.components):
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
        return self.find().component

    def labels(self) -> tuple[str, ...]:
        """The labels that the source has now; those fitted where its component is missing."""
        component = self.component()
        missing = component is None and self.pipe.source.component
        return self.pipe.learned.labels if missing else self.pipe.source.labels(component)

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
        if self._is_foreign(vocab):
            raise calib_error("C120", name=self.pipe.name, why=self._foreign())
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
        obstacle = source.obstacle(nlp, name, found)
        if obstacle:
            raise calib_error("C034", component=component, why=obstacle)
        return found

    def restore_setting(self, block: str, setting: str, value: Any) -> None:
        """Write a setting into the pipeline's config, so that it is saved as it was given.

        block, setting (str): Its block in the config of the pipe, and its name there.
        """
        config = self.nlp.get_pipe_config(self.name)
        if isinstance(config.get(block), dict):
            config[block][setting] = value

    def changes(self, component: Any, labels: tuple[str, ...]) -> tuple[str, dict[str, object]] | None:
        """(code, values) of what to warn of: new labels, which bring new weights, or else other weights for the same labels."""
        source, learned = self.pipe.source, self.pipe.learned
        added = len(labels) - len(learned.labels)
        if source.component and learned.labels and added > 0:
            return "CW03", {"n": added, "component": source.component}
        if learned.weights and self._watch.changed(learned.weights, self.nlp, component):
            return "CW04", {"component": source.component}
        return None

    def weights_changed(self) -> bool | None:
        """Whether the component has other weights than at the fit: the maps belong to the scores that it gave with those.

        RETURNS: None where that is not known: fitted by an older version, labels added since, or no component.
        """
        found, learned = self.find(), self.pipe.learned
        if not learned.weights or found.component is None:
            return None
        if len(self.pipe.source.labels(found.component)) > len(learned.labels):
            return None
        return fingerprint(self.nlp, found.component) != learned.weights
