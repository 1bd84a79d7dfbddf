"""Saved states that are damaged and have a right checksum: each component of ours takes them and predicts, or refuses them as a whole."""

from __future__ import annotations

from functools import cache

import pytest
from spacy.language import Language

from tests.conftest import examples_for, run_upstream
from tests.coref import made as coreferent
from tests.sequence.trained import FACTORIES, trained_labeller

CASES = 150


@cache
def resolver(context: bool) -> Language:
    return coreferent.trained(10, context=context)


@pytest.fixture
def event(fitted) -> Language:
    """A fitted event pipe behind a fitted calib pipe."""
    logistic = {"@calib_forecasters": "spacy-calib.Logistic.v1"}  # choosing one takes longer
    pipe = fitted.add_pipe("calib_event", last=True, config={"forecaster": logistic})
    with fitted.select_pipes(disable=["calib_event"]):
        pipe.fit(run_upstream(fitted, examples_for(fitted, 20, seed=2)))
    return fitted


def check(fuzzer) -> None:
    outcomes = {seed: fuzzer.try_one(seed) for seed in range(CASES)}
    bad = {seed: wrong for seed, (_, wrong) in outcomes.items() if wrong}
    assert not bad
    codes = [code for code, _ in outcomes.values()]
    assert codes.count("accepted") < CASES  # some were refused


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("factory", "target"), [*((factory, "tag") for factory in FACTORIES), ("calib_hmm", "ents")])
def test_sequence_models(fuzz, factory, target):
    if factory == "calib_crfsuite":
        pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    check(fuzz.Fuzzer(trained_labeller(factory, target), factory))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("context", [True, False])
def test_coreference(fuzz, context):
    nlp = resolver(context)
    check(fuzz.Fuzzer(nlp, "calib_coref", lambda nlp: coreferent.example(nlp, 100).predicted))


@pytest.mark.filterwarnings("ignore")
def test_events(fuzz, event):
    check(fuzz.Fuzzer(event, "calib_event", lambda nlp: examples_for(nlp, 1, seed=5)[0].predicted))
