"""The source of confidences: of any labeller, with a scale that the fit finds."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.errors import CalibError
from spacy_calib.sequence.confidence_source import SCALES, ConfidenceSource, choose_scale
from tests.conftest import examples_for, train_pipeline
from tests.sequence.trained import WORDS, tagged, trained_labeller, with_entities


@pytest.mark.parametrize("way", ["kd_pc", "kd_fixed", "kbv", "wkbv", "delta"])
def test_a_doc_is_as_sure_in_any_batch(way):
    nlp = trained_labeller("calib_online")
    pipe, source = nlp.get_pipe("calib_online"), ConfidenceSource(way=way, k=7)
    docs = [Doc(nlp.vocab, words=words) for words in (WORDS, ["new", "a"], [], ["y"])]
    together = source.confidences(pipe, docs)
    alone = [one for doc in docs for one in source.confidences(pipe, [doc])]
    assert all((first == second).all() for first, second in zip(together, alone, strict=True))


@pytest.mark.parametrize(
    ("factory", "way"), [("calib_online", "kd_pc"), ("calib_online", "kd_fixed"), ("calib_crf", "kd_fixed")]
)
def test_draws_obey_the_constraints(factory, way):
    nlp = trained_labeller(factory, "ents")
    pipe, source = nlp.get_pipe(factory), ConfidenceSource(factory, way=way)
    forbidden = pipe.allowed().transitions < 0
    for (labels,) in source.draws(pipe, [Doc(nlp.vocab, words=WORDS)]).labels(5, [4.0]):
        assert not forbidden[labels[:-1], labels[1:]].any()


def test_draws_of_a_chain_move_its_transitions_too():
    nlp = trained_labeller("calib_crf")
    draws = ConfidenceSource("calib_crf", way="kd_fixed").draws(nlp.get_pipe("calib_crf"), [Doc(nlp.vocab, words=WORDS)])
    moved = draws.at(0, [1.0])[1] - draws.learned.transitions
    assert moved.std() == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize("way", ["kd_pc", "delta", "wkbv"])
def test_entities_have_types_and_are_as_sure_as_their_least_sure_tag(way):
    nlp = trained_labeller("calib_online", "ents")
    pipe, source = nlp.get_pipe("calib_online"), ConfidenceSource(way=way, scale=0.5)
    doc = nlp(with_entities(nlp)[0].reference.text)
    found = source.read(pipe, [doc])
    assert source.labels(pipe) == ("O", "LOC", "PER")
    assert np.bincount(found.above(0.0).rows, weights=found.above(0.0).scores) == pytest.approx(np.ones(5))
    of_tags = dict(zip(pipe.labels, source.confidences(pipe, [doc])[0].T, strict=True))
    assert found.spans.own == pytest.approx([min(of_tags["B-LOC"][1], of_tags["L-LOC"][2]), of_tags["U-PER"][3]])


def test_more_labellings_are_asked_for_than_there_are():
    nlp = trained_labeller("calib_hmm")
    given = ConfidenceSource("calib_hmm", way="kbv", k=1000).confidences(
        nlp.get_pipe("calib_hmm"), [Doc(nlp.vocab, words=["x"])]
    )
    assert given[0] == pytest.approx(np.full((1, 4), 0.25))


def test_the_scale_that_finds_wrong_labels_best():
    nlp = trained_labeller("calib_online")
    examples = [tagged(nlp), tagged(nlp, WORDS[:4], ["X", "N", "Y", "Y"])]
    source, pipe = ConfidenceSource(k=5), nlp.get_pipe("calib_online")
    assert source.unsettled
    assert source.settle(pipe, examples) == {"scale": source.scale}
    assert source.scale in SCALES
    assert not source.unsettled
    assert source.says == f"kd_pc, k 5, scale {source.scale:.3g}"
    # Where nothing is wrong there is nothing to choose by.
    assert choose_scale(source, pipe, [tagged(nlp)]) == choose_scale(source, pipe, []) == 0.1


def test_a_fit_shows_how_far_it_is():
    nlp = trained_labeller("calib_online")
    source = {"@calib_sources": "spacy-calib.Confidence.v1", "k": 5}
    calib = nlp.add_pipe("calib", config={"source": source, "recalibrator": {"@calib_recalibrators": "spacy-calib.Platt.v1"}})
    examples = [tagged(nlp) for _ in range(4)] + [tagged(nlp, WORDS[:4], ["X", "N", "Y", "Y"])] * 2
    seen: dict[str, int] = {}

    def progress(steps, what):
        for step in steps:
            seen[what] = seen.get(what, 0) + 1
            yield step

    calib.fit(examples, progress=progress)
    assert calib.fitted
    assert seen == {"Choosing settings": 5, "Reading scores": 6}


def test_the_head_of_a_tagger():
    nlp = train_pipeline(["tagger"], steps=2)
    source, pipe = ConfidenceSource("tagger", way="kd_fixed", k=20), nlp.get_pipe("tagger")
    docs = [example.predicted for example in examples_for(nlp, 3, 5)]
    for _, component in nlp.components[:-1]:
        docs = list(component.pipe(docs))
    found = source.read(pipe, docs).above(0.0)
    assert np.bincount(found.rows, weights=found.scores) == pytest.approx(np.ones(sum(map(len, docs))))
    assert not ConfidenceSource("tagger").supports(pipe)


def test_settings_out_of_range():
    for settings, says in (({"way": "none"}, "way must be one of"), ({"k": 0}, "k must be at least 1"), ({"scale": 0.0}, "scale must be greater than 0")):  # fmt: skip
        with pytest.raises(CalibError, match=says):
            ConfidenceSource(**settings)


def test_a_scale_is_chosen_by_the_fit_and_saved(tmp_path):
    nlp = trained_labeller("calib_online")
    examples = [tagged(nlp), tagged(nlp, WORDS[:4], ["X", "N", "Y", "Y"])] * 3
    source = {"@calib_sources": "spacy-calib.Confidence.v1", "component": "calib_online", "k": 5}
    calib = nlp.add_pipe("calib", config={"source": source})
    calib.fit(examples)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.get_pipe("calib").source.scale == calib.source.scale == nlp.config["components"]["calib"]["source"]["scale"]
    assert not again.get_pipe("calib").lookup.weights_changed()
    again.get_pipe("calib_online").update([tagged(again, WORDS[:4], ["X", "N", "Y", "Y"])])
    assert again.get_pipe("calib").lookup.weights_changed()
