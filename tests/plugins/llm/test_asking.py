"""The component that asks a language model: what it leaves on Docs, its cache, and what it refuses."""

import json
import math
import sqlite3

import pytest
import spacy
from spacy.training import Example

from spacy_calib import Answer
from spacy_calib.errors import CalibError
from spacy_calib.plugins.llm.asking import Cache
from spacy_calib.registry import registry
from spacy_calib.sources.find import source_block
from tests.asked import TYPES, asking, gold_docs, n_asked, respond, say
from tests.forked import fork
from tests.sentences import says

TEXT = "Ann saw Rome"


def test_entities_with_several_scores():
    doc = asking()(TEXT)
    wanted = say(TEXT)
    assert [(ent.text, ent.label_) for ent in doc.ents] == [(name, TYPES[kind]) for name, kind, *_ in wanted]
    attrs = doc.spans["answers"].attrs
    assert attrs["scores"] == pytest.approx([own * of_type for *_, own, of_type in wanted])
    assert attrs["first"] == pytest.approx([of_type for *_, of_type in wanted])
    assert attrs["margin"] == pytest.approx([2 * of_type - 1 for *_, of_type in wanted])
    assert attrs["counts"] == {"found": 2, "fields": 2}


def test_spans_of_a_group_alone():
    doc = asking(into="found")(TEXT)
    assert not doc.has_annotation("ENT_IOB")
    assert [span.text for span in doc.spans["found"]] == ["Ann", "Rome"]


def test_candidates_and_types_that_the_model_invented():
    doc = asking(threshold=1.0, types={"person": "PER"})(TEXT)
    kinds = [kind for _, kind, *_ in say(TEXT)]
    assert not doc.ents
    assert len(doc.spans["answers"]) == kinds.count("person")
    assert doc.spans["answers"].attrs["counts"].get("invented", 0) == kinds.count("place")


def test_categories_are_what_the_answer_begins_with():
    good = {" good": math.log(0.6), "bad": math.log(0.2)}
    answer = {"tokens": [" good"], "logprobs": [math.log(0.6)], "top_logprobs": [good]}
    registry.calib_asks("tests.Good.v1", func=lambda: lambda text: answer)
    doc = asking(ask={"@calib_asks": "tests.Good.v1"}, into="cats", types={"good": "G", "bad": "B"})("Ann")
    assert doc.cats == pytest.approx({"G": 0.75, "B": 0.25})
    own = {key: doc.user_data[key] for key in doc.user_data if "answers" in key}
    assert own == pytest.approx({"answers_product": 0.6, "answers_margin": 0.4})
    with pytest.raises(CalibError, match=r"\[C001\] types must be given if into is 'cats'"):
        asking(into="cats", types=None)


def test_a_model_that_fails_is_a_sentence():
    def ask(text):
        raise ConnectionError("no route to host")

    registry.calib_asks("tests.Down.v1", func=lambda: ask)
    with pytest.raises(CalibError, match=says("C644", name="names", text="Ann saw Rome", why="no route to host")):
        asking(ask={"@calib_asks": "tests.Down.v1"})(TEXT)


def test_a_doc_without_words_is_not_asked_about():
    nlp = asking()
    doc = nlp("")
    assert (nlp.get_pipe("names").n_asked, len(doc.spans)) == (0, 0)


PARIS = json.dumps([{"text": "Paris", "type": "place"}])
ANSWERS = {
    "good": (PARIS, "stop"), "fenced": (f"Sure:\n```json\n{PARIS}\n```", "stop"), "cut": (PARIS[:14], "length"),
    "refused": ("", "refusal"), "filtered": ("", "content_filter"), "called": ("", "tool_calls"),
    "unreadable": ("Sorry, I cannot do that.", "stop"),
}  # fmt: skip


def answering(**settings):
    """A pipeline whose answer the first word of a text names."""

    def ask(text):
        content, reason = ANSWERS[text.split()[0]]
        tokens = [{"token": sign, "logprob": -0.1} for sign in content]
        return {"choices": [{"message": {"content": content}, "logprobs": {"content": tokens}, "finish_reason": reason}]}

    registry.calib_asks("tests.Named.v1", func=lambda: ask)
    read = {"text": "[].text", "type": "[].type"}
    return asking(**{"ask": {"@calib_asks": "tests.Named.v1"}, "read": read, **settings})


def test_an_answer_that_is_none_is_counted_and_does_not_end_the_run(recwarn):
    nlp = answering()
    docs = {name: nlp(f"{name} Paris") for name in [*ANSWERS, *ANSWERS]}
    found = {name: [ent.text for ent in doc.ents] for name, doc in docs.items() if doc.ents}
    assert found == {"good": ["Paris"], "fenced": ["Paris"]}
    assert docs["good"].spans["answers"].attrs["counts"] == {"found": 1, "fields": 1}
    for name in ("cut", "refused", "filtered", "called", "unreadable"):
        assert docs[name].spans["answers"].attrs["counts"] == {name: 1, "fields": 0}
        assert nlp.get_pipe("names").outcomes[name] == 2
    said = [str(one.message) for one in recwarn if "CW86" in str(one.message)]
    assert len(said) == 5  # once for each kind
    assert any("begins 'unreadable Paris' is unreadable (there is no whole JSON in it)" in one for one in said)


@pytest.mark.filterwarnings("ignore:.*CW86")
def test_a_cut_answer_gives_its_whole_lines():
    tokens = ["Ann", " -> person", "\n", "Rome", " -> pl"]
    numbers = {"tokens": tokens, "token_logprobs": [-0.1] * 5}
    response = {"choices": [{"text": "".join(tokens), "logprobs": numbers, "finish_reason": "length"}]}
    registry.calib_asks("tests.Cut.v1", func=lambda: lambda text: response)
    doc = asking(ask={"@calib_asks": "tests.Cut.v1"})(TEXT)
    assert [ent.text for ent in doc.ents] == ["Ann"]
    assert doc.spans["answers"].attrs["counts"] == {"found": 1, "fields": 1, "cut": 1}


@pytest.mark.filterwarnings("ignore:.*CW86")
@pytest.mark.parametrize("name", ["refused", "unreadable"])
def test_a_category_that_is_not_answered(name):
    nlp = answering(into="cats", types={"good": "G", "bad": "B"}, read=None)
    assert (nlp(name).cats, nlp.get_pipe("names").outcomes["refused"]) == ({}, name == "refused")


def test_a_category_within_markdown():
    tops = [{"token": "good", "logprob": math.log(0.6)}, {"token": "bad", "logprob": math.log(0.2)}]
    bold, good = {"token": "**", "logprob": 0.0}, {**tops[0], "top_logprobs": tops}
    registry.calib_asks("tests.Bold.v1", func=lambda: lambda text: {"logprobs": {"content": [bold, good, bold]}})
    doc = asking(ask={"@calib_asks": "tests.Bold.v1"}, into="cats", types={"good": "G", "bad": "B"})("Ann")
    assert doc.cats == pytest.approx({"G": 0.75, "B": 0.25})
    assert doc.user_data["answers_product"] == pytest.approx(0.6)


def test_the_component_can_be_a_key():
    assert len({asking().get_pipe("names"), asking().get_pipe("names")}) == 2


def test_two_pipes_of_no_pipeline_do_not_share_answers(tmp_path):
    """Made by hand they have no block of a config, by which answers are found."""

    def pipe(word):
        config = {"ask": {"@calib_asks": "tests.Word.v1", "word": word}, "cache": str(tmp_path / "cache")}
        return spacy.blank("xx").create_pipe("calib_answers", config=config)

    registry.calib_asks("tests.Word.v1", func=lambda word: lambda text: {"tokens": [word], "logprobs": [-0.1]})
    pipes = [pipe("dog"), pipe("cat")]
    assert [one.answer("x").text for one in pipes] == ["dog", "cat"]
    assert [one.answer("x").text for one in pipes] == ["dog", "cat"]
    assert [one.n_asked for one in pipes] == [1, 1]


def test_a_database_of_another_program_stays_as_it_is(tmp_path):
    with sqlite3.connect(tmp_path / "theirs") as theirs:
        theirs.execute("CREATE TABLE bookmarks (url TEXT)")
    theirs.close()
    before = (tmp_path / "theirs").read_bytes()
    with pytest.raises(CalibError, match=r"\[C646\].*another program's"):
        Cache(str(tmp_path / "theirs")).put("x", Answer.from_response(respond(TEXT)))
    assert (tmp_path / "theirs").read_bytes() == before


def test_a_deep_answer_in_the_cache_is_a_sentence(tmp_path):
    cache = Cache(str(tmp_path / "cache"))
    with cache._open() as open_cache:
        open_cache.execute("INSERT INTO answers VALUES ('x', ?)", ["[" * 100_000])
    with pytest.raises(CalibError, match=r"\[C646\].*an answer in it cannot be read"):
        cache.get("x")


def logged(tmp_path, **settings):
    ask = {"@calib_asks": "tests.Asked.v1", "log": str(tmp_path / "log")}
    return asking(**{"ask": ask, "cache": str(tmp_path / "a" / "cache.sqlite"), **settings})


def test_each_text_is_asked_for_once_whatever_pipeline_asks(tmp_path):
    texts = [TEXT, "Kim saw Oslo", TEXT]
    first = [doc.spans["answers"].attrs["scores"] for doc in logged(tmp_path).pipe(texts)]
    assert n_asked(tmp_path / "log") == 2
    nlp = logged(tmp_path, threshold=0.3)
    nlp.to_disk(tmp_path / "saved")
    again = [doc.spans["answers"].attrs["scores"] for doc in spacy.load(tmp_path / "saved").pipe(texts)]
    assert again == first
    assert n_asked(tmp_path / "log") == 2
    saved = [path for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert not any(b"Oslo" in path.read_bytes() for path in saved)  # no answer is saved with the pipeline


def test_another_model_is_asked_anew(tmp_path):
    logged(tmp_path)(TEXT)
    logged(tmp_path, ask={"@calib_asks": "tests.Asked.v1", "log": str(tmp_path / "other")})(TEXT)
    assert (n_asked(tmp_path / "log"), n_asked(tmp_path / "other")) == (1, 1)


def _ask_and_die(path: str) -> None:
    import os

    held = Cache(path)
    held.put("whole", Answer.from_response(respond(TEXT)))
    with held._open() as open_cache:
        open_cache.execute("INSERT INTO answers VALUES ('half', '{')")
        os._exit(9)  # before it is committed


def test_a_killed_run_leaves_what_was_written_and_nothing_half(tmp_path):
    assert fork(lambda: _ask_and_die(str(tmp_path / "cache"))).end()[0] == 9
    held = Cache(str(tmp_path / "cache"))
    assert held.get("half") is None
    assert held.get("whole").plain()["logprobs"]["content"][0]["bytes"] == [65, 110, 110]


def test_files_that_are_no_cache(tmp_path):
    (tmp_path / "text").write_text("no database, but longer than any header of one " * 9)
    with sqlite3.connect(tmp_path / "broken") as held:
        held.execute("CREATE TABLE answers (digest TEXT PRIMARY KEY, answer TEXT NOT NULL)")
        held.execute("INSERT INTO answers VALUES ('x', '{')")
    held.close()
    for name in ("text", "broken", "text/below"):
        with pytest.raises(CalibError, match=r"\[C646\] The cache of answers at "):
            Cache(str(tmp_path / name)).get("x")


@pytest.mark.parametrize(("settings", "source", "wanted"), [
    ({}, "SpanScores", {"score": ["answers", "least", "first", "margin"]}),
    ({"into": "x"}, "SpanScores", {"spans_key": "x", "score": ["scores", "least", "first", "margin"]}),
    ({"into": "cats"}, "DocScores", {"score": ["cats", "answers_product", "answers_margin"]}),
])  # fmt: skip
def test_the_source_of_the_scores_of_a_component(settings, source, wanted):
    block = source_block(asking(**settings).get_pipe("names"), "names")
    assert block == {"@calib_sources": f"spacy-calib.{source}.v1", "component": "names", **wanted}


def test_further_scores_make_the_map_better():
    """The first score says nothing of these answers, the probability of the type all."""
    losses = {}
    for score in (["answers"], ["answers", "least", "first", "margin"]):
        nlp = asking()
        source = {"@calib_sources": "spacy-calib.SpanScores.v1", "component": "names", "score": score}
        calib = nlp.add_pipe("calib", config={"source": source, "grouping": {"@calib_groupings": "spacy-calib.SCW.v1"}})
        gold = gold_docs(200, 1)
        calib.fit([Example(nlp.get_pipe("names")(nlp.make_doc(doc.text)), doc) for doc in gold])
        found = []
        for doc in gold_docs(200, 2):
            right = {(ent.start, ent.label_) for ent in doc.ents}
            found += [(ent._.calib_score, (ent.start, ent.label_) in right) for ent in nlp(doc.text).ents]
        losses[len(score)] = -sum(math.log(score if hit else 1 - score) for score, hit in found) / len(found)
    assert losses[4] < losses[1] - 0.05
