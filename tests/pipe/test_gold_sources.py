"""Gold from several sources, by name: at the fit, in what is saved, and where a pipe runs."""

from __future__ import annotations

import pytest
from spacy.tokens import Doc

from spacy_calib.errors import CalibError
from spacy_calib.pipe.fit_info import FitInfo
from spacy_calib.pipe.gathering import FitArguments, gather
from tests.conftest import examples_for, run_upstream

CONTEXT = {"@calib_contexts": "spacy-calib.Context.v1"}


@pytest.fixture
def sources(nlp):
    """Two sources, whose documents have the same names, two Docs each."""
    found = {"EWT": run_upstream(nlp, examples_for(nlp, 80, seed=2)), "GUM": run_upstream(nlp, examples_for(nlp, 40, seed=3))}
    for examples in found.values():
        for number, example in enumerate(examples):
            example.reference.user_data["calib_document"] = f"document {number // 2}"
    return found


@pytest.fixture
def named(nlp, sources):
    """A pipe that was fitted on both."""
    calib = nlp.add_pipe("calib", after="tagger", config={"context": CONTEXT})
    return calib.fit(sources)


def test_a_fit_knows_the_source_of_each_document_and_shares_none(nlp, sources):
    calib = nlp.add_pipe("calib", after="tagger", config={"context": CONTEXT})
    for name, examples in sources.items():
        for example in examples[: -2 if name == "GUM" else None]:
            example.predicted._.calib_source = name
    data = gather(calib, [*sources["EWT"], *sources["GUM"]], FitArguments()).data
    assert (data.sources, data.n_docs) == (("EWT", "GUM"), 60)
    assert data.of_sources.tolist() == [0] * 40 + [1] * 19 + [-1]
    assert data.words.sources.tolist() == [0] * 80 + [1] * 38 + [-1] * 2
    assert data.doc_documents[:80:2].tolist() == list(range(40))


def test_without_names_nothing_is_told_of_sources(nlp, sources):
    calib = nlp.add_pipe("calib", after="tagger", config={"context": CONTEXT})
    data = gather(calib, [*sources["EWT"], *sources["GUM"]], FitArguments()).data
    assert (data.sources, data.words.sources, data.n_docs) == ((), None, 40)
    assert calib.fit(sources["EWT"]).fit_info.sources == []


def test_what_was_fitted_on_what_is_saved(named):
    told = named.fit_info.sources
    assert [(one["name"], one["documents"]) for one in told] == [("EWT", 40), ("GUM", 20)]
    assert sum(one["pairs"] for one in told) == named.fit_info.pairs
    assert told[0]["pairs"] > told[1]["pairs"] > 0
    named.from_bytes(named.to_bytes())
    assert named.fit_info.sources == told
    assert FitInfo().source_names == ()


def test_one_name_tells_nothing_apart(nlp, sources):
    with pytest.raises(CalibError, match=r"\[C547\] Gold of a single source has a name \('EWT'\)"):
        nlp.add_pipe("calib", after="tagger").fit({"EWT": sources["EWT"]})


def test_docs_and_the_pipe_name_sources_that_the_fit_knows(nlp, named, monkeypatch):
    seen = []
    calibrate = named.tokens.calibrate
    monkeypatch.setattr(
        named.tokens,
        "calibrate",
        lambda scores, threshold, words, *given: (seen.append(words), calibrate(scores, threshold, words, *given))[1],
    )
    docs = [Doc(nlp.vocab, words=["dog", "run"]) for _ in range(3)]
    docs[1]._.calib_source = "GUM"
    list(nlp.pipe(docs))
    assert seen[-1].sources.tolist() == [-1, 1, -1]
    named.gold_source = "EWT"
    list(nlp.pipe([doc.copy() for doc in docs]))
    assert seen[-1].sources.tolist() == [0, 1, 0]
    docs[2]._.calib_source = "PTB"
    with pytest.raises(
        CalibError, match=r"\[C548\] The gold source 'PTB' is none that the pipe 'calib' was fitted on; name EWT, GUM or none"
    ):
        nlp(docs[2])


def test_an_adaptation_numbers_sources_as_the_fit_did(nlp, named):
    few = run_upstream(nlp, examples_for(nlp, 4, seed=9))
    few[0].predicted._.calib_source = "GUM"
    assert gather(named, few, FitArguments(), named.fit_info.source_names).data.words.sources.tolist() == [1, -1, -1, -1]
    few[1].predicted._.calib_source = "PTB"
    with pytest.raises(CalibError, match="C548"):
        named.adapt(few)
