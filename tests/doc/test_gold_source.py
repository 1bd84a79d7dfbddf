"""Whose gold a text goes by, as Docs say it."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_calib.doc.gold_source import GoldSources, named_examples
from spacy_calib.errors import CalibError


@pytest.fixture
def docs():
    vocab = spacy.blank("xx").vocab
    made = [Doc(vocab, words=["a"]) for _ in range(4)]
    made[1]._.calib_source, made[2]._.calib_source = "GUM", "EWT"
    return made


def test_names_get_numbers_as_they_are_met_and_keep_them(docs):
    sources = GoldSources("calib")
    assert docs[0]._.calib_source is None
    assert sources.of(docs).tolist() == [-1, 0, 1, -1]
    assert sources.of(docs[2:]).tolist() == [1, -1]
    assert sources.names == ["GUM", "EWT"]
    assert GoldSources("calib", ["EWT", "GUM"]).of(docs, "GUM").tolist() == [1, 1, 0, 1]


def test_a_name_that_the_fit_does_not_know_is_refused(docs):
    with pytest.raises(
        CalibError, match=r"\[C548\] The gold source 'GUM' is none that the pipe 'calib' .*; name EWT, PTB or none"
    ):
        GoldSources("calib", ["EWT", "PTB"]).of(docs)
    docs[3]._.calib_source = 7
    with pytest.raises(CalibError, match=r"\[C549\] .* 7 was given"):
        GoldSources("calib").of(docs)


def test_where_a_fit_had_no_names_those_of_docs_are_left_alone(docs):
    assert GoldSources("calib", ()).of(docs).tolist() == [-1] * 4
    with pytest.raises(CalibError, match=r"\[C548\] .* its gold had no names"):
        GoldSources("calib", ()).of(docs, "EWT")


def test_names_stay_with_saved_docs(docs):
    back = list(DocBin(docs=docs, store_user_data=True).get_docs(docs[0].vocab))
    assert [doc._.calib_source for doc in back] == [None, "GUM", "EWT", None]


def test_examples_by_source_say_it_on_their_predicted_docs(docs):
    examples = [Example(doc, doc.copy()) for doc in docs]
    named = list(named_examples({"A": examples[:1], "B": examples[1:]}))
    assert named == examples
    assert [example.predicted._.calib_source for example in named] == ["A", "B", "B", "B"]
