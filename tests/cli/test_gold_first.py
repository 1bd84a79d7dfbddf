"""Data without gold is refused before the pipeline runs over it."""

import pytest
import spacy

from spacy_calib.cli.fitting import new_calib
from spacy_calib.cli.shared import run
from tests.cli.conftest import calib, made_up_sentences, refuses, save_docs


@pytest.fixture
def without_gold(tmp_path):
    """Texts without any annotation."""
    vocab = spacy.blank("xx").vocab
    docs = [spacy.tokens.Doc(vocab, words=[word for word, _ in sentence]) for sentence in made_up_sentences(8, 3)]
    return save_docs(tmp_path / "bare.spacy", docs)


@pytest.fixture
def no_pass(monkeypatch):
    """The pipeline may not run."""

    def run_pipes(*arguments, **settings):
        raise AssertionError("the pipeline ran over data without gold")

    for module in (new_calib, run):
        monkeypatch.setattr(module, "run_pipes", run_pipes)


def test_a_fit_looks_at_the_gold_first(model, without_gold, tmp_path, no_pass):
    refuses(calib("fit", model, without_gold, tmp_path / "out"), "The data has no gold tag annotation")


def test_so_do_commands_on_a_recognizer(ner_model, calibrated_ner, without_gold, tmp_path, no_pass):
    refuses(calib("fit", ner_model, without_gold, tmp_path / "out", "-C", "ner"), "The data has no gold")
    refuses(calib("evaluate", calibrated_ner, without_gold), "The data has no gold")
    refuses(calib("threshold", calibrated_ner, without_gold, "--precision", 0.9), "The data has no gold")
