"""Greedy decoding of a parser for a batch of Docs, with the probability of every decision.

A parser of spaCy (arc-eager, Nivre 2003) takes one transition after the other. L- makes the next word (B0) the head of the top
of the stack (S0), R- makes S0 the head of B0, S and D move a word onto the stack or from it, B begins a sentence. spaCy applies
the transitions to its states, which therefore end as those of its `greedy_parse`. Which transitions are valid is computed here
from S0, B0 and the earlier transitions, for a whole batch at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...types import Floats, Ints
from ..heads import step_scorer

Bools = NDArray[np.bool_]
# Numbers of state features of spaCy's architectures: without and with `extra_state_tokens`.
STATE_WIDTHS = (8, 13)
_CELLS = 1 << 21  # maximum number of scores in memory before probabilities are summed
_TINY = 1e-9  # minimum of probabilities before their logarithm is taken
# What a transition does, as spaCy names it (arc_eager): S, D, L, R and B.
N_MOVES = 5
SHIFT, REDUCE, LEFT, RIGHT, BREAK = range(N_MOVES)
_BITS = 1 << np.arange(N_MOVES)
_MOVES = {"S": SHIFT, "D": REDUCE, "L": LEFT, "R": RIGHT, "B": BREAK}
# Separator in the label of an arc that was moved to make the tree projective: its label, and that of its true head.
DECORATION = "||"
# The label of tokens without a head, and of parts of a token that are to be merged.
ROOT, SUBTOKEN = "ROOT", "subtok"


@dataclass(frozen=True, eq=False)
class ParserActions:
    """The transition of each output class of the model. moves (Ints): Its move, such as SHIFT. labels: Its arc label, or ""."""

    moves: Ints
    labels: tuple[str, ...]

    @cached_property
    def firsts(self) -> Ints:
        """First class of each run of classes with one move. A move may have several: spaCy appends labels added later."""
        return np.flatnonzero(np.append(True, self.moves[1:] != self.moves[:-1]))

    @cached_property
    def subtokens(self) -> NDArray[np.bool_]:
        """Whether each class is an arc that joins neighbouring tokens into one (SUBTOKEN)."""
        return np.array([label == SUBTOKEN for label in self.labels], dtype=bool)

    @cached_property
    def has_subtokens(self) -> bool:
        return bool(self.subtokens.any())

    @cached_property
    def masks(self) -> NDArray[np.float32]:
        """A row for each set of moves (a bit per move): 0 for classes of a move in the set, else -inf; (32, n_classes)."""
        is_valid = (np.arange(1 << N_MOVES)[:, None] >> self.moves) & 1
        return np.where(is_valid, np.float32(0.0), np.float32(-np.inf))

    def by_move(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        """Sum the probabilities of classes by move: shape (n, 5) from (n, n_classes)."""
        run_sums = np.add.reduceat(probabilities, self.firsts, axis=1)  # of each run of classes with one move
        move_sums = np.zeros((len(probabilities), N_MOVES), dtype=probabilities.dtype)
        for column, move in enumerate(self.moves[self.firsts].tolist()):
            move_sums[:, move] += run_sums[:, column]
        return move_sums


def read_actions(moves: Any) -> ParserActions:
    """Read the transitions of a parser. moves (ArcEager): `DependencyParser.moves`."""
    names = [moves.get_class_name(number).partition("-") for number in range(moves.n_moves)]
    return ParserActions(np.array([_MOVES[name] for name, _, _ in names], dtype=np.intp), tuple(label for _, _, label in names))


def arc_labels(actions: ParserActions) -> tuple[str, ...]:
    """Return the distinct arc labels that a token may get, in the parser's order, without the part from DECORATION on."""
    arc_classes = np.flatnonzero(np.isin(actions.moves, (LEFT, RIGHT, BREAK)))  # the label of BREAK is that of roots
    labels = [actions.labels[number].partition(DECORATION)[0] for number in arc_classes.tolist()]
    return tuple(dict.fromkeys(label for label in labels if label))


@dataclass(frozen=True, eq=False)
class ArcProbabilities:
    """The probabilities of the arcs of n tokens; arrays of shape (n,).

    arc (Floats): Probability of the transition that gave the token its head and label; 1 without a head. head (Floats): The
    same for this head and any label. no_other_head (Floats): Probability that no other decision gives it another head. path,
    minimum (Floats): Product and minimum of the probabilities of all moves made while it was the next word or top of the stack.
    """

    arc: Floats
    head: Floats
    no_other_head: Floats
    path: Floats
    minimum: Floats

    def score(self, event: str) -> Floats:
        """Return P(the head is right) for the event "head", P(head and label are right) for "arc"; for roots P(no head)."""
        return self.no_other_head * (self.head if event == "head" else self.arc)

    def slice(self, first: int, end: int) -> ArcProbabilities:
        """Return a copy of the probabilities of the tokens from first to before end."""
        return ArcProbabilities(*(column[first:end].copy() for column in vars(self).values()))


def predict_arcs(parser: Any, docs: Sequence[Doc]) -> tuple[list[Any], list[ArcProbabilities]]:
    """Return lists of final states and ArcProbabilities of non-empty Docs. RAISES C024: NaN. C271: unknown state features."""
    states, probabilities = decode(parser, docs, read_actions(parser.moves))
    ends = np.cumsum([len(doc) for doc in docs]).tolist()
    return states, [probabilities.slice(end - len(doc), end) for end, doc in zip(ends, docs, strict=True)]


def decode(parser: Any, docs: Sequence[Doc], actions: ParserActions) -> tuple[list[Any], ArcProbabilities]:
    """Parse non-empty Docs; return (final state of each, arcs of all). RAISES C024: NaN. C271: unknown state features."""
    with step_scorer(parser, docs, STATE_WIDTHS, "C271") as scorer:
        states = parser.moves.init_batch(docs)
        trace = _DecodingTrace.from_docs(docs, actions)
        live = [state for state in states if not state.is_final()]
        while live:
            ids = scorer.step_model.get_token_ids(live)
            scores = scorer(ids)
            trace.add_step(first_tokens(ids), scores)
            live = parser.transition_states(live, scores)
        return states, trace.arc_probabilities()


def first_tokens(ids: NDArray[np.int32]) -> Ints:
    """Return the tokens B0, B1 (next words), S0, S1 (top of the stack), -1 for none, (4, n_states). ids: State features."""
    return np.ascontiguousarray(ids[:, :4].T, dtype=np.intp)


@dataclass(eq=False)
class ParserStates:
    """The part of the parser states of a batch that decides which transitions are valid.

    Arrays have an element for each token of the batch, and a last one for "no token" (-1). starts, never_starts (Bools):
    Whether a token starts a sentence, and whether it must not. unshiftable (Bools): Whether it was put back from the stack, and
    so must not be shifted again. heads (Ints): Its head, -1 for none.
    """

    actions: ParserActions
    starts: Bools
    never_starts: Bools
    unshiftable: Bools
    heads: Ints

    @classmethod
    def from_docs(cls, docs: Sequence[Doc], actions: ParserActions) -> ParserStates:
        signs = np.concatenate([doc.to_array(["SENT_START"]).reshape(-1) for doc in docs]).astype(np.uint64).view(np.int64)
        signs = np.append(signs, 0)  # of "no token"
        # 1: starts a sentence, -1: must not; no token is unshiftable or has a head so far
        return cls(actions, signs == 1, signs == -1, np.zeros(len(signs), dtype=bool), np.full(len(signs), -1))

    def mask(self, tokens: Ints, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the scores with -inf for transitions that ArcEager forbids. tokens: B0, B1, S0, S1 (`first_tokens`)."""
        b0, b1, s0, s1 = tokens
        no_s0, no_b0, no_b1 = s0 < 0, b0 < 0, b1 < 0
        starting = self.starts[b0] & ~no_b0  # B0 begins a sentence
        valid = np.empty((N_MOVES, len(b0)), dtype=bool)
        valid[SHIFT] = no_s0 | ~(no_b1 | starting | self.unshiftable[b0])  # always valid if the stack is empty
        valid[REDUCE] = ~no_s0 & (no_b0 | (s1 >= 0) | ~self.never_starts[b0])  # B0 begins a sentence once the stack is empty
        valid[LEFT] = valid[RIGHT] = ~(no_s0 | no_b0 | starting)  # no arc joins two sentences
        valid[BREAK] = (b1 == b0 + 1) & ~(no_b1 | self.starts[b1] | self.never_starts[b1])  # B1 would begin a sentence
        # The set of valid moves is a number, the row of its precomputed mask.
        result = self.actions.masks.take(_BITS @ valid.view(np.uint8), axis=0)
        result += scores
        if self.actions.has_subtokens:
            result[(s0 != b0 - 1)[:, None] & self.actions.subtokens] = -np.inf  # only neighbours can be joined
        return result

    def apply(self, tokens: Ints, moves: Ints) -> None:
        """Update the arrays after a move of each of n states. tokens (Ints): B0, B1, S0, S1 of each, as for `mask`, (4, n)."""
        b0, b1, s0, s1 = tokens
        # REDUCE puts S0 back into the buffer if it has no head; but the last word on the stack (no S1) is removed as a root.
        is_left, is_right, is_put_back = moves == LEFT, moves == RIGHT, (moves == REDUCE) & (s1 >= 0) & (self.heads[s0] < 0)
        self.unshiftable[s0[is_put_back]] = True  # else it could be shifted and put back for ever
        self.unshiftable[b0[is_left]] = False  # LEFT made the stack shorter, so that a SHIFT cannot lead in a circle
        self.heads[s0[is_left]], self.heads[b0[is_right]] = b0[is_left], s0[is_right]
        self.starts[b1[moves == BREAK]] = True


@dataclass(eq=False)
class _DecodingTrace:
    """The parser states of a batch, and the probabilities of its tokens after the decisions that were made so far.

    The arrays are those of ArcProbabilities (log_: their logarithms), with a last element for "no token". steps: Decisions that
    are not in the arrays yet: tokens B0, B1, S0 and S1; masked scores; transitions. n_cells: Number of scores in `steps`.
    """

    states: ParserStates
    arc: Floats
    head: Floats
    log_no_other_head: Floats
    log_path: Floats
    minimum: Floats
    steps: list[tuple[Any, Any, Any]] = field(default_factory=list)
    n_cells: int = 0

    @classmethod
    def from_docs(cls, docs: Sequence[Doc], actions: ParserActions) -> _DecodingTrace:
        states = ParserStates.from_docs(docs, actions)
        ones, zeros = np.ones(len(states.heads)), np.zeros(len(states.heads))
        return cls(states, ones, ones.copy(), zeros, zeros.copy(), ones.copy())

    def add_step(self, tokens: Ints, scores: NDArray[np.float32]) -> None:
        """Take the valid transition with the highest score in each of n states that are not final: record it, update `states`.

        tokens (Ints): Next words B0, B1 and top of the stack S0, S1 of each state, -1 for none, (4, n).
        scores (NDArray[float32]): Score of each class in each state, (n, n_classes).
        """
        masked_scores = self.states.mask(tokens, scores)
        transitions = masked_scores.argmax(axis=1)  # the first of equal scores, as in spaCy
        self.states.apply(tokens, self.states.actions.moves[transitions])
        self.steps.append((tokens, masked_scores, transitions))
        self.n_cells += masked_scores.size
        if self.n_cells > _CELLS:
            self._sum_up()

    def _sum_up(self) -> None:
        """Multiply the recorded decisions into the probabilities of their tokens, and forget the decisions."""
        if not self.steps:
            return
        step_tokens, step_scores, step_transitions = zip(*self.steps, strict=True)
        # Of the n decisions in all recorded steps; shapes (4, n), (n, n_classes) and (n,).
        tokens, scores = np.concatenate(step_tokens, axis=1), np.concatenate(step_scores)
        transitions = np.concatenate(step_transitions)
        self.steps, self.n_cells = [], 0
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores, out=scores)  # a softmax without its division by `sums`
        sums = odds.sum(axis=1, dtype=np.float64)
        rows = np.arange(len(transitions))
        by_move = self.states.actions.by_move(odds).astype(np.float64) / sums[:, None]  # P(each of the five moves), (n, 5)
        moves = self.states.actions.moves[transitions]
        move_probabilities = by_move[rows, moves]  # of the move that was taken
        b0, _, s0, _ = tokens
        is_left, is_right = moves == LEFT, moves == RIGHT
        is_arc = is_left | is_right
        child = np.where(is_left, s0, b0)[is_arc]  # the token that gets a head
        self.head[child] = move_probabilities[is_arc]  # the last decision about a token counts
        self.arc[child] = odds[rows, transitions][is_arc] / sums[is_arc]
        # A decision is about S0, which LEFT would give a head, and about B0, which RIGHT would.
        for token, move, gets_head in ((s0, LEFT, is_left), (b0, RIGHT, is_right)):
            decisions = np.flatnonzero(token >= 0)
            no_arc = decisions[~gets_head[decisions]]
            np.add.at(self.log_no_other_head, token[no_arc], np.log1p(-np.minimum(by_move[no_arc, move], 1 - _TINY)))
            np.add.at(self.log_path, token[decisions], np.log(np.maximum(move_probabilities[decisions], _TINY)))
            np.minimum.at(self.minimum, token[decisions], move_probabilities[decisions])

    def arc_probabilities(self) -> ArcProbabilities:
        """Return the probabilities of all tokens, after all states became final."""
        self._sum_up()
        # The last element of each array is for "no token".
        arc, head, minimum = (np.minimum(column[:-1], 1.0) for column in (self.arc, self.head, self.minimum))
        return ArcProbabilities(arc, head, np.exp(self.log_no_other_head[:-1]), np.exp(self.log_path[:-1]), minimum)
