"""Pretrained maps of entities: evidence and gold of each source, fits with one source left out, and what they reach."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from frame import say
from pretrain.sources import AS_IT_IS, SHARES, Source, in_form, to_examples
from scipy.optimize import minimize
from spacy.training import Example

from spacy_calib.calibration.solvers import fit_logistic, sigmoid, softplus
from spacy_calib.context.words import Words
from spacy_calib.gold.example_reader import ExampleReader
from spacy_calib.metrics import brier, calibration_error, log_loss
from spacy_calib.pipe.lookup import words_of
from spacy_calib.pipe.pipeline import load_with_factories
from spacy_calib.plugins.pretrained.evidence import COLUMNS, NEEDS, EntityEvidence, SpanEvidence
from spacy_calib.plugins.pretrained.names import KINDS, NameLists, checksum, list_folder, load_lists, read_list
from spacy_calib.sources.find import BoundSource
from spacy_calib.sources.mapped import with_map
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.types import Floats, Ints, Spans

TYPES = ("PERSON", "GPE", "ORG", "LOC", "FAC")
EVENTS = ("exact", "article")
# Forms of a text with coefficients of their own, "lower: type*PERSON": no capital letters, or nearly all words in capitals.
FORMS = ("lower", "capitals")
# How the names of maps with lists end.
LISTS = ", lists"
# Evidence that supports the type of an entity, and evidence that contradicts it.
SUPPORTS = (
    "place", "large place", "first name, several words", "first name alone", "surname, several words", "surname alone",
    "organization", "organization word",
)  # fmt: skip
CONTRADICTIONS = (
    "person, but a place", "organization, but a place", "person, but an organization", "place, but an organization",
    "no person, but a person's name", "person, but an ordinary word", "organization, but ordinary words",
    "place, but ordinary words",
)  # fmt: skip
# The form of the map that looks at all components.
FULL = next(iter(NEEDS))
# The fit: an L2 penalty, next to none on the constant and the raw score, and what all entities of a source weigh together.
RIDGE, FREE, WEIGHT = 3.0, 1e-3, 1000.0
# So much may the constant of a type move where lists are used, so that a name in no list loses .05 at most.
SLACK = 0.2
# So much may a listed first name and a listed surname add each: a person gains .10 at most (a sum of .40), and a list alone carries about 1 of 20
# over the default cut-off (the table of fairness).
PERSON_GAIN = {
    "first name, several words": 0.06, "surname, several words": 0.06, "first name alone": 0.12, "surname alone": 0.12,
}  # fmt: skip
_UNSHRUNK = ("constant", "log-odds")
# Evidence with a coefficient for each entity type: "proper*PERSON".
_BY_TYPE = ("type", "proper", "one word", "log-odds", "noun after", "preposition before")


def current_lists() -> dict[str, str]:
    """Return name (such as "places.2") -> checksum of the newest list of each kind."""
    files = sorted(list_folder().glob("*.txt.z"), key=lambda file: int(file.name.split(".")[1]))
    newest = {file.name.split(".")[0]: file for file in files}
    return {newest[kind].name.removesuffix(".txt.z"): checksum(read_list(newest[kind])) for kind in KINDS}


@dataclass(frozen=True, eq=False)
class Judged:
    """The entities that a pipeline found in one form of one source.

    hits (Mapping): Event -> 1, 0 or -1 for unknown, of each span. texts (Sequence): Words of each Doc.
    share (float): What its entities weigh in a fit, as a share of the source.
    """

    spans: Spans
    raw: Floats
    documents: Ints
    hits: Mapping[str, Ints]
    words: Words
    labels: tuple[str, ...]
    texts: Sequence[list[str]]
    share: float = 1.0

    @cached_property
    def chosen(self) -> Ints:
        """The entities on the Docs, whose gold is known."""
        return np.flatnonzero(self.spans.on_doc & (self.hits["exact"] >= 0))

    @cached_property
    def evidence(self) -> SpanEvidence:
        return SpanEvidence(self.spans.take(self.chosen), self.raw[self.chosen], self.words, self.labels)

    @cached_property
    def _columns(self) -> dict[str, Floats]:
        return {}

    def column(self, name: str) -> Floats:
        """One piece of evidence, read once."""
        if name not in self._columns:
            self._columns[name] = self.evidence.column(name)
        return self._columns[name]

    def columns(self, names: Sequence[str]) -> Floats:
        return np.stack([self.column(name) for name in names], axis=1)

    @property
    def types(self) -> list[str]:
        return [self.labels[i] for i in self.evidence.spans.labels.tolist()]

    def right(self, event: str) -> Any:
        return self.hits[event][self.chosen] == 1

    def score(self, table: Mapping[str, float]) -> Floats:
        return sigmoid(self.columns(list(table)) @ np.array(list(table.values())))

    def with_lists(self, lists: NameLists) -> Judged:
        """The same with what these lists say of the words."""
        evidence = EntityEvidence()
        new = np.concatenate([evidence.read_words(text, lists) for text in self.texts])
        old = self.words.columns[EntityEvidence.registered]
        columns = np.concatenate([old[:, : COLUMNS.index("letters")], new], axis=1)
        return replace(self, words=replace(self.words, columns={EntityEvidence.registered: columns}))


def gather(
    model: str, sources: Sequence[Source], cache: Path, text_form: str = AS_IT_IS, lists: NameLists | None = None
) -> dict[str, Judged]:
    """Run a pipeline over one form of sources, or read what an earlier run found. lists (NameLists | None): None takes the package's."""
    nlp: Any = None
    judged_by_source = {}
    lists = lists or load_lists(tuple(current_lists().items()))
    assert lists is not None
    for source in sources:
        name = f"{Path(model).parent.name or Path(model).name}-{Path(model).name}-{source.name}-{text_form}.pkl"
        file = cache / "pretrained" / name
        if not file.exists():
            nlp = nlp or load_with_factories(model, {"ner": "calib_ner"}, exclude=["lemmatizer", "attribute_ruler"])
            say(f"Entities of {model} in {source.name}, {text_form}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(pickle.dumps(judge(nlp, in_form(source, text_form))))
        judged = replace(pickle.loads(file.read_bytes()), share=SHARES[text_form])
        judged_by_source[source.name] = judged.with_lists(lists)
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
    texts = [[token.text for token in eg.predicted] for eg in examples]
    return Judged(spans.spans, spans.raw, spans.documents, hits, data.words, source_of_entities.span_labels, texts)


def evidence_names(types: Sequence[str]) -> dict[str, list[str]]:
    """Return the evidence that each map without lists uses: key of NEEDS -> names of evidence. types: Entity labels."""
    by_type = {name: [f"{name}*{kind}" for kind in types] for name in _BY_TYPE}
    shape = ["acronym*PERSON", "acronym*GPE", "acronym*ORG", "initial*PERSON", "symbol", "digit"]
    simple = ["constant", "log-odds", *by_type["type"], *by_type["one word"], *shape]
    form_names = [f"{form}: {name}" for form in FORMS for name in (*by_type["type"], "log-odds")]
    tagger_names = [*by_type["proper"], "letters", "proper before", "proper after", *(f"{form}: proper" for form in FORMS)]
    parser_names = [
        *by_type["noun after"], *by_type["preposition before"], "article", "possessive", "argument", "path", "address",
    ]  # fmt: skip
    return {
        "ner, tagger, parser": [*simple, *form_names, *tagger_names, *parser_names],
        "ner, tagger": [*simple, *form_names, *tagger_names], "ner": [*simple, *form_names, *by_type["log-odds"]],
    }  # fmt: skip


def fit_map(needs: str, parts: Sequence[Judged], event: str) -> dict[str, float]:
    """Fit the coefficients of one map, a key of NEEDS; each source weighs the same."""
    if needs.endswith(LISTS):
        return add_lists(fit_map(needs.removesuffix(LISTS), parts, event), parts, event)
    names = evidence_names(TYPES)[needs]
    penalty = np.array([FREE if name in _UNSHRUNK else RIDGE for name in names])
    columns, hits, weights = _rows(names, parts, event)
    return _table(names, fit_logistic(columns, hits, weights, np.zeros(len(names)), penalty))


def add_lists(base: Mapping[str, float], parts: Sequence[Judged], event: str) -> dict[str, float]:
    """Add the terms of lists to a map, whose log-odds stay: a name in no list is no evidence.

    What supports a type adds at least 0, a person's name at most PERSON_GAIN; what contradicts it adds at most 0. The constants of types move
    by SLACK at most, PERSON's only down.
    """
    constants = [f"type*{kind}" for kind in TYPES]
    bounds = [
        *((-SLACK, 0.0 if kind == "PERSON" else SLACK) for kind in TYPES), *((0.0, PERSON_GAIN.get(flag)) for flag in SUPPORTS),
        *((None, 0.0) for _ in CONTRADICTIONS)
    ]  # fmt: skip
    names = [*constants, *SUPPORTS, *CONTRADICTIONS]
    columns, hits, weights = _rows(names, parts, event)
    offset = _rows(list(base), parts, event)[0] @ np.array(list(base.values()))

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        margins = columns @ coefficients + offset
        gradient = columns.T @ (weights * (sigmoid(margins) - hits)) + RIDGE * coefficients
        return float((weights * (softplus(margins) - hits * margins)).sum() + 0.5 * RIDGE * (coefficients**2).sum()), gradient

    options = {"maxiter": 3000, "ftol": 1e-12, "gtol": 1e-5}
    values = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    terms = _table(names, values)
    return {**base, **terms, **{name: round(base[name] + terms[name], 4) for name in constants}}


def _rows(names: Sequence[str], parts: Sequence[Judged], event: str) -> tuple[Floats, Floats, Floats]:
    """(the evidence of all entities, whether they are right, their weights)."""
    columns = np.concatenate([source.columns(names) for source in parts])
    hits = np.concatenate([source.right(event) for source in parts]).astype(np.float64)
    weights = [np.full(len(source.chosen), source.share * WEIGHT / len(source.chosen)) for source in parts]
    return columns, hits, np.concatenate(weights)


def _table(names: Sequence[str], coefficients: Floats) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(names, coefficients, strict=True)}


def fit_maps(parts: Sequence[Judged], event: str) -> dict[str, dict[str, float]]:
    return {needs: fit_map(needs, parts, event) for needs in NEEDS}


def figures(scores: Floats, right: Any) -> dict[str, float]:
    """Log loss, Brier score and ECE over ten bins of equal size."""
    return {
        "log_loss": float(log_loss(scores, right) or 0.0),
        "brier": float(brier(scores, right) or 0.0),
        "ece": float(calibration_error(scores, right, norm="l1") or 0.0),
    }


def left_out_maps(judged_by_form: Mapping[str, Mapping[str, Judged]], event: str) -> dict[str, dict[str, dict[str, float]]]:
    """Key of one source, or of two (the richest map only), see `key_of` -> the maps that are fitted on all forms of all others."""
    maps = {}
    for n_left_out in (1, 2):
        for left_out in combinations(next(iter(judged_by_form.values())), n_left_out):
            parts = parts_of(judged_by_form, left_out)
            maps[key_of(*left_out)] = fit_maps(parts, event) if n_left_out == 1 else {FULL: fit_map(FULL, parts, event)}
    return maps


def parts_of(judged_by_form: Mapping[str, Mapping[str, Judged]], left_out: Collection[str] = ()) -> list[Judged]:
    """All forms of all sources but some."""
    return [source for by_source in judged_by_form.values() for name, source in by_source.items() if name not in left_out]


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
