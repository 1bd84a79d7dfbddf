"""Saved states that are damaged and have a right checksum: each component of ours takes them and predicts, or refuses them as a whole."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from functools import cache

import pytest
from spacy.language import Language
from spacy.training import Example

from spacy_calib.errors import CalibError
from tests.asked import asking, gold_docs
from tests.conftest import examples_for, run_upstream
from tests.plugins.coref import made as coreferent
from tests.plugins.links_made import linking
from tests.plugins.sequence.trained import FACTORIES, trained_labeller
from tests.plugins.test_links import examples_of as link_examples
from tests.sources.parser import gold_examples
from tests.sources.parser import trained as trained_parser
from tests.sources.parser.test_source import fitted_on

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


@cache
def linker() -> Language:
    nlp = linking()
    nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.EntityLinker.v1"}}).fit(link_examples(nlp, 60))
    return nlp


@cache
def answering() -> Language:
    """Entities of a model that answers, with four scores each."""
    nlp = asking()
    examples = [Example(nlp.make_doc(gold.text), gold) for gold in gold_docs(120, 1)]
    for example in examples:
        nlp.get_pipe("names")(example.predicted)
    nlp.add_pipe("calib", config={"source": nlp.get_pipe("names").calib_source}).fit(examples)
    return nlp


@cache
def parsing() -> Language:
    """A fitted event pipe that asks for whole trees."""
    nlp = trained_parser("calib_parser")
    fitted_on(nlp)
    config = {
        "event": {"@calib_events": "spacy-calib.Tree.v1", "draws": 10},
        "forecaster": {"@calib_forecasters": "spacy-calib.Logistic.v1"},
    }
    pipe = nlp.add_pipe("calib_event", config=config)
    examples = gold_examples(nlp, 40, seed=3)
    for example in examples:
        example.predicted = nlp.get_pipe("calib")(nlp.get_pipe("parser")(example.predicted))
    pipe.fit(examples)
    return nlp


def check(fuzzer, cases: int = CASES) -> None:
    outcomes = {seed: fuzzer.try_one(seed) for seed in range(cases)}
    bad = {seed: wrong for seed, (_, wrong) in outcomes.items() if wrong}
    assert not bad
    codes = [code for code, _ in outcomes.values()]
    assert codes.count("accepted") < cases  # some were refused


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
@pytest.mark.parametrize(
    ("made", "name", "text"),
    [
        (linker, "calib", "the river Georgia and song town . the boss Zorb and a drum ."),
        (answering, "calib", "Ann of Rome tree Kim lights"),
        (parsing, "calib_event", "dog saw king with duck . duck met dog"),
    ],
    ids=["links", "answers", "trees"],
)
def test_links_answers_and_trees(fuzz, made, name, text):
    check(fuzz.Fuzzer(made(), name, lambda nlp: nlp.make_doc(text)), CASES // 4)  # each case takes long


def test_answers_in_a_cache(fuzz, tmp_path):
    """What `calib_answers` keeps: an answer that is damaged is refused, or can be read on."""
    nlp = asking(cache=str(tmp_path / "answers.sqlite"))
    pipe, text = nlp.get_pipe("names"), "Ann of Rome tree Kim lights"
    nlp(text)
    with closing(sqlite3.connect(pipe.cache.path)) as held:
        ((digest, whole),) = held.execute("SELECT digest, answer FROM answers")
        codes = []
        for seed in range(CASES // 3):
            tree, rng = {"answer": json.loads(whole)}, random.Random(seed)
            fuzz.mutate(tree, rng)
            with held:
                held.execute("UPDATE answers SET answer = ?", [json.dumps(tree.get("answer"), default=repr)])
            try:
                doc = nlp(text)
                assert all(0 <= score <= 1 for score in doc.spans["answers"].attrs["scores"])
                codes.append("accepted")
            except CalibError as error:
                codes.append(error.code)
    assert {"accepted", "C646"} <= set(codes) <= {"accepted", "C646", "C642"}


@pytest.mark.filterwarnings("ignore")
def test_events(fuzz, event):
    check(fuzz.Fuzzer(event, "calib_event", lambda nlp: examples_for(nlp, 1, seed=5)[0].predicted))
