"""What all sequence models say of their input, and what a pipeline knows of them."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from spacy_calib.errors import CalibError
from tests.plugins.sequence.trained import FACTORIES, SMALL, WORDS, skip_without_crfsuite, tagged, trained_labeller


def add(factory, **config):
    skip_without_crfsuite(factory)
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe(factory, config={**({"model": SMALL} if factory == "calib_crf" else {}), **config})


def learn(nlp, examples, **settings):
    """As a user would; what a component says of its gold it says in one of the two."""
    name = nlp.pipe_names[0]
    nlp.config["initialize"]["components"] = {name: settings} if settings else {}
    nlp.initialize(lambda: examples)
    return nlp.update(examples, sgd=nlp.create_optimizer())


every = pytest.mark.parametrize("factory", FACTORIES)


@every
@pytest.mark.parametrize("tags", [["A", "A"], ["", ""]])
def test_one_label_or_none(factory, tags):
    nlp, _ = add(factory)
    given = tags[0] or "none"
    with pytest.raises(CalibError, match=f"'{factory}' needs at least two labels of 'tag' to learn from, but has: {given}"):
        learn(nlp, [tagged(nlp, ["x", "y"], tags)])


@every
def test_gold_that_constraints_forbid(factory):
    nlp, _ = add(factory, constraints=[["A", "B"]], by_sentence=False)
    with pytest.raises(CalibError, match=rf"C338.*begins 'x y z ' break .* '{factory}' \('B' before 'A'\); correct the gold"):
        learn(nlp, [tagged(nlp, ["x", "y", "z"], ["A", "B", "A"])])


def test_an_entity_that_leaves_its_sentence():
    nlp, _ = add("calib_hmm", target="ents")
    doc = Doc(nlp.vocab, words=["New", "York"], sent_starts=[True, True])
    doc.set_ents([Span(doc, 0, 2, "LOC")])
    with pytest.raises(CalibError, match=r"\('L-LOC' at the beginning\)"):
        learn(nlp, [Example(Doc(nlp.vocab, words=["New", "York"]), doc)])


def test_gaps_in_the_gold_break_no_constraints():
    nlp, pipe = add("calib_crf", constraints=[["A", "B"], ["B", "A"]])
    losses = learn(nlp, [tagged(nlp, ["x", "y", "z"], ["A", "", "A"]), tagged(nlp, ["y"], ["B"])])
    assert 0 < losses["calib_crf"] < np.inf
    with pytest.raises(CalibError, match=r"C338.*\('A' before 'A'\)"):
        nlp.update([tagged(nlp, ["x", "y", "z"], ["A", "A", ""])], sgd=nlp.create_optimizer())


@every
def test_constraints_that_name_no_label(factory):
    nlp, _ = add(factory, constraints=[["A", "B"], ["B", "C"]])
    with pytest.raises(CalibError, match=rf"C337.*constraints of component '{factory}' name 'C', .* its labels \(A, B\)"):
        learn(nlp, [tagged(nlp, ["x", "y"], ["A", "B"])])


@every
def test_labels_that_lack_one_of_the_gold(factory):
    nlp, _ = add(factory)
    wanted = rf"C339.*label 'C' of the document that begins 'x y ' is none of the labels of component '{factory}' \(A, B\)"
    with pytest.raises(CalibError, match=wanted):
        learn(nlp, [tagged(nlp, ["x", "y"], ["A", "C"])], labels=["A", "B"])


@every
def test_documents_without_tokens(factory):
    nlp, pipe = add(factory)
    empty = Example(Doc(nlp.vocab), Doc(nlp.vocab))
    learn(nlp, [empty, tagged(nlp), empty])
    nlp.update([empty, empty], sgd=nlp.create_optimizer())
    assert [len(doc) for doc in nlp.pipe([Doc(nlp.vocab), Doc(nlp.vocab)])] == [0, 0]
    mixed = [Doc(nlp.vocab), Doc(nlp.vocab, words=WORDS), Doc(nlp.vocab)]
    assert [len(columns) for columns in pipe.predict(mixed)] == [0, len(WORDS), 0]


@every
def test_tokens_that_are_not_those_of_the_gold(factory):
    nlp, pipe = add(factory)
    # Of "xa" there is no one gold token; "y" has one.
    apart = Example(Doc(nlp.vocab, words=["xa", "y"], spaces=[True, False]), Doc(nlp.vocab, words=["x", "a", "y"], spaces=[False, True, False], tags=["X", "N", "Y"]))  # fmt: skip
    learn(nlp, [apart, tagged(nlp)])
    assert pipe.gold_columns(apart, pipe.gold_bounds(apart)).tolist() == [-1, pipe.labels.index("Y")]


@pytest.mark.parametrize(
    ("factory", "config", "sentence"),
    [
        *(
            (factory, {"target": "_.labeller_none"}, r"no extension 'labeller_none'; register it .* --code")
            for factory in FACTORIES
        ),
        *(
            (factory, {"constraints": [["N"]]}, r"C001.*constraints must be a list of 2, but \[\['N'\]\]")
            for factory in FACTORIES
        ),
        ("calib_crf", {"target": "pos"}, "target"),
        ("calib_crf", {"loss": "mse"}, "loss"),
        ("calib_crf", {"label_smoothing": 1.0}, "label_smoothing must be at least 0 and less than 1"),
        ("calib_hmm", {"pseudocount": 0}, "pseudocount"),
        ("calib_online", {"rule": "svm"}, "rule"),
    ],
)
def test_wrong_settings(factory, config, sentence):
    with pytest.raises(CalibError, match=sentence):
        add(factory, **config)


@pytest.mark.parametrize("factory", ["calib_hmm", "calib_online"])
def test_a_labeller_that_learned_nothing_labels_nothing(factory):
    with pytest.raises(CalibError, match="initialize"):
        add(factory)[0]("a b")


def test_an_extension_is_aligned_as_tags_are():
    Token.set_extension("labeller_kind", default="", force=True)
    nlp, pipe = add("calib_hmm", target="_.labeller_kind")
    gold = Doc(nlp.vocab, words=["a", "b", "c"], spaces=[False, False, False])
    for token, kind in zip(gold, ["K", "K", "M"], strict=True):
        token._.labeller_kind = kind
    examples = [Example(Doc(nlp.vocab, words=["ab", "c"], spaces=[False, False]), gold)]
    learn(nlp, examples)
    assert pipe.gold_columns(examples[0], [(0, 2)]).tolist() == [0, 1]


@every
@pytest.mark.parametrize(
    ("target", "assigns", "weights"),
    [
        ("tag", ["token.tag"], {"tag_acc": 1.0}),
        ("ents", ["doc.ents", "token.ent_iob", "token.ent_type"], {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}),
        ("_.labeller_own", ["token._.labeller_own"], {"labeller_own_acc": 1.0}),
    ],
)  # fmt: skip
def test_the_pipeline_knows_what_it_writes_and_is_scored_by(factory, target, assigns, weights):
    Token.set_extension("labeller_own", default="", force=True)
    nlp, _ = add(factory, target=target)
    meta = nlp.get_pipe_meta(factory)
    assert meta.assigns == assigns
    assert meta.scores == list(weights)
    assert nlp.config["training"]["score_weights"] == weights
    assert nlp.analyze_pipes()["problems"] == {factory: []}
    nlp.rename_pipe(factory, "other")
    assert nlp.get_pipe_meta("other").assigns == assigns


def test_templates_of_tags_want_a_tagger():
    nlp, _ = add("calib_online", features="chunking", target="ents")
    assert nlp.analyze_pipes()["problems"] == {"calib_online": ["token.tag"]}
    nlp.add_pipe("tagger", first=True)
    assert nlp.analyze_pipes()["problems"] == {"tagger": [], "calib_online": []}


@every
def test_scores_do_not_depend_on_the_batch_nor_on_the_process(factory):
    nlp = trained_labeller(factory)
    docs = [Doc(nlp.vocab, words=WORDS[i:]) for i in range(len(WORDS))]
    pipe = nlp.get_pipe(factory)
    together = pipe.label_scores(docs)
    for doc, scores in zip(docs, together, strict=True):
        assert scores == pytest.approx(pipe.label_scores([doc])[0], abs=1e-5)
    assert [columns.tolist() for columns in pipe.predict(docs)] == [pipe.predict([doc])[0].tolist() for doc in docs]
