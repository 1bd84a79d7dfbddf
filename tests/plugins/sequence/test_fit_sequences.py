"""`spacy calib fit` of sequence models: without an option, by ways that know no probabilities, and of extensions."""

from __future__ import annotations

import pytest
import spacy
from spacy.tokens import DocBin, Token
from spacy.training import Example

from spacy_calib.annotations import get_annotation
from tests.cli.conftest import bare_docs, calib, entity_docs, ok, refuses, setting
from tests.plugins.kinds import tag_docs
from tests.plugins.sequence.trained import train_labeller
from tests.sentences import says

PLAIN = ("--method", "isotonic", "--groups", "1", "--format", "json")
FEW = ("--components.calib.source.k", "5")


def save_model(folder, factory, docs, target="tag", rounds=2):
    def examples_of(nlp):
        data = list(DocBin(docs=docs, store_user_data=True).get_docs(nlp.vocab))
        return [Example(bare, gold) for bare, gold in zip(bare_docs(nlp, data), data, strict=True)]

    train_labeller(factory, examples_of, target, rounds).to_disk(folder)
    return folder


@pytest.fixture(scope="module")
def online(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("online") / "model", "calib_online", tag_docs(20, 1))


def test_the_scale_is_found_saved_and_shown(online, dev, tmp_path):
    ok(calib("fit", online, dev, tmp_path / "out", "--component", "calib_online", *PLAIN))
    scale = spacy.load(tmp_path / "out").get_pipe("calib").source.scale
    assert scale is not None
    assert f"kd_pc, k 50, scale {scale:.3g}" in calib("info", tmp_path / "out").text
    # A scale that is given stays.
    given = ("--components.calib.source.scale", "0.25", "--components.calib.source.k", "7")
    outcome = calib("fit", online, dev, tmp_path / "given", "--component", "calib_online", *PLAIN[:4], *given)
    assert "Scores: kd_pc, k 7, scale 0.25" in outcome.text


def by_way(way):
    return setting("source.@calib_sources", "spacy-calib.Confidence.v1"), setting("source.way", way)


def test_the_head_of_a_tagger_and_what_a_way_cannot_read(model, online, dev, tmp_path):
    outcome = calib("fit", model, dev, tmp_path / "out", "--component", "tagger", *by_way("kd_fixed"), *FEW, *PLAIN[:4])
    assert "Scores: kd_fixed, k 5, scale" in outcome.text
    # A second fit keeps the way, and says what it takes over.
    again = calib("fit", tmp_path / "out", dev, tmp_path / "again", "--component", "tagger", *PLAIN[:4])
    assert "Scores: kd_fixed" in again.text
    outcome = calib("fit", model, dev, tmp_path / "no", "--component", "tagger", *by_way("kbv"))
    refuses(
        outcome,
        "The source spacy-calib.Confidence.v1 cannot read component 'tagger' (Tagger) by way kbv: it reads sequence models",
    )
    assert not (tmp_path / "no").exists()


def test_a_setting_of_the_source_alone_tells_no_source(online, dev, tmp_path):
    outcome = calib("fit", online, dev, tmp_path, "--force", "--component", "calib_online", "--components.calib.source.way", "delta", *PLAIN[:4])  # fmt: skip
    assert "Scores: delta" in outcome.text


def test_whole_entities_of_a_field_have_a_score(entity_dev, entity_test, tmp_path):
    model = save_model(tmp_path / "model", "calib_crf", entity_docs(40, 3), "ents", rounds=15)
    outcome = calib("fit", model, entity_dev, tmp_path / "out", "--component", "calib_crf", *PLAIN[:4])
    assert "predicted entities" in outcome.text
    nlp = spacy.load(tmp_path / "out")
    doc = next(doc for doc in nlp.pipe(gold.text for gold in DocBin().from_disk(entity_test).get_docs(nlp.vocab)) if doc.ents)
    assert all(0 < span._.calib_score <= 1 for span in doc.ents)
    scores = doc._.calib_ent
    raw = dict(zip(zip(scores.rows.tolist(), scores.tags, strict=True), scores.raw, strict=True))
    label = get_annotation(scores.layer).label
    assert all(span._.calib_raw <= min(raw[token.i, label(token)] for token in span) + 1e-9 for span in doc.ents)
    texts = [doc.text, "", *(gold.text for gold in entity_docs(5, 9))]
    one, two = (nlp.pipe(texts, n_process=n, batch_size=2) for n in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert [span._.calib_score for span in first.ents] == pytest.approx([span._.calib_score for span in second.ents])
    assert [len(doc) for doc in nlp.pipe(["", ""])] == [0, 0]


def test_an_extension(tmp_path):
    (tmp_path / "code.py").write_text(
        "from spacy.tokens import Token\nToken.set_extension('fit_kind', default='', force=True)\n"
    )
    Token.set_extension("fit_kind", default="", force=True)

    def docs(n, seed):
        made = tag_docs(n, seed)
        for token in (token for doc in made for token in doc):
            token._.fit_kind, token.tag_ = token.tag_, ""
        return made

    for name, seed in (("dev", 2), ("test", 3)):
        DocBin(docs=docs(40, seed), store_user_data=True).to_disk(tmp_path / f"{name}.spacy")
    model = save_model(tmp_path / "model", "calib_hmm", docs(20, 1), "_.fit_kind")
    code = ("--code", tmp_path / "code.py")
    ok(calib("fit", model, tmp_path / "dev.spacy", tmp_path / "out", "--component", "calib_hmm", *PLAIN, *code))
    assert "calib_hmm (_.fit_kind)" in calib("info", tmp_path / "out", *code).text
    ok(calib("evaluate", tmp_path / "out", tmp_path / "test.spacy", *code))
    nlp = spacy.load(tmp_path / "out")
    assert nlp.analyze_pipes()["problems"] == {"calib_hmm": [], "calib": []}
    assert nlp("the old dog")[2]._.calib_score is not None
    Token.remove_extension("fit_kind")
    refuses(calib("evaluate", tmp_path / "out", tmp_path / "test.spacy"), "Tokens have no extension 'fit_kind'; register it")


def test_weights_that_are_no_numbers(dev, tmp_path):
    model = save_model(tmp_path / "model", "calib_crf", tag_docs(3, 1))
    nlp = spacy.load(model)
    embed = nlp.get_pipe("calib_crf").model.get_ref("tok2vec").layers[0]
    for node in embed.walk():
        for name in node.param_names:
            node.set_param(name, node.get_param(name) * float("nan"))
    nlp.to_disk(tmp_path / "bad")
    outcome = calib("fit", tmp_path / "bad", dev, tmp_path / "out", "--component", "calib_crf")
    refuses(outcome, says("C035", component="calib_crf"))


def test_a_saved_labeller_that_is_not_whole(online, dev, tmp_path):
    nlp = spacy.load(online)
    nlp.to_disk(tmp_path / "bad")
    (tmp_path / "bad" / "calib_online" / "calibration.msgpack").write_bytes(b"\x81")
    outcome = calib("fit", tmp_path / "bad", dev, tmp_path / "out", "--component", "calib_online")
    refuses(outcome, "The component 'calib_online' cannot be loaded from")
    assert not (tmp_path / "out").exists()
