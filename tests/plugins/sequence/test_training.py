"""Sequence models through `spacy init labels`, `spacy train` and `spacy package`, as a user runs them."""

from __future__ import annotations

import warnings

import pytest
import spacy
from spacy.cli._util import app
from spacy.tokens import DocBin, Span, Token
from thinc.api import Config
from typer.testing import CliRunner

from spacy_calib.errors import CalibError
from tests.plugins.kinds import tag_docs
from tests.plugins.sequence.trained import SMALL

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:spacy.*")
READER = {"@readers": "spacy.Corpus.v1", "max_length": 0, "gold_preproc": False, "limit": 0, "augmenter": None}


def gold(n, seed):
    """Tagged sentences; nouns are entities, and their tags stand in an extension too."""
    docs = tag_docs(n, seed)
    for doc in docs:
        doc.set_ents([Span(doc, token.i, token.i + 1, "THING") for token in doc if token.tag_ == "NOUN"])
        for token in doc:
            token._.train_kind = token.tag_
    return docs


def run(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(app, [*map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    Token.set_extension("train_kind", default="", force=True)
    folder = tmp_path_factory.mktemp("train")
    for name, n, seed in (("train", 30, 1), ("dev", 10, 2)):
        DocBin(docs=gold(n, seed), store_user_data=True).to_disk(folder / f"{name}.spacy")
    components = {
        "calib_hmm": {"factory": "calib_hmm", "target": "tag"},
        "calib_online": {"factory": "calib_online", "target": "ents", "features": ["ORTH[0]", "TAG[-1] TAG[0]"], "rule": "arow"},
        "calib_crf": {"factory": "calib_crf", "target": "_.train_kind", "model": SMALL},
    }  # fmt: skip
    labels = folder / "labels"
    config = Config(
        {
            "paths": {"train": str(folder / "train.spacy"), "dev": str(folder / "dev.spacy")},
            "nlp": {"lang": "xx", "pipeline": [*components]},
            "components": components,
            "corpora": {name: {**READER, "path": str(folder / f"{name}.spacy")} for name in ("train", "dev")},
            "training": {"max_steps": 20, "eval_frequency": 10, "annotating_components": ["calib_hmm"]},
            "initialize": {"components": {"calib_crf": {"labels": {"@readers": "spacy.read_labels.v1", "path": str(labels / "calib_crf.json")}}}},
        }
    )  # fmt: skip
    config.to_disk(folder / "part.cfg")
    run("init", "fill-config", folder / "part.cfg", folder / "config.cfg")
    without = Config().from_disk(folder / "config.cfg", interpolate=False)
    without["initialize"]["components"] = {}
    without.to_disk(folder / "unlabelled.cfg")
    run("init", "labels", folder / "unlabelled.cfg", labels)
    run("train", folder / "config.cfg", "--output", folder / "out")
    return folder


def test_the_config_weighs_the_score_of_each_target(folder):
    weights = Config().from_disk(folder / "config.cfg")["training"]["score_weights"]
    assert {name for name, weight in weights.items() if weight == 0.33} == {"tag_acc", "ents_f", "train_kind_acc"}
    assert sum(map(bool, weights.values())) == 3


def test_a_best_model_is_kept_and_loads(folder):
    nlp = spacy.load(folder / "out" / "model-best")
    found = nlp.meta["performance"]
    # A few steps only.
    for name, minimum in (("tag_acc", 0.8), ("ents_f", 0.5), ("train_kind_acc", 0.4)):
        assert found[name] > minimum, found
    assert found["calib_online_loss"] >= 0  # sentences that it labelled wrongly before it learned from them
    assert nlp.get_pipe("calib_online").learner.n_seen > 30
    assert nlp.analyze_pipes()["problems"] == {"calib_hmm": [], "calib_online": [], "calib_crf": []}


def test_processes_and_batches_give_the_same(folder):
    nlp = spacy.load(folder / "out" / "model-best")
    texts = [doc.text for doc in DocBin().from_disk(folder / "dev.spacy").get_docs(nlp.vocab)]

    def found(docs):
        return [[(token.tag_, token.ent_iob_, token.ent_type_, token._.train_kind) for token in doc] for doc in docs]

    together = found(nlp.pipe(texts))
    assert found(map(nlp, texts)) == together
    assert found(nlp.pipe(texts, n_process=2, batch_size=3)) == together


def test_trained_further_and_rehearsed(folder):
    nlp = spacy.load(folder / "out" / "model-best")
    optimizer = nlp.resume_training()
    examples = [spacy.training.Example(nlp.make_doc(doc.text), doc) for doc in DocBin(store_user_data=True).from_disk(folder / "train.spacy").get_docs(nlp.vocab)]  # fmt: skip
    before = nlp.get_pipe("calib_online").learner.n_seen
    nlp.rehearse(examples, sgd=optimizer)
    losses = nlp.update(examples, sgd=optimizer, exclude=["calib_crf"])
    assert set(losses) >= {"calib_online"}
    assert "calib_crf" not in losses
    assert nlp.get_pipe("calib_online").learner.n_seen > before


def test_a_labels_file_that_lacks_a_label_stops_the_training(folder):
    nlp = spacy.util.load_model_from_config(Config().from_disk(folder / "unlabelled.cfg"), auto_fill=True)
    examples = [spacy.training.Example(nlp.make_doc(doc.text), doc) for doc in DocBin(store_user_data=True).from_disk(folder / "train.spacy").get_docs(nlp.vocab)]  # fmt: skip
    nlp.config["initialize"]["components"] = {"calib_hmm": {"labels": ["ADJ", "DET", "NOUN", "PUNCT"]}}
    with pytest.raises(CalibError, match=r"C339.*'VERB' .*'calib_hmm' \(ADJ, DET, NOUN, PUNCT\).*spacy init labels"):
        nlp.initialize(lambda: examples)
