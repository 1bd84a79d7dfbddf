"""The parser `calib_parser`, which is spaCy's and remembers the probabilities of its arcs, and the source of parsers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import DependencyParser
from spacy.tokens import Doc

from ...annotations import ARC_EVENTS, Annotation, columns_of, get_annotation, is_space
from ...calibration.solvers import log_odds
from ...calibration.spans import product_of
from ...errors import calib_error
from ...pairs.scores import SparseScores
from ...types import Floats, Ints, Marginals, Spans
from ..source import PARSERS, has_weights
from ..transitions import KeptReadings, ParsedDocs, TransitionSource, clear_copy
from .decoding import ROOT, ArcProbabilities, arc_labels, predict_arcs, read_actions

kept_readings = KeptReadings()
# Probabilities are clipped to this distance from 0 and 1 before their log-odds are taken.
_CLIP = 1e-3


class CalibDependencyParser(DependencyParser):
    """spaCy's DependencyParser with the same heads and labels, decoded a batch at a time (`sources.parser.decoding`)."""

    def predict(self, docs: Sequence[Doc] | Doc) -> Any:
        """Return the final state of each Doc. RAISES C024: NaN scores. C271: unknown state features."""
        docs = [docs] if isinstance(docs, Doc) else list(docs)
        if not any(len(doc) for doc in docs):
            return self.moves.init_batch(docs)
        return ParsedDocs(*predict_arcs(self, docs))

    def set_annotations(self, docs: Sequence[Doc], states: Any) -> None:
        """Set heads and labels, as spaCy does, and remember the arcs and their probabilities. states: From `predict`."""
        n_tokens = [len(doc) for doc in docs]
        super().set_annotations(docs, states)
        # For a batch without any tokens `predict` returns spaCy's states, which have no readings.
        for doc, probabilities, n in zip(docs, getattr(states, "readings", ()), n_tokens, strict=False):
            if len(doc) == n:  # else tokens were merged by their arcs
                kept_readings.keep(doc, self.name, ArcReading(probabilities, arcs_on(doc)))


def make_parser(nlp: Language, name: str, **settings: Any) -> CalibDependencyParser:
    """Create a component `calib_parser`. settings: As for spaCy's DependencyParser."""
    return CalibDependencyParser(nlp.vocab, name=name, **settings)


@dataclass(frozen=True, eq=False)
class ArcReading:
    """The prediction of a parser for one Doc. arcs: Per token head.i - token.i and the hash of its label, (n_tokens, 2)."""

    probabilities: ArcProbabilities
    arcs: NDArray[np.int64]


def arcs_on(doc: Doc) -> NDArray[np.int64]:
    """Return the offset of each token's head, in tokens, and the hash of its label, shape (n_tokens, 2)."""
    return doc.to_array(["HEAD", "DEP"]).astype(np.uint64).view(np.int64).reshape(-1, 2)


class ParserSource(TransitionSource):
    """Source of the probabilities of a parser's arcs, one per token, and of its sentences.

    The score of an arc is the probability of the decision for the head times the probability that no other decision gives the
    token another head; a root has only the second factor. component (str): Name of the component, `parser` of spaCy or
    `calib_parser`. event (str): "head" for P(the head is right), "arc" for P(head and label are right). RAISES C001: another.
    """

    reads = ("parser",)
    events = ARC_EVENTS
    singleton_labels = (ROOT,)
    component_classes = (DependencyParser,)
    remembering_class, memory = CalibDependencyParser, kept_readings
    output_name, output_attributes = "sentences", frozenset({"doc.sents", "token.is_sent_start"})
    distributions = False

    def __init__(self, component: str = "parser", event: str = "head"):
        if event not in ARC_EVENTS:
            raise calib_error("C001", name="event", wanted=" or ".join(ARC_EVENTS), given=repr(event))
        super().__init__(component)
        self.event = event

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(self.event)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return arc_labels(read_actions(pipe.moves))

    def is_trained(self, pipe: Any) -> bool:
        return bool(self.labels(pipe)) and has_weights(pipe)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        if pipe.cfg["beam_width"] != 1:
            return "a parser with a beam has no probability of each decision; set its beam_width to 1"
        return super().obstacle(nlp, name, pipe)

    def reads_output(self, pipe: Any) -> bool:
        """Return True: arcs are read from the Docs. (Only the probabilities of spaCy's own parsers need a second pass.)"""
        return True

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Return the score of each token that still has the parser's arc. RAISES C024: NaN. C271: unknown state features."""
        readings: list[ArcReading] = self.readings(pipe, docs)
        for doc in docs:
            PARSERS[doc] = pipe  # remembered, as whole trees of these Docs can be sampled later
        # Offset of the head and label hash of each token: on the Docs, and as the parser set them.
        arcs = np.concatenate([arcs_on(doc) for doc in docs])
        parser_arcs = np.concatenate([reading.arcs for reading in readings])
        columns = columns_of(np.concatenate([self.annotation(pipe).hashes(doc) for doc in docs]), self.labels(pipe))
        is_unchanged = (arcs[:, 0] == parser_arcs[:, 0]) & (columns >= 0)  # the same head, and a label of the parser
        if self.event == "arc":
            is_unchanged &= arcs[:, 1] == parser_arcs[:, 1]
        probabilities = np.concatenate([reading.probabilities.score(self.event) for reading in readings])
        scores = np.where(is_unchanged, probabilities, np.nan)
        rows = np.flatnonzero(is_unchanged)
        marginals = Marginals(rows, columns[rows], scores[rows], len(scores))
        spans, features = _sentences(docs, scores), _arc_features(readings, arcs[:, 0])
        # absent=NaN: only the label of a token's arc has a score, and nothing is known about its other labels.
        return SparseScores(marginals, spans, absent=np.nan, further_scores=features)

    def read_again(self, pipe: Any, docs: Sequence[Doc]) -> list[ArcReading]:
        """Parse copies of the Docs without arcs and sentences. RAISES C024: NaN scores. C271: unknown state features."""
        copies = [clear_copy(doc, keep_arcs=False) for doc in docs]
        states, probabilities = predict_arcs(pipe, copies)
        DependencyParser.set_annotations(pipe, copies, states)
        return [ArcReading(doc_arcs, arcs_on(copy)) for doc_arcs, copy in zip(probabilities, copies, strict=True)]

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        return ("",)


def _sentences(docs: Sequence[Doc], scores: Floats) -> Spans:
    """Return the sentences in which all arcs, except those of white space, have a score (not NaN)."""
    is_start = np.concatenate([doc.to_array(["SENT_START"]).reshape(-1) == 1 for doc in docs])
    bounds = np.cumsum([0, *map(len, docs)])
    is_start[bounds[:-1][np.diff(bounds) > 0]] = True  # the first token of each Doc that has tokens
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:], len(is_start))
    token_scores = np.where(np.concatenate([is_space(doc) for doc in docs]), 1.0, scores)
    n = len(starts)
    # All have label 0 and are on their Doc; their scores are set below.
    spans = Spans(starts, ends, np.zeros(n, dtype=np.intp), token_scores, np.zeros(n), np.ones(n, dtype=bool))
    is_scored = ~np.isnan(np.add.reduceat(token_scores, starts))
    spans = spans.take(is_scored)
    return replace(spans, scores=product_of(spans))


def _arc_features(readings: Sequence[ArcReading], heads: Ints) -> dict[str, Floats]:
    """Return description -> feature of each token, which a calibration may use. readings: Of each Doc. heads: Head offsets."""
    names = ("arc", "head", "path", "minimum")
    columns = {name: np.concatenate([getattr(reading.probabilities, name) for reading in readings]) for name in names}
    children = np.flatnonzero(heads != 0)  # a root is its own head
    n_dependents = np.bincount(children + heads[children], minlength=len(heads))
    return {
        "certainty of the decision for the head": log_odds(columns["head"], _CLIP),
        "certainty of the label, given the head": log_odds(columns["arc"] / np.maximum(columns["head"], 1e-12), _CLIP),
        "certainty of all decisions about the token": log_odds(columns["path"], _CLIP),
        "certainty of the least certain one": log_odds(columns["minimum"], _CLIP),
        "how many words depend on it": np.log1p(n_dependents),
    }
