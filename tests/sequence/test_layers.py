"""The head as a thinc layer."""

from __future__ import annotations

import numpy as np
import pytest
import spacy

from spacy_calib.errors import CalibError
from spacy_calib.sequence.crf import add_gradient, make_chain_model, potentials_of
from tests.sequence.trained import SMALL, tagged


def after_updates(rate, steps=1):
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("calib_crf", config={"model": {**SMALL, "transition_rate": rate}})
    optimizer = nlp.initialize(lambda: [tagged(nlp)])
    optimizer.L2 = 0.0
    for _ in range(steps):
        nlp.update([tagged(nlp)], sgd=optimizer)
    return nlp, pipe


def test_transitions_learn_so_many_times_as_fast():
    slow, fast = (potentials_of(after_updates(rate)[1].model) for rate in (1.0, 20.0))
    moved = np.abs(slow.transitions) > 1e-5
    assert moved.any()
    assert fast.transitions[moved] / slow.transitions[moved] == pytest.approx(20.0, rel=1e-3)
    assert fast.starts == pytest.approx(20 * slow.starts, rel=1e-3, abs=1e-6)


def test_gradient_is_that_of_what_is_held():
    """The potentials are the rate times what is held, so its gradient is the rate times theirs."""
    _, pipe = after_updates(20.0)
    given = potentials_of(pipe.model)
    add_gradient(pipe.model, given)
    layer = pipe.model.get_ref("potentials")
    assert layer.get_grad("transitions") == pytest.approx(400.0 * layer.get_param("transitions"), rel=1e-5)


def test_the_rate_is_saved(tmp_path):
    nlp, pipe = after_updates(20.0, steps=3)
    nlp.to_disk(tmp_path)
    again = potentials_of(spacy.load(tmp_path).get_pipe("calib_crf").model)
    assert np.array_equal(again.transitions, potentials_of(pipe.model).transitions)
    assert again.transitions.any()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_none(rate):
    with pytest.raises(CalibError, match="transition_rate must be a number above 0"):
        make_chain_model(after_updates(1.0)[1].model.get_ref("tok2vec"), 2, rate)
