"""The rules over arrays say what spaCy's transition system says, state by state."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc

from spacy_calib.sources.ner.actions import (
    EntityActions,
    opening_columns,
    read_actions,
    read_rule_input,
    valid_inside,
    valid_openings,
)
from tests.sources.ner import (
    MISSING,
    TYPES,
    Draft,
    docs_of,
    random_draft,
    random_drafts,
    random_pipeline,
    twins,
)


def moves_of_spacy():
    return twins()[0].moves, twins()[0].vocab


def names_of(columns: Iterable[int], actions: EntityActions) -> list[str]:
    """spaCy's names of the classes."""
    known = {int(actions.out_class): "O", actions.blocked_class: "U-"}
    for prefix, classes in zip(
        "BILU", (actions.begin_classes, actions.in_classes, actions.last_classes, actions.unit_classes), strict=True
    ):
        known.update({int(number): f"{prefix}-{label}" for number, label in zip(classes, actions.types, strict=True)})
    return [known[int(number)] for number in columns]


def step(state: Any, name: str) -> None:
    """What spaCy does when it takes a transition."""
    prefix, _, label = name.partition("-")
    if prefix in "BU" and name != "U-":
        state.open_ent(state.doc.vocab.strings[label])
    if prefix in "LU" and name != "U-":
        state.close_ent()
    state.push()
    state.pop()


def walk(
    moves: Any, doc: Doc, choose: Callable[..., str], check_outside: Callable[..., None], check_inside: Callable[..., None]
) -> int:
    """Take transitions that spaCy allows until the Doc or the transitions end; the number of states seen."""
    (state,) = moves.init_batch([doc])
    actions = read_actions(moves)
    openings = names_of(opening_columns(actions), actions)
    opened = ""
    seen = 0
    while not state.is_final():
        token = state.B(0)
        seen += 1
        if not state.entity_is_open():
            valid = [name for name in openings if moves.is_valid(state, name)]
            others = [f"{prefix}-{label}" for prefix in "IL" for label in actions.types]
            assert not any(moves.is_valid(state, name) for name in others)
            check_outside(token, np.array([name in valid for name in openings]))
        else:
            goes_on = [label for label in actions.types if moves.is_valid(state, f"I-{label}")]
            closes = [label for label in actions.types if moves.is_valid(state, f"L-{label}")]
            assert goes_on in ([], [opened])
            assert not any(moves.is_valid(state, name) for name in openings)
            check_inside(token, opened, bool(goes_on), bool(closes))
            valid = [f"I-{label}" for label in goes_on] + [f"L-{label}" for label in closes]
        if not valid:
            return seen
        name = choose(valid)
        if name.startswith("B-"):
            opened = name[2:]
        step(state, name)
    return seen


def compare_along_a_history(draft: Draft, rng: np.random.Generator) -> int:
    moves, vocab = moves_of_spacy()
    doc = draft.doc(vocab)
    actions = read_actions(moves)
    given = read_rule_input([doc])
    openings = valid_openings(given, actions)
    assert openings.shape == (len(doc), 2 * len(TYPES) + 2)

    def check_outside(token, wanted):
        assert openings[token].tolist() == wanted.tolist(), (token, draft)

    def check_inside(token, label, goes_on, closes):
        row, kind = np.array([token]), np.array([actions.types.index(label)])
        assert [bool(found[0]) for found in valid_inside(given, row, kind, actions)] == [goes_on, closes], (token, draft)

    # Long entities are the hard part: go on where that is possible.
    def choose(valid):
        inside = [name for name in valid if name[0] in "BI"]
        return str(rng.choice(inside if inside and rng.random() < 0.6 else valid))

    return walk(moves, doc, choose, check_outside, check_inside)


@pytest.mark.parametrize("presets", ["none", "whole", "wild"])
def test_valid_transitions_are_those_of_spacy(presets):
    rng = np.random.default_rng(0)
    seen = sum(compare_along_a_history(random_draft(rng, presets, longest=9), rng) for _ in range(120))
    assert seen > 250


def test_labels_learnt_later_come_last():
    ner = random_pipeline().get_pipe("ner")
    before = read_actions(ner.moves)
    assert sorted(before.types) == sorted(TYPES)
    for label in ("0first", "A-A"):
        ner.add_label(label)
    after = read_actions(ner.moves)
    assert after.types == (*before.types, "0first", "A-A")
    assert after.n_classes == before.n_classes + 8 == ner.moves.n_moves
    assert (after.out_class, after.blocked_class) == (before.out_class, before.blocked_class)
    for column in ("begin_classes", "in_classes", "last_classes", "unit_classes"):
        assert getattr(after, column)[: len(TYPES)].tolist() == getattr(before, column).tolist()
    named = names_of(range(after.n_classes), after)
    assert named == [ner.moves.get_class_name(number) for number in range(after.n_classes)]


@pytest.mark.parametrize("presets", ["whole", "wild"])
def test_context_of_many_docs_is_that_of_each(presets):
    _, vocab = moves_of_spacy()
    docs = docs_of(random_drafts(20, 3, presets), vocab)
    together = read_rule_input(docs)
    alone = [read_rule_input([doc]) for doc in docs if len(doc)]
    for name in ("iob", "kind", "next_iob", "next_starts", "space", "last"):
        assert np.array_equal(getattr(together, name), np.concatenate([getattr(one, name) for one in alone]))


def test_cleared_context_is_that_of_docs_without_entities():
    _, vocab = moves_of_spacy()
    drafts = random_drafts(20, 4, "whole")
    bare = [Draft(draft.words, draft.sent_starts, (MISSING,) * len(draft.words), ("",) * len(draft.words)) for draft in drafts]
    cleared, wanted = read_rule_input(docs_of(drafts, vocab), ignore_entities=True), read_rule_input(docs_of(bare, vocab))
    for name in ("iob", "kind", "next_iob", "next_starts", "space", "last"):
        assert np.array_equal(getattr(cleared, name), getattr(wanted, name))
