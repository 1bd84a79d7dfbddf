import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

import spacy_calib  # noqa: F401
from spacy_calib.annotations import get_annotation
from spacy_calib.doc.attributes import doc_view
from spacy_calib.gold.scored_corpora import _LabelNumbers, scored_corpus
from spacy_calib.pairs.scored_corpus import RIGHT, UNKNOWN, WRONG
from tests.conftest import examples_for, run_upstream


@pytest.fixture
def scored(fitted):
    """(pipeline, examples, corpus) of 30 made-up sentences."""
    examples = run_upstream(fitted, examples_for(fitted, 30, 5))
    pipe = fitted.get_pipe("calib")
    return fitted, examples, scored_corpus(examples, "calib", get_annotation("tag"), pipe.lookup.labels())


def test_tokens_are_what_the_attributes_say(scored):
    _, examples, corpus = scored
    tokens = [token for example in examples for token in example.predicted]
    assert len(corpus) == len(tokens)
    assert corpus.words.tolist() == [token.text for token in tokens]
    assert [corpus.names[label] for label in corpus.labels] == [token.tag_ for token in tokens]
    np.testing.assert_array_equal(corpus.calibrated, [token._.calib_score for token in tokens])
    np.testing.assert_array_equal(corpus.raw, [token._.calib_raw for token in tokens])
    golds = [token.tag_ for example in examples for token in example.reference]
    assert [corpus.names[gold] for gold in corpus.gold] == golds
    assert (corpus.right == RIGHT).tolist() == [token.tag_ == gold for token, gold in zip(tokens, golds, strict=True)]
    assert corpus.is_counted.all()


def test_scores_are_those_of_the_views(scored):
    _, examples, corpus = scored
    for number, example in enumerate(examples):
        view = doc_view(example.predicted, "calib")
        first, last = corpus.doc_starts[number], corpus.doc_starts[number + 1]
        own = slice(corpus.indptr[first], corpus.indptr[last])
        np.testing.assert_array_equal(corpus.rows[own] - first, view.rows)
        np.testing.assert_array_equal(corpus.tag_raw[own], view.raw)
        np.testing.assert_array_equal(corpus.tag_calibrated[own], view.calibrated)
        assert [corpus.names[tag] for tag in corpus.tags[own]] == view.tags.tolist()


def test_pairs_are_the_scores_beside_the_gold(scored):
    fitted, examples, corpus = scored
    labels = fitted.get_pipe("calib").lookup.labels()
    judged = corpus.pairs()
    expected = [
        (number, labels.index(tag), raw, tag == example.reference[row].tag_, score)
        for number, example in enumerate(examples)
        for view in [doc_view(example.predicted, "calib")]
        for row, tag, raw, score in zip(view.rows.tolist(), view.tags, view.raw.tolist(), view.calibrated.tolist(), strict=True)
    ]
    pairs = judged.pairs
    columns = (judged.documents, pairs.tags, pairs.scores, pairs.hits, judged.calibrated)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
    assert pairs.n_units == len(corpus)


def test_without_gold_nothing_is_known(fitted):
    bare = [Example(eg.predicted, Doc(fitted.vocab, words=[t.text for t in eg.predicted])) for eg in examples_for(fitted, 5, 1)]
    corpus = scored_corpus(run_upstream(fitted, bare), "calib", get_annotation("tag"))
    assert all((column == UNKNOWN).all() for column in (corpus.right, corpus.hits, corpus.gold))
    assert len(corpus.pairs()) == 0


def test_docs_without_scores_and_without_tokens_keep_their_place(fitted):
    examples = run_upstream(fitted, examples_for(fitted, 2, 1))
    plain, empty = Doc(fitted.vocab, words=["a", "b"]), Doc(fitted.vocab)
    stream = [Example(empty, empty.copy()), examples[0], Example(plain, plain.copy()), examples[1]]
    corpus = scored_corpus(stream, "calib", get_annotation("tag"))
    assert corpus.n_docs == 4
    assert np.unique(corpus.docs).tolist() == [1, 2, 3]
    unscored = corpus.docs == 2
    assert np.isnan(corpus.calibrated[unscored]).all()
    assert not corpus.is_counted[unscored].any()
    assert corpus.is_counted[~unscored].all()
    assert corpus.starts[corpus.doc_starts[[1, 2, 3]]].all()


def test_no_docs_give_an_empty_corpus():
    corpus = scored_corpus([], "calib", get_annotation("tag"), ["A"])
    assert (len(corpus), corpus.n_docs, len(corpus.spans), corpus.names) == (0, 0, 0, ("A",))


def test_a_label_set_afterwards_below_the_threshold_has_no_score(scored):
    """What is set later has the score that its tag has on the Doc, or none."""
    _, examples, _ = scored
    doc = examples[0].predicted
    doc[0].tag_ = "NOT-A-TAG"
    corpus = scored_corpus(examples, "calib", get_annotation("tag"))
    assert corpus.names[corpus.labels[0]] == "NOT-A-TAG"
    assert np.isnan(corpus.calibrated[0])
    assert not corpus.is_counted[0]


def test_sentences_come_from_the_gold_where_only_that_has_them(fitted):
    words = ["the", "dog", "runs", "the", "cat", "sleeps"]
    starts = [True, False, False, True, False, False]
    reference = Doc(fitted.vocab, words=words, tags=["DT", "NN", "VB"] * 2, sent_starts=starts)
    predicted = Doc(fitted.vocab, words=words)
    with fitted.select_pipes(enable=["tok2vec", "tagger", "calib"]):
        corpus = scored_corpus([Example(fitted(predicted), reference)], "calib", get_annotation("tag"))
    assert corpus.starts.tolist() == starts
    assert corpus.sentence_of(4) == (3, 6)
    assert corpus.text(*corpus.sentence_of(4)) == "the cat sleeps"


def test_white_space_carries_a_label_but_is_not_counted(fitted):
    doc = Doc(fitted.vocab, words=["the", "\n", "dog"], spaces=[False, False, False])
    corpus = scored_corpus([Example(fitted(doc), doc.copy())], "calib", get_annotation("tag"))
    assert corpus.is_counted.tolist() == [True, False, True]


def test_wrong_and_unknown_gold_are_told_apart(fitted):
    predicted = fitted(Doc(fitted.vocab, words=["the", "dog", "runs"]))
    reference = Doc(fitted.vocab, words=["the", "dog", "runs"], tags=["NOT-A-TAG", "", predicted[2].tag_])
    corpus = scored_corpus([Example(predicted, reference)], "calib", get_annotation("tag"))
    assert corpus.right.tolist() == [WRONG, UNKNOWN, RIGHT]
    assert corpus.names[corpus.gold[0]] == "NOT-A-TAG"


@pytest.mark.parametrize("layer", ["biluo", "ner"])
def test_gold_entities_that_the_model_does_not_know_have_names(fitted, layer):
    doc, gold = Doc(fitted.vocab, words=["Kim", "sleeps"]), Doc(fitted.vocab, words=["Kim", "sleeps"], ents=["B-ALIEN", "O"])
    corpus = scored_corpus([Example(doc, gold)], "calib", get_annotation(layer))
    assert [corpus.names[i] for i in corpus.gold] == [{"biluo": "U-ALIEN", "ner": "ALIEN"}[layer], "O"]


def test_no_label_is_not_the_label_of_no_name():
    """The hash of "" is 0, which says that a token has none."""
    nlp = spacy.blank("xx")
    doc = Doc(nlp.vocab, words=["a", "b"], tags=["N", ""])
    names = _LabelNumbers(["", "N"])
    hashes = get_annotation("tag").hashes(doc)
    assert names.numbers_of_hashes(hashes, get_annotation("tag"), doc, hashes).tolist() == [1, -1]
