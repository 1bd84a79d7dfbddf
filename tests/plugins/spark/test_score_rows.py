"""The rows that are written of Docs with scores say what the attributes say."""

import numpy as np
import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example

import spacy_calib  # noqa: F401
from spacy_calib.plugins.spark.score_rows import COLUMNS, UNITS, score_rows, score_schema
from tests.cli.conftest import bare_docs, entity_docs, revive_recognizer
from tests.conftest import examples_for, revive, run_upstream
from tests.made import category_docs, fitted_categorizer


@pytest.fixture
def docs(fitted) -> list[Doc]:
    return list(fitted.pipe(example.predicted for example in examples_for(fitted, 6, 5)))


def rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_tokens_are_what_the_attributes_say(docs):
    held = rows(score_rows(docs, "calib", "token"))
    tokens = [token for doc in docs for token in doc]
    assert [(row["id"], row["start"], row["end"], row["text"], row["label"]) for row in held] == [
        (str(number), token.idx, token.idx + len(token), token.text, token.tag_)
        for number, doc in enumerate(docs)
        for token in doc
    ]
    assert [(row["score"], row["raw"]) for row in held] == [(token._.calib_score, token._.calib_raw) for token in tokens]
    assert {row["attr"] for row in held} == {"calib"}
    assert all(row["flag"] is None for row in held)


def test_ids_are_given_or_numbers(docs):
    assert score_rows(docs[:2], "calib", "document")["id"] == ["0", "1"]
    assert score_rows(docs[:3], "calib", "document", ids=["a", None, 7])["id"] == ["a", None, "7"]


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
        assert row["score"] is row["label"] is None
    (whole,) = rows(score_rows([both], "calib", "document"))
    assert (whole["start"], whole["end"], whole["text"], whole["tokens"]) == (0, len(both.text), both.text, len(both))


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


# Whatever became of the Docs: what stands in the rows is what the attributes say.


def attributes_of(one, unit):
    """What the attributes of a token, span or Doc say, by column."""

    def said(name):
        return getattr(one._, f"calib_{name}", None)

    held = {name: said(name) for name in ("score", "raw", "accept", "flag")}
    cats, raw = said("cats"), said("cats_raw")
    held["cats"] = cats and [{"label": label, "score": cats[label], "raw": raw[label]} for label in cats]
    return {name: value for name, value in held.items() if name in COLUMNS[unit]}


def units_on(doc, unit):
    if unit == "sentence":
        return list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]] * min(1, len(doc))
    return {"token": list(doc), "entity": doc.ents, "document": [doc]}[unit]


def changed(docs):
    """Docs as they came, joined, cut, read from bytes; then with other labels, and with words that became one."""
    yield docs
    yield [Doc.from_docs(docs[:3]), *docs[3:]]
    yield [doc[1:].as_doc(copy_user_data=True) for doc in docs]
    yield [Doc(doc.vocab).from_bytes(doc.to_bytes()) for doc in docs]
    yield [Doc(docs[0].vocab, words=["a", "dog"]), Doc(docs[0].vocab)]
    for doc in docs:
        doc[1].tag_, doc[2].tag_ = "", "DET"
        doc.cats = {name: 1 - value for name, value in doc.cats.items()}
        doc.ents = [Span(doc, ent.start, ent.end, "PER") for ent in doc.ents]
    yield [*docs, Doc.from_docs([docs[0], docs[0]])]
    for doc in docs:
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:2])
    yield docs


def scored_tags(trained_bytes):
    nlp = revive(trained_bytes)
    calib = nlp.add_pipe("calib", after="tagger", config={"threshold": 0.1})
    with nlp.select_pipes(disable=["calib"]):
        calib.fit(run_upstream(nlp, examples_for(nlp, 80, seed=2)))
    return [example.predicted for example in run_upstream(nlp, examples_for(nlp, 8, 5))]


def scored_entities(trained_bytes):
    nlp = revive_recognizer("ner")
    nlp.add_pipe("sentencizer", first=True)
    gold = entity_docs(40, 22, nlp.vocab)
    examples = [Example(doc, ref) for doc, ref in zip(nlp.pipe(bare_docs(nlp, gold)), gold, strict=True)]
    source = {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}
    nlp.add_pipe("calib", config={"source": source, "token_scores": True}).fit(examples)
    return list(nlp.pipe(bare_docs(nlp, entity_docs(8, 23, nlp.vocab))))


def scored_categories(trained_bytes):
    nlp = fitted_categorizer()
    return list(nlp.pipe(bare_docs(nlp, category_docs(8, 41, vocab=nlp.vocab))))


@pytest.mark.parametrize(
    ("scored", "units"),
    [(scored_tags, UNITS), (scored_entities, UNITS), (scored_categories, ["document"])],
    ids=["tags", "entities", "categories"],
)
def test_rows_are_what_the_attributes_say(scored, units, trained_bytes):
    filled = set()
    for docs in changed(scored(trained_bytes)):
        for unit in units:
            held = rows(score_rows(docs, "calib", unit))
            has_units = scored is not scored_tags or unit != "entity"
            wanted = [attributes_of(one, unit) for doc in docs for one in units_on(doc, unit) if has_units]
            assert [{name: row[name] for name in said} for row, said in zip(held, wanted, strict=True)] == wanted
            filled |= {name for row in held for name, value in row.items() if value is not None}
    assert {"score", "raw"} <= filled
