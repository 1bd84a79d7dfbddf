"""The transitions of an entity recognizer as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id

from ...types import Ints


@dataclass(frozen=True, eq=False)
class Actions:
    """Which class of the model is which transition.

    types (tuple[str, ...]): Entity types, in the order in which the recognizer got them: types added later come last.
    hashes (NDArray[uint64]): spaCy's hash of each type. n_classes (int): Classes of the model.
    begin, inside, last, unit (Ints): Class of B-, I-, L- and U- of each type, shape (n_types,).
    out, blocked (int): Class of O, and of U- (a token that must not be in an entity); blocked is -1 where there is none.
    """

    types: tuple[str, ...]
    hashes: NDArray[np.uint64]
    n_classes: int
    begin: Ints
    inside: Ints
    last: Ints
    unit: Ints
    out: int
    blocked: int


def read_actions(moves: Any) -> Actions:
    """The transitions of `EntityRecognizer.moves`.

    moves (BiluoPushDown): With or without classes.
    """
    class_of: dict[str, dict[str, int]] = {prefix: {} for prefix in "BILU"}
    out = blocked = -1
    for number in range(moves.n_moves):
        prefix, _, label = moves.get_class_name(number).partition("-")
        if not label:
            out, blocked = (number, blocked) if prefix == "O" else (out, number)
        else:
            class_of[prefix][label] = number
    types = tuple(sorted(class_of["B"], key=lambda label: class_of["B"][label]))
    columns = {prefix: np.array([of[label] for label in types], dtype=np.intp) for prefix, of in class_of.items()}
    hashes = np.array([get_string_id(label) for label in types], dtype=np.uint64)
    return Actions(types, hashes, moves.n_moves, columns["B"], columns["I"], columns["L"], columns["U"], out, blocked)
