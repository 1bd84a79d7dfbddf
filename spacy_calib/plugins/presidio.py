"""An NLP engine for Microsoft Presidio whose entities carry calibrated scores (extra `presidio`)."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from spacy import util
from spacy.language import Language
from spacy.tokens import Span

from ..doc.write import doubtful_key
from ..errors import error_builder
from ..pipe.component import Calibrator

MESSAGES = {"C064": 'Presidio is not installed; run `pip install "spacy-calib[presidio]"`.'}
WARNINGS = {
    "CW78": "[CW78] Entities with the label '{label}' have no calibrated score: they keep the default_score of Presidio's "
    "NerModelConfiguration, as an UncalibratedScore."
}
calib_error = error_builder(MESSAGES)

try:
    from presidio_analyzer import RecognizerRegistry
    from presidio_analyzer.nlp_engine import NerModelConfiguration, NlpArtifacts, SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer
except ModuleNotFoundError as error:
    if error.name != "presidio_analyzer":
        raise
    raise calib_error("C064") from None

# Minimum score of a flagged span: Presidio drops results with score 0.
_MIN_SCORE = 1e-6


class UncalibratedScore(float):
    """The default score of Presidio, for an entity without a calibrated score; the analyzer's results keep this type."""


class CalibratedSpacyRecognizer(SpacyRecognizer):
    """Presidio's SpacyRecognizer, but each result has `recognition_metadata["calibrated"]`: whether its score is calibrated."""

    def analyze(self, text: str, entities: list[str], nlp_artifacts: NlpArtifacts | None = None) -> list[Any]:
        results = super().analyze(text, entities, nlp_artifacts)
        for result in results:
            result.recognition_metadata["calibrated"] = not isinstance(result.score, UncalibratedScore)
        return list(results)


class CalibratedSpacyNlpEngine(SpacyNlpEngine):
    """Presidio's SpacyNlpEngine with calibrated scores; Presidio's own gives 0.85 to every entity.

    Pass it to AnalyzerEngine(nlp_engine=...), also for a BatchAnalyzerEngine, or pass the class to NlpEngineProvider. A result
    of Presidio's SpacyRecognizer then has the score `Span._.<attr>_score`: the probability that span and label are right (as
    the setting `event` of the calib pipe defines it). If Presidio's mapping merges labels (GPE and LOC to LOCATION), the merged
    label is right at least as often. An entity without a calibrated score keeps Presidio's `default_score`, as an
    `UncalibratedScore`. As with any engine, Presidio raises scores for context words, drops results of score 0, and of
    nested results of one type keeps the one with the higher score.

    models (list[dict] | None): As in Presidio, [{"lang_code": "en", "model_name": package name or path}], read by `load`.
    Nothing is ever downloaded. ner_model_configuration (NerModelConfiguration | None): As in Presidio, but its
    low_confidence_score_multiplier does not change calibrated scores. nlp (Language | Mapping[str, Language] | None): A loaded
    pipeline, or several by language code, in place of `models`. attr (str | None): Prefix of the calib pipe's attributes; None
    takes the first that scores entities. flagged (bool): Report the spans of `doc.spans["<attr>_doubtful"]`, too, which the
    cut-offs of `spacy calib threshold --recall` flag. Their score is the highest P(inside an entity) of their tokens or, with a
    cut-off per label, P(label). Most are low, so set no score_threshold. Types that Presidio's recognizer does not support are
    not reported: map them. RAISES C001: neither or both of models and nlp; an attr that no fitted calib pipe has; flagged
    without cut-offs. C027: no fitted calib pipe. C065: it scores no entities.
    """

    nlp: Any  # None until pipelines are loaded, as in Presidio

    def __init__(
        self,
        models: list[dict[str, str]] | None = None,
        ner_model_configuration: NerModelConfiguration | None = None,
        *,
        nlp: Language | Mapping[str, Language] | None = None,
        attr: str | None = None,
        flagged: bool = False,
    ):
        if bool(models) == (nlp is not None):
            model_list = "a list of {'lang_code': ..., 'model_name': ...}, or else nlp a loaded pipeline"
            raise calib_error("C001", name="models", wanted=model_list, given="both" if models else "neither")
        super().__init__(models=models, ner_model_configuration=ner_model_configuration)
        self.models = models or []  # Presidio's default is to download a pipeline, which has no calib pipe
        self.attr = attr
        self.flagged = flagged
        self._unscored_labels: set[str] = set()
        if nlp is not None:
            self._set_pipelines({str(nlp.lang): nlp} if isinstance(nlp, Language) else dict(nlp))

    def load(self) -> None:
        """Load the pipelines of `models`. RAISES C001, C027, C065: as the class does. C050: a pipeline is not installed."""
        if not self.models:
            return
        for model in self.models:
            name = model.get("model_name")  # Presidio refuses other types
            if isinstance(name, str) and not (util.is_package(name) or Path(name).exists()):
                raise calib_error("C050", model=name, why="it is neither an installed package nor a folder.")
        super().load()
        pipelines, self.nlp = self.nlp, None  # `_set_pipelines` sets it again after its checks
        self._set_pipelines(pipelines)

    def _set_pipelines(self, pipelines: dict[str, Language]) -> None:
        """Set `nlp` to these pipelines (by language code), and `attr` if it is None. RAISES C001, C027, C065: as the class."""
        all_pipes = [(name, pipe) for nlp in pipelines.values() for name, pipe in nlp.pipeline]
        calib_pipes = [(name, pipe) for name, pipe in all_pipes if isinstance(pipe, Calibrator) and pipe.fitted]
        if not calib_pipes:
            raise calib_error("C027", available=", ".join(dict.fromkeys(name for name, _ in all_pipes)) or "no components")
        if self.attr is None:  # `spans.groups` is None in a pipe that scores no entities
            entity_attrs = [pipe.attr for _, pipe in calib_pipes if pipe.spans.groups is not None]
            self.attr = entity_attrs[0] if entity_attrs else calib_pipes[0][1].attr  # if no pipe scores entities: C065 below
        chosen_pipes = [(name, pipe) for name, pipe in calib_pipes if pipe.attr == self.attr]
        if not chosen_pipes:
            prefixes = ", ".join(dict.fromkeys(pipe.attr for _, pipe in calib_pipes))
            raise calib_error("C001", name="attr", wanted=f"a fitted calib pipe's prefix ({prefixes})", given=repr(self.attr))
        if all(pipe.spans.groups is None for _, pipe in chosen_pipes):
            raise calib_error("C065", name=chosen_pipes[0][0], component=chosen_pipes[0][1].source.component or "the source")
        if self.flagged and not any(pipe.tokens.recall_cutoffs for _, pipe in chosen_pipes):
            command = "`python -m spacy calib threshold --recall`"
            condition = f"False until the pipe '{chosen_pipes[0][0]}' has cut-offs ({command} finds them)"
            raise calib_error("C001", name="flagged", wanted=condition, given=True)
        self.nlp = pipelines

    def mark_results(self, registry: RecognizerRegistry) -> None:
        """Replace Presidio's SpacyRecognizer by a CalibratedSpacyRecognizer in an analyzer's registry."""
        registry.remove_recognizer(SpacyRecognizer.__name__)
        for language in self.get_supported_languages():
            types = self.get_supported_entities()  # a new list for each recognizer
            registry.add_recognizer(CalibratedSpacyRecognizer(supported_language=language, supported_entities=types))

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        return self._calibrate(super().process_text(text, language))

    def process_batch(
        self, texts: Any, language: str, batch_size: int = 1, n_process: int = 1, as_tuples: bool = False, **kwargs: Any
    ) -> Generator[Any, Any, None]:
        """Yield (text, artifacts) of each text or, with as_tuples, (text, artifacts, context) of each (text, context)."""
        for text, artifacts, *context in super().process_batch(texts, language, batch_size, n_process, as_tuples, **kwargs):
            yield (text, self._calibrate(artifacts), *context)

    def _calibrate(self, artifacts: NlpArtifacts) -> NlpArtifacts:
        """Replace Presidio's scores of entities by the calibrated scores on the Doc, and add the flagged spans if requested."""
        spans = {(span.start, span.end): span for span in artifacts.tokens.ents}
        scored_entities = []
        for entity, default in zip(artifacts.entities, artifacts.scores, strict=True):
            span = spans[entity.start, entity.end]  # Presidio has renamed the label of `entity`
            score = span._.get(f"{self.attr}_score")
            if score is None and span.label_ not in self._unscored_labels:  # warn once per label
                self._unscored_labels.add(span.label_)
                warnings.warn(WARNINGS["CW78"].format(label=span.label_), stacklevel=2)
            scored_entities.append((entity, UncalibratedScore(default) if score is None else score))
        if self.flagged:
            scored_entities += self._doubtful(artifacts.tokens, spans)
            scored_entities.sort(key=lambda item: item[0].start)
        artifacts.entities = [entity for entity, _ in scored_entities]
        artifacts.scores = [score for _, score in scored_entities]
        return artifacts

    def _doubtful(self, doc: Any, spans: Mapping[tuple[int, int], Any]) -> list[tuple[Any, float]]:
        """Return (span with Presidio's type, score) of the flagged spans on a Doc whose (start, end) is not in `spans`."""
        group = doc.spans.get(doubtful_key(str(self.attr)), ())
        scores = group.attrs["scores"].tolist() if len(group) else []
        flagged_spans = [  # copies, since Presidio renames the labels of spans in place; with score 0 it would drop a span
            (Span(doc, span.start, span.end, label=span.label_), max(score, _MIN_SCORE))
            for span, score in zip(group, scores, strict=True)
            if (span.start, span.end) not in spans
        ]
        score_by_span = {(span.start, span.end): score for span, score in flagged_spans}
        # Presidio renames the labels by its mapping, and drops the labels that it ignores.
        mapped_spans, _ = self._get_updated_entities([span for span, _ in flagged_spans], [score for _, score in flagged_spans])
        return [(span, score_by_span[span.start, span.end]) for span in mapped_spans]
