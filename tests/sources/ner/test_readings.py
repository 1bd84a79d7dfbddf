"""What a recognizer said about one Doc: marginals by hand, and of real recognizers."""

from typing import Any

import numpy as np
import pytest
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_calib.sources.ner.decoding import FoundEntities
from spacy_calib.sources.ner.readings import BeamReading, GreedyReading, Preset, biluo_labels, read_beams, type_labels
from spacy_calib.sources.ner.source import decode_docs
from tests.sources.ner import PRESETS, TYPES, Shape, docs_of, keys_of, random_drafts, twins

NAN = float("nan")


def entities(*found: tuple[int, int, int, float]) -> FoundEntities:
    """(start, end, type, path) of each."""
    starts, ends, types, path = zip(*found, strict=True) if found else ((), (), (), ())
    ints = [np.array(column, dtype=np.intp) for column in (starts, ends, types)]
    return FoundEntities(ints[0], ints[1], ints[2], np.array(path, dtype=np.float64))


def preset(n: int) -> Preset:
    return Preset(np.zeros((n, 2), dtype=np.uint64), np.zeros(n, dtype=bool))


@pytest.fixture
def greedy() -> GreedyReading:
    """Six tokens: O, an entity of type Y over three, one of type X over one, O."""
    openings = np.array(
        [  # B-X, B-Y, U-X, U-Y, O
            [0.1, 0.0, 0.1, 0.1, 0.7],
            [0.05, 0.5, 0.05, 0.2, 0.2],
            [0.9, 0.1, 0.0, 0.0, 0.0],
            [0.2, 0.2, 0.2, 0.2, 0.2],
            [0.1, 0.1, 0.6, 0.1, 0.1],
            [0.0, 0.0, 0.0, 0.0, 1.0],
        ]
    )
    return GreedyReading(
        ("X", "Y"), entities((1, 4, 1, 0.5 * 0.75 * 0.6), (4, 5, 0, 0.6)), preset(6), openings, np.array([0, 1, 1, 1, 4, 5]),
        np.array([NAN, NAN, 0.25, 0.6, NAN, NAN]),
    )  # fmt: skip


def test_labels():
    assert type_labels(("X", "Y")) == ("O", "X", "Y")
    assert biluo_labels(("X", "Y")) == ("O", "B-X", "I-X", "L-X", "U-X", "B-Y", "I-Y", "L-Y", "U-Y")
    assert type_labels(()) == biluo_labels(()) == ("O",)
    longer = ("X", "Y", "Z")
    assert type_labels(longer)[:3] == type_labels(longer[:2])
    assert biluo_labels(longer)[:9] == biluo_labels(longer[:2])


def test_greedy_type_marginals_by_hand(greedy):
    """B- and U- of a type together; tokens 2 and 3 carry what token 1 said, and nothing of their own rows."""
    opened = [0.2, 0.1, 0.7]
    wanted = [[0.7, 0.2, 0.1], opened, opened, opened, [0.1, 0.7, 0.2], [1.0, 0.0, 0.0]]
    assert greedy.type_marginals() == pytest.approx(np.array(wanted))


def test_greedy_biluo_marginals_by_hand(greedy):
    wanted = np.zeros((6, 9))
    #                O    B-X           U-X  B-Y            U-Y
    wanted[0] = [0.7, 0.1, 0, 0, 0.1, 0.0, 0, 0, 0.1]
    wanted[1] = [0.2, 0.05, 0, 0, 0.05, 0.5, 0, 0, 0.2]
    wanted[2, 6], wanted[2, 7] = 0.5 * 0.75, 0.5 * 0.25  # opened as B-Y, and then I- or L-
    wanted[3, 6], wanted[3, 7] = 0.5 * 0.4, 0.5 * 0.6
    wanted[4] = [0.1, 0.1, 0, 0, 0.6, 0.1, 0, 0, 0.1]
    wanted[5, 0] = 1.0
    assert greedy.biluo_marginals() == pytest.approx(wanted)


def test_greedy_reading_has_no_candidates(greedy):
    assert len(greedy.candidates) == 0
    assert greedy.n_tokens == 6
    assert list(greedy.entity_hashes()) == [(1, 4, get_string_id("Y")), (4, 5, get_string_id("X"))]


@pytest.fixture
def beam() -> BeamReading:
    """Three parses of four tokens: X[0:2] Y[3:4] (.5), X[0:3] (.3), nothing (.2)."""
    held = entities((0, 2, 0, 0.5), (0, 3, 0, 0.3), (3, 4, 1, 0.5))
    chosen = np.array([True, False, True])
    return BeamReading(("X", "Y"), held.take(chosen), preset(4), held, chosen)


def test_beam_marginals_by_hand(beam):
    biluo = np.zeros((4, 9))
    biluo[0, [0, 1]] = 0.2, 0.8
    biluo[1, [0, 2, 3]] = 0.2, 0.3, 0.5
    biluo[2, [0, 3]] = 0.7, 0.3
    biluo[3, [0, 8]] = 0.5, 0.5
    assert beam.biluo_marginals() == pytest.approx(biluo)
    assert beam.type_marginals() == pytest.approx(np.array([[0.2, 0.8, 0], [0.2, 0.8, 0], [0.7, 0.3, 0], [0.5, 0, 0.5]]))


def test_beam_candidates_are_what_was_not_chosen(beam):
    assert keys_of(beam.candidates) == [(0, 3, 0)]
    assert keys_of(beam.entities) == [(0, 2, 0), (3, 4, 1)]
    assert beam.candidates.path.tolist() == [0.3]


class Parses:
    """A recognizer whose beams are lists of parses."""

    def __init__(self):
        self.moves = self

    def get_beam_parses(self, beam):
        return beam


def test_read_beams_by_hand():
    """The parses' weights are normalised; the best one stands first; an entity of several parses gets all their weight."""
    parses = [(0.4, [(0, 2, "X")]), (0.2, [(0, 2, "X"), (2, 3, "Y")]), (0.2, [(0, 2, "Y")])]
    (reading,) = read_beams(Parses(), [parses], ("X", "Y"), [preset(3)])
    assert keys_of(reading.entities) == [(0, 2, 0)]
    assert reading.entities.path == pytest.approx([0.75])
    assert dict(zip(keys_of(reading.candidates), reading.candidates.path.tolist(), strict=True)) == pytest.approx(
        {(0, 2, 1): 0.25, (2, 3, 1): 0.25}
    )
    (decided,) = read_beams(Parses(), [parses], ("X", "Y"), [preset(3)], [entities((0, 2, 1, 0.9), (2, 3, 0, 0.9))])
    assert keys_of(decided.entities) == [(0, 2, 1), (2, 3, 0)]
    assert decided.entities.path == pytest.approx([0.25, 0.0])  # the beam does not hold the second
    assert keys_of(decided.candidates) == [(0, 2, 0), (2, 3, 1)]


def test_beam_without_a_finished_parse():
    (reading,) = read_beams(Parses(), [[]], ("X",), [preset(2)])
    assert len(reading.entities) == len(reading.candidates) == 0
    assert reading.type_marginals().tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_presets():
    """Tokens in an entity and blocked ones; missing and outside tokens were free."""
    doc = Doc(Vocab(), words=list("abcde"))
    doc.set_ents([Span(doc, 0, 2, label="X")], blocked=[doc[2:3]], outside=[doc[3:4]], missing=[doc[4:5]])
    held = Preset.from_doc(doc)
    assert held.tokens.tolist() == [True, True, True, False, False]
    assert held.columns[:, 0].tolist() == [3, 1, 3, 2, 0]
    assert held.columns[:2, 1].tolist() == [get_string_id("X")] * 2
    cleared = Preset.from_doc(doc, ignore_entities=True)
    assert not cleared.tokens.any()
    assert not cleared.columns.any()
    assert len(Preset.from_doc(Doc(Vocab())).tokens) == 0


@pytest.mark.parametrize("presets", PRESETS)
def test_marginals_of_recognizers(presets):
    ner, _ = twins(Shape(extra_state_tokens=True))
    docs = docs_of(random_drafts(60, 21, presets), ner.vocab)
    readings: list[Any] = decode_docs(ner, docs)
    for doc, reading in zip(docs, readings, strict=True):
        types, biluo = reading.type_marginals(), reading.biluo_marginals()
        assert types.shape == (len(doc), 1 + len(TYPES))
        assert biluo.shape == (len(doc), 1 + 4 * len(TYPES))
        for marginals in (types, biluo):
            assert ((marginals >= 0) & (marginals <= 1 + 1e-12)).all()
        free = ~reading.preset.tokens[reading.opener]
        assert types[free].sum(axis=1) == pytest.approx(np.ones(free.sum()))
        for start, end, kind in keys_of(reading.entities):
            if free[start]:
                assert (types[start:end] == types[start]).all()
                assert 0 < types[start, 1 + kind] <= 1
                if end - start > 1:
                    rest = biluo[start + 1 : end, [2 + 4 * kind, 3 + 4 * kind]].sum(axis=1)
                    assert rest == pytest.approx(biluo[start, 1 + 4 * kind])
                    assert types[start, 1 + kind] >= biluo[start, 1 + 4 * kind]
        assert reading.preset.tokens.tolist() == [token.ent_iob in (1, 3) for token in doc]
