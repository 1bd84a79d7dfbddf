"""Greedy decoding of a whole batch at once, with the probability of every decision.

A recognizer of spaCy reads from left to right and takes one transition at each token: B- begins an entity, I- goes on with it, L- ends
it, U- is an entity of one token, O is none.

The features of a state are the current token and the first tokens of the open entity. So what the model says at a token outside of
an entity does not depend on the tokens before it, and what it says inside depends on the entity's first token only: all tokens are
scored as if outside in one product of matrices, then all entities that a token could open grow in step, and a walk from left to right
keeps those that are reached. The entities are those of spaCy's `greedy_parse`, which steps through the states one token at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...errors import calib_error
from ...types import Floats, Ints
from ..transitions import get_state2vec
from .actions import Actions, Bools, RuleInput, opening_columns, read_rule_input, valid_inside, valid_openings

# Widths of the state features that spaCy's architectures have: without and with `extra_state_tokens`.
STATE_WIDTHS = (3, 6)
_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class FoundEntities:
    """Entities of a batch, ascending, by tokens of the batch; index of the type, and `path`: product of their decisions' P."""

    starts: Ints
    ends: Ints
    types: Ints
    path: Floats

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, keep: NDArray[Any]) -> FoundEntities:
        """Select by index or booleans."""
        return FoundEntities(self.starts[keep], self.ends[keep], self.types[keep], self.path[keep])

    def triples(self) -> Iterator[tuple[int, int, int]]:
        """Iterate over (start, end, type)."""
        return zip(self.starts.tolist(), self.ends.tolist(), self.types.tolist(), strict=True)


@dataclass(frozen=True, eq=False)
class Decoded:
    """What greedy decoding found in Docs that follow one another.

    openings (Floats): Probability of each valid transition where no entity is open, (n_tokens, 2 * n_types + 1): B- of each
    type, U- of each type, O.
    opener (Ints): First token of the entity that each token is in, else the token itself.
    closing (Floats): Probability of L- against I- at tokens of an entity after its first; NaN elsewhere.
    """

    actions: Actions
    openings: Floats
    entities: FoundEntities
    opener: Ints
    closing: Floats


class StateScorer:
    """Scores states through spaCy's step model: the only place that knows how it encodes states.

    step_model (ParserStepModel): Of a batch of Docs. lower (Any): The layer that state features pass first. RAISES C033: the
    model's states are not those of an entity recognizer of spaCy. C024: NaN or infinite scores, when they are made.
    """

    def __init__(self, step_model: Any, docs: Sequence[Doc], component: str, lower: Any):
        self.model = step_model
        self.docs = docs
        self.component = component
        self.state2vec = get_state2vec(step_model, docs, lower)
        self.width = self.state2vec.get_dim("nF")
        if self.width not in STATE_WIDTHS:
            raise calib_error("C033", component=component, given=self.width, wanted=" or ".join(map(str, STATE_WIDTHS)))
        self.unseen = np.flatnonzero(step_model._class_mask == 0)

    def score_outside(self, rows: Ints) -> NDArray[np.float32]:
        """Score all classes at tokens outside of entities; classes not seen in training get -inf."""
        features = np.full((len(rows), self.width), -1, dtype=np.int32)
        features[:, 0] = rows
        return self._scores(features)

    def score_inside(self, rows: Ints, starts: Ints) -> NDArray[np.float32]:
        """Score all classes at tokens of an open entity that begins at `starts`."""
        features = np.full((len(rows), self.width), -1, dtype=np.int32)
        features[:, 0] = rows
        if self.width == 3:
            features[:, 1], features[:, 2] = starts, rows - 1
        else:
            tokens = starts[:, None] + np.arange(self.width - 1)
            features[:, 1:] = np.where(tokens < rows[:, None], tokens, -1)
        return self._scores(features)

    def _scores(self, features: NDArray[np.int32]) -> NDArray[np.float32]:
        vectors = self.state2vec.predict(features)
        scores = vectors if self.model.vec2scores is None else self.model.vec2scores.predict(vectors)
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            row = int(features[np.flatnonzero(~finite)[0], 0])
            bad = self.docs[int(np.searchsorted(np.cumsum([len(doc) for doc in self.docs]), row, side="right"))]
            raise calib_error("C024", component=self.component, text=bad.text[:40])
        if len(self.unseen):
            scores[:, self.unseen] = -np.inf
        return scores


def decode(
    step_model: Any, lower: Any, docs: Sequence[Doc], actions: Actions, component: str, cleared: bool = False
) -> Decoded:
    """Find the greedy entities of non-empty Docs. cleared (bool): As if without any. RAISES C024: NaN. C033: other states."""
    scorer = StateScorer(step_model, docs, component, lower)
    rules = read_rule_input(docs, cleared)
    openings, choice, stuck = _openings(scorer, rules, actions)
    entities = _grow(scorer, rules, actions, openings, choice)
    bounds = np.cumsum([0, *(len(doc) for doc in docs)])
    return _walk(entities, actions, openings, stuck, bounds)


def _openings(scorer: StateScorer, rules: RuleInput, actions: Actions) -> tuple[Floats, Ints, Bools]:
    """Return (probabilities, chosen column, no transition is valid) of every token as if outside."""
    columns = opening_columns(actions)
    order = np.argsort(columns, kind="stable")  # of equal scores spaCy takes the first class
    n_tokens, n_kept = len(rules.iob), 2 * len(actions.types) + 1
    valid = valid_openings(rules, actions)
    probabilities = np.empty((n_tokens, n_kept))
    choice: Ints = np.empty(n_tokens, dtype=np.intp)
    for start in range(0, n_tokens, step := max(1, _CELLS // max(1, actions.n_classes))):
        part = slice(start, start + step)
        rows = np.arange(n_tokens)[part]
        scores = _mask(scorer.score_outside(rows)[:, columns], valid[part])
        choice[part] = order[np.argmax(scores[:, order], axis=1)]
        probabilities[part] = _softmax(scores)[:, :n_kept]
    stuck = np.asarray(~valid.any(axis=1))
    choice[stuck] = 2 * len(actions.types)
    return probabilities, choice, stuck


def _mask(raw: NDArray[Any], valid: Bools) -> Floats:
    """Return scores in float64, -inf where not valid; equal where only classes not seen in training are valid."""
    scores = np.where(valid, raw, -np.inf).astype(np.float64, copy=False)
    unseen = np.flatnonzero(np.isneginf(scores.max(axis=1)))
    if len(unseen):
        scores[unseen] = np.where(valid[unseen], 0.0, -np.inf)
    return scores


def _softmax(scores: Floats) -> Floats:
    """Softmax of each row, in place; 0 where a whole row is -inf."""
    highest = scores.max(axis=1, keepdims=True)
    scores -= np.where(np.isneginf(highest), 0.0, highest)
    np.exp(scores, out=scores)
    sums = scores.sum(axis=1, keepdims=True)
    scores /= np.where(sums > 0, sums, 1.0)
    return scores


@dataclass(frozen=True, eq=False)
class _Growing:
    """Entities that tokens could open, as in FoundEntities, and (entity, token, L- against I-) of their later tokens."""

    starts: Ints
    ends: Ints
    types: Ints
    path: Floats
    of_entity: Ints
    tokens: Ints
    closing: Floats


def _grow(scorer: StateScorer, rules: RuleInput, actions: Actions, openings: Floats, choice: Ints) -> _Growing:
    """Grow every entity that would be opened at a token if that were reached outside, one token per round."""
    n_types = len(actions.types)
    starts = np.flatnonzero(choice < 2 * n_types)
    types = choice[starts] % max(1, n_types)
    path = openings[starts, choice[starts]]
    ends = starts + 1
    growing = np.flatnonzero(choice[starts] < n_types)
    empty = np.zeros(0, dtype=np.intp)
    entity_parts, token_parts, closing_parts = [empty], [empty], [np.zeros(0)]
    while len(growing):
        rows = ends[growing]
        scores = scorer.score_inside(rows, starts[growing])
        of_type = types[growing]
        numbers = np.arange(len(rows))
        raw = np.stack([scores[numbers, actions.inside[of_type]], scores[numbers, actions.last[of_type]]], axis=1)
        valid = np.stack(valid_inside(rules, rows, of_type, actions), axis=1)
        pair = _mask(raw, valid)
        first_is_last = actions.last[of_type] < actions.inside[of_type]
        goes_on = np.where(first_is_last, pair[:, 0] > pair[:, 1], pair[:, 0] >= pair[:, 1]) & valid[:, 0]
        alive = valid.any(axis=1)
        probabilities = _softmax(pair)
        path[growing] *= np.where(goes_on, probabilities[:, 0], probabilities[:, 1])
        entity_parts.append(growing)
        token_parts.append(rows)
        closing_parts.append(probabilities[:, 1])
        ends[growing] = np.where(alive, rows + 1, -1)
        growing = growing[goes_on & alive]
    return _Growing(
        starts, ends, types, path, np.concatenate(entity_parts), np.concatenate(token_parts), np.concatenate(closing_parts)
    )


def _walk(grown: _Growing, actions: Actions, openings: Floats, stuck: Bools, bounds: Ints) -> Decoded:
    """Keep the entities that a walk from left to right reaches; spaCy ends a Doc at a state without a valid transition."""
    dead_ends = np.flatnonzero(stuck)
    places = np.concatenate([grown.starts, dead_ends])
    ends = np.concatenate([grown.ends, np.full(len(dead_ends), -1)])
    order = np.argsort(places, kind="stable")
    kept_numbers = []
    free_from = 0
    for number, start, end in zip(order.tolist(), places[order].tolist(), ends[order].tolist(), strict=True):
        if start < free_from:
            continue
        if end < 0:
            free_from = int(bounds[np.searchsorted(bounds, start, side="right")])
            continue
        kept_numbers.append(number)
        free_from = end
    keep = np.array(kept_numbers, dtype=np.intp)
    is_kept = np.zeros(len(grown.starts), dtype=bool)
    is_kept[keep] = True
    of_kept = is_kept[grown.of_entity]
    opener = np.arange(len(openings))
    opener[grown.tokens[of_kept]] = grown.starts[grown.of_entity[of_kept]]
    closing = np.full(len(openings), np.nan)
    closing[grown.tokens[of_kept]] = grown.closing[of_kept]
    entities = FoundEntities(grown.starts[keep], grown.ends[keep], grown.types[keep], grown.path[keep])
    return Decoded(actions, openings, entities, opener, closing)
