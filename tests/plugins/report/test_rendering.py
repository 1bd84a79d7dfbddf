"""`spacy_calib.render`: what it reads from Docs and Spans, its options, and the notebook."""

from __future__ import annotations

import re
import sys
import types

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

import spacy_calib
from spacy_calib.errors import CalibError
from spacy_calib.plugins.report.rendering import read_marks, read_words
from tests.doc.test_span_attributes import make_calib, put_spans
from tests.docstrings import run_examples
from tests.made import fitted_categorizer
from tests.plugins.report.test_marked_text import Page

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


def test_words_carry_what_the_attributes_say(doc):
    words = read_words(doc, "calib").words
    assert [(w.text, w.space, w.tag, w.score, w.raw) for w in words] == [
        (t.text, t.whitespace_, t.tag_, t._.calib_score, t._.calib_raw) for t in doc
    ]
    assert [dict(w.scores) for w in words] == [t._.calib_scores for t in doc]


def test_the_text_is_there_in_every_style(doc, ner_calib):
    assert Page(spacy_calib.render(doc)).texts == [TEXT]
    entities = entity_doc(ner_calib)
    assert Page(spacy_calib.render(entities, style="ents")).texts == [entities.text]
    assert Page(spacy_calib.render(entities)).texts == [entities.text]


def test_a_span_shows_its_own_part(doc):
    assert Page(spacy_calib.render(doc[1:4])).texts == ["red duck saw "]
    words = read_words(doc[1:4], "calib").words
    assert [word.score for word in words] == [token._.calib_score for token in doc[1:4]]


def test_marks_carry_what_the_attributes_say(ner_calib):
    made = entity_doc(ner_calib)
    passage = read_marks(made, "calib")
    assert [(passage.text[m.start : m.end], m.label, m.score, m.raw, m.accept) for m in passage.marks] == [
        (e.text, e.label_, e._.calib_score, e._.calib_raw, e._.calib_accept) for e in made.ents
    ]


def test_marks_of_a_span_are_those_that_lie_in_it(ner_calib):
    made = entity_doc(ner_calib)
    passage = read_marks(made[1:4], "calib")
    assert [(passage.text[m.start : m.end], m.label) for m in passage.marks] == [("aa bb", "B")]
    assert read_marks(made[1:3], "calib").marks == []


def test_an_entity_set_later_has_no_score(ner_calib):
    made = entity_doc(ner_calib)
    made.set_ents([Span(made, 4, 5, "A")], default="unmodified")
    last = read_marks(made, "calib").marks[-1]
    assert (last.start, last.score) == (made[4].idx, None)
    assert "cb-none" in Page(spacy_calib.render(made, style="ents")).of_class("cb-e")[-1]["class"]


def test_overlapping_spans_of_a_categorizer():
    calib = make_calib(spacy.blank("xx"), "spans:sc")
    made = entity_doc(calib, spans=((0, 3, "A"), (2, 5, "B"), (1, 2, "A")))
    page = Page(spacy_calib.render(made, style="ents"))
    assert page.texts == [made.text]
    assert len(page.of_class("cb-chip")) == 3


def test_docs_from_a_docbin_and_joined_ones_need_no_pipeline(fitted):
    first, second = fitted(TEXT), fitted("this old cat eats .")
    [back] = DocBin(store_user_data=True, docs=[first]).get_docs(Vocab())
    assert [w.score for w in read_words(back, "calib").words] == [w.score for w in read_words(first, "calib").words]
    joined = read_words(Doc.from_docs([first, second]), "calib").words
    alone = [*read_words(first, "calib").words, *read_words(second, "calib").words]
    assert [(w.text, w.score) for w in joined] == [(w.text, w.score) for w in alone]


def test_several_docs(fitted):
    docs = list(fitted.pipe([TEXT, "a cat ."]))
    assert Page(spacy_calib.render(docs)).texts == [TEXT, "a cat ."]
    assert Page(spacy_calib.render(doc for doc in docs)).texts == [TEXT, "a cat ."]
    assert Page(spacy_calib.render([])).texts == []


def test_an_unscored_word_looks_different(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    page = Page(spacy_calib.render(doc, options={"legend": False}))
    assert len(page.of_class("cb-none")) == 1
    assert page.texts == [TEXT]


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
    page = Page(spacy_calib.render(made, page=True))
    assert page.of_class("cb-text") == [{"class": "cb-text", "lang": "he", "dir": "rtl"}]
    assert page.elements[0] == ("html", {"lang": "he", "dir": "rtl"})
    assert "<h2>A &lt;b&gt;</h2>" in spacy_calib.render(made)
    assert [w.score for w in read_words(made, "calib").words] == pytest.approx([0.7, 0.9])


def test_an_empty_doc_is_an_empty_passage(fitted):
    empty = fitted("")
    assert Page(spacy_calib.render(empty)).texts == [""]
    assert Page(spacy_calib.render(empty, style="ents")).texts == [""]


def test_a_doc_without_scores_is_an_error(nlp):
    with pytest.raises(CalibError, match=r"\[C095\] The Doc that begins 'a cat \.' has no scores with the prefix 'calib'"):
        spacy_calib.render(nlp("a cat ."))


def test_another_prefix_is_an_error(doc):
    with pytest.raises(CalibError, match=r"\[C095\].*prefix 'other'"):
        spacy_calib.render(doc, attr="other")


def test_entities_of_a_tagger_are_an_error(doc):
    with pytest.raises(CalibError, match=r"\[C096\].*prefix 'calib' are of tokens \(tag\)"):
        spacy_calib.render(doc, style="ents")


def test_a_document_that_has_scores_as_a_whole_is_marked_as_a_whole():
    nlp = fitted_categorizer()
    doc = nlp("the band was good\nnew song")
    passage = read_words(doc, "calib")
    (mark,) = passage.marks
    assert (passage.text, mark.start, mark.end) == (doc.text, 0, len(doc.text))
    assert (mark.label, mark.raw, mark.score) == (max(doc.cats, key=doc.cats.get), doc._.calib_raw, doc._.calib_score)
    assert {mark.label: mark.score, **{label: score for _, label, score in mark.alternatives}} == doc._.calib_cats
    part = read_words(doc[1:3], "calib")
    assert (part.text, part.marks) == ("band was", [])
    html = spacy_calib.render(doc)
    assert "Probability that the category is right" in html
    assert f"{mark.label} <b>" in html
    assert html.count('class="cb-name"') == len(doc._.calib_cats)
    with pytest.raises(CalibError, match=r"\[C096\].*are of documents \(cats\), not of entities"):
        spacy_calib.render(doc, style="ents")


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"style": "dep"}, "style must be 'tokens' or 'ents', but 'dep'"),
        ({"options": {"colors": {}}}, "options must be a dict with doubtful, tags, alternatives, legend, but 'colors'"),
        ({"options": {"doubtful": 2}}, "options['doubtful'] must be a number in [0, 1], but 2"),
        ({"options": {"doubtful": True}}, "options['doubtful'] must be a number"),
        ({"options": {"tags": "some"}}, "options['tags'] must be one of doubtful, all, none, but 'some'"),
        ({"options": {"alternatives": -1}}, "options['alternatives'] must be a whole number"),
        ({"options": {"legend": 1}}, "options['legend'] must be true or false"),
    ],
)
def test_wrong_settings(doc, keywords, sentence):
    with pytest.raises(CalibError, match=re.escape(sentence)):
        spacy_calib.render(doc, **keywords)


@pytest.mark.parametrize("given", ["text", ["text"], 3])
def test_something_else_than_docs(given):
    with pytest.raises(CalibError, match=r"docs must be a Doc, a Span, or several of them, but a (str|int) was given"):
        spacy_calib.render(given)


def test_the_example_runs(doc):
    run_examples(spacy_calib.render, doc=doc)


def test_in_a_notebook_it_is_displayed(doc, monkeypatch):
    shown: list[str] = []
    display = types.ModuleType("IPython.display")
    display.HTML = lambda markup: markup
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert spacy_calib.render(doc, jupyter=True) is None
    assert shown == [f'<div class="tex2jax_ignore">{spacy_calib.render(doc, jupyter=False)}</div>']


def test_an_entity_shows_what_its_words_could_be_besides(ner_calib):
    """A greedy recognizer weighs no other entities: the scores of the words are all that is known of alternatives."""
    made = entity_doc(ner_calib)
    for mark in read_marks(made, "calib").marks:
        assert mark.alternatives
        for word, label, score in mark.alternatives:
            token = next(token for token in made if token.text == word and token.idx >= mark.start)
            assert label != mark.label
            assert token._.calib_scores["O" if label == "no entity" else label] == score
        assert [score for *_, score in mark.alternatives] == sorted((score for *_, score in mark.alternatives), reverse=True)
