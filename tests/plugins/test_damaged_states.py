"""Saved states that are damaged and have a right checksum: each component of ours takes them and predicts, or refuses them as a whole."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib import TagCalibrator
from spacy_calib.errors import CalibError
from spacy_calib.pipe.pipeline import fitted_pipes
from tests.asked import asking, gold_docs
from tests.cli.conftest import entity_docs
from tests.conftest import examples_for, run_upstream
from tests.pipe.pipelines import PIPELINES
from tests.plugins.kinds import KINDS, fit, tree_docs
from tests.plugins.kinds import make as make_kind
from tests.plugins.links_made import linking
from tests.plugins.test_links import examples_of as link_examples

CASES = 150
# Each case of these takes long.
SLOW = ("calib, links", "calib, answers")


@cache
def linker() -> Language:
    nlp = linking()
    nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.EntityLinker.v1"}}).fit(link_examples(nlp, 60))
    return nlp


@cache
def answering() -> Language:
    """Entities of a model that answers, with four scores each."""
    nlp = asking()
    examples = run_upstream(nlp, [Example(nlp.make_doc(gold.text), gold) for gold in gold_docs(120, 1)])
    nlp.add_pipe("calib", config={"source": nlp.get_pipe("names").calib_source}).fit(examples)
    return nlp


def of_kind(name: str) -> Language:
    """A pipeline of KINDS with its fitted calib pipe."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_kind(KINDS[name], Path(folder))
        outcome = fit(made, "fitted", "--always", "--allow-seen")
        assert outcome.code == 0, outcome.text
        nlp = spacy.load(made.fitted)
    (calib,) = fitted_pipes(nlp)
    if calib.name != "calib":
        nlp.rename_pipe(calib.name, "calib")
    return nlp


class Estimating:
    """A `TagCalibrator` that is saved, loaded and asked as a pipe is."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.P = rng.dirichlet(np.ones(4), 400)
        y = np.array([rng.choice(4, p=p) for p in self.P])
        self.calibrator = TagCalibrator(method="isotonic", n_groups=2, tag_offsets=True).fit(self.P, y)

    def get_pipe(self, name: str) -> Estimating:
        return self

    def to_bytes(self) -> bytes:
        return self.calibrator.to_bytes()

    def from_bytes(self, data: bytes) -> None:
        self.calibrator = TagCalibrator.from_bytes(data)

    def pipe(self, arrays: list[Any]) -> Iterator[Any]:
        for P in arrays:
            yield SimpleNamespace(to_bytes=self.calibrator.predict_proba(P).tobytes)


def words(docs: Callable[[int, int], list[Doc]]) -> Callable[[Language], list[Doc]]:
    """Makes Docs of the words of a kind's gold."""
    return lambda nlp: [Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs(8, 77)]


def text(*texts: str) -> Callable[[Language], list[Doc]]:
    return lambda nlp: [nlp.make_doc(text) for text in texts]


def same_tags(nlp: Language) -> list[Doc]:
    return [example.predicted for example in examples_for(nlp, 8, seed=5)]


# Kind of saved state -> (makes a pipeline, its component, what it predicts on).
STATES: dict[str, tuple[Callable[[], Any], str, Callable[[Any], list[Any]]]] = {
    **{
        f"calib, {name}": (make, "calib", words(entity_docs) if name == "ner" else same_tags)
        for name, make in PIPELINES.items()
    },
    **{
        f"calib, {name}": (partial(of_kind, name), "calib", words(kind.docs))
        for name, kind in KINDS.items()
        if name not in ("links", "answers")
    },
    "calib, links": (linker, "calib", text("the river Georgia and song town . the boss Zorb and a drum .")),
    "calib, answers": (answering, "calib", text("Ann of Rome tree Kim lights")),
    "calib_ner": (partial(of_kind, "entities"), "ner", words(entity_docs)),
    "calib_parser": (partial(of_kind, "arcs"), "parser", words(tree_docs)),
    "TagCalibrator": (Estimating, "", lambda nlp: [nlp.P]),
}


IN_THE_SUITE = [
    name for name, (make, *_) in STATES.items() if getattr(make, "func", None) is not of_kind and make not in PIPELINES.values()
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize("name", IN_THE_SUITE)
def test_a_damaged_state_is_refused_or_harmless(fuzz, name, as_bytes):
    make, component, made = STATES[name]
    fuzzer = fuzz.Fuzzer(make(), component, made, as_bytes)
    outcomes = {seed: fuzzer.try_one(seed) for seed in range(CASES // (4 if name in SLOW or as_bytes else 1))}
    assert {seed: wrong for seed, (_, wrong) in outcomes.items() if wrong} == {}
    codes = {code for code, _ in outcomes.values()}
    assert codes & {*fuzz.WHEN_LOADED}  # some were refused
    assert not as_bytes or codes <= {*fuzz.WHEN_LOADED}  # each has a checksum


def test_answers_in_a_cache(fuzz, tmp_path):
    nlp = asking(cache=str(tmp_path / "answers.sqlite"))
    pipe, text = nlp.get_pipe("names"), "Ann of Rome tree Kim lights"
    nlp(text)
    with closing(sqlite3.connect(pipe.cache)) as held:
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
