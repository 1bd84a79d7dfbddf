"""The parts of scripts/simulate_active_learning.py, and the whole on made-up data."""

from __future__ import annotations

import pytest
import simulate_active_learning as simulation
import spacy
from spacy.tokens import Doc


@pytest.mark.parametrize(
    ("words", "reached", "wanted", "needed"),
    [
        ([100, 200, 400], [0.5, 0.7, 0.8], 0.6, 150),
        ([100, 200, 400], [0.5, 0.7, 0.8], 0.75, 300),
        ([100, 200, 400], [0.5, 0.7, 0.8], 0.8, 400),
        # it counts when it is reached for the first time, whatever follows
        ([100, 200, 300, 400], [0.5, 0.7, 0.6, 0.8], 0.7, 200),
        ([100, 200, 300, 400], [0.5, 0.7, 0.6, 0.8], 0.75, 350),
        ([100, 200], [0.5, 0.7], 0.4, 100),
        ([100, 200], [0.5, 0.7], 0.71, None),
    ],
)
def test_words_needed(words, reached, wanted, needed):
    assert simulation.words_needed(words, reached, wanted) == (None if needed is None else pytest.approx(needed))


def test_quality():
    vocab = spacy.blank("xx").vocab
    gold, given = (Doc(vocab, words=list("abcd"), tags=list(tags)) for tags in ("NNVV", "NVVV"))
    assert simulation.quality([given], [gold]) == 0.75


def test_the_summary_by_hand():
    curves = [
        simulation.Curve("margin", 0, [100, 300], [5, 15], [0.5, 0.9]),
        simulation.Curve("margin", 1, [100, 300], [5, 15], [0.5, 0.7]),
        simulation.Curve("random", 0, [100, 300], [5, 15], [0.5, 0.7]),
        simulation.Curve("random", 1, [100, 300], [5, 15], [0.5, 0.5]),
    ]
    summary = simulation.summarize(curves, 400)
    assert summary["margin"]["last"] == {"mean": pytest.approx(0.8), "deviation": pytest.approx(0.02**0.5), "seeds": [0.9, 0.7]}
    # Random reached .7 and .5 with all: each order is held against its own seed.
    assert summary["margin"]["as_random"]["goals"] == pytest.approx([0.7, 0.5])
    assert summary["margin"]["as_random"]["seeds"] == pytest.approx([200, 100])
    assert summary["random"]["as_random"]["seeds"] == pytest.approx([300, 100])
    none_reached = simulation.Curve("margin", 0, [100, 300], [5, 15], [0.5, 0.6])
    needed = simulation.summarize([none_reached, curves[2]], 400)["margin"]["as_random"]
    assert simulation.as_text(needed, "{:,.0f}") == "not reached by 1 of 1"
