"""Greedy decoding of a recognizer for a whole batch at once, with the probability of every decision.

A recognizer of spaCy reads from left to right and takes one transition at each token: B- begins an entity, I- continues it, L-
ends it, U- is an entity of one token, O is a token outside of entities.

The features of a state are the current token and the first tokens of the open entity. So the scores of a token outside of
entities do not depend on earlier decisions, and those inside depend only on the first token of the entity. All tokens are
scored as if outside in one product of matrices; then every entity that a token could open is extended, one token per round;
then a pass from left to right keeps the entities that are reached. The entities are those of spaCy's `greedy_parse`, which
steps through the states one token at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...types import Floats, Ints
from ..heads import StepScorer, step_scorer
from .actions import EntityActions, RuleInput, opening_columns, read_actions, read_rule_input, valid_inside, valid_openings

# Numbers of state features of spaCy's architectures: without and with `extra_state_tokens`.
STATE_WIDTHS = (3, 6)
_CELLS = 1 << 21  # maximum number of scores in a block of tokens


@dataclass(frozen=True, eq=False)
class FoundEntities:
    """n entities of a Doc, or of a batch of Docs with tokens counted over all Docs; in text order, arrays of shape (n,).

    starts, ends (Ints): First token of each, and the one after the last. types (Ints): Its type in `EntityActions.types`.
    path (Floats): Product of the probabilities of the decisions that made the entity.
    """

    starts: Ints
    ends: Ints
    types: Ints
    path: Floats

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, keep: NDArray[Any]) -> FoundEntities:
        return FoundEntities(self.starts[keep], self.ends[keep], self.types[keep], self.path[keep])

    def triples(self) -> Iterator[tuple[int, int, int]]:
        """Yield (first token, the one after the last, index of the type) of each entity, as Python integers."""
        return zip(self.starts.tolist(), self.ends.tolist(), self.types.tolist(), strict=True)


@dataclass(frozen=True, eq=False)
class GreedyDecoding:
    """The entities and probabilities of greedy decoding, for the tokens of a batch of Docs.

    openings (Floats): Probability of each transition if no entity is open: B- of each type, U- of each type, O; shape
    (n_tokens, 2 * n_types + 1). opener (Ints): First token of the entity that contains each token, else the token itself.
    closing (Floats): Probability that the entity ends (L-, not I-) at each of its tokens but the first; NaN elsewhere.
    """

    actions: EntityActions
    openings: Floats
    entities: FoundEntities
    opener: Ints
    closing: Floats


def score_outside(scorer: StepScorer, rows: Ints) -> NDArray[np.float32]:
    """Return the scores of all classes at tokens as if they were outside of entities; -inf for classes not seen in training.

    scorer (StepScorer): Of a batch of Docs. rows (Ints): n tokens of the batch. RETURNS (NDArray[float32]): (n, n_classes).
    """
    features = np.full((len(rows), scorer.width), -1, dtype=np.int32)
    features[:, 0] = rows  # the token; the other features are tokens of an open entity, -1 for none
    return scorer(features)


def score_inside(scorer: StepScorer, rows: Ints, starts: Ints) -> NDArray[np.float32]:
    """Return the scores of all classes at tokens inside of open entities, shape (n, n_classes).

    scorer: Of a batch of Docs. rows, starts (Ints): n of its tokens, and the first token of the entity that is open at each.
    """
    # As spaCy's `StateC.set_context_tokens`. 3 features: the token, the first token of the entity, the previous token.
    # 6: the token, and the first five tokens of the entity before it; -1 if there are fewer.
    features = np.full((len(rows), scorer.width), -1, dtype=np.int32)
    features[:, 0] = rows
    if scorer.width == 3:
        features[:, 1], features[:, 2] = starts, rows - 1
    else:
        tokens = starts[:, None] + np.arange(scorer.width - 1)
        features[:, 1:] = np.where(tokens < rows[:, None], tokens, -1)
    return scorer(features)


def decode(recognizer: Any, docs: Sequence[Doc], ignore_entities: bool = False) -> GreedyDecoding:
    """Find the entities of non-empty Docs by greedy decoding with a recognizer (spaCy's EntityRecognizer).

    ignore_entities (bool): Decode as if the Docs had no entities. RAISES C024: NaN scores. C033: unknown state features.
    """
    actions, rules = read_actions(recognizer.moves), read_rule_input(docs, ignore_entities)
    with step_scorer(recognizer, docs, STATE_WIDTHS, "C033", unseen_score=-np.inf) as scorer:
        # First each token is treated as if it were outside of entities; then the entities that it opens are extended.
        openings, choice, stuck = _score_openings(scorer, rules, actions)
        hypotheses = _extend_entities(scorer, rules, actions, openings, choice)
    bounds = np.cumsum([0, *(len(doc) for doc in docs)])
    return _keep_reached(hypotheses, actions, openings, stuck, bounds)  # drops those that begin inside of earlier entities


def _score_openings(scorer: StepScorer, rules: RuleInput, actions: EntityActions) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """Score what each of n tokens can open, as if no entity were open before it.

    RETURNS (tuple): The probabilities of B- of each of k types, U- of each, and O, shape (n, 2 * k + 1). Index of the column
        that spaCy chooses, shape (n,); 2 * k + 1 means U- without a type (a blocked token). Whether no transition is valid,
        shape (n,): decoding stops at this token, and the chosen column is O.
    """
    columns = opening_columns(actions)
    order = np.argsort(columns, kind="stable")  # spaCy takes the first class of equal scores
    n_tokens, n_openings = len(rules.iob), 2 * len(actions.types) + 1  # B- and U- of each type, and O
    valid = valid_openings(rules, actions)
    probabilities = np.empty((n_tokens, n_openings))
    choice: Ints = np.empty(n_tokens, dtype=np.intp)
    block_size = max(1, _CELLS // max(1, actions.n_classes))  # tokens whose scores are in memory at the same time
    for start in range(0, n_tokens, block_size):
        block = slice(start, start + block_size)
        scores = _mask(score_outside(scorer, np.arange(n_tokens)[block])[:, columns], valid[block])
        choice[block] = order[np.argmax(scores[:, order], axis=1)]
        probabilities[block] = _softmax(scores)[:, :n_openings]  # without the column of U- without a type
    stuck = np.asarray(~valid.any(axis=1))
    choice[stuck] = 2 * len(actions.types)  # O
    return probabilities, choice, stuck


def _mask(raw: NDArray[Any], valid: NDArray[np.bool_]) -> Floats:
    """Return raw scores as float64, -inf where not valid. If all valid ones of a row are -inf (not trained), they become 0."""
    scores = np.where(valid, raw, -np.inf).astype(np.float64, copy=False)
    unseen_rows = np.flatnonzero(np.isneginf(scores.max(axis=1)))
    if len(unseen_rows):
        scores[unseen_rows] = np.where(valid[unseen_rows], 0.0, -np.inf)
    return scores


def _softmax(scores: Floats) -> Floats:
    """Return the softmax of each row of (n, k) scores, computed in place; 0 for a row of -inf."""
    highest = scores.max(axis=1, keepdims=True)
    scores -= np.where(np.isneginf(highest), 0.0, highest)
    np.exp(scores, out=scores)
    sums = scores.sum(axis=1, keepdims=True)
    scores /= np.where(sums > 0, sums, 1.0)
    return scores


@dataclass(frozen=True, eq=False)
class _EntityHypotheses:
    """The entities that tokens would open if they were outside of other entities.

    entities (FoundEntities): The entities; an end is -1 if decoding stops in the entity. tokens (Ints): All tokens of the
    entities but the first ones. of_entity (Ints): Index of each token's entity. closing (Floats): Probability that the entity
    ends at the token.
    """

    entities: FoundEntities
    tokens: Ints
    of_entity: Ints
    closing: Floats


def _extend_entities(
    scorer: StepScorer, rules: RuleInput, actions: EntityActions, openings: Floats, choice: Ints
) -> _EntityHypotheses:
    """Find the end of every entity that a token would open, one token per round.

    openings, choice: Probabilities of the transitions of each token, and the index of the chosen one (`_score_openings`).
    """
    n_types = len(actions.types)
    starts = np.flatnonzero(choice < 2 * n_types)  # columns of `opening_columns`: B- of each type, then U- of each
    types = choice[starts] % max(1, n_types)
    path = openings[starts, choice[starts]]
    ends = starts + 1
    open_entities = np.flatnonzero(choice[starts] < n_types)  # indices in `starts`: begun with B-, not ended yet
    empty = np.zeros(0, dtype=np.intp)
    round_tokens, round_entities, round_closing = [empty], [empty], [np.zeros(0)]
    while len(open_entities):  # arrays made in a round have a row for each open entity
        rows, open_types = ends[open_entities], types[open_entities]  # the next token of each, and its type
        scores = score_inside(scorer, rows, starts[open_entities])
        in_classes, last_classes = actions.in_classes[open_types], actions.last_classes[open_types]
        all_rows = np.arange(len(rows))
        # Columns of `raw`, `valid`, `masked` and `probabilities`: I- (the entity goes on), L- (it ends).
        raw = np.stack([scores[all_rows, in_classes], scores[all_rows, last_classes]], axis=1)
        valid = np.stack(valid_inside(rules, rows, open_types, actions), axis=1)
        masked = _mask(raw, valid)
        # Of equal scores spaCy takes the first class.
        goes_on = np.where(last_classes < in_classes, masked[:, 0] > masked[:, 1], masked[:, 0] >= masked[:, 1]) & valid[:, 0]
        probabilities = _softmax(masked)
        path[open_entities] *= np.where(goes_on, probabilities[:, 0], probabilities[:, 1])
        round_tokens.append(rows)
        round_entities.append(open_entities)
        round_closing.append(probabilities[:, 1])
        is_possible = valid.any(axis=1)
        ends[open_entities] = np.where(is_possible, rows + 1, -1)  # -1: neither I- nor L- is valid
        open_entities = open_entities[goes_on & is_possible]
    entities, of_entity = FoundEntities(starts, ends, types, path), np.concatenate(round_entities)
    return _EntityHypotheses(entities, np.concatenate(round_tokens), of_entity, np.concatenate(round_closing))


def _keep_reached(
    hypotheses: _EntityHypotheses, actions: EntityActions, openings: Floats, stuck: NDArray[np.bool_], bounds: Ints
) -> GreedyDecoding:
    """Keep the hypotheses that begin outside of earlier ones, from left to right; as in spaCy, decoding stops at dead ends.

    openings (Floats): Probabilities of transitions, from `_score_openings`. stuck (NDArray[bool]): Whether decoding stops at
    each token. bounds (Ints): First token of each Doc, then the number of all tokens.
    """
    entities, dead_ends = hypotheses.entities, np.flatnonzero(stuck)
    # Stuck tokens are added as entities with the end -1, in which decoding stops.
    starts = np.concatenate([entities.starts, dead_ends])
    ends = np.concatenate([entities.ends, np.full(len(dead_ends), -1)])
    order = np.argsort(starts, kind="stable")
    reached = []  # indices of entities
    free_from = 0  # the first token after the entities that are reached
    for index, start, end in zip(order.tolist(), starts[order].tolist(), ends[order].tolist(), strict=True):
        if start < free_from:
            continue
        if end < 0:  # the rest of the Doc is not decoded
            free_from = int(bounds[np.searchsorted(bounds, start, side="right")])
        else:
            reached.append(index)
            free_from = end
    is_reached = np.zeros(len(entities), dtype=bool)
    is_reached[reached] = True
    in_reached = is_reached[hypotheses.of_entity]  # whether each of `hypotheses.tokens` is in an entity that is reached
    tokens = hypotheses.tokens[in_reached]
    opener, closing = np.arange(len(openings)), np.full(len(openings), np.nan)
    opener[tokens] = entities.starts[hypotheses.of_entity[in_reached]]
    closing[tokens] = hypotheses.closing[in_reached]
    return GreedyDecoding(actions, openings, entities.take(np.array(reached, dtype=np.intp)), opener, closing)
