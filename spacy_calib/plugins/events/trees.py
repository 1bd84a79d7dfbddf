"""Sample whole trees from a parser's distribution over transitions, and estimate P(every arc of a sentence is right).

Each transition is sampled among the valid ones by its probability. So a sequence of transitions is sampled with the probability
that the parser gives it, and always ends in a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from spacy.pipeline import DependencyParser
from spacy.pipeline._parser_internals.nonproj import deprojectivize
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from thinc.api import set_dropout_rate

from ...annotations import ARC_EVENTS, Annotation, is_space, plain_name
from ...calibration.spans import logit
from ...doc.attributes import DEFAULT_ATTR
from ...doc.view import DocCalib, doc_view
from ...sources.base import missing_input
from ...sources.parser.decoding import (
    DECORATION,
    LEFT,
    RIGHT,
    ROOT,
    ParserStates,
    Scorer,
    first_tokens,
    predict_arcs,
    read_actions,
)
from ...sources.transitions import clear_copy
from ...types import Floats, Ints
from .draws import draw_columns, make_rng
from .forecasts import UnitEvidence
from .messages import calib_error
from .questions import LabelsRight
from .sampling import TreeDraws

# Maximum number of transitions per word: it is pushed once, and again only after another word was popped for good; put back
# once less than pushed, popped once, and begins one sentence.
_STEPS = 5
# Maximum number of random numbers, or of scores of states, in memory at once.
_CELLS = 1 << 21
# Probabilities of two runs of a parser over one Doc differ by less.
_SAME = 1e-3


def sample_trees(parser: Any, doc: Doc, n: int = 100, seed: int = 0, attr: str = DEFAULT_ATTR) -> TreeDraws:
    """Sample n trees of a Doc; unlike `Doc._.<attr>.sample` also of a copy, or a Doc from another process or a file.

    parser (DependencyParser): Without a beam; the component that it listens to has run over the Doc.
    seed (int): Determines the samples, with the text and the scores. attr (str): Prefix of the calib pipe.
    RAISES C001: n or seed is negative. C412: the scores are not of arcs. C413: no scores. C680: the parser's scores have changed.
    C681: no parser, or one with a beam. C024, C271: the parser cannot run again.
    """
    view = doc_view(doc, attr)
    if view is None:
        raise calib_error("C413", text=doc.text[:40].strip(), attr=attr)
    if plain_name(view.layer) not in ARC_EVENTS:
        raise calib_error("C412", name=getattr(parser, "name", "?"), layer=view.layer, own="arcs", attr=attr)
    return draw_trees(parser, view, n, seed)


def draw_trees(parser: Any, view: DocCalib, n: int, seed: int) -> TreeDraws:
    """Sample n trees of the Doc of a view of arcs. RAISES C001, C680, C681, C024, C271: as `sample_trees`."""
    doc, event = view.doc, plain_name(view.layer)
    if not isinstance(parser, DependencyParser) or parser.cfg["beam_width"] != 1:
        raise calib_error("C681", name=getattr(parser, "name", "?"), kind=type(parser).__name__)
    rng, why = make_rng(n, seed, get_string_id(doc.text)), missing_input(parser, [doc])[0]
    if not why:
        bare = clear_copy(doc, keep_arcs=False)
        new_scores = predict_arcs(parser, [bare])[1][0].score(event)[view.rows]
        if (np.abs(new_scores - view.raw) > _SAME).any():
            why = "its probabilities are others than those that the Doc was scored by (other vectors, or sentences set before)"
    if why:
        raise calib_error("C680", name=parser.name, why=why)
    size = max(1, _CELLS // max(_STEPS * len(doc), parser.moves.n_moves))
    sizes = [min(size, n - first) for first in range(0, n, size)] or [0]
    parts = [_draw_batch(parser, bare, rng.random((n_draws, _STEPS * len(doc)))) for n_draws in sizes]
    heads, labels, logs = (np.concatenate(column) for column in zip(*parts, strict=True))
    names, codes = np.unique(labels, return_inverse=True)
    strings = tuple(doc.vocab.strings[int(name)] for name in names)
    return TreeDraws(doc, np.ones(len(doc)), event, strings, heads, codes.reshape(heads.shape), logs)


def _draw_batch(parser: Any, doc: Doc, uniforms: Floats) -> tuple[Ints, Any, Floats]:
    """Sample n trees at once: (heads, hashes of labels, log-probabilities). uniforms (Floats): Shape (n, _STEPS * n_tokens)."""
    actions, n, n_tokens = read_actions(parser.moves), len(uniforms), len(doc)
    set_dropout_rate(parser.model, 0.0)
    step_model = parser.model.predict([doc])
    try:
        scorer, states = Scorer(parser, step_model, [doc]), ParserStates.from_docs([doc] * max(n, 1), actions)
        (first,) = parser.moves.init_batch([doc])
        live, draws, step = [first.copy() for _ in range(n)], np.arange(n), 0
        classes, logs = np.full(len(states.heads), -1), np.zeros(n)
        while live:
            ids = step_model.get_token_ids(live)
            tokens = first_tokens(ids)
            tokens[:] = np.where(tokens >= 0, tokens + n_tokens * draws, -1)
            scores = states.mask(tokens, scorer(ids)).astype(np.float64)
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            transitions, rows = draw_columns(odds, uniforms[draws, step]), np.arange(len(live))
            logs[draws] += np.log(odds[rows, transitions] / odds.sum(axis=1))
            moves = actions.moves[transitions]
            states.apply(tokens, moves)
            for child, move in ((tokens[2], LEFT), (tokens[0], RIGHT)):
                classes[child[moves == move]] = transitions[moves == move]
            one_hot = np.zeros(scores.shape, dtype=np.float32)
            one_hot[rows, transitions] = 1.0
            parser.transition_states(live, one_hot)
            goes_on = np.array([not state.is_final() for state in live])
            live, draws, step = [live[i] for i in np.flatnonzero(goes_on)], draws[goes_on], step + 1
    finally:
        step_model.clear_memory()
    shape = (n, n_tokens)
    heads = states.heads[: n * n_tokens].reshape(shape) - n_tokens * np.arange(n)[:, None]
    classes = classes[: n * n_tokens].reshape(shape)
    return (*_restore_lifted_arcs(doc, np.where(classes < 0, np.arange(n_tokens), heads), classes, actions.labels), logs)


def _restore_lifted_arcs(doc: Doc, heads: Ints, classes: Ints, names: Sequence[str]) -> tuple[Ints, Any]:
    """Return (heads, hashes of labels), shape (n, n_tokens), with pseudo-projective arcs put back as spaCy does."""
    labels = np.array([doc.vocab.strings.add(name) for name in (*names, ROOT)], dtype=np.uint64)[classes]
    has_lifted = np.append([DECORATION in name for name in names], False)[classes].any(axis=1)
    tokens, doc = np.arange(len(doc)), doc.copy()
    for i in np.flatnonzero(has_lifted).tolist():
        relative = (heads[i] - tokens).astype(np.int64).view(np.uint64)
        doc.from_array(["HEAD", "DEP"], np.column_stack([relative, labels[i]]))  # type: ignore[arg-type]
        deprojectivize(doc)
        columns = doc.to_array(["HEAD", "DEP"]).astype(np.uint64)
        heads[i], labels[i] = tokens + columns[:, 0].view(np.int64), columns[:, 1]
    return heads, labels


# Columns of the evidence of a tree.
TREE_FEATURES = ("share of draws", "least share of a head", "product of raw scores")


class TreeEvent(LabelsRight):
    """Whether every arc of a sentence is right, by sampled trees. draws (int): Number of samples. RAISES C001: below 1."""

    registered, short = "spacy-calib.Tree.v1", "tree"
    unit_words, about = ("tree", "trees"), "the arcs of a parser"
    features, of_labels, needs_no_fit = TREE_FEATURES, True, True
    rivals = ("product of raw scores", "share of draws")
    condition = "all arcs right"

    def __init__(self, draws: int = 100):
        super().__init__()
        if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
            raise calib_error("C001", name="draws", wanted="a whole number of at least 1", given=repr(draws))
        self.draws = draws
        self.bind(DEFAULT_ATTR, lambda: None)

    def asks_about(self, annotation: Annotation) -> bool:
        return annotation.arcs

    def bind(self, attr: str, component: Callable[[], Any]) -> None:
        self._attr, self._component = attr, component

    def units(self, doc: Doc) -> Sequence[Span]:
        """Return the sentences that have words, if all of these have a score."""
        view, words = doc_view(doc, self._attr), ~is_space(doc)
        if view is None or not doc.has_annotation("DEP"):
            return ()
        slices = [(sent, slice(sent.start, sent.end)) for sent in doc.sents]
        return [sent for sent, tokens in slices if words[tokens].any() and (view.scored | ~words)[tokens].all()]

    def evidence(self, doc: Doc, units: Sequence[Span]) -> UnitEvidence:
        """Return features of each sentence from sampled trees: how often all heads, and the rarest head, are as predicted."""
        view = doc_view(doc, self._attr)
        assert view is not None
        draws = draw_trees(self._component(), view, self.draws, 0)
        same_heads, words, raw = draws.same_heads(), ~is_space(doc), np.ones(len(doc))
        raw[view.rows] = view.raw
        features = np.ones((len(units), len(TREE_FEATURES)))
        for row, unit in enumerate(units):
            tokens = unit.start + np.flatnonzero(words[unit.start : unit.end])
            counts = same_heads[:, tokens].all(axis=1).sum(), same_heads[:, tokens].sum(axis=0).min()
            features[row] = *((count + 0.5) / (self.draws + 1) for count in counts), raw[tokens].prod()
        return UnitEvidence(logit(features), features[:, 2], features[:, 0])
