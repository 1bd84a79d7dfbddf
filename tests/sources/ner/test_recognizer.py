"""calib_ner and calib_beam_ner are spaCy's recognizers in all but what they remember."""

import copy
import gc
import pickle
import weakref

import pytest
import spacy
from spacy.lang.xx import MultiLanguage
from spacy.tokens import Doc

from spacy_calib.sources.ner.readings import BeamReading, GreedyReading
from spacy_calib.sources.ner.source import CalibEntityRecognizer, kept_readings
from tests.sources.ner import (
    FACTORIES,
    TEXTS,
    docs_of,
    entity_keys,
    entity_tokens,
    gold_examples,
    keys_of,
    path_probabilities,
    plain,
    random_drafts,
    random_pipeline,
    recognize,
    trained,
    trained_once,
    twin_of,
)


@pytest.mark.parametrize(("stock", "ours"), FACTORIES.items())
def test_same_weights_and_config(stock, ours, tmp_path):
    """What is saved differs in the factory's name alone, and either factory loads what the other saved."""
    pair = {factory: trained(stock) if factory == stock else twin_of(trained(stock)) for factory in (stock, ours)}
    configs, files = {}, {}
    for factory, nlp in pair.items():
        folder = tmp_path / factory
        nlp.to_disk(folder)
        configs[factory] = (folder / "config.cfg").read_text().replace(f'factory = "{factory}"', "factory")
        files[factory] = {p.relative_to(folder): p.read_bytes() for p in (folder / "ner").rglob("*") if p.is_file()}
        assert f'factory = "{factory}"' in (folder / "config.cfg").read_text()
    assert configs[stock] == configs[ours]
    assert files[stock] == files[ours]
    assert pair[stock].get_pipe("ner").to_bytes() == pair[ours].get_pipe("ner").to_bytes()
    crossed = spacy.load(tmp_path / ours, config={"components": {"ner": {"factory": stock}}})
    assert not isinstance(crossed.get_pipe("ner"), CalibEntityRecognizer)
    loaded = spacy.load(tmp_path / stock, config={"components": {"ner": {"factory": ours}}})
    assert isinstance(loaded.get_pipe("ner"), CalibEntityRecognizer)
    for text in TEXTS:
        wanted = entity_tokens([pair[stock](text)])
        assert all(entity_tokens([nlp(text)]) == wanted for nlp in (pair[ours], crossed, loaded))


@pytest.mark.parametrize(("stock", "ours"), FACTORIES.items())
def test_factories_have_the_same_settings_and_meta(stock, ours):
    wanted, given = MultiLanguage.get_factory_meta(stock), MultiLanguage.get_factory_meta(ours)
    assert given.default_config == wanted.default_config
    for name in ("assigns", "requires", "default_score_weights", "retokenizes"):
        assert getattr(given, name) == getattr(wanted, name)


@pytest.mark.parametrize("how", ["bytes", "pickle"])
def test_round_trip(how):
    nlp = trained("calib_ner")
    if how == "bytes":
        again = MultiLanguage.from_config(nlp.config.copy()).from_bytes(nlp.to_bytes())
    else:
        again = pickle.loads(pickle.dumps(nlp))
    assert type(again.get_pipe("ner")) is CalibEntityRecognizer
    docs = [again(text) for text in TEXTS]
    assert entity_tokens(docs) == entity_tokens([nlp(text) for text in TEXTS])
    assert any(doc.ents for doc in docs)
    assert all(kept_readings(doc, "ner") is not None for doc in docs if len(doc))


def test_training_goes_on_as_in_spacy():
    """The same losses and weights after the same updates, and it predicts what it learnt."""
    stock, ours = trained("ner"), trained("calib_ner")
    losses = []
    for nlp in (stock, ours):
        spacy.util.fix_random_seed(1)
        optimizer = nlp.resume_training()
        found: dict[str, float] = {}
        for _ in range(3):
            nlp.update(gold_examples(nlp, 12, 4), sgd=optimizer, losses=found)
        losses.append(found["ner"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert entity_tokens([stock(text) for text in TEXTS]) == entity_tokens([ours(text) for text in TEXTS])
    assert ours.evaluate(gold_examples(ours, 12, 5))["ents_f"] > 0.5


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_worker_processes():
    nlp = trained("calib_ner")
    docs = list(nlp.pipe(TEXTS * 3, n_process=2, batch_size=4))
    assert [doc.text for doc in docs] == TEXTS * 3
    assert entity_tokens(docs) == entity_tokens([nlp(text) for text in TEXTS * 3])
    assert kept_readings(docs[0], "ner") is None  # it stays in the worker


def test_readings_live_as_long_as_the_doc():
    nlp = trained_once("calib_ner")
    doc = nlp(TEXTS[0])
    reading = kept_readings(doc, "ner")
    assert isinstance(reading, GreedyReading)
    alive = weakref.ref(reading)
    del reading
    gc.collect()
    assert alive() is not None
    del doc
    gc.collect()
    assert alive() is None


def test_readings_are_of_this_doc_and_this_recognizer():
    nlp = trained("calib_ner")
    doc = nlp(TEXTS[0])
    assert kept_readings(doc, "another") is None
    assert kept_readings(nlp.make_doc(TEXTS[0]), "ner") is None
    for other in (copy.copy(doc), Doc(nlp.vocab).from_bytes(doc.to_bytes()), pickle.loads(pickle.dumps(doc)), doc[:2].as_doc()):
        assert kept_readings(other, "ner") is None
    first = kept_readings(doc, "ner")
    assert kept_readings(nlp.get_pipe("ner")(doc), "ner") is not first


def test_reading_is_not_saved_with_the_doc():
    one, other = trained_once("calib_ner")(TEXTS[0]), trained_once("ner")(TEXTS[0])
    assert one.user_data == other.user_data == {}
    assert len(one.to_bytes()) == len(other.to_bytes())


@pytest.mark.parametrize("changes", [["merge"], ["split"], ["merge", "split"]], ids=str)
def test_retokenized_doc_has_no_reading(changes):
    """Though it has as many tokens as before."""
    doc = trained_once("calib_ner")("she saw Ann Lee .")
    for change in changes:
        with doc.retokenize() as retokenizer:
            if change == "merge":
                retokenizer.merge(doc[2:4])
            else:
                retokenizer.split(doc[0], ["s", "he"], heads=[(doc[0], 0), (doc[0], 1)])
    assert kept_readings(doc, "ner") is None


def test_predict_touches_no_doc():
    ner = trained_once("calib_ner").get_pipe("ner")
    docs = docs_of([*random_drafts(10, 42), *plain(*TEXTS)], ner.vocab)
    before = [doc.to_bytes() for doc in docs]
    assert len(ner.predict(docs)) == len(docs)
    assert [doc.to_bytes() for doc in docs] == before
    assert all(kept_readings(doc, "ner") is None for doc in docs)


@pytest.mark.parametrize("presets", ["none", "whole"])
def test_beam_entities_are_those_of_spacy(presets):
    stock = random_pipeline(factory="beam_ner", beam_width=4, beam_density=0.0)
    ours = twin_of(stock)
    drafts = random_drafts(24, 43, presets, longest=8)
    wanted = recognize(stock.get_pipe("ner"), docs_of(drafts, stock.vocab))
    assert recognize(ours.get_pipe("ner"), docs_of(drafts, ours.vocab)) == wanted
    assert any(kind for doc in wanted for _, kind in doc)


def test_trained_beam_recognizer():
    stock, ours = trained_once("beam_ner"), trained_once("calib_beam_ner")
    docs = list(ours.pipe(TEXTS))
    assert entity_tokens(docs) == entity_tokens(list(stock.pipe(TEXTS)))
    assert any(doc.ents for doc in docs)
    ner = ours.get_pipe("ner")
    for doc in docs:
        if not len(doc):
            continue
        reading = kept_readings(doc, "ner")
        assert isinstance(reading, BeamReading)
        fresh = ours.make_doc(doc.text)
        (scored,) = ner.scored_ents(ner.beam_parse([fresh], beam_width=32, beam_density=0.01))
        assert path_probabilities(reading) == pytest.approx(dict(scored), abs=1e-6)
        assert {(s, e, reading.types[kind]) for s, e, kind in keys_of(reading.entities)} == set(entity_keys(doc))
