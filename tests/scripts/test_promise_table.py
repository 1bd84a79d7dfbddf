"""scripts/promise_table.py: the observed share, and the table on made-up scores."""

from importlib.util import find_spec

import numpy as np
import promise_table
import pytest
from promise_table import SINGLE, Scored, observed

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


@needs_mapie
def test_the_table_has_a_row_for_each_source_and_kind(source, monkeypatch, capsys):
    monkeypatch.setattr(promise_table, "score_source", lambda *_: source)
    assert promise_table.main(["WikiNEuRal", "--draws", "3", "--cells"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * (9 + 1)
    assert all(line.startswith("| WikiNEuRal (silver) | ") for line in lines[2:])
    assert lines[-1].split(" | ")[1:4] == [SINGLE, "all", "all"]
