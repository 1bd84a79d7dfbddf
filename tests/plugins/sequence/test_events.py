"""Whether a whole sentence of a sequence model is right."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.plugins.events.component import HeldOutScores
from tests.conftest import run_upstream
from tests.plugins.sequence.test_joints import examples_of, hmm, sentences  # noqa: F401


@pytest.mark.filterwarnings("ignore:.*CW0")
def test_sentences_of_a_chain(hmm):  # noqa: F811
    fit, test = (examples_of(hmm, sentences(hmm, 120, seed)) for seed in (3, 4))
    calib = hmm.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Chain.v1", "component": "calib_hmm"}})
    logistic = {"@calib_forecasters": "spacy-calib.Logistic.v1"}
    pipe = hmm.add_pipe("calib_event", last=True, config={"forecaster": logistic})
    with hmm.select_pipes(disable=["calib", "calib_event"]):
        calib.fit(run_upstream(hmm, fit))
    with hmm.select_pipes(disable=["calib_event"]):
        pipe.fit(run_upstream(hmm, fit), HeldOutScores(calib))
    table = pipe.event_table(run_upstream(hmm, test))
    said = [sent._.calib_right for example in test for sent in example.predicted.sents]
    assert np.mean(said) == pytest.approx(table["right"], abs=0.1)
    for name in ("calib", "calib_event"):
        hmm.remove_pipe(name)
