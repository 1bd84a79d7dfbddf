"""The base class of calib pipes: settings, learned state, and the pipeline that the pipe reads."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from spacy.language import Language

from ..annotations import EXTENSION_PREFIX, FOUND_PREFIX, SPANS_PREFIX, get_annotation, plain_name, unit_of
from ..calibration.spans import SpanCalibration
from ..calibration.tokens import TokenCalibration, check_normalize
from ..doc.attributes import check_pipe_name, register
from ..errors import calib_error
from ..pairs.build import JudgedPairs
from ..pairs.documents import DOCUMENT, TOKEN, count_in_words
from ..types import Groups
from .annotating import AnnotatingPipe, WarnOnce
from .fit_info import FitInfo
from .lookup import SourceLookup
from .scorer import score_names
from .settings import PipeSettings
from .state import PipeState

if TYPE_CHECKING:
    from ..calibration.span_fit import SpanFit

# Annotation -> attributes that it is read from, as in the `requires` of spaCy's factories.
_READ_ATTRIBUTES = {
    "tag": ["token.tag"],
    "pos": ["token.pos"],
    "morph": ["token.pos", "token.morph"],
    "lemma": ["token.lemma"],
    "sent": ["token.is_sent_start"],
    "dep": ["token.dep"],
    "ent_type": ["token.ent_type"],
    "ner": ["doc.ents"],
    "biluo": ["doc.ents"],
    "link": ["doc.ents", "token.ent_kb_id"],
    "cats": ["doc.cats"],
    "cats:multi": ["doc.cats"],
}
# Attributes that are set on Docs with categories.
_DOC_ATTRIBUTES = ["doc._.calib", *(f"doc._.calib_{name}" for name in ("score", "raw", "cats", "cats_raw"))]


def facts(pipe: Any) -> dict[str, str]:
    """Return name -> text of the facts that a Calibrator shows about itself, such as "Method"."""
    info = pipe.fit_info
    source = pipe.source.component or "scores on the Doc"
    if not pipe.fitted:
        return {"Name": pipe.name, "Calibrates": source, "Attributes": f"{pipe.attr}_score", "Fitted": "no"}
    of_documents = "" if info.row_unit == DOCUMENT else f" of {info.docs:,} documents"
    adaptations = "".join(
        f", adapted to {count_in_words(adaptation['unit'], adaptation['docs'])}" for adaptation in info.adaptations
    )
    return {
        "Name": pipe.name,
        "Calibrates": f"{source} ({plain_name(info.layer)})",
        "Attributes": f"{pipe.attr}_score",
        "Fitted": f"on {info.tokens:,} {info.row_unit}s{of_documents}{adaptations}",
        "Method": info.steps,
    }


def note_meta(nlp: Language, name: str, pipe: Any) -> None:
    """Correct in a pipeline's meta what this pipe reads, assigns and scores: its factory knows the default settings only."""
    if all(other_pipe is not pipe for other_name, other_pipe in nlp.components if other_name == name):
        return
    meta = nlp.get_pipe_meta(name)
    layer = _layer_of(nlp, pipe)
    attributes = nlp.get_factory_meta(meta.factory).assigns if unit_of(layer) == TOKEN else _DOC_ATTRIBUTES
    hidden = (".calib_score", ".calib_raw", ".calib_scores") if pipe.of_entities and not pipe.token_scores else ()
    assigns = [
        attribute.replace("._.calib", f"._.{pipe.attr}")
        for attribute in attributes
        if not (attribute.startswith("token.") and attribute.endswith(hidden))
    ]
    reads = meta.requires if not layer else _required_attributes(layer) or meta.requires
    scores = [f"{pipe.attr}_{score}{suffix}" for score in score_names() for suffix in ("", "_raw")] if pipe.scorer else []
    nlp._pipe_meta[name] = replace(meta, requires=reads, assigns=assigns, scores=scores)


def _required_attributes(layer: str) -> list[str]:
    if layer.startswith(EXTENSION_PREFIX):
        return [f"token.{layer}"]
    return ["doc.spans"] if layer.startswith((SPANS_PREFIX, FOUND_PREFIX)) else _READ_ATTRIBUTES.get(layer, [])


def _layer_of(nlp: Language, pipe: Any) -> str:
    """Return the annotation that a pipe calibrates; "" if the component is missing or of another type."""
    source = pipe.source
    if not source.component:
        return source.annotation(None).name
    if source.component not in nlp.component_names or not source.supports(nlp.get_pipe(source.component)):
        return ""
    return plain_name(source.annotation(nlp.get_pipe(source.component)).name)


_Pipe = TypeVar("_Pipe", bound="CalibratingPipe")


class CalibratingPipe(AnnotatingPipe, PipeSettings):
    """The part of a calib pipe that fitting and reading steps use.

    settings: Settings of PipeSettings; each is an attribute of the pipe. learned (PipeState): Result of the fit; empty before.
    held_out (JudgedPairs | None): Out-of-fold scores of a fit or an adaptation in this process, else None; not saved.
    held_out_spans (SpanFit | None): The same for spans. lookup (SourceLookup): Finds the component that the source reads.
    RAISES C001, C112: an invalid setting. C025: another pipe or package uses the prefix. C113: a name that spaCy needs itself.
    """

    def __init__(self, nlp: Language, name: str = "calib", **settings: Any):
        self.learned = PipeState()
        self.held_out: JudgedPairs | None = None
        self.held_out_spans: SpanFit | None = None
        self.lookup = SourceLookup(self, nlp)
        self.warn = WarnOnce(self)
        self.name = name
        PipeSettings.__init__(self, **settings)
        self._check_prefix(nlp)
        register(self.attr)

    @property
    def name(self) -> str:
        """Name of the pipe, set by `Language.add_pipe`. RAISES C113: no pipeline with this name can be saved."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = check_pipe_name(name)
        note_meta(self.lookup.nlp, name, self)

    def attach(self: _Pipe, nlp: Language) -> _Pipe:
        """Make the pipe read this pipeline, after `nlp.add_pipe(name, source=other_nlp)` took it from another one.

        RETURNS: The pipe.

        RAISES C120: the pipe is not in this pipeline, or its component is missing or has other weights than at the fit.
        C020, C022: the component has other labels, or cannot be calibrated. C025: another pipe there has the same prefix.

            >>> import spacy
            >>> nlp, other_nlp = spacy.blank("en"), spacy.blank("en")
            >>> source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": ["A", "B"]}
            >>> calib = nlp.add_pipe("calib", config={"source": source})
            >>> other_nlp.add_pipe("calib", source=nlp).attach(other_nlp)
            <Calibrator 'calib' of scores on the Doc, not fitted>
        """
        self._check_prefix(nlp)
        self.lookup = self.lookup.in_pipeline(nlp)
        note_meta(nlp, self.lookup.name, self)
        return self

    def _check_prefix(self, nlp: Language) -> None:
        """Check that no other pipe of this pipeline uses the prefix. RAISES C025: one does."""
        for other_name, pipe in nlp.components:
            if isinstance(pipe, CalibratingPipe) and pipe.attr == self.attr and pipe is not self and other_name != self.name:
                raise calib_error("C025", attr=self.attr, owner=f"the pipe '{other_name}'")

    def __repr__(self) -> str:
        values = facts(self)
        fit_text = "not fitted" if values["Fitted"] == "no" else f"fitted {values['Fitted']}"
        return f"<Calibrator '{values['Name']}' of {values['Calibrates']}, {fit_text}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts(self).items())
        return f"<table><caption>Calibrator</caption><tbody>{rows}</tbody></table>"

    # Learned state

    @property
    def fitted(self) -> bool:
        return self.learned.tokens.maps is not None

    @property
    def of_entities(self) -> bool:
        """Whether the pipe calibrates the entities of Docs."""
        layer = _layer_of(self.lookup.nlp, self) or plain_name(self.fit_info.layer)
        return bool(layer) and get_annotation(layer).of_entities

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the fit; empty before."""
        return self.learned.component.labels

    @property
    def tokens(self) -> TokenCalibration:
        """The calibration steps of tokens; before the fit they return raw probabilities."""
        return self.learned.tokens

    @property
    def spans(self) -> SpanCalibration:
        """The calibration steps of spans; before the fit they return raw probabilities."""
        return self.learned.spans

    @property
    def groups(self) -> Groups | None:
        """Groups of tags by which scores are evaluated; None before the fit."""
        return self.learned.judged_by or (None if self.tokens.maps is None else self.tokens.maps.groups)

    @property
    def fit_info(self) -> FitInfo:
        """Data, steps and errors of the fit; empty before."""
        return self.learned.info

    @property
    def normalize(self) -> bool | str:
        """How a token's scores are rescaled: False, True (they sum to 1) or "other" (they leave room for other tags)."""
        return self.tokens.normalize

    @normalize.setter
    def normalize(self, normalize: bool | str) -> None:
        self.tokens.normalize = check_normalize(normalize)
