"""Sequences whose items are made when they are read."""

import json

import pytest

from spacy_calib.cli.shared.writing import for_json
from spacy_calib.plugins.review.stored import LazySequence


def test_items_are_made_when_they_are_read_and_not_before():
    made = []
    squares = LazySequence(10**9, lambda place: made.append(place) or place**2)
    assert (len(squares), squares[3], squares[-1], squares[2:4]) == (10**9, 9, (10**9 - 1) ** 2, [4, 9])
    assert made == [3, 10**9 - 1, 2, 3]
    assert list(LazySequence(3, str)) == ["0", "1", "2"]
    with pytest.raises(IndexError):
        LazySequence(3, str)[3]
    with pytest.raises(IndexError):  # a fault of making one is not the end of all
        list(LazySequence(3, [0, 1].__getitem__))


def test_json_writes_them_as_a_list_item_by_item():
    made = []
    pieces = json.JSONEncoder(indent=1, default=for_json).iterencode({"a": LazySequence(5, lambda i: made.append(i) or i)})
    assert "0" in next(piece for piece in pieces if "0" in piece)
    assert made == [0]
    assert json.loads(json.dumps({"a": LazySequence(2, str), "b": LazySequence(0, str)}, default=for_json, indent=1)) == {
        "a": ["0", "1"],
        "b": [],
    }
    with pytest.raises(TypeError, match="set cannot be written as JSON"):
        json.dumps({1}, default=for_json)
