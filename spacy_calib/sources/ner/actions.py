"""The transitions of an entity recognizer as arrays, and spaCy's rules (BiluoPushDown) on which are valid at a token.

Validity depends on the entity that is open before the token, and on the Doc before decoding: preset entities and blocked
tokens, sentence starts, white space, and the end of the Doc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ...types import Ints

Bools = NDArray[np.bool_]
# Values of ENT_IOB
_IN, _BEGIN = 1, 3


@dataclass(frozen=True, eq=False)
class EntityActions:
    """The number of the model's output class for each transition of a recognizer.

    types (tuple[str, ...]): Entity types in order of addition. hashes (NDArray[uint64]): Their hashes. n_classes (int): Number
    of classes of the model. begin_classes, in_classes, last_classes, unit_classes (Ints): Class of B-, I-, L- and U- of each
    type. out_class, blocked_class (int): Class of O, and of U- without a type; -1 if there is none.
    """

    types: tuple[str, ...]
    hashes: NDArray[np.uint64]
    n_classes: int
    begin_classes: Ints
    in_classes: Ints
    last_classes: Ints
    unit_classes: Ints
    out_class: int
    blocked_class: int


def read_actions(moves: Any) -> EntityActions:
    """Read the transitions of a recognizer. moves (BiluoPushDown): `EntityRecognizer.moves`, which may have no classes yet."""
    class_of: dict[str, dict[str, int]] = {prefix: {} for prefix in "BILU"}  # prefix -> type -> class
    out_class = blocked_class = -1
    for number in range(moves.n_moves):
        prefix, _, label = moves.get_class_name(number).partition("-")
        if label:
            class_of[prefix][label] = number
        elif prefix == "O":
            out_class = number
        else:  # U- without a type, for a blocked token
            blocked_class = number
    types = tuple(sorted(class_of["B"], key=lambda label: class_of["B"][label]))
    begin, inside, last, unit = (np.array([class_of[prefix][label] for label in types], dtype=np.intp) for prefix in "BILU")
    hashes = np.array([get_string_id(label) for label in types], dtype=np.uint64)
    return EntityActions(types, hashes, moves.n_moves, begin, inside, last, unit, out_class, blocked_class)


@dataclass(frozen=True, eq=False)
class RuleInput:
    """The attributes of tokens, before decoding, that decide which transitions are valid; arrays of shape (n_tokens,).

    iob (Ints), kind (NDArray[uint64]): ENT_IOB and ENT_TYPE of the token, preset by an earlier pipe. next_iob (Ints): ENT_IOB
    of the next token, 0 at the end of a Doc. next_starts (Bools): Whether the next token starts a sentence. space, last
    (Bools): Whether the token is white space, and the last of its Doc.
    """

    iob: Ints
    kind: NDArray[np.uint64]
    next_iob: Ints
    next_starts: Bools
    space: Bools
    last: Bools


def read_rule_input(docs: Sequence[Doc], ignore_entities: bool = False) -> RuleInput:
    """Read from non-empty Docs what decides on valid transitions. ignore_entities: Read as if the Docs had no entities."""
    doc_columns = [doc.to_array(["ENT_IOB", "ENT_TYPE", "SENT_START", "IS_SPACE"]) for doc in docs]
    columns = np.concatenate([array.astype(np.uint64, copy=False).reshape(-1, 4) for array in doc_columns])
    if ignore_entities:
        columns[:, :2] = 0  # ENT_IOB and ENT_TYPE
    last = np.zeros(len(columns), dtype=bool)
    ends = np.cumsum([len(doc) for doc in docs])
    last[ends[ends > 0] - 1] = True
    following = np.roll(columns, -1, axis=0)  # the attributes of the next token
    following[last] = 0  # after the last token of a Doc there is none
    iob, next_iob = columns[:, 0].astype(np.intp), following[:, 0].astype(np.intp)
    next_starts, is_space = following[:, 2] == 1, columns[:, 3].astype(bool)
    return RuleInput(iob, columns[:, 1], next_iob, next_starts, is_space, last)


def opening_columns(actions: EntityActions) -> Ints:
    """Return the classes that a token outside of entities can get: B- of each type, U- of each, O, U- without type if any."""
    extra_class = [actions.blocked_class] if actions.blocked_class >= 0 else []
    return np.concatenate([actions.begin_classes, actions.unit_classes, [actions.out_class], extra_class]).astype(np.intp)


def valid_openings(rules: RuleInput, actions: EntityActions) -> Bools:
    """Return for each token of `rules` which classes of `opening_columns` are valid if no entity is open: (n, n_columns)."""
    begins = rules.iob == _BEGIN  # the token begins an entity that an earlier pipe set ("preset")
    is_inside = rules.iob == _IN  # it continues one
    free = ~begins & ~rules.space
    # B- needs a next token, in the same sentence, that begins no preset entity. U- must not separate a preset entity's tokens.
    can_begin = free & ~is_inside & ~rules.last & (rules.next_iob != _BEGIN) & ~rules.next_starts
    can_unit = free & (rules.next_iob != _IN)
    n_types = len(actions.types)
    valid = np.empty((len(begins), len(opening_columns(actions))), dtype=bool)  # B- of each type, U- of each, O, U- without
    valid[:, :n_types] = can_begin[:, None]
    valid[:, n_types : 2 * n_types] = can_unit[:, None]
    valid[:, 2 * n_types] = ~begins & ~is_inside
    if begins.any():  # at the start of a preset entity only its own transition is valid
        preset = np.flatnonzero(begins)
        same_type = rules.kind[preset, None] == actions.hashes
        goes_on = (rules.next_iob[preset] == _IN)[:, None]
        valid[preset, :n_types] = same_type & goes_on & ~rules.last[preset, None]
        valid[preset, n_types : 2 * n_types] = same_type & ~goes_on
    if actions.blocked_class >= 0:
        valid[:, 2 * n_types + 1] = begins & (rules.kind == 0)
    return valid


def valid_inside(rules: RuleInput, rows: Ints, types: Ints, actions: EntityActions) -> tuple[Bools, Bools]:
    """Return (whether I- is valid, whether L- is) for n tokens in open entities, by spaCy's rules, each of shape (n,).

    rows (Ints): The tokens, in `rules`. types (Ints): Type of the entity that is open at each, as an index in `actions.types`.
    """
    iob, next_iob, preset_type = rules.iob[rows], rules.next_iob[rows], rules.kind[rows]
    is_inside = iob == _IN  # the token continues an entity that an earlier pipe set ("preset")
    # I- needs a next token, and neither token may begin a preset entity. In a preset entity its type must be the open one, and
    # the next token must be in it, too. Elsewhere the next token must not start a sentence.
    preset_goes_on = (next_iob == _IN) & (preset_type == actions.hashes[types])
    may_go_on = ~rules.last[rows] & (iob != _BEGIN) & (next_iob != _BEGIN)
    may_go_on &= np.where(is_inside, preset_goes_on, ~rules.next_starts[rows])
    # A preset last token ends the entity with L- of the preset type, whichever type is open.
    may_close = np.where(is_inside, np.isin(preset_type, actions.hashes), True) & (next_iob != _IN)
    return may_go_on, may_close
