"""Carried labels and their scores, read from whole blocks: they are what the attributes say."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_calib.doc.predicted_labels import PredictedLabelReader, join_labels
from tests.conftest import examples_for, fit_calib, made_up_sentences
from tests.doc.test_span_attributes import draw_doc, make_calib


def sample_texts(n, seed=5):
    return [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(n, seed)]


def read_labels(calib, docs):
    reader = PredictedLabelReader(calib.attr, calib.lookup.labels())
    return join_labels([reader.read(doc) for doc in docs])


def check_against_attributes(calib, docs):
    """The scores and labels of all tokens by document, and the scores of entities, are those of the attributes."""
    found, labels = read_labels(calib, docs), (*calib.lookup.labels(), None)
    names = [labels[column] for column in found.columns.tolist()]
    assert (np.diff(found.documents) >= 0).all()
    for i, doc in enumerate(docs):
        own = found.documents == i
        tokens = [token for token in doc if token._.calib_score is not None and not token.is_space]
        assert sorted(found.calibrated[own]) == pytest.approx(sorted(token._.calib_score for token in tokens), abs=1e-6)
        if calib.source.component == "tagger":
            assert Counter(np.array(names, dtype=object)[own]) == Counter(token.tag_ for token in tokens)
    spans = [span._.calib_score for doc in docs for span in doc.ents if span._.calib_score is not None]
    assert sorted(found.span_calibrated) == pytest.approx(sorted(spans), abs=1e-6)
    return found


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_it_reads_what_the_attributes_say(fitted):
    docs = [*fitted.pipe(sample_texts(70)), fitted("the  dog \n saw ."), fitted(""), fitted.make_doc("never read")]
    found = check_against_attributes(fitted.get_pipe("calib"), docs)
    assert len(np.unique(found.documents)) == 71
    assert found.columns.min() >= 0


def test_entities_are_read():
    nlp, rng = spacy.blank("xx"), random.Random(1)
    calib, docs = make_calib(nlp, "ner"), [draw_doc(rng, nlp.vocab, "ner") for _ in range(20)]
    assert len(check_against_attributes(calib, [calib(doc) for doc in docs]).span_calibrated) > 0


def test_docs_that_were_cut_joined_or_changed_are_read_token_by_token(fitted):
    one, other = fitted("the old dog saw a duck . light run red ."), fitted("the cat eats .")
    joined = Doc.from_docs([one, other])
    cut = one[2:7].as_doc(copy_user_data=True)
    changed = fitted("the old dog saw a duck .")
    with changed.retokenize() as retokenizer:
        retokenizer.merge(changed[1:3])
    for docs in ([joined], [cut], [changed], [joined, one, cut, changed]):
        check_against_attributes(fitted.get_pipe("calib"), docs)
    restored = list(DocBin(docs=[one], store_user_data=True).get_docs(fitted.vocab))
    assert same(read_labels(fitted.get_pipe("calib"), restored), read_labels(fitted.get_pipe("calib"), [one]))


def test_labels_below_the_threshold_count(fitted):
    """Set by somebody else before calib ran: the model gave them next to nothing."""
    calib = fitted.get_pipe("calib")
    calib.threshold = 0.3
    doc = fitted("the old dog saw a duck .")
    for token in doc:
        token.tag_ = "PUNCT"
    calib(doc)
    assert any("above" in block for block in doc.user_data.values())
    check_against_attributes(fitted.get_pipe("calib"), [doc])


def test_labels_below_the_threshold_are_counted_in_their_own_docs(fitted):
    """They landed on the first Doc that was counted with them; here its tokens are white space, which does not count."""
    calib = fitted.get_pipe("calib")
    calib.threshold = 0.3
    docs = [fitted(" \n" * 6), fitted("the old dog saw a duck ."), fitted("a cat .")]
    for doc in docs[1:]:
        for token in doc:
            token.tag_ = "PUNCT"
        calib(doc)
    together = check_against_attributes(fitted.get_pipe("calib"), docs)
    assert len(together.raw) == 10
    alone = [read_labels(fitted.get_pipe("calib"), [doc]) for doc in docs]
    for name in ("columns", "raw", "calibrated"):
        assert np.array_equal(np.concatenate([getattr(one, name) for one in alone]), getattr(together, name))


@pytest.mark.parametrize("component", ["trainable_lemmatizer", "morphologizer"])
def test_other_components_are_read_too(nlp, component):
    source = {"@calib_sources": "spacy-calib.Softmax.v1", "component": component}
    calib = nlp.add_pipe("calib", after=component, config={"source": source})
    fit_calib(nlp, examples_for(nlp, 60, seed=2))
    found = check_against_attributes(calib, list(nlp.pipe(sample_texts(20))))
    assert len(found.raw) > 0
