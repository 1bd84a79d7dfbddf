"""Pretrained maps of entities: evidence and gold of each source, fits with one source left out, and what they reach."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from frame import say
from pretrain.sources import Source, to_examples

from spacy_calib.calibration.recalibrators.logistic import fit_logistic, log_odds, sigmoid
from spacy_calib.context.words import Words
from spacy_calib.doc.words import words_of
from spacy_calib.extras.pretrained.evidence import CLIP, NEEDS, EntityEvidence, SpanEvidence, evidence_names
from spacy_calib.metrics import brier, calibration_error, log_loss
from spacy_calib.pipe.example_reader import ExampleReader
from spacy_calib.pipe.loading import load_with_factories
from spacy_calib.sources.bound import BoundSource
from spacy_calib.sources.mapped import with_map
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.types import Floats, Ints, Spans

TYPES = ("PERSON", "GPE", "ORG", "LOC", "FAC")
EVENTS = ("exact", "article")
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
    found = {}
    for source in sources:
        file = cache / "pretrained" / f"{Path(model).parent.name or Path(model).name}-{Path(model).name}-{source.name}.pkl"
        if not file.exists():
            nlp = nlp or load_with_factories(model, {"ner": "calib_ner"}, exclude=["lemmatizer", "attribute_ruler"])
            say(f"Entities of {model} in {source.name}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(pickle.dumps(judge(nlp, source)))
        found[source.name] = pickle.loads(file.read_bytes())
    return found


def judge(nlp: Any, source: Source) -> Judged:
    examples = list(to_examples(nlp, source.read(), source.size))
    evidence = EntityEvidence()
    source_of_entities = BoundSource.from_component(with_map(NerSource("ner"), source.label_map), nlp.get_pipe("ner"))
    look = partial(words_of, functions=evidence.functions_in(nlp))
    read = [ExampleReader(source_of_entities, 0.01, event, look).read_all(examples).data(0.01) for event in EVENTS]
    hits = {event: found.hits for event, (_, found) in zip(EVENTS, read, strict=True) if found is not None}
    data, spans = read[0]
    assert spans is not None
    assert data.words is not None
    return Judged(spans.spans, spans.raw, spans.documents, hits, data.words, source_of_entities.span_labels)


def fit_map(form: str, parts: Sequence[Judged], event: str) -> dict[str, float]:
    """Fit the coefficients of one form, a key of NEEDS; each source weighs the same."""
    names = evidence_names(TYPES)[form]
    columns = np.concatenate([np.stack([one.evidence.column(name) for name in names], axis=1) for one in parts])
    hits = np.concatenate([one.right(event) for one in parts]).astype(np.float64)
    weights = np.concatenate([np.full(len(one.chosen), WEIGHT / len(one.chosen)) for one in parts])
    penalty = np.array([FREE if name in _UNSHRUNK else RIDGE for name in names])
    coefficients = fit_logistic(columns, hits, weights, np.zeros(len(names)), penalty)
    return {name: round(float(one), 4) for name, one in zip(names, coefficients, strict=True)}


def fit_maps(parts: Sequence[Judged], event: str) -> dict[str, dict[str, float]]:
    return {form: fit_map(form, parts, event) for form in NEEDS}


def figures(scores: Floats, right: Any) -> dict[str, float]:
    """Log loss, Brier score and ECE over ten bins of equal size."""
    return {
        "log_loss": float(log_loss(scores, right) or 0.0),
        "brier": float(brier(scores, right) or 0.0),
        "ece": float(calibration_error(scores, right, norm="l1") or 0.0),
    }


def left_out_maps(found: Mapping[str, Judged], event: str) -> dict[str, dict[str, dict[str, float]]]:
    """Name of a source -> the maps that are fitted on all others."""
    return {name: fit_maps([one for other, one in found.items() if other != name], event) for name in found}


def default_cutoffs(scored: Mapping[str, tuple[Floats, Any, list[str]]], precision: float) -> dict[str, float | None]:
    """The lowest score of each label above which the precision is reached on every source (with 10 accepted or more).

    scored (Mapping): Name of a source -> scores, whether right, labels.
    """
    found: dict[str, float | None] = {}
    for label in TYPES:
        parts = [(s[m], r[m]) for s, r, names in scored.values() if (m := np.array(names) == label).sum() >= 10]
        found[label] = next(
            (cut for cut in np.arange(0.30, 0.99, 0.01).round(2).tolist() if _reaches(parts, cut, precision)), None
        )
    return found


def _reaches(parts: Sequence[tuple[Floats, Any]], cutoff: float, precision: float) -> bool:
    accepted = [right[scores >= cutoff] for scores, right in parts]
    enough = [one for one in accepted if len(one) >= 10]
    return bool(enough) and all(one.mean() >= precision for one in enough)


def accepts(scores: Floats, labels: Sequence[str], cutoffs: Mapping[str, float | None]) -> Any:
    limits = np.array([np.inf if (cut := cutoffs.get(label)) is None else cut for label in labels])
    return scores >= limits


def by_label(scores: Floats, right: Any, labels: Sequence[str], raw: Floats) -> dict[str, dict[str, float]]:
    """Label -> predictions, and log loss raw and calibrated."""
    found = {}
    for label in TYPES:
        own = np.array(labels) == label
        if own.any():
            losses = [float(log_loss(one[own], right[own]) or 0.0) for one in (raw, scores)]
            found[label] = {"n": int(own.sum()), "raw": losses[0], "calibrated": losses[1]}
    return found


def without_spans_of(judged: Judged, keep: Any) -> Judged:
    """Part of a source, by documents. keep: Numbers of the documents."""
    own = np.flatnonzero(np.isin(judged.documents, keep))
    hits = {event: values[own] for event, values in judged.hits.items()}
    return replace(judged, spans=judged.spans.take(own), raw=judged.raw[own], documents=judged.documents[own], hits=hits)


def raw_log_odds(judged: Judged) -> Floats:
    return log_odds(judged.raw[judged.chosen], CLIP)
