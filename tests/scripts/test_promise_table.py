"""scripts/promise_table.py: draws, ways to find a cut-off, and what becomes of promises, on made-up scores."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import promise_table
import pytest
from promise_table import SINGLE, WAYS, WHOLE, Scored, draws, observed, run_cell

needs_mapie = pytest.mark.skipif(find_spec("mapie") is None, reason="mapie is not installed")


@pytest.fixture
def source():
    """4,000 entities in 800 documents, right as often as their scores say."""
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 1.0, 4000)
    return Scored(scores, rng.random(4000) < scores, np.repeat(np.arange(800), 5))


def test_the_observed_share_worked_by_hand():
    """By falling score 1 1 0 1 0 0: the shares are 1, 1, .67, .75, .6, .5; the last two scores are equal."""
    draw = Scored(np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.5]), np.array([1, 1, 0, 1, 0, 0], dtype=bool), np.arange(6))
    assert [observed(draw, precision) for precision in (0.5, 0.55, 0.7, 0.8, 1.0)] == [0.5, 0.6, 0.6, 0.8, 0.8]
    assert observed(draw._replace(hits=np.zeros(6, dtype=bool)), 0.5) is None


@pytest.mark.parametrize("kind", [WHOLE, SINGLE])
def test_a_draw_and_the_others_are_the_source(source, kind):
    (drawn, others), (again, _) = draws(source, kind, 62, 2)
    assert len(drawn.scores) == {WHOLE: 65, SINGLE: 62}[kind]
    assert sorted([*drawn.scores, *others.scores]) == sorted(source.scores)
    assert len(set(drawn.documents)) == {WHOLE: 13, SINGLE: 62}[kind]
    assert not np.array_equal(drawn.scores, again.scores)
    if kind == WHOLE:
        assert not set(drawn.documents) & set(others.documents)


@needs_mapie
def test_promises_hold_and_the_observed_share_is_none(source):
    pairs = list(draws(source, SINGLE, 250, 30))
    outcomes = {name: run_cell(pairs, way, 0.8) for name, way in WAYS.items()}
    for name in list(WAYS)[:-1]:
        assert outcomes[name].promises > 0
        assert outcomes[name].held >= 0.9 * outcomes[name].promises
    assert outcomes["observed"].promises == 30
    assert outcomes["observed"].held < 25
    assert outcomes["`threshold`"].kept > outcomes["MAPIE, Holm"].kept


@needs_mapie
def test_the_table_has_a_row_for_each_source_and_kind(source, monkeypatch, capsys):
    monkeypatch.setattr(promise_table, "score_source", lambda *_: source)
    assert promise_table.main(["WikiNEuRal", "--draws", "3", "--cells"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * (9 + 1)
    assert all(line.startswith("| WikiNEuRal (silver) | ") for line in lines[2:])
    assert lines[-1].split(" | ")[1:4] == [SINGLE, "all", "all"]
