"""Greedy decoding of a batch in the open, with the probability of every decision.

A parser of spaCy (arc-eager, Nivre 2003) takes one transition after the other. L- gives the top of the stack (S0) the next word (B0) as its
head, R- the other way round, S and D move a word onto the stack or from it, B begins a sentence. The states are spaCy's own and take its
transitions: what they hold afterwards is what its `greedy_parse` gives. Which transitions were valid is told from S0, B0 and what was done
before, for a whole batch at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.ml.parser_model import precompute_hiddens
from spacy.tokens import Doc
from thinc.api import set_dropout_rate

from ...errors import calib_error
from ...types import Floats, Ints

# What a transition does, as spaCy names it (arc_eager): S, D, L, R and B.
SHIFT, REDUCE, LEFT, RIGHT, BREAK = range(5)
_MOVES = {"S": SHIFT, "D": REDUCE, "L": LEFT, "R": RIGHT, "B": BREAK}
# In a label of an arc that was moved to make the tree projective: the label itself, and that of the head to look for.
DECORATION = "||"
# The label of tokens without a head, and that of tokens which are merged.
ROOT, SUBTOKEN = "ROOT", "subtok"


@dataclass(frozen=True, eq=False)
class Actions:
    """Which class of the model is which transition. moves (Ints), labels (tuple[str, ...]): Of each class; "" without a label."""

    moves: Ints
    labels: tuple[str, ...]

    @cached_property
    def firsts(self) -> Ints:
        """Where the classes of each move begin, if they stand together; spaCy keeps labels that were added later behind all others."""
        return np.flatnonzero(np.append(True, self.moves[1:] != self.moves[:-1]))

    @cached_property
    def subtokens(self) -> NDArray[np.bool_]:
        """The classes that join neighbouring tokens to one, shape (n_classes,)."""
        return np.array([label == SUBTOKEN for label in self.labels], dtype=bool)

    def by_move(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        """The probability of each move, whatever its label: shape (n, 5) from (n, n_classes)."""
        runs = np.add.reduceat(probabilities, self.firsts, axis=1)
        found = np.zeros((len(probabilities), 5), dtype=probabilities.dtype)
        for column, move in enumerate(self.moves[self.firsts].tolist()):
            found[:, move] += runs[:, column]
        return found


def read_actions(moves: Any) -> Actions:
    """The transitions of `DependencyParser.moves`."""
    names = [moves.get_class_name(number).partition("-") for number in range(moves.n_moves)]
    return Actions(np.array([_MOVES[name] for name, _, _ in names], dtype=np.intp), tuple(label for _, _, label in names))


def arc_labels(actions: Actions) -> tuple[str, ...]:
    """The labels that a token may get, in the order in which the parser got them, without decorations."""
    of_arcs = np.flatnonzero(np.isin(actions.moves, (LEFT, RIGHT, BREAK)))
    plain = [actions.labels[number].partition(DECORATION)[0] for number in of_arcs.tolist()]
    return tuple(dict.fromkeys(label for label in plain if label))


Bools = NDArray[np.bool_]

# Widths of the state features that spaCy's architectures have: without and with `extra_state_tokens`.
STATE_WIDTHS = (8, 13)
# The first state features: the next two words, and the two on top of the stack.
_B0, _, _S0, _ = range(4)
# Scores of so many transitions are held until their probabilities are summed up.
_CELLS = 1 << 21
# Probabilities are not below it where logarithms are taken.
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Decided:
    """What decoding said of the arcs of n tokens; arrays of shape (n,).

    arc (Floats): Probability of the transition by which the token got its head and label; 1 for one without a head.
    head (Floats): The same whatever the label: the sum over the labels of L- or R-.
    spared (Floats): Probability that no other decision about the token gave it another head.
    path (Floats): Product of the probabilities of all decisions in which it was S0 or B0. least (Floats): The least of them.
    """

    arc: Floats
    head: Floats
    spared: Floats
    path: Floats
    least: Floats

    def score(self, event: str) -> Floats:
        """The probability of each arc, by "head" alone, or of the "arc" with its label; of a token without a head that no arc was made."""
        return self.spared * (self.head if event == "head" else self.arc)

    def part(self, first: int, end: int) -> Decided:
        """Of some tokens."""
        return Decided(*(column[first:end].copy() for column in vars(self).values()))


def predict_decided(parser: Any, docs: Sequence[Doc]) -> tuple[list[Any], list[Decided]]:
    """(final state of each Doc, what was decided of its tokens), all Docs at once; nothing is written on them.

    parser (DependencyParser): Its model and transitions are used. docs: Hold at least one token together.
    RAISES C024: the scores hold NaN. C271: the model's states are of another kind.
    """
    set_dropout_rate(parser.model, 0.0)
    states, decided = decode(parser, docs, read_actions(parser.moves))
    ends = np.cumsum([len(doc) for doc in docs]).tolist()
    return states, [decided.part(end - len(doc), end) for end, doc in zip(ends, docs, strict=True)]


def decode(parser: Any, docs: Sequence[Doc], actions: Actions) -> tuple[list[Any], Decided]:
    """(final state of each Doc, what was decided of all their tokens) for Docs that hold at least one token together.

    parser (DependencyParser): Its model and transitions are used. RAISES C024: the scores hold NaN. C271: states of another kind.
    """
    step_model = parser.model.predict(docs)
    try:
        scorer = Scorer(parser, step_model, docs)
        states = parser.moves.init_batch(docs)
        course = _Course.of(docs, actions)
        live = [state for state in states if not state.is_final()]
        while live:
            ids = step_model.get_token_ids(live)
            scores = scorer(ids)
            course.follow(ids, scores)
            live = parser.transition_states(live, scores)
        return states, course.decided()
    finally:
        step_model.clear_memory()


class Scorer:
    """Scores states through spaCy's step model, as its greedy parser does."""

    def __init__(self, parser: Any, step_model: Any, docs: Sequence[Doc]):
        self.docs, self.component = docs, parser.name
        self.state2vec, self.vec2scores = step_model.state2vec, step_model.vec2scores
        if self.state2vec.get_dim("nP") == 1:
            # spaCy's greedy parser leaves out the ReLU that its step model has where there is one maxout piece.
            lower = parser.model.get_ref("lower")
            self.state2vec = precompute_hiddens(len(docs), step_model.tokvecs, lower, activation="maxout")
        width = self.state2vec.get_dim("nF")
        if width not in STATE_WIDTHS:
            raise calib_error("C271", component=parser.name, given=width, wanted=" or ".join(map(str, STATE_WIDTHS)))
        self.unseen = np.flatnonzero(step_model._class_mask == 0)

    def __call__(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """Shape (n_states, n_classes). ids: State features."""
        vectors = self.state2vec.predict(ids)
        scores = np.ascontiguousarray(vectors if self.vec2scores is None else self.vec2scores.predict(vectors))
        if not np.isfinite(scores.sum()):
            self._refuse(ids, scores)
        if len(self.unseen):
            scores[:, self.unseen] = scores.min(axis=1, keepdims=True)
        return scores

    def _refuse(self, ids: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
        """RAISES C024: a score is not finite."""
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(bad):
            ends = np.cumsum([len(doc) for doc in self.docs])
            doc = self.docs[int(np.searchsorted(ends, ids[bad[0]].max(), side="right"))]
            raise calib_error("C024", component=self.component, text=doc.text[:40])


@dataclass(eq=False)
class Standing:
    """How the states of a batch stand, as far as it tells which transitions are valid. Tokens count through the batch; arrays have one place
    more, for "no token" (-1).

    starts, barred (Bools): Tokens that start a sentence, and those that must not. unshiftable (Bools): Put back from the stack, and not to be
    shifted again. heads (Ints): -1 for none.
    """

    actions: Actions
    starts: Bools
    barred: Bools
    unshiftable: Bools
    heads: Ints

    @classmethod
    def of(cls, docs: Sequence[Doc], actions: Actions) -> Standing:
        signs = np.concatenate([doc.to_array(["SENT_START"]).reshape(-1) for doc in docs]).astype(np.uint64).view(np.int64)
        signs = np.append(signs, 0)
        return cls(actions, signs == 1, signs == -1, np.zeros(len(signs), dtype=bool), np.full(len(signs), -1))

    def valid(self, places: NDArray[Any]) -> Bools:
        """Which transitions are valid (`is_valid` of spaCy's ArcEager), shape (n_states, n_classes). places: B0, B1, S0, S1 of each state."""
        b0, b1, s0, s1 = places.T
        empty, none_left, starting = s0 < 0, b0 < 0, self.starts[b0] & (b0 >= 0)
        arc = ~(empty | none_left | starting)
        valid = np.empty((len(b0), 5), dtype=bool)
        valid[:, SHIFT] = empty | ~((b1 < 0) | starting | self.unshiftable[b0])
        valid[:, REDUCE] = ~empty & (none_left | (s1 >= 0) | ~self.barred[b0])
        valid[:, LEFT] = valid[:, RIGHT] = arc
        valid[:, BREAK] = (b1 >= 0) & (b1 == b0 + 1) & ~self.starts[b1] & ~self.barred[b1]
        by_class = valid[:, self.actions.moves]
        if self.actions.subtokens.any():
            by_class[:, self.actions.subtokens] &= (s0 == b0 - 1)[:, None]
        return by_class

    def take(self, places: NDArray[Any], moves: Ints) -> None:
        """Each state makes a move."""
        b0, b1, s0, s1 = places.T
        left, right, back = moves == LEFT, moves == RIGHT, (moves == REDUCE) & (s1 >= 0)
        back &= self.heads[s0] < 0
        self.unshiftable[s0[back]] = True
        self.unshiftable[b0[left]] = False
        self.heads[s0[left]], self.heads[b0[right]] = b0[left], s0[right]
        self.starts[b1[moves == BREAK]] = True


@dataclass(eq=False)
class _Course:
    """The course of decoding: how the states stand, and the probabilities of what was done to each token so far, arrays as in Standing.

    waiting (list): (first state features, masked scores, transition taken) of each step.
    """

    standing: Standing
    arc: Floats
    head: Floats
    log_spared: Floats
    log_path: Floats
    least: Floats
    waiting: list[tuple[Any, Any, Any]] = field(default_factory=list)
    n_waiting: int = 0

    @classmethod
    def of(cls, docs: Sequence[Doc], actions: Actions) -> _Course:
        standing = Standing.of(docs, actions)
        one = np.ones(len(standing.heads))
        return cls(standing, one, one.copy(), np.zeros(len(one)), np.zeros(len(one)), one.copy())

    def follow(self, ids: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
        """Take note of the transition that each state takes by these scores."""
        places = ids[:, :4]
        masked = np.where(self.standing.valid(places), scores, -np.inf)
        taken = masked.argmax(axis=1)  # of equal scores the first one, as in spaCy
        self.standing.take(places, self.standing.actions.moves[taken])
        self.waiting.append((places, masked, taken))
        self.n_waiting += masked.size
        if self.n_waiting > _CELLS:
            self._sum_up()

    def _sum_up(self) -> None:
        """The probabilities of the steps that wait."""
        if not self.waiting:
            return
        places, scores, taken = (np.concatenate(column) for column in zip(*self.waiting, strict=True))
        self.waiting, self.n_waiting = [], 0
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores, out=scores)
        sums = odds.sum(axis=1, dtype=np.float64)
        every = np.arange(len(taken))
        by_move = self.standing.actions.by_move(odds).astype(np.float64) / sums[:, None]
        moves = self.standing.actions.moves[taken]
        own = by_move[every, moves]
        b0, s0 = places[:, _B0], places[:, _S0]
        left, right = moves == LEFT, moves == RIGHT
        child = np.where(left, s0, b0)[attached := left | right]
        self.head[child] = own[attached]  # of several decisions about a token the last one stays
        self.arc[child] = odds[every, taken][attached] / sums[attached]
        for token, move, was_taken in ((s0, LEFT, left), (b0, RIGHT, right)):
            here = np.flatnonzero(token >= 0)
            spared = here[~was_taken[here]]
            np.add.at(self.log_spared, token[spared], np.log1p(-np.minimum(by_move[spared, move], 1 - _TINY)))
            np.add.at(self.log_path, token[here], np.log(np.maximum(own[here], _TINY)))
            np.minimum.at(self.least, token[here], own[here])

    def decided(self) -> Decided:
        """What was decided, when all states are final."""
        self._sum_up()
        arc, head = np.minimum(self.arc[:-1], 1.0), np.minimum(self.head[:-1], 1.0)
        return Decided(arc, head, np.exp(self.log_spared[:-1]), np.exp(self.log_path[:-1]), np.minimum(self.least[:-1], 1.0))
