from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.plugins.coref.inference.antecedents import Antecedents, refit
from spacy_calib.plugins.coref.inference.pairs import pair_probabilities

from .test_pairs import antecedents


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_pairs_that_can_be_had_are_reached(n, seed):
    model, other = antecedents(n, seed), antecedents(n, seed + 1, sharp=2.0)
    wanted = pair_probabilities(other).matrix()
    assert pair_probabilities(refit(model, wanted)).matrix() == pytest.approx(wanted, abs=0.02)


def test_pairs_of_the_model_leave_it_as_it_is():
    model = antecedents(8, 1)
    assert refit(model, pair_probabilities(model).matrix()).probabilities == pytest.approx(model.probabilities, abs=1e-6)


def test_two_mentions_by_hand():
    model = antecedents(2, 0)
    assert refit(model, np.array([[1.0, 0.3], [0.3, 1.0]])).probabilities == pytest.approx([0.3], abs=1e-3)


def test_pairs_that_cannot_be_had_are_come_near_to():
    """0 ~ 1 and 1 ~ 2 for certain, but 0 and 2 apart: at most one of three is given up."""
    model = antecedents(3, 0)
    wanted = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    made = refit(model, wanted)
    assert isinstance(made, Antecedents)
    found = pair_probabilities(made).matrix()
    assert found[0, 1] == pytest.approx(1, abs=1e-3)
    assert found[0, 2] == pytest.approx(found[1, 2], abs=1e-3)  # they are one, so that 2 is with both or none
    assert found[1, 2] == pytest.approx(0.5, abs=0.01)
