"""What goes to annotation tools: entities that were not accepted, and batches in the formats that queues have."""

import pytest
import spacy

from spacy_calib.calibration.cutoffs import Cutoffs
from tests.cli.conftest import annotated, calib, docs_in, json_of, ok, refuses
from tests.sentences import says


@pytest.fixture(scope="module")
def accepting(calibrated_ner, tmp_path_factory):
    """The recognizer with a cut-off of .7."""
    path = tmp_path_factory.mktemp("accepting") / "pipeline"
    nlp = spacy.load(calibrated_ner)
    nlp.get_pipe("calib_ent").spans.cutoffs = Cutoffs(0.9, 0.95, "all", {"all": 0.7})
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="module")
def texts(entity_test, tmp_path_factory):
    """The texts of the gold without it."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    docs = docs_in(entity_test)
    path.write_text("\n".join(doc.text for doc in docs))
    return path


def ranked(model, data, *options):
    return json_of("rank", model, data, "--repeats", *options)


@pytest.mark.parametrize("of_gold", [True, False])
def test_entities_below_their_cut_off_make_a_queue(of_gold, accepting, entity_test, texts):
    """Of plain texts as many as are asked for are held, and the rest counted."""
    data, options = (entity_test, ()) if of_gold else (texts, ("--top", 1000))
    every, found = ranked(accepting, data, *options), ranked(accepting, data, "--not-accepted", *options)
    assert every["accepted"] == 0
    assert 0 < found["accepted"] < len(every["ranked"])
    assert all(record["score"] < 0.7 for record in found["ranked"])
    below = [record["focus"] for record in every["ranked"] if record["score"] < 0.7]
    assert [record["focus"] for record in found["ranked"]] == below
    assert found["accepted"] == len(every["ranked"]) - len(below)
    assert found["units"] == len(below)
    assert found["expected_wrong"] == pytest.approx(sum(1 - record["score"] for record in found["ranked"]))
    if of_gold:
        spans = [ent for doc in annotated(accepting, data) for ent in doc.ents]
        assert sorted(ent.text for ent in spans if ent._.calib_accept is False) == sorted(below)
    shown = ok(calib("rank", accepting, data, "--not-accepted", "--repeats")).text
    assert f"Left out: {found['accepted']:,} accepted (--not-accepted)" in shown
    assert f"By their scores about {found['expected_wrong']:,.0f} of these {found['units']:,} are wrong" in shown


def test_what_has_no_cut_off_cannot_be_below_one(calibrated, calibrated_ner, accepting, entity_test, test_file):
    refuses(calib("rank", calibrated_ner, entity_test, "--not-accepted"), "The pipe 'calib_ent' has no cut-offs")
    refuses(calib("rank", calibrated, test_file, "--not-accepted"), says("C065"))
    given = (accepting, entity_test, "--not-accepted", "--unit", "token")
    refuses(calib("rank", *given), "Option --not-accepted must be left out with --unit token")


def test_a_suffix_of_another_format_is_refused(accepting, texts, tmp_path):
    given = (accepting, texts, "--format", "prodigy", "--output", tmp_path / "batch.spacy")
    refuses(calib("rank", *given), "Option --output must be a file that ends in .jsonl or .json with --format prodigy")
