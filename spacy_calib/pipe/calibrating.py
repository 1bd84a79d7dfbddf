"""What a calib pipe is made of: its settings, what it learned, and the pipeline that it reads."""

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

# What each annotation is read from, as spaCy's factories name it.
_READS = {
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
# The attributes of a Doc that has categories.
_OF_DOCUMENTS = ["doc._.calib", *(f"doc._.calib_{name}" for name in ("score", "raw", "cats", "cats_raw", "set"))]


def facts(pipe: Any) -> dict[str, str]:
    """What a Calibrator holds, in a few words each."""
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
    """Tell a pipeline what this pipe reads, writes and scores, where its factory knows only what the default settings do."""
    if all(other_pipe is not pipe for other_name, other_pipe in nlp.components if other_name == name):
        return
    meta = nlp.get_pipe_meta(name)
    layer = _layer_of(nlp, pipe)
    attributes = nlp.get_factory_meta(meta.factory).assigns if unit_of(layer) == TOKEN else _OF_DOCUMENTS
    hidden = (".calib_score", ".calib_raw", ".calib_scores") if pipe.of_entities and not pipe.token_scores else ()
    assigns = [
        attribute.replace("._.calib", f"._.{pipe.attr}")
        for attribute in attributes
        if not (attribute.startswith("token.") and attribute.endswith(hidden))
    ]
    reads = meta.requires if not layer else _reads(layer) or meta.requires
    scores = [f"{pipe.attr}_{score}{suffix}" for score in score_names() for suffix in ("", "_raw")] if pipe.scorer else []
    nlp._pipe_meta[name] = replace(meta, requires=reads, assigns=assigns, scores=scores)


def _reads(layer: str) -> list[str]:
    if layer.startswith(EXTENSION_PREFIX):
        return [f"token.{layer}"]
    return ["doc.spans"] if layer.startswith((SPANS_PREFIX, FOUND_PREFIX)) else _READS.get(layer, [])


def _layer_of(nlp: Language, pipe: Any) -> str:
    """ "" where the component is not there, or of another kind."""
    source = pipe.source
    if not source.component:
        return source.annotation(None).name
    if source.component not in nlp.component_names or not source.supports(nlp.get_pipe(source.component)):
        return ""
    return plain_name(source.annotation(nlp.get_pipe(source.component)).name)


_Own = TypeVar("_Own", bound="CalibratingPipe")


class CalibratingPipe(AnnotatingPipe, PipeSettings):
    """A calib pipe as far as the steps of a fit and of a reading have to know it.

    settings: See PipeSettings; each is an attribute of the pipe.
    learned (PipeState): What the fit learned; before it, nothing.
    held_out (JudgedPairs | None): The pairs of a fit or an adaptation in this process, with scores of maps that did not
        see their document; it is not saved. held_out_spans (SpanFit | None): The same of spans.
    lookup (SourceLookup): Finds what the source reads.
    RAISES C001, C112: see PipeSettings. C025: another pipe or package uses the attribute prefix. C113: a name that spaCy needs for itself.
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
        """Set by the pipeline that takes the pipe, and by each that takes it later.

        RAISES C113: a pipeline cannot be saved with a pipe of this name.
        """
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = check_pipe_name(name)
        note_meta(self.lookup.nlp, name, self)

    def attach(self: _Own, nlp: Language) -> _Own:
        """Read this pipeline from now on, which took the pipe from another one by `add_pipe(source=...)`; itself.

        RAISES C120: the pipe does not stand there, or its component is missing or has other weights than at the fit.
            C020, C022: its labels are others, or it cannot be calibrated. C025: another pipe there has its prefix.
        """
        self._check_prefix(nlp)
        self.lookup = self.lookup.attached(nlp)
        note_meta(nlp, self.lookup.name, self)
        return self

    def _check_prefix(self, nlp: Language) -> None:
        """RAISES C025: another pipe of this pipeline uses the attribute prefix."""
        for other, pipe in nlp.components:
            if isinstance(pipe, CalibratingPipe) and pipe.attr == self.attr and pipe is not self and other != self.name:
                raise calib_error("C025", attr=self.attr, owner=f"the pipe '{other}'")

    def __repr__(self) -> str:
        values = facts(self)
        fitted = "not fitted" if values["Fitted"] == "no" else f"fitted {values['Fitted']}"
        return f"<Calibrator '{values['Name']}' of {values['Calibrates']}, {fitted}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts(self).items())
        return f"<table><caption>Calibrator</caption><tbody>{rows}</tbody></table>"

    # What was learned

    @property
    def fitted(self) -> bool:
        return self.learned.tokens.maps is not None

    @property
    def of_entities(self) -> bool:
        """Whether it calibrates the entities of Docs."""
        layer = _layer_of(self.lookup.nlp, self) or plain_name(self.fit_info.layer)
        return bool(layer) and get_annotation(layer).of_entities

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that the pipe was fitted on; empty before."""
        return self.learned.component.labels

    @property
    def tokens(self) -> TokenCalibration:
        """The steps between a source's probability and `Token._.calib_score`; before the fit it passes raw probabilities through."""
        return self.learned.tokens

    @property
    def spans(self) -> SpanCalibration:
        """The same for `Span._.calib_score`."""
        return self.learned.spans

    @property
    def groups(self) -> Groups | None:
        """The groups of tags by which the scores are judged; None before the fit."""
        return self.learned.judged_by or (None if self.tokens.maps is None else self.tokens.maps.groups)

    @property
    def fit_info(self) -> FitInfo:
        """What it was fitted on, with which steps, and the errors; empty before the fit."""
        return self.learned.info

    @property
    def normalize(self) -> bool | str:
        """How a token's scores are rescaled, see `TokenCalibration`."""
        return self.tokens.normalize

    @normalize.setter
    def normalize(self, normalize: bool | str) -> None:
        self.tokens.normalize = check_normalize(normalize)
