"""What a pipe reads: the component of its source, in the pipeline that runs the pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.vocab import Vocab

from ..errors import calib_error
from ..sources.find import Found, find_component, look_for_fault, look_up
from ..sources.fingerprint import WeightWatch, fingerprint
from ..sources.home import Home

if TYPE_CHECKING:
    from .component import Calibrator


class SourceLookup:
    """Asks the pipelines that hold a pipe for the component that its source reads.

    pipe (Calibrator): Whose source, and whose component at the fit. home (Home): The pipelines that hold it.
    """

    def __init__(self, pipe: Calibrator, nlp: Language | None):
        self.pipe = pipe
        self.home = Home(pipe, nlp)
        self._watch = WeightWatch()

    def find(self, vocab: Vocab | None = None) -> Found:
        """See `look_up`."""
        learned = self.pipe.learned
        return look_up(self.home, self.pipe.source, learned.component, vocab, bool(learned.fault))

    def component(self) -> Any:
        """The component that the source reads, or None where the pipeline has it no more (or the source needs none).

        RAISES C020: its labels were removed or reordered since the fit. C022: the source cannot read it.
        """
        return self.find().component

    def labels(self) -> tuple[str, ...]:
        """The labels that the source has now; those fitted where its component is missing."""
        component = self.component()
        missing = component is None and self.pipe.source.component
        return self.pipe.labels if missing else self.pipe.source.labels(component)

    def span_labels(self) -> tuple[str, ...]:
        """The labels of the spans that the source has now; those fitted where its component is missing; () for a source without."""
        component = self.component()
        if component is None and self.pipe.source.component:
            spans = self.pipe.fit_info.spans
            return () if spans is None else tuple(spans.labels)
        return self.pipe.source.span_labels(component)

    def check(self) -> None:
        """RAISES C120: the pipe comes from another pipeline and cannot read this one. C020, C022: see `component`."""
        found, name = self.find(), self.pipe.source.component
        if found.why and found.nlp is not None and name in found.nlp.component_names:
            raise calib_error("C120", name=self.pipe.name, component=name, why=found.why)

    def fault(self) -> str:
        """See `look_for_fault`."""
        learned = self.pipe.learned
        return look_for_fault(self.home, self.pipe.source, learned.component, bool(learned.fault))

    def to_fit(self, vocab: Vocab | None = None) -> tuple[Language | None, Any]:
        """The pipeline and the component that a fit would read.

        vocab (Vocab | None): Of the Docs. RAISES C021: the component is missing. C022, C023, C035: it cannot be calibrated. C028: it stands
            behind this pipe. C034: what it reads is not what the component gave.
        """
        source, component = self.pipe.source, self.pipe.source.component
        if not component:
            return None, None
        nlp = self.home.language(vocab, lambda nlp: nlp)
        fitted = self.pipe.learned.component
        found = None if nlp is None else find_component(nlp, source, fitted.kind, fitted.labels)
        if nlp is None or found is None:
            raise calib_error("C021", component=component, available=", ".join(nlp.component_names if nlp else ()) or "none")
        order, name = nlp.component_names, self.home.name_in(nlp)
        if name in order and component in order and order.index(name) < order.index(component):
            raise calib_error("C028", name=name, component=component)
        if not source.is_trained(found):
            raise calib_error("C023", component=component)
        if not source.has_finite_weights(found):
            raise calib_error("C035", component=component)
        obstacle = source.obstacle(nlp, name, found)
        if obstacle:
            raise calib_error("C034", component=component, why=obstacle)
        return nlp, found

    def changes(self, nlp: Language, component: Any, labels: tuple[str, ...]) -> tuple[str, dict[str, object]] | None:
        """(code, values) of what to warn of: new labels, which bring new weights, or else other weights for the same labels."""
        source, learned = self.pipe.source, self.pipe.learned
        added = len(labels) - len(learned.labels)
        if source.component and learned.labels and added > 0:
            return "CW03", {"n": added, "component": source.component}
        if learned.weights and self._watch.changed(learned.weights, nlp, component):
            return "CW04", {"component": source.component}
        return None

    def weights_changed(self) -> bool | None:
        """Whether the component has other weights than at the fit: the maps belong to the scores that it gave with those.

        RETURNS: None where that is not known: fitted by an older version, labels added since, or no component.
        """
        found, learned = self.find(), self.pipe.learned
        if not learned.weights or found.nlp is None or found.component is None:
            return None
        if len(self.pipe.source.labels(found.component)) > len(learned.labels):
            return None
        return fingerprint(found.nlp, found.component) != learned.weights
