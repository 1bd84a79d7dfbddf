"""`spacy_calib.render`: what it reads from Docs and Spans, its options, and the notebook."""

import re
import sys
import types

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy import displacy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

import spacy_calib
from spacy_calib.errors import CalibError
from spacy_calib.errors.visible import visible
from spacy_calib.plugins.report.page import format_score
from spacy_calib.plugins.report.rendering import (
    COLORS,
    NO_SCORE,
    SCORE_EDGES,
    Mark,
    displacy_options,
    read_spans,
    read_words,
    to_displacy,
)
from tests.doc.test_span_attributes import make_calib, put_spans
from tests.docstrings import run_examples
from tests.forked import in_own_process
from tests.made import fitted_categorizer
from tests.plugins.report.markup import ATTACK, Page

TEXT = "the red duck saw a light run ."


@pytest.fixture
def doc(fitted) -> Doc:
    return fitted(TEXT)


def entity_doc(calib, words: str = "aa bb aa bb aa", spans=((0, 1, "A"), (2, 4, "B"))) -> Doc:
    made = Doc(Vocab(), words=words.split())
    put_spans(made, calib.source.annotation(None).name.partition(":")[0], [Span(made, *span) for span in spans])
    return calib(made)


@pytest.fixture(scope="module")
def ner_calib():
    return make_calib(spacy.blank("xx"), "ner")


def labelled(token) -> str:
    return f"{token.tag_} {format_score(token._.calib_score)}"


def test_words_carry_what_the_attributes_say(doc):
    assert read_words(doc, "calib") == [Mark(t.i, t.i + 1, t.tag_, t._.calib_raw, t._.calib_score) for t in doc]
    assert Page(spacy_calib.render(doc)).marks == [(t.text, labelled(t)) for t in doc]


def test_the_colour_is_that_of_the_score(doc):
    colors = [
        mark["style"].split(";")[0].removeprefix("background: ")
        for tag, mark in Page(spacy_calib.render(doc)).elements
        if tag == "mark"
    ]
    assert len(set(colors)) > 1
    assert colors == [COLORS[sum(token._.calib_score >= edge for edge in SCORE_EDGES)] for token in doc]


def test_the_text_is_there_in_every_style(doc, ner_calib):
    assert to_displacy(doc, [])["text"] == TEXT
    entities = entity_doc(ner_calib)
    assert [text for text, _ in Page(spacy_calib.render(entities, style="ents")).marks] == ["aa", "aa bb"]
    assert [text for text, _ in Page(spacy_calib.render(entities)).marks] == entities.text.split()


def test_a_span_shows_its_own_part(doc):
    part = to_displacy(doc[1:4], read_words(doc, "calib"))
    assert part["text"] == "red duck saw"
    assert [part["text"][mark["start"] : mark["end"]] for mark in part["ents"]] == part["tokens"] == ["red", "duck", "saw"]
    assert [(mark["start_token"], mark["end_token"]) for mark in part["spans"]] == [(0, 1), (1, 2), (2, 3)]
    assert Page(spacy_calib.render(doc[1:4])).marks == [(token.text, labelled(token)) for token in doc[1:4]]


def test_marks_carry_what_the_attributes_say(ner_calib):
    made = entity_doc(ner_calib)
    assert read_spans(made, "calib") == [Mark(e.start, e.end, e.label_, e._.calib_raw, e._.calib_score) for e in made.ents]


def test_marks_of_a_span_are_those_that_lie_in_it(ner_calib):
    made = entity_doc(ner_calib)
    marks = read_spans(made, "calib")
    assert [label.split()[0] for label in labels_of(to_displacy(made[1:4], marks))] == ["B"]
    assert to_displacy(made[1:3], marks)["ents"] == []


def labels_of(text) -> list[str]:
    return [mark["label"] for mark in text["ents"]]


def test_an_entity_set_later_has_no_score(ner_calib):
    made = entity_doc(ner_calib)
    made.set_ents([Span(made, 4, 5, "A")], default="unmodified")
    assert read_spans(made, "calib")[-1] == Mark(4, 5, "A")
    assert Page(spacy_calib.render(made, style="ents")).marks[-1] == ("aa", "A no score")


def test_overlapping_spans_of_a_categorizer():
    calib = make_calib(spacy.blank("xx"), "spans:sc")
    made = entity_doc(calib, spans=((0, 3, "A"), (2, 5, "B"), (1, 2, "A")))
    html = spacy_calib.render(made, style="ents")
    assert '<div class="spans"' in html
    shown = " ".join(Page(html).text.split())
    for label in labels_of(to_displacy(made, read_spans(made, "calib"))):
        assert label in shown


def test_docs_from_a_docbin_and_joined_ones_need_no_pipeline(fitted):
    first, second = fitted(TEXT), fitted("this old cat eats .")
    [back] = DocBin(store_user_data=True, docs=[first]).get_docs(Vocab())
    assert read_words(back, "calib") == read_words(first, "calib")
    joined = read_words(Doc.from_docs([first, second]), "calib")
    alone = [*read_words(first, "calib"), *read_words(second, "calib")]
    assert [mark[2:] for mark in joined] == [mark[2:] for mark in alone]


def test_several_docs(fitted):
    docs = list(fitted.pipe([TEXT, "a cat ."]))
    words = [*TEXT.split(), "a", "cat", "."]
    assert [text for text, _ in Page(spacy_calib.render(docs)).marks] == words
    assert [text for text, _ in Page(spacy_calib.render(doc for doc in docs)).marks] == words
    assert spacy_calib.render([]) == ""
    for style in ("tokens", "ents"):
        assert Page(spacy_calib.render(fitted(""), style=style)).marks == []


def test_an_unscored_word_looks_different(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    marks = Page(spacy_calib.render(doc)).marks
    assert [text for text, label in marks if label == NO_SCORE] == ["red duck"]


@given(st.text(st.sampled_from("a<>&\"'{} \n\tשא1.\u0301😀\0\x1b\u202e"), max_size=12), st.text("<b>{}&\"' 😀", max_size=5))
def test_any_text_and_label_stay_text(text, label):
    doc = Doc(Vocab(), words=["a", text or "b"], spaces=[True, False])
    doc.user_data["title"] = ATTACK
    made = to_displacy(doc, [Mark(0, 1, label, 0.5, 0.0001), Mark(1, 2, ATTACK, 0.5, 0.9)])
    assert len(made["text"]) == len(doc.text)
    assert not set(made["text"]) & set("\0\x1b\u202e")
    for style in ("ent", "span"):
        html = displacy.render(made, style=style, manual=True, jupyter=False, options=displacy_options([made]))
        page = Page(html)
        assert {tag for tag, _ in page.elements} <= {"div", "mark", "span", "br", "h2"}
        assert ATTACK in page.text
        assert f"{visible(label)} <0.001".strip() in page.text


def test_title_and_direction():
    nlp = spacy.blank("he")
    labels = ["NOUN", "VERB"]
    source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": labels, "layer": "pos"}
    calib = nlp.add_pipe("calib", config={"source": source})
    made = Doc(nlp.vocab, words=["שלום", "עולם"], pos=["NOUN", "VERB"])
    made.tensor = made.tensor.__class__((2, 2), dtype="f")
    made.tensor[:] = [[0.7, 0.3], [0.1, 0.9]]
    made.user_data["title"] = "A <b>"
    with pytest.warns(UserWarning, match="CW01"):
        made = calib(made)
    html = spacy_calib.render(made, page=True)
    assert Page(html).elements[0] == ("html", {"lang": "he"})
    assert "direction: rtl" in html
    assert ">A &lt;b&gt;</h2>" in html
    assert [mark.calibrated for mark in read_words(made, "calib")] == pytest.approx([0.7, 0.9])


def test_a_doc_without_scores_is_an_error(nlp):
    with pytest.raises(CalibError, match=r"\[C095\] The Doc that begins 'a cat \.' has no scores with the prefix 'calib'"):
        spacy_calib.render(nlp("a cat ."))


def test_a_document_that_has_scores_as_a_whole_is_marked_as_a_whole():
    nlp = fitted_categorizer()
    doc = nlp("the band was good\nnew song")
    label = max(doc.cats, key=doc.cats.get)
    assert read_words(doc, "calib") == [Mark(0, len(doc), label, doc._.calib_raw, doc._.calib_score)]
    assert to_displacy(doc[1:3], read_words(doc, "calib"))["ents"] == []
    [(text, shown)] = Page(spacy_calib.render(doc)).marks
    assert (text, shown) == (doc.text, f"{label} {format_score(doc._.calib_score)}")


@pytest.mark.parametrize(("keywords", "sentence"), [
    ({"attr": "other"}, "with the prefix 'other'"),
    ({"style": "dep"}, "style must be 'tokens' or 'ents', but 'dep'"),
])  # fmt: skip
def test_wrong_settings(doc, keywords, sentence):
    with pytest.raises(CalibError, match=re.escape(sentence)):
        spacy_calib.render(doc, **keywords)


@pytest.mark.parametrize("given", ["text", ["text"], 3])
def test_something_else_than_docs(given):
    with pytest.raises(CalibError, match=r"docs must be a Doc, a Span, or several of them, but a (str|int) was given"):
        spacy_calib.render(given)


def test_the_example_runs(doc):
    run_examples(spacy_calib.render, doc=doc)


@in_own_process
def test_in_a_notebook_it_is_displayed(doc, monkeypatch):
    shown: list[str] = []
    display = types.ModuleType("IPython.display")
    display.HTML = lambda markup: markup
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert spacy_calib.render(doc, jupyter=True) is None
    assert shown == [f'<span class="tex2jax_ignore">{spacy_calib.render(doc, jupyter=False)}</span>']
