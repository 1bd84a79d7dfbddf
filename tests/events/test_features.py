"""Features of Table 1, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.events.features import FARTHEST_GAP, Answers, answer_features, columns, margins, position_features

# Two answers over labels a, b, c: "aab" and "cc".
LABELS, LENGTHS = np.array([0, 0, 1, 2, 2]), np.array([3, 2])
MARGINALS = np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.6, 0.3, 0.1], [0, 0.1, 0.9], [0.3, 0.3, 0.4]])


def answers(**more) -> Answers:
    return Answers(LABELS, LENGTHS, 3, **more)


def test_of_whole_answers():
    made = answers(gaps=np.array([2.0, np.inf]), log_chances=np.array([-1.0, -1e9]), marginals=MARGINALS, alone=10 * MARGINALS)
    found = answer_features(made, known={(0, 0, 1), (2, 1)})
    assert found["length"].tolist() == [3, 2]
    assert found["known"].tolist() == [1, 0]
    assert found["gap"].tolist() == [2, FARTHEST_GAP]  # a single answer is no infinite number
    assert found["chance"].tolist() == [-1, -FARTHEST_GAP]
    # Margins .5 .1 .3 | .8 .1
    assert np.allclose(found["least_margin"], [0.1, 0.1])
    assert np.allclose(found["least_alone"], [1.0, 1.0])


def test_of_positions():
    found = position_features(answers(marginals=MARGINALS, conditionals=MARGINALS[::-1]))
    assert np.allclose(found["share"], [2 / 3, 2 / 3, 1 / 3, 1, 1])
    assert np.allclose(found["neighbours"], [1 / 3, 1 / 3, 0, 1 / 2, 1 / 2])
    assert np.allclose(found["margin"], [0.5, 0.1, 0.3, 0.8, 0.1])
    assert np.allclose(found["pseudomargin"], [0.1, 0.8, 0.3, 0.1, 0.5])
    assert found["agrees"].tolist() == [1, 1, 0, 1, 1]  # the third says b, its marginals say a
    assert found["label_1"].tolist() == [0, 0, 1, 0, 0]


def test_neighbours_end_with_the_answer():
    """ "ab" and "bb": the b that ends the first is alone in it, whatever the next one begins with."""
    found = position_features(Answers(np.array([0, 1, 1, 1]), np.array([2, 2]), 2))
    assert found["neighbours"].tolist() == [0, 0, 1 / 2, 1 / 2]


def test_what_the_model_did_not_say_is_left_out():
    assert list(answer_features(answers())) == ["length"]
    assert list(position_features(answers())) == ["share", "neighbours", "label_0", "label_1", "label_2"]


def test_columns_by_name_and_by_beginning():
    found = position_features(answers())
    assert columns(found, ["share", "label_"]).shape == (5, 4)
    with pytest.raises(CalibError, match="C371.*'margin'; there are: share"):
        columns(found, ["margin"])


def test_some_of_the_answers():
    some = answers(gaps=np.array([1.0, 2.0]), marginals=MARGINALS).take(np.array([1]))
    assert some.each() == [(2, 2)]
    assert some.marginals.tolist() == MARGINALS[3:].tolist()
    assert some.gaps.tolist() == [2.0]
    assert answers().take(np.array([1, 0])).each() == [(2, 2), (0, 0, 1)]


def test_one_label_alone_and_no_answers():
    assert margins(np.array([[3.0], [2.0]])).tolist() == [3, 2]
    none = Answers(np.zeros(0, int), np.zeros(0, int), 3, marginals=np.zeros((0, 3)))
    assert [len(column) for column in (*answer_features(none).values(), *position_features(none).values())] == [0] * 9
    assert none.each() == []


def test_arrays_that_do_not_fit():
    with pytest.raises(CalibError, match="C370.*number 2 has none"):
        Answers(LABELS, np.array([5, 0]), 3)
    with pytest.raises(CalibError, match="C002.*marginals"):
        answers(marginals=MARGINALS[1:])
    with pytest.raises(CalibError, match="C002.*gap"):
        answers(gaps=np.zeros(3))
    with pytest.raises(CalibError, match="C002.*lengths"):
        Answers(LABELS, np.array([5, 1]), 3)
