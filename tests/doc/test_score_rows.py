"""The rows that are written of Docs with scores say what the attributes say."""

import numpy as np
import pytest
from spacy.tokens import Doc

import spacy_calib  # noqa: F401
from spacy_calib.doc.blocks import add_block
from spacy_calib.doc.collect import ORIGIN
from spacy_calib.doc.score_rows import COLUMNS, UNITS, score_rows, score_schema
from spacy_calib.errors import CalibError
from tests.conftest import examples_for


@pytest.fixture
def docs(fitted) -> list[Doc]:
    return list(fitted.pipe(example.predicted for example in examples_for(fitted, 6, 5)))


def rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_tokens_are_what_the_attributes_say(docs):
    held = rows(score_rows(docs, "calib", "token"))
    tokens = [token for doc in docs for token in doc]
    assert [(row["doc"], row["start"], row["end"], row["text"], row["label"]) for row in held] == [
        (number, token.idx, token.idx + len(token), token.text, token.tag_) for number, doc in enumerate(docs) for token in doc
    ]
    assert [(row["score"], row["raw"]) for row in held] == [(token._.calib_score, token._.calib_raw) for token in tokens]
    assert {row["attr"] for row in held} == {"calib"}
    assert all(row["id"] is row["low"] is row["set"] is row["flag"] is None for row in held)


def test_a_token_whose_label_has_no_score_and_a_merged_one_have_null(docs):
    docs[0][0].tag_ = "other"
    with docs[1].retokenize() as retokenizer:
        retokenizer.merge(docs[1][0:2])
    held = rows(score_rows(docs[:2], "calib", "token"))
    assert (held[0]["label"], held[0]["score"], held[0]["raw"]) == ("other", None, None)
    merged = held[len(docs[0])]
    assert merged["text"] == docs[1][0].text
    assert merged["score"] is None
    tokens = [token for doc in docs[:2] for token in doc]
    assert [row["score"] for row in held] == [token._.calib_score for token in tokens]


def test_ids_and_numbers_are_given_or_those_that_the_reader_left(docs):
    docs[1].user_data[ORIGIN] = {"id": 7}
    held = score_rows(docs[:2], "calib", "document", first=40)
    assert held["doc"] == [40, 41]
    assert held["id"] == [None, "7"]
    assert score_rows(docs[:2], "calib", "document", ids=["a", None])["id"] == ["a", None]


def test_several_pipes_have_a_row_each(docs):
    held = score_rows(docs[:1], ["calib", "other"], "token")
    n = len(docs[0])
    assert held["attr"] == ["calib"] * n + ["other"] * n
    assert held["score"][n:] == [None] * n


def test_sentences_and_documents_sum_up_their_tokens(docs):
    both = Doc.from_docs(docs[:2])
    held = rows(score_rows([both], "calib", "sentence"))
    assert [row["text"] for row in held] == [sent.text for sent in both.sents]
    for row, sent in zip(held, both.sents, strict=True):
        scores = [token._.calib_score for token in sent]
        assert row["mean"] == pytest.approx(np.mean(scores))
        assert (row["tokens"], row["lowest"]) == (len(sent), min(scores))
        assert row["score"] is row["right"] is row["label"] is None
    (whole,) = rows(score_rows([both], "calib", "document"))
    assert (whole["start"], whole["end"], whole["text"], whole["tokens"]) == (0, len(both.text), both.text, len(both))


def test_what_an_event_pipe_says_of_sentences_stands_under_right(docs):
    from spacy_calib.doc.write import CalibratedSpans, span_block
    from spacy_calib.types import Spans

    (doc,) = docs[:1]
    zero, one = np.zeros(1, dtype=np.intp), np.array([len(doc)])
    spans = Spans(zero, one, zero, np.zeros(len(doc)), np.zeros(1), np.ones(1, dtype=bool))
    said = CalibratedSpans(spans, ("",), np.array([0.25]), np.array([0.75]), np.array([-1], dtype=np.int8), "all labels right")
    add_block(doc.user_data, "calib_right", span_block(doc, said))
    assert score_rows([doc], "calib", "sentence")["right"] == [0.75]


def test_a_tagger_has_no_entities_and_a_doc_without_words_no_tokens(docs, fitted):
    assert score_rows(docs, "calib", "entity")["start"] == []
    empty = fitted("")
    assert score_rows([empty], "calib", "token")["start"] == score_rows([empty], "calib", "sentence")["start"] == []
    assert rows(score_rows([empty], "calib", "document"))[0]["mean"] is None


@pytest.mark.parametrize("unit", UNITS)
def test_rows_fit_the_schema(docs, unit):
    pa = pytest.importorskip("pyarrow")
    columns = score_rows(docs, "calib", unit)
    assert list(columns) == score_schema(unit).names == list(COLUMNS[unit])
    assert pa.table(columns, schema=score_schema(unit)).to_pydict() == columns


def test_another_unit_is_refused(docs):
    with pytest.raises(CalibError, match="unit must be one of token, entity, sentence, document, but 'word' was given"):
        score_rows(docs, "calib", "word")
