"""Answers of a language model through the command line: no dotted setting, each text asked for once, every command that reads scores."""

import json
from pathlib import Path

import pytest
import spacy

from tests.asked import ASK, asking, gold_docs, n_asked
from tests.cli.conftest import calib, ok, refuses, save_docs, scores_at

pytestmark = pytest.mark.usefixtures("registered_until_the_end")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder after a fit and other commands; "asked" says how often the model was asked up to each."""
    folder = tmp_path_factory.mktemp("answers")
    ask, counts = {"@calib_asks": ASK, "log": str(folder / "log")}, []
    asking(ask=ask, cache=str(folder / "cache.sqlite"), threshold=0.3).to_disk(folder / "model")
    for name, seed in (("dev", 1), ("test", 2)):
        save_docs(folder / f"{name}.spacy", gold_docs(120, seed))
    for command in (
        ("fit", folder / "model", folder / "dev.spacy", folder / "sure", "--component", "names"),
        ("fit", folder / "model", folder / "dev.spacy", folder / "again", "-C", "names", "--method", "platt"),
        ("evaluate", folder / "sure", folder / "test.spacy", "--output", folder / "figures.json"),
        ("threshold", folder / "sure", folder / "test.spacy", "--precision", "0.7", "--apply", folder / "accepting"),
        ("rank", folder / "sure", folder / "test.spacy"),
    ):
        ok(calib(*command))
        counts.append(n_asked(folder / "log"))
    (folder / "asked").write_text(json.dumps(counts))
    return folder


def test_a_model_is_asked_once_per_text_by_all_commands(place):
    counts = json.loads((place / "asked").read_text())
    assert (counts[0], counts[-1]) == (120 + 1, 240 + 1)  # and one text that every written pipeline is tried on


def test_what_the_commands_say(place):
    change = json.loads((place / "figures.json").read_text())["calib_ent"]["entities"]["change"]
    assert change["nll"]["high"] < 0  # new answers, judged by new gold
    assert change["brier"]["high"] < 0
    nlp = spacy.load(place / "sure")
    docs = spacy.load(place / "accepting").pipe(doc.text for doc in gold_docs(40, 2))
    assert {ent._.calib_accept for doc in docs for ent in doc.ents} == {True, False}
    doc = nlp(gold_docs(1, 2)[0].text)
    assert {(span.text, span.label_) for span in doc.spans["answers"]} >= {(ent.text, ent.label_) for ent in doc.ents}


def test_candidates_have_scores_too(place):
    nlp = spacy.load(place / "sure")
    docs = list(nlp.pipe([doc.text for doc in gold_docs(40, 2)]))
    candidates = [one for doc in docs for one in doc._.calib_ent.candidates]
    assert len(candidates) == sum(len(doc.spans["answers"]) - len(doc.ents) for doc in docs) > 0
    assert all(0 < one.score < 1 for one in candidates)


def test_any_tools_spans_by_one_option(place, tmp_path):
    """`spans_from` in a component of one's own: the key of its group is the score."""
    code = tmp_path / "tool.py"
    code.write_text(
        "from spacy.language import Language\n"
        "from spacy_calib import spans_from\n"
        "@Language.component('tool')\n"
        "def tool(doc):\n"
        "    found = [{'start': t.idx, 'end': t.idx + len(t), 'label': 'PER' if t.text in ('Ann', 'Kim') else 'LOC', 'score': .2 + .1 * len(t)} for t in doc if t.is_title]\n"
        "    spans_from(doc, found, threshold=.55)\n"
        "    return doc\n"
    )
    spacy.util.import_file("python_code", code)
    nlp = spacy.blank("xx")
    nlp.add_pipe("tool")
    nlp.to_disk(tmp_path / "model")
    options = ("-C", "tool", *scores_at("Span", "found"), "--code", code)
    ok(calib("fit", tmp_path / "model", place / "dev.spacy", tmp_path / "sure", *options))
    doc = spacy.load(tmp_path / "sure")("Ann saw Rome")
    assert [(ent.text, round(ent._.calib_raw, 1)) for ent in doc.ents] == [("Rome", 0.6)]
    assert [round(one.raw, 1) for one in doc._.calib_ent.candidates] == [0.5]


def test_an_answer_without_numbers_is_one_sentence(place, tmp_path):
    from spacy_calib.registry import registry

    silent = {"choices": [{"message": {"content": "Ann"}, "logprobs": None}]}
    registry.calib_asks("tests.Silent.v1", func=lambda: lambda text: silent)
    asking(ask={"@calib_asks": "tests.Silent.v1"}).to_disk(tmp_path / "model")
    refuses(calib("fit", tmp_path / "model", place / "dev.spacy", tmp_path / "m", "-C", "names"), "`logprobs` is null")
