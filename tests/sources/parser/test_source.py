"""What the source says of arcs and sentences."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.errors import CalibError
from spacy_calib.sources.parser.source import ParserSource, kept_readings
from tests.sources.parser import gold_examples, trained

TEXTS = ["dog saw king with duck . duck met dog", "", "king saw dog \n with duck"]


@pytest.fixture
def nlp():
    return trained("calib_parser")


def test_scores_of_both_events(nlp):
    docs, pipe = list(nlp.pipe(TEXTS)), nlp.get_pipe("parser")
    heads, arcs = (ParserSource(event=event).read(pipe, docs).marginals_above(0.0) for event in ("head", "arc"))
    assert heads.rows.tolist() == arcs.rows.tolist() == list(range(sum(map(len, docs))))
    labels = ParserSource().labels(pipe)
    assert [labels[column] for column in heads.tags] == [token.dep_ for doc in docs for token in doc]
    first = kept_readings(docs[0], "parser").probabilities
    assert heads.scores[: len(docs[0])] == pytest.approx(first.head * first.no_other_head)
    assert arcs.scores[: len(docs[0])] == pytest.approx(first.arc * first.no_other_head)
    roots = [i for i, token in enumerate(docs[0]) if token.head.i == i]
    assert heads.scores[roots] == pytest.approx(first.no_other_head[roots])


def test_sentences_are_spans_without_a_label(nlp):
    docs, pipe = list(nlp.pipe(TEXTS)), nlp.get_pipe("parser")
    scores = ParserSource().read(pipe, docs)
    spans = scores.spans
    wanted = [(sent.start, sent.end) for sent in docs[0].sents]
    assert list(zip(spans.starts, spans.ends, strict=True))[: len(wanted)] == wanted
    assert ParserSource().span_labels(pipe) == ("",)
    assert spans.token_scores[: len(docs[0])] == pytest.approx(scores.marginals_above(0.0).scores[: len(docs[0])])
    white = len(docs[0]) + [token.is_space for token in docs[2]].index(True)
    assert spans.token_scores[white] == 1.0


def test_an_arc_that_somebody_changed_has_no_score(nlp):
    docs, pipe = list(nlp.pipe(TEXTS[:1])), nlp.get_pipe("parser")
    moved = next(token for token in docs[0] if token.head.i != token.i and token.head.i != 0 and token.i != 0)
    moved.head = docs[0][0]
    scores = ParserSource().read(pipe, docs)
    assert moved.i not in scores.marginals_above(0.0).rows
    assert np.isnan(scores.scores_at(np.array([moved.i]), np.array([0]))).all()
    sentence = moved.sent
    assert sentence.start not in scores.spans.starts
    docs = list(nlp.pipe(TEXTS[:1]))
    docs[0][0].dep_ = "obl"
    assert 0 in ParserSource(event="head").read(pipe, docs).marginals_above(0.0).rows
    assert 0 not in ParserSource(event="arc").read(pipe, docs).marginals_above(0.0).rows


def test_second_pass_says_the_same(nlp):
    """Over Docs that a stock parser annotated, whose sentence starts it must not take as given."""
    stock = trained("parser")
    ours, theirs = list(nlp.pipe(TEXTS)), list(stock.pipe(TEXTS))
    before = [doc.to_bytes() for doc in theirs]
    inline, again = (ParserSource().read(one.get_pipe("parser"), docs) for one, docs in ((nlp, ours), (stock, theirs)))
    assert again.marginals_above(0.0).scores == pytest.approx(inline.marginals_above(0.0).scores, abs=1e-5)
    assert {name: values.round(3).tolist() for name, values in again.further_scores.items()} == {
        name: values.round(3).tolist() for name, values in inline.further_scores.items()
    }
    assert [doc.to_bytes() for doc in theirs] == before


def test_certainties_of_head_and_label_make_that_of_the_arc(nlp):
    docs, pipe = list(nlp.pipe(TEXTS)), nlp.get_pipe("parser")
    heads, arcs = (ParserSource(event=event).read(pipe, docs) for event in ("head", "arc"))
    of_head, of_label = (
        1 / (1 + np.exp(-arcs.further_scores[f"certainty of the {what}"]))
        for what in ("decision for the head", "label, given the head")
    )
    spared = heads.marginals_above(0.0).scores / of_head
    assert of_head * of_label * spared == pytest.approx(arcs.marginals_above(0.0).scores, abs=1e-3)


def with_calib(nlp, **source):
    return nlp.add_pipe(
        "calib", config={"source": {"@calib_sources": "spacy-calib.Parser.v1", "component": "parser", **source}}
    )


def fitted_on(nlp, n=60, **source):
    pipe = with_calib(nlp, **source)
    examples = gold_examples(nlp, n, seed=9)
    list(nlp.get_pipe("parser").pipe([example.predicted for example in examples]))
    return pipe.fit(examples)


def test_refused_where_it_cannot_be_read():
    nlp = trained("parser")
    nlp.add_pipe("sentencizer", first=True)
    with pytest.raises(CalibError, match=r"\[C034\].*'sentencizer' sets sentences before 'parser'"):
        fitted_on(nlp)
    nlp = trained("parser")
    nlp.get_pipe("parser").cfg["beam_width"] = 4
    with pytest.raises(CalibError, match=r"\[C034\].*a parser with a beam"):
        with_calib(nlp).fit(gold_examples(nlp, 5, seed=1))
    nlp = spacy.blank("xx")
    nlp.add_pipe("parser")
    with pytest.raises(CalibError, match=r"\[C023\] Component 'parser' has no labels"):
        with_calib(nlp).fit(gold_examples(nlp, 5, seed=1))
    with pytest.raises(CalibError, match=r"\[C001\] event must be head or arc, but 'exact' was given"):
        ParserSource(event="exact")


def test_a_setting_that_weighs_the_labels_of_a_token_is_refused(nlp):
    pipe = nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Parser.v1"}, "normalize": True})
    with pytest.raises(CalibError, match=r"\[C287\] The setting normalize"):
        pipe.fit(gold_examples(nlp, 5, seed=1))


def test_gold_without_heads(nlp):
    docs = [nlp(TEXTS[0])]
    pipe = with_calib(nlp)
    with pytest.raises(CalibError, match=r"\[C030\].*no gold head annotation for component 'parser'"):
        pipe.fit([Example(doc, Doc(nlp.vocab, words=[token.text for token in doc])) for doc in docs])


@pytest.mark.parametrize("event", ["head", "arc"])
def test_attributes_of_tokens_and_sentences(nlp, event):
    pipe = fitted_on(nlp, event=event)
    assert pipe.fit_info.layer == event
    doc = nlp(TEXTS[0])
    raw = ParserSource(event=event).read(nlp.get_pipe("parser"), [doc]).marginals_above(0.0).scores
    assert [token._.calib_raw for token in doc] == pytest.approx(raw.tolist())
    assert all(0 <= token._.calib_score <= 1 for token in doc)
    sentences = list(doc.sents)
    products = [np.prod([token._.calib_raw for token in sentence]) for sentence in sentences]
    assert [sentence._.calib_raw for sentence in sentences] == pytest.approx(products)
    assert all(0 <= sentence._.calib_score <= 1 for sentence in sentences)
    assert doc[1:3]._.calib_score is None
    assert {span.event for span in doc._.calib.ents} == {pipe.fit_info.span_event}
    assert pipe.fit_info.span_event == ("all heads right" if event == "head" else "all heads and labels right")


def test_gold_labels_of_another_scheme(nlp):
    """Heads need none of them; the groups are then of the labels that the parser gave."""
    pipe = with_calib(nlp)
    examples = gold_examples(nlp, 40, seed=9)
    for example in examples:
        for token in example.reference:
            token.dep_ = f"x:{token.dep_}"
    list(nlp.get_pipe("parser").pipe([example.predicted for example in examples]))
    pipe.fit(examples, {"x:nsubj": 7})
    assert pipe.fit_info.unknown_gold == 0
    tags = ParserSource().labels(nlp.get_pipe("parser"))
    counts = dict(zip(tags, pipe.groups.counts.tolist(), strict=True))
    assert counts["nsubj"] == sum(token.dep_ == "nsubj" for example in examples for token in example.predicted)
