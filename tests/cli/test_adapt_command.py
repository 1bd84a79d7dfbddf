"""`spacy calib adapt`: labelled documents of a new kind, and the pipeline with what they tell."""

import json
import random

import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

import spacy_calib
from tests.cli.conftest import calib, entity_docs, json_of, ok, refuses, save_docs
from tests.conftest import gold_doc, made_up_sentences
from tests.sentences import says


def odd_docs(n: int, seed: int = 5) -> list[Doc]:
    """Documents of eight sentences in which four of ten gold tags are drawn at random."""
    rng, vocab = random.Random(seed), Vocab()

    def tag_of(tag: str) -> str:
        return rng.choice(["DET", "NOUN", "VERB", "ADJ"]) if rng.random() < 0.4 else tag

    return [
        Doc.from_docs(
            [gold_doc(vocab, [(word, tag_of(tag)) for word, tag in one]) for one in made_up_sentences(8, 90 * seed + number)]
        )
        for number in range(n)
    ]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    return save_docs(tmp_path_factory.mktemp("odd") / "odd.spacy", odd_docs(6))


@pytest.fixture(scope="module")
def adapted(calibrated, odd, tmp_path_factory):
    """(the folder, what was printed)."""
    path = tmp_path_factory.mktemp("adapted") / "adapted"
    outcome = ok(calib("adapt", calibrated, odd, path))
    return path, outcome


def test_it_says_what_was_learned_and_how_far_it_can_be_trusted(adapted):
    path, outcome = adapted
    assert f"Adapted tagger to 6 Docs of the file ({sum(map(len, odd_docs(6)))} tokens)" in outcome.text
    assert "the top label of a token had a mean score" in outcome.text
    assert "Learned: 0.6 becomes" in outcome.text
    assert "After, held out" in outcome.text
    assert "Cross-validation over 6 Docs of the file: on other texts of this domain" in outcome.text
    shown = calib("info", path).text
    assert "Adapted to 6 Docs of the file" in shown
    assert "after (held out)" in shown


def test_evaluate_finds_true_scores_and_knows_the_labelled_documents(adapted, calibrated, odd, tmp_path):
    path, _ = adapted
    others = save_docs(tmp_path / "others.spacy", odd_docs(20, 6))
    before, after = (spacy_calib.evaluate(model, others)["calib"]["scores"] for model in (calibrated, path))
    assert after["ece"]["calibrated"] < 0.6 * before["ece"]["calibrated"]
    assert "JUDGED ON THE FIT DATA" in calib("evaluate", path, odd).text


def test_json_is_the_record_of_the_adaptation(calibrated, odd, tmp_path):
    printed = json_of("adapt", calibrated, odd, tmp_path / "out")
    (made,) = spacy.load(tmp_path / "out").get_pipe("calib").fit_info.state()["adaptations"]
    assert printed == json.loads(json.dumps({"output": str(tmp_path / "out"), "pipe": "calib", **made}))
    assert set(made["tokens"]) == {"entries", "right", "leading", "other", "offsets", "before", "after"}


def test_from_python_it_prints_nothing_and_warns(adapted, odd, tmp_path, capsys):
    with pytest.warns(UserWarning, match=r"\[CW14\] 100 %"):
        pipe = spacy_calib.adapt(adapted[0], odd, tmp_path / "again", component="calib")
    assert len(pipe.fit_info.adaptations) == 2
    assert capsys.readouterr().out == ""


def test_one_document_is_warned_about(calibrated, tmp_path):
    one = save_docs(tmp_path / "one.spacy", odd_docs(1))
    outcome = calib("adapt", calibrated, one, tmp_path / "out")
    assert "A single document cannot show how documents differ" in outcome.text
    assert "UserWarning" not in outcome.printed


def test_entities_are_adapted_beside_tokens(calibrated_ner, tmp_path):
    few = save_docs(tmp_path / "few.spacy", entity_docs(8, 77))
    assert "an entity had a mean score" in ok(calib("adapt", calibrated_ner, few, tmp_path / "out")).text
    nlp = spacy.load(tmp_path / "out")
    assert len(nlp.get_pipe("calib_ent").spans.adaptations) == 1
    text = " ".join(token.text for token in entity_docs(1, 78)[0])
    before, after = ([ent._.calib_score for ent in pipeline(text).ents] for pipeline in (spacy.load(calibrated_ner), nlp))
    assert len(before) == len(after) > 0
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_bad_input_is_a_sentence_and_writes_nothing(calibrated, odd, tmp_path):
    out = tmp_path / "out"
    bare = save_docs(tmp_path / "bare.spacy", [Doc(Vocab(), words=["the", "dog"])])
    refuses(calib("adapt", calibrated, bare, out), "has no gold tag annotation for component 'tagger'")
    assert not out.exists()
    refuses(calib("adapt", calibrated, odd, calibrated), "exists already")
    refuses(calib("adapt", calibrated, odd, calibrated / "inside"), says("C100"))
