"""Nothing to judge: the sentence names what is to blame, the pipeline or the gold."""

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from tests.cli.conftest import calib, ok, refuses, save_docs
from tests.conftest import made_up_sentences
from tests.sentences import says

COMMANDS = {"evaluate": ["--kind", "reliability"], "rank": []}


@pytest.fixture(scope="module")
def half_asleep(calibrated, tmp_path_factory):
    """The calibrated pipeline with its tok2vec disabled."""
    nlp = spacy.load(calibrated)
    nlp.disable_pipe("tok2vec")
    path = tmp_path_factory.mktemp("half_asleep") / "m"
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="module")
def other_tags(tmp_path_factory):
    """Gold of which the tagger knows no tag."""
    vocab = Language().vocab
    sentences = made_up_sentences(20, 3)
    docs = [Doc(vocab, words=[word for word, _ in one], tags=[f"x{tag}" for _, tag in one]) for one in sentences]
    return save_docs(tmp_path_factory.mktemp("other_tags") / "t.spacy", docs)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_disabled_tok2vec_is_named_and_the_data_is_not_blamed(half_asleep, test_file, command):
    outcome = calib(command, half_asleep, test_file, *COMMANDS[command])
    refuses(outcome, "Component 'tok2vec' is disabled, and 'tagger' listens to it; enable it (nlp.enable_pipe('tok2vec')")
    assert "no gold" not in outcome.text


@pytest.mark.parametrize("command", COMMANDS)
def test_gold_of_which_no_tag_is_known_is_no_gold(calibrated, other_tags, command):
    outcome = calib(command, calibrated, other_tags, *COMMANDS[command])
    refuses(outcome, says("C151", component="tagger", gold="xADJ, xDET, xNOUN, xPUNCT, xVERB"))


def test_where_gold_is_not_used_its_labels_do_not_matter(calibrated, other_tags):
    ok(calib("expect", calibrated, other_tags))
