"""`spacy calib fit` for recognizers and span categorizers: what it writes, what it leaves alone, and every option of theirs."""

import functools
from collections import Counter
from pathlib import Path

import pytest
import spacy
from spacy.training import Example

from spacy_calib.sources.ner.source import CalibEntityRecognizer
from tests.cli.conftest import (
    NO_CONTEXT,
    SPANS_KEY,
    bare_docs,
    calib,
    docs_in,
    entity_docs,
    files_of,
    ok,
    save_docs,
    save_recognizer,
)

# Sums over batches of another size differ in the last digits of float32.
FLOAT32 = 1e-5

CONFIGS = Path(__file__).parents[2] / "configs"


@functools.cache
def gold_docs(path):
    """The Docs of a file that no test changes."""
    return docs_in(path)


def run(path, data, batch_size=64):
    """(pipeline, the Docs of a file as it annotates them)."""
    nlp = spacy.load(path)
    return nlp, list(nlp.pipe(bare_docs(nlp, gold_docs(data)), batch_size=batch_size))


def config_of(path):
    return spacy.util.load_config(path / "config.cfg")


def entities_of(docs):
    return [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in docs]


def without_calib(config, name="calib_ent"):
    """The config without the calib pipe, and what that pipe's block was."""
    config = config.copy()
    block = config["components"].pop(name)
    config["nlp"]["pipeline"] = [pipe for pipe in config["nlp"]["pipeline"] if pipe != name]
    return config, block


def test_the_config_differs_by_the_factory_and_the_calib_block_alone(ner_model, calibrated_ner):
    before, (after, block) = config_of(ner_model), without_calib(config_of(calibrated_ner))
    assert after["components"]["ner"].pop("factory") == "calib_ner"
    assert before["components"]["ner"].pop("factory") == "ner"
    assert after == before
    assert config_of(calibrated_ner)["nlp"]["pipeline"] == ["tok2vec", "tagger", "ner", "calib_ent"]
    assert block["source"] == {
        "@calib_sources": "spacy-calib.Ner.v1", "component": "ner", "granularity": "type", "beam_width": 1, "beam_density": 0.0,
    }  # fmt: skip
    assert (block["factory"], block["attr"], block["event"], block["threshold"]) == ("calib", "calib_ent", "exact", 0.01)
    assert set(files_of(calibrated_ner)) - set(files_of(ner_model)) == {"calib_ent/calibration.msgpack"}


def test_every_entity_carries_probabilities_and_no_token(calibrated_ner, entity_test):
    """People print the score of a token beside its tag: P(entity label) is not to be taken for P(tag)."""
    nlp, docs = run(calibrated_ner, entity_test)
    tokens = [token for doc in docs for token in doc]
    spans = [ent for doc in docs for ent in doc.ents]
    for owner in spans:
        assert type(owner._.calib_score) is float
        assert (owner._.calib_ent_score, owner._.calib_ent_raw) == (owner._.calib_score, owner._.calib_raw)
    names = [f"{attr}_{name}" for attr in ("calib", "calib_ent") for name in ("score", "raw", "scores")]
    assert {token._.get(name) for token in tokens for name in names} == {None}
    assert all(doc._.calib is None and doc._.calib_ent.scored.all() for doc in docs)
    assert any(owner._.calib_score != owner._.calib_raw for owner in spans)
    assert {type(span._.calib_accept) for span in spans} == {type(None)}
    for doc in docs:
        assert [(one.start, one.end, one.label, one.score) for one in doc._.calib_ent.ents] == [
            (ent.start, ent.end, ent.label_, ent._.calib_score) for ent in doc.ents
        ]
        assert {one.event for one in doc._.calib_ent.ents} <= {"exact"}


def test_tokens_have_scores_where_the_config_block_says_so(ner_model, entity_dev, entity_test, tmp_path):
    options = ["-C", "ner", "--components.calib_ent.token_scores", "true", "--method", "isotonic", "--silent"]
    assert calib("fit", ner_model, entity_dev, tmp_path / "out", *options).code == 0
    nlp, docs = run(tmp_path / "out", entity_test)
    tokens = [token for doc in docs for token in doc]
    labels = {"O", *nlp.get_pipe("ner").labels}
    assert all(token._.calib_ent_scores[token.ent_type_ or "O"] == token._.calib_ent_score for token in tokens)
    assert {token._.calib_score for token in tokens} == {None}
    assert set().union(*(token._.calib_ent_scores for token in tokens)) <= labels
    scores = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in gold_docs(entity_test)[:20]])
    assert scores["calib_ent_token_smce"] != scores["calib_ent_smce"]


def test_o_is_a_group_of_its_own_beside_the_entity_types(ner_model, entity_dev, tmp_path):
    ok(calib("fit", ner_model, entity_dev, tmp_path / "out", "-C", "ner", "--groups", 2, "--silent"))
    pipe = spacy.load(tmp_path / "out").get_pipe("calib_ent")
    groups, of_spans = pipe.tokens.maps.groups, pipe.spans.groups
    assert groups.names == ("O", "1", "2")
    assert [pipe.labels[i] for i in groups.tags_in(0)] == ["O"]
    assert of_spans.names == ("1", "2")
    assert sum(of_spans.sizes) == 3


def test_a_second_pass_leaves_the_recognizer_and_gives_the_same_scores(
    ner_model, calibrated_ner, entity_dev, entity_test, tmp_path
):
    ok(calib("fit", ner_model, entity_dev, tmp_path / "out", "-C", "ner", "--second-pass", NO_CONTEXT, "--silent"))
    assert without_calib(config_of(tmp_path / "out"))[0] == config_of(ner_model)
    (nlp, twice), (_, once) = run(tmp_path / "out", entity_test), run(calibrated_ner, entity_test)
    assert not isinstance(nlp.get_pipe("ner"), CalibEntityRecognizer)
    assert entities_of(twice) == entities_of(once)
    for two, one in zip(twice, once, strict=True):
        assert two._.calib_ent.raw == pytest.approx(one._.calib_ent.raw, abs=FLOAT32)
        assert [e._.calib_raw for e in two.ents] == pytest.approx([e._.calib_raw for e in one.ents], abs=FLOAT32)
        assert [e._.calib_score for e in two.ents] == pytest.approx([e._.calib_score for e in one.ents], abs=1e-3)


def covered(doc, label):
    return {token.i for ent in doc.ents if ent.label_ == label for token in ent}


EVENTS = {
    "exact": lambda ent, gold: (ent.start, ent.end, ent.label_) in {(e.start, e.end, e.label_) for e in gold.ents},
    "type": lambda ent, gold: {token.i for token in ent} <= covered(gold, ent.label_),
    "overlap": lambda ent, gold: bool({token.i for token in ent} & covered(gold, ent.label_)),
}


def test_each_event_counts_the_entities_for_which_it_holds(ner_model, entity_dev, tmp_path):
    _, docs = run(ner_model, entity_dev)
    gold = gold_docs(entity_dev)
    right = {}
    for event, holds in EVENTS.items():
        outcome = ok(calib("fit", ner_model, entity_dev, tmp_path / event, "-C", "ner", "--event", event, "-m", "isotonic"))
        nlp = spacy.load(tmp_path / event)
        right[event] = nlp.get_pipe("calib_ent").fit_info.spans.right
        assert right[event] == sum(holds(ent, own) for doc, own in zip(docs, gold, strict=True) for ent in doc.ents)
        assert f"{right[event]:,} right (event: {event})" in outcome.text
        assert "Errors of entities by cross-validation" in outcome.text
        assert config_of(tmp_path / event)["components"]["calib_ent"]["event"] == event
        assert {one.event for doc in nlp.pipe(bare_docs(nlp, gold[:20])) for one in doc._.calib_ent.ents} == {event}
    assert right["exact"] < right["type"] < right["overlap"]


def test_train_data_gives_the_frequencies_of_tokens_and_entities(ner_model, entity_dev, entity_gold, tmp_path):
    train = entity_gold / "train.spacy"
    options = ["-C", "ner", "--train-data", train, "--allow-seen", "-m", "isotonic"]  # seven templates make the same sentences
    outcome = calib("fit", ner_model, entity_dev, tmp_path / "out", *options)
    assert "Tag frequencies were counted on train.spacy" in outcome.text
    pipe = spacy.load(tmp_path / "out").get_pipe("calib_ent")
    docs = gold_docs(train)
    tokens = Counter(token.ent_type_ or "O" for doc in docs for token in doc)
    entities = Counter(ent.label_ for doc in docs for ent in doc.ents)
    assert dict(zip(pipe.labels, pipe.tokens.maps.groups.counts.tolist(), strict=True)) == tokens
    assert dict(zip(pipe.lookup.span_labels(), pipe.spans.groups.counts.tolist(), strict=True)) == entities
    # The same without --train-data: of the fit data.
    assert pipe.fit_info.counted_on == "train.spacy"


def test_a_calibrated_pipeline_is_fitted_again(calibrated_ner, ner_model, entity_test, tmp_path, one_salt):
    ok(calib("fit", calibrated_ner, entity_test, tmp_path / "out", "-C", "ner", "--event", "overlap"))
    nlp, docs = run(tmp_path / "out", entity_test)
    assert nlp.pipe_names == ["tok2vec", "tagger", "ner", "calib_ent"]
    assert config_of(tmp_path / "out")["components"]["ner"]["factory"] == "calib_ner"
    assert nlp.get_pipe("calib_ent").fit_info.tokens == sum(map(len, docs))
    assert nlp.get_pipe("calib_ent").event == "overlap"
    assert entities_of(docs) == entities_of(run(ner_model, entity_test)[1])
    # Its settings are those of the calib pipe that was there, but what was fitted has no part in it: the same as a fit of the stock pipeline.
    settings = ["-C", "ner", "--method", "isotonic", "--event", "overlap"]
    ok(calib("fit", ner_model, entity_test, tmp_path / "fresh", *settings, "--silent"))
    again, fresh = (files_of(tmp_path / name) for name in ("out", "fresh"))
    assert again["calib_ent/calibration.msgpack"] == fresh["calib_ent/calibration.msgpack"]
    assert again["config.cfg"] == fresh["config.cfg"]
    assert again["ner/model"] == fresh["ner/model"]


def test_tags_added_to_entities_change_nothing_for_them(two_pipes, calibrated_ner, entity_test):
    nlp, docs = run(two_pipes, entity_test)
    assert nlp.pipe_names == ["tok2vec", "tagger", "calib", "ner", "calib_ent"]
    _, alone = run(calibrated_ner, entity_test)
    for doc, other in zip(docs, alone, strict=True):
        for name in ("calib_score", "calib_raw", "calib_accept", "calib_ent_score"):
            assert [ent._.get(name) for ent in doc.ents] == [ent._.get(name) for ent in other.ents]
        assert all(token._.calib_scores[token.tag_] == token._.calib_score for token in doc)
        assert {token._.calib_ent_score for token in doc} == {None}
        assert doc._.calib.ents == ()
        assert len(doc._.calib_ent.ents) == len(doc.ents)


def test_the_order_of_the_fits_does_not_matter(ner_model, two_pipes, entity_dev, entity_test, tmp_path):
    """The recognizer second: it is fitted under its own prefix, also from a config whose block is called calib."""
    quick = ("--method", "isotonic", "--silent")
    assert calib("fit", ner_model, entity_dev, tmp_path / "one", *quick).code == 0
    assert calib("fit", tmp_path / "one", entity_dev, tmp_path / "two", "-C", "ner", *quick).code == 0
    assert config_of(tmp_path / "two") == config_of(two_pipes)
    options = ["-C", "ner", "--config", CONFIGS / "tfg_isotonic.cfg", "--silent"]
    assert calib("fit", tmp_path / "one", entity_dev, tmp_path / "file", *options).code == 0
    assert spacy.load(tmp_path / "file").pipe_names == ["tok2vec", "tagger", "calib", "ner", "calib_ent"]
    (_, docs), (_, expected) = run(tmp_path / "two", entity_test), run(two_pipes, entity_test)
    for doc, other in zip(docs, expected, strict=True):
        assert [ent._.calib_score for ent in doc.ents] == pytest.approx([ent._.calib_score for ent in other.ents])


@pytest.mark.parametrize("factory", ["spancat", "spancat_singlelabel"])
def test_span_categorizers(factory, span_gold, tmp_path):
    dev = span_gold / "dev.spacy"
    model = save_recognizer(factory, tmp_path / "model")
    outcome = ok(calib("fit", model, dev, tmp_path / "out", "-C", factory, "-m", "isotonic"))
    assert f"Calibrated {factory} on" in outcome.text
    after, block = without_calib(config_of(tmp_path / "out"), "calib")
    assert after == config_of(model)
    assert block["source"] == {"@calib_sources": "spacy-calib.Spancat.v1", "component": factory, "lowest": None}
    nlp, docs = run(tmp_path / "out", span_gold / "test.spacy")
    assert nlp.get_pipe("calib").fit_info.layer == f"spans:{SPANS_KEY}"
    n_spans = sum(len(doc.spans[SPANS_KEY]) for doc in run(tmp_path / "out", dev)[1])
    assert n_spans == nlp.get_pipe("calib").fit_info.spans.spans
    assert f"{n_spans:,} predicted entities" in outcome.text
    assert all(token._.calib_score is not None for doc in docs for token in doc)


def test_a_recognizer_that_finds_nothing_passes_entity_scores_through_and_says_so(ner_model, tmp_path):
    docs = [doc for doc in entity_docs(200, 31) if not doc.ents]
    assert docs
    with_gold = entity_docs(2, 32)
    outcome = ok(calib("fit", ner_model, save_docs(tmp_path / "few.spacy", docs + with_gold), tmp_path / "out", "-C", "ner"))
    assert "Entity scores stay raw:" in outcome.text
    assert "20 needed" in outcome.text
    nlp = spacy.load(tmp_path / "out")
    ents = nlp("Ann lives in New York .").ents
    assert ents
    assert all(ent._.calib_score == ent._.calib_raw for ent in ents)
