"""Every command that judges says in red, in text and JSON, when it judges on the data of the fit."""

import json

import pytest
from spacy.language import Language
from spacy.tokens import Doc

from tests.cli.conftest import calib, docs_in, json_of, ok, refuses, save_docs
from tests.conftest import gold_doc, made_up_sentences

WARNING = "JUDGED ON THE FIT DATA"


def chunks(path, n, seed, size=1):
    """Made-up gold with a word of its own in each sentence, so that none occurs twice, in documents of `size` sentences."""
    vocab = Language().vocab
    sentences = [
        [*words[:-1], ("the", "DET"), (f"u{seed}{i}", "NOUN"), words[-1]] for i, words in enumerate(made_up_sentences(n, seed))
    ]
    docs = [gold_doc(vocab, sentence) for sentence in sentences]
    return save_docs(path, [Doc.from_docs(docs[i : i + size]) for i in range(0, n, size)])


@pytest.fixture(scope="module")
def place(model, tmp_path_factory):
    """A folder with m (fitted on fit.spacy), fit.spacy, chunks.spacy (the same sentences by ten), new.spacy."""
    folder = tmp_path_factory.mktemp("seen")
    chunks(folder / "fit.spacy", 100, 1)
    chunks(folder / "chunks.spacy", 100, 1, 10)
    chunks(folder / "new.spacy", 100, 2)
    ok(calib("fit", model, folder / "fit.spacy", folder / "m", "--method", "isotonic", "--silent"))
    return folder


COMMANDS = ("evaluate", "rank")


def run(place, command, data, *options):
    return calib(command, place / "m", place / data, *options)


def found(outcome):
    result = json.loads(outcome.printed[outcome.printed.index("{") :])
    return result.get("seen") or next((one["seen"] for one in result.values() if isinstance(one, dict) and "seen" in one), None)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_fit_data_is_known_in_json(place, command):
    for data, documents in (("fit.spacy", 100), ("chunks.spacy", 10)):
        assert found(run(place, command, data, "--format", "json")) == {
            "documents": documents, "seen": documents, "share": 1.0, "many": True,
        }  # fmt: skip
    new = found(run(place, command, "new.spacy", "--format", "json"))
    assert (new["seen"], new["share"], new["many"]) == (0, 0.0, False)


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_said(place, command):
    assert WARNING in run(place, command, "chunks.spacy").text
    assert WARNING not in run(place, command, "new.spacy").text


def test_the_page_has_a_banner_and_no_verdict(place, tmp_path):
    for data, known in (("chunks.spacy", True), ("new.spacy", False)):
        page = tmp_path / f"{data}.html"
        outcome = run(place, "evaluate", data, "-o", page, "-o", tmp_path / f"{data}.svg")
        assert (WARNING in outcome.text) == ('class="alarm"' in page.read_text("utf8")) == known
        assert ("No test: evaluated on the fit data" in outcome.text) == known


def test_cut_offs_of_the_fit_data(calibrated_ner, entity_dev):
    assert json_of("threshold", calibrated_ner, entity_dev, "--precision", 0.5)["seen"]["share"] == 1.0
    assert WARNING in calib("threshold", calibrated_ner, entity_dev, "--precision", 0.5).text


TRAINED = "FITTED ON THE TRAINING DATA"


def fit(model, data, out, train, *options):
    return calib("fit", model, *data, out, "--train-data", train, "--method", "isotonic", *options)


@pytest.mark.parametrize("data", ["fit.spacy", "chunks.spacy"])
def test_a_fit_on_the_training_data_is_refused_unless_it_is_wanted(place, model, tmp_path, data):
    outcome = fit(model, [place / data], tmp_path / "out", place / "fit.spacy")
    documents = {"fit.spacy": 100, "chunks.spacy": 10}[data]
    refuses(
        outcome,
        f"{TRAINED}: {documents} of {documents} documents (100 % of the words) are in the training data too (--train-data)",
    )
    assert not (tmp_path / "out").exists()
    outcome = fit(model, [place / data], tmp_path / "out", place / "fit.spacy", "--allow-seen")
    assert (outcome.code, f"{TRAINED}: {documents} of {documents}" in outcome.text) == (0, True)
    assert (tmp_path / "out").exists()


def test_other_training_data_passes_and_a_little_of_it_is_a_warning(place, model, tmp_path):
    outcome = fit(model, [place / "fit.spacy"], tmp_path / "out", place / "new.spacy")
    assert (outcome.code, "--train-data too" in outcome.text) == (0, False)
    mixed = [*docs_in(place / "fit.spacy"), *docs_in(place / "new.spacy")]
    few, half = save_docs(tmp_path / "few.spacy", mixed[:103]), save_docs(tmp_path / "half.spacy", mixed)
    outcome = fit(model, [few], tmp_path / "few", place / "new.spacy")
    assert (outcome.code, "3 of 103 documents (3 % of the words) are in --train-data too" in outcome.text) == (0, True)
    refuses(fit(model, [half], tmp_path / "half", place / "new.spacy"), f"{TRAINED}: 100 of 200 documents")
