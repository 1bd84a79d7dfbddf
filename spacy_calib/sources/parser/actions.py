"""The transitions of a dependency parser as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Ints

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
