"""Pretrained maps of entities: evidence and gold of each source, fits with one source left out, and what they reach."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from frame import say
from pretrain.sources import Source, to_examples
from spacy.training import Example

from spacy_calib.calibration.recalibrators.logistic import fit_logistic, sigmoid
from spacy_calib.context.words import Words
from spacy_calib.gold.example_reader import ExampleReader
from spacy_calib.metrics import brier, calibration_error, log_loss
from spacy_calib.pipe.doc_words import words_of
from spacy_calib.pipe.loading import load_with_factories
from spacy_calib.plugins.pretrained.evidence import NEEDS, EntityEvidence, SpanEvidence, evidence_names
from spacy_calib.sources.bound import BoundSource
from spacy_calib.sources.mapped import with_map
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.types import Floats, Ints, Spans

TYPES = ("PERSON", "GPE", "ORG", "LOC", "FAC")
EVENTS = ("exact", "article")
# The form of the map that looks at all components.
FULL = next(iter(NEEDS))
# The fit: an L2 penalty, next to none on the constant and the raw score, and what all entities of a source weigh together.
RIDGE, FREE, WEIGHT = 3.0, 1e-3, 1000.0
_UNSHRUNK = ("constant", "log-odds")


@dataclass(frozen=True, eq=False)
class Judged:
    """The entities that a pipeline found in one source. hits (Mapping): Event -> 1, 0 or -1 for unknown, of each span."""

    spans: Spans
    raw: Floats
    documents: Ints
    hits: Mapping[str, Ints]
    words: Words
    labels: tuple[str, ...]

    @cached_property
    def chosen(self) -> Ints:
        """The entities on the Docs, whose gold is known."""
        return np.flatnonzero(self.spans.chosen & (self.hits["exact"] >= 0))

    @cached_property
    def evidence(self) -> SpanEvidence:
        return SpanEvidence(self.spans.take(self.chosen), self.raw[self.chosen], self.words, self.labels)

    @property
    def types(self) -> list[str]:
        return [self.labels[i] for i in self.evidence.spans.labels.tolist()]

    def right(self, event: str) -> Any:
        return self.hits[event][self.chosen] == 1

    def score(self, table: Mapping[str, float]) -> Floats:
        return sigmoid(self.evidence.margins(table))


def gather(model: str, sources: Sequence[Source], cache: Path) -> dict[str, Judged]:
    """Run a pipeline over sources, or read what an earlier run found."""
    nlp: Any = None
    judged_by_source = {}
    for source in sources:
        file = cache / "pretrained" / f"{Path(model).parent.name or Path(model).name}-{Path(model).name}-{source.name}.pkl"
        if not file.exists():
            nlp = nlp or load_with_factories(model, {"ner": "calib_ner"}, exclude=["lemmatizer", "attribute_ruler"])
            say(f"Entities of {model} in {source.name}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(pickle.dumps(judge(nlp, source)))
        judged_by_source[source.name] = pickle.loads(file.read_bytes())
    return judged_by_source


def judge(nlp: Any, source: Source) -> Judged:
    return judge_examples(nlp, list(to_examples(nlp, source.read(), source.size)), source.label_map)


def judge_examples(nlp: Any, examples: Sequence[Example], label_map: dict[str, str]) -> Judged:
    """Judge what a pipeline found. label_map (dict): What the gold calls the labels of the recognizer."""
    evidence = EntityEvidence()
    source_of_entities = BoundSource.from_component(with_map(NerSource("ner"), label_map), nlp.get_pipe("ner"))
    look = partial(words_of, functions=evidence.functions_in(nlp))
    data_by_event = [ExampleReader(source_of_entities, 0.01, event, look).read_all(examples).data(0.01) for event in EVENTS]
    hits = {event: span_data.hits for event, (_, span_data) in zip(EVENTS, data_by_event, strict=True) if span_data is not None}
    data, spans = data_by_event[0]
    assert spans is not None
    assert data.words is not None
    return Judged(spans.spans, spans.raw, spans.documents, hits, data.words, source_of_entities.span_labels)


def fit_map(form: str, parts: Sequence[Judged], event: str, weight: float = WEIGHT) -> dict[str, float]:
    """Fit the coefficients of one form, a key of NEEDS; each source weighs the same. weight (float): Of a source."""
    names = evidence_names(TYPES)[form]
    columns = np.concatenate([np.stack([judged.evidence.column(name) for name in names], axis=1) for judged in parts])
    hits = np.concatenate([judged.right(event) for judged in parts]).astype(np.float64)
    weights = np.concatenate([np.full(len(judged.chosen), weight / len(judged.chosen)) for judged in parts])
    penalty = np.array([FREE if name in _UNSHRUNK else RIDGE for name in names])
    coefficients = fit_logistic(columns, hits, weights, np.zeros(len(names)), penalty)
    return {name: round(float(value), 4) for name, value in zip(names, coefficients, strict=True)}


def fit_maps(parts: Sequence[Judged], event: str) -> dict[str, dict[str, float]]:
    return {form: fit_map(form, parts, event) for form in NEEDS}


def figures(scores: Floats, right: Any) -> dict[str, float]:
    """Log loss, Brier score and ECE over ten bins of equal size."""
    return {
        "log_loss": float(log_loss(scores, right) or 0.0),
        "brier": float(brier(scores, right) or 0.0),
        "ece": float(calibration_error(scores, right, norm="l1") or 0.0),
    }


def left_out_maps(judged_by_source: Mapping[str, Judged], event: str) -> dict[str, dict[str, dict[str, float]]]:
    """Key of one source, or of two (the richest form only), see `key_of` -> the maps that are fitted on all others."""
    maps = {}
    for n_left_out in (1, 2):
        for left_out in combinations(judged_by_source, n_left_out):
            parts = [judged for name, judged in judged_by_source.items() if name not in left_out]
            maps[key_of(*left_out)] = fit_maps(parts, event) if n_left_out == 1 else {FULL: fit_map(FULL, parts, event)}
    return maps


def key_of(*sources: str) -> str:
    """The key of the maps that did not see some sources."""
    return " + ".join(sorted(sources))


def by_label(scores: Floats, right: Any, labels: Sequence[str], raw: Floats) -> dict[str, dict[str, float]]:
    """Label -> predictions, and log loss raw and calibrated."""
    rows = {}
    for label in TYPES:
        mask = np.array(labels) == label
        if mask.any():
            losses = [float(log_loss(values[mask], right[mask]) or 0.0) for values in (raw, scores)]
            rows[label] = {"n": int(mask.sum()), "raw": losses[0], "calibrated": losses[1]}
    return rows


def in_domain_losses(judged_by_source: Mapping[str, Judged], event: str, folds: int = 5) -> dict[str, float]:
    """Name of a source -> log loss of the richest form that is fitted on the other documents of the same source."""
    losses = {}
    for name, judged in judged_by_source.items():
        documents = np.unique(judged.documents)
        fold_of = np.random.default_rng(0).integers(folds, size=len(documents))
        scores, right = [], []
        for fold in range(folds):
            train, test = (_take_documents(judged, documents[mask]) for mask in (fold_of != fold, fold_of == fold))
            scores.append(test.score(fit_map(FULL, [train], event, len(train.chosen))))
            right.append(test.right(event))
        losses[name] = float(log_loss(np.concatenate(scores), np.concatenate(right)) or 0.0)
    return losses


def _take_documents(judged: Judged, documents: Ints) -> Judged:
    indices = np.flatnonzero(np.isin(judged.documents, documents))
    hits = {event: values[indices] for event, values in judged.hits.items()}
    return replace(
        judged, spans=judged.spans.take(indices), raw=judged.raw[indices], documents=judged.documents[indices], hits=hits
    )
