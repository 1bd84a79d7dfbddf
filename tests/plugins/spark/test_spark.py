"""On two workers of one Java. One file: one session serves all tests. In test_killed.py executors are separate processes."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_calib import CalibError
from spacy_calib.gold.keys import DOC_KEY
from spacy_calib.pipe.pipeline import import_user_code
from tests.conftest import gold_doc, made_up_sentences, revive
from tests.docs.pages import DOCS, Run, blocks_of
from tests.plugins.spark.conftest import TEXTS, by_text, expected, score


@pytest.mark.parametrize("unit", ["token", "sentence"])
def test_scores_are_those_of_one_process_bit_for_bit(frame, calibrated, unit):
    rows = score(frame, calibrated, id="number", unit=unit, batch_size=5).collect()
    assert by_text(rows, "doc") == expected(calibrated, unit)
    numbers = {row["id"]: row["doc"] for row in rows}
    assert len(set(numbers.values())) == len(numbers) == len(TEXTS)
    assert any(row["score"] is not None for row in rows) == (unit == "token")


def test_a_null_text_has_a_document_without_score(frame, calibrated):
    found = by_text(score(frame, calibrated, id="number", unit="document", check=False).collect(), "doc")
    null = found.pop(str(len(TEXTS)))
    assert null == [{name: None for name in null[0]} | {"id": str(len(TEXTS)), "attr": "calib"}]
    assert found == expected(calibrated, "document")


def test_columns_that_are_named_go_along(frame, calibrated):
    out = score(frame, calibrated, keep=["weight", "number"], check=False)
    assert out.columns[:3] == ["weight", "number", "id"]
    rows = out.select("weight", "number", "id", "start").collect()
    assert {row["number"] for row in rows} == set(range(len(TEXTS)))
    assert all(row["weight"] == row["number"] / 2 and row["id"] is None for row in rows)
    of_first = [row["start"] for row in rows if row["number"] == 0]
    assert sorted(of_first) == [token.idx for token in spacy.load(calibrated)(TEXTS[0])]


NOTED = """
import os
from spacy import Language

@Language.factory("notes_its_process")
def make(nlp, name, file: str):
    with open(file, "a") as noted:
        noted.write(f"{os.getpid()}\\n")
    return lambda doc: doc
"""


def test_the_pipeline_is_loaded_once_by_each_process(frame, calibrated, tmp_path):
    """However Spark spreads the eight tasks over its processes: each that loads the pipeline notes its number."""
    code, model, noted = tmp_path / "noted.py", tmp_path / "model", tmp_path / "noted.txt"
    code.write_text(NOTED)
    import_user_code(code)
    nlp = spacy.load(calibrated)
    nlp.add_pipe("notes_its_process", config={"file": str(noted)})
    nlp.to_disk(model)
    noted.unlink()
    for _ in range(2):
        assert score(frame, str(model), code=code, check=False).count() > 0
    processes = noted.read_text().split()
    assert len(set(processes)) == len(processes) < 8


def test_a_pipeline_that_was_written_anew_is_loaded_anew(calibrated, tmp_path):
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from spacy_calib.plugins.spark.models import Model

    path = Path(shutil.copytree(calibrated, tmp_path / "copy"))
    model = Model(str(path))
    first, pipes = model.load_fitted(None)
    assert [pipe.attr for pipe in pipes] == ["calib"]
    assert model.load_fitted(None)[0] is first
    first.to_disk(path)
    assert model.load_fitted(None)[0] is not first


@pytest.fixture(scope="module")
def gold() -> list[Doc]:
    """60 documents of two Docs each, and 20 Docs that name none."""
    vocab = spacy.blank("xx").vocab
    docs = [gold_doc(vocab, sentence) for sentence in made_up_sentences(140, seed=12)]
    for number, doc in enumerate(docs[:120]):
        doc.user_data[DOC_KEY] = f"text {number // 2}"
    return docs


@pytest.fixture(scope="module")
def golden(session, gold) -> Any:
    """A row for every seven of them, so that parts of a document are in two rows."""
    rows = [(DocBin(docs=gold[start : start + 7], store_user_data=True).to_bytes(),) for start in range(0, len(gold), 7)]
    return session.createDataFrame(rows, "gold binary").cache()


def sampled(*args, **kwargs) -> list[Doc]:
    from spacy_calib.plugins.spark import gold_docs

    return list(gold_docs(*args, **kwargs))


def named(doc: Doc) -> str:
    return doc.user_data.get(DOC_KEY, doc.text)


def test_documents_are_sampled_whole_and_alike_from_any_partitions(golden, gold):
    vocab = Vocab()
    docs = sampled(golden.repartition(2), vocab, n_tokens=200)
    again = sampled(golden.orderBy("gold").repartition(5), vocab, n_tokens=200)
    assert [doc.to_bytes() for doc in docs] == [doc.to_bytes() for doc in again]
    names = {named(doc) for doc in docs}
    assert sorted(doc.text for doc in docs) == sorted(doc.text for doc in gold if named(doc) in names)
    n_last = sum(len(doc) for doc in docs if named(doc) == named(docs[-1]))
    assert sum(map(len, docs)) - n_last < 200 <= sum(map(len, docs)) < sum(map(len, gold))
    assert docs[0].vocab is vocab
    first = next(doc for doc in gold if doc.text == docs[0].text)
    assert [(token.tag_, token.is_sent_start) for token in docs[0]] == [(token.tag_, token.is_sent_start) for token in first]


def test_a_smaller_sample_is_the_beginning_of_a_larger_one(golden):
    few, many = (sampled(golden, Vocab(), n_tokens=n_tokens) for n_tokens in (1, 100))
    assert [doc.text for doc in many][: len(few)] == [doc.text for doc in few]
    assert {named(doc) for doc in few} == {named(few[0])}


def test_all_documents_are_there_if_there_are_fewer_and_null_is_passed_over(session, golden, gold, tmp_path):
    DocBin(docs=gold, store_user_data=True).to_disk(tmp_path / "gold.spacy")
    files = session.read.format("binaryFile").load(str(tmp_path)).select("content")
    with_null = files.union(session.sql("select cast(null as binary)"))
    for docs in (sampled(golden, Vocab()), sampled(with_null, Vocab(), gold="content")):
        assert sorted(doc.text for doc in docs) == sorted(doc.text for doc in gold)


def test_gold_that_cannot_be_sampled_is_said_in_one_sentence(golden):
    refused = partial(refuses, call=sampled)
    refused("C001", "df must be a DataFrame of Spark, but str was given", "gold", Vocab())
    refused("C001", "n_tokens must be a whole number of at least 1, but 0 was given", golden, Vocab(), n_tokens=0)
    refused("C452", "no column 'docs'; it has: gold", golden, Vocab(), gold="docs")
    refused("C453", "'gold' must be of the type binary, but it is string", golden.selectExpr("'a' as gold"), Vocab())
    broken = golden.union(golden.limit(1).selectExpr("cast('a' as binary) as gold"))
    refused("C457", "A row of the column 'gold' is no DocBin", broken, Vocab(), n_tokens=1)


def test_the_page_runs(session, calibrated, gold, trained_bytes, tmp_path, monkeypatch):
    """docs/guides/production.md but for the recipes of Ray and Dask; what is fitted on a sample gives scores."""
    shutil.copytree(calibrated, tmp_path / "calibrated")
    DocBin(docs=gold, store_user_data=True).to_disk(tmp_path / "dev.spacy")
    revive(trained_bytes).to_disk(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    run = Run()
    for block in blocks_of(DOCS / "guides" / "production.md"):
        if block.noted("needs extra") not in ("ray", "dask", "ppi_py"):
            run.block(block)
    assert all(token._.calib_score is not None for doc in spacy.load("fitted").pipe(TEXTS) for token in doc)


def refuses(code: str, match: str, frame, *args, call=score, **kwargs):
    with pytest.raises(CalibError, match=rf"(?s)\[{code}\] .*{match}"):
        call(frame, *args, **kwargs)


def test_what_the_frame_does_not_have_is_named(frame, calibrated):
    refuses("C001", "df must be a DataFrame of Spark, but str was given", "texts", calibrated)
    assert score(frame, calibrated, keep="weight", check=False).columns[0] == "weight"
    refuses("C452", "no column 'body'; it has: number, weight, text", frame, calibrated, text="body")
    refuses("C452", "no column 'key'", frame, calibrated, id="key")
    refuses("C453", "'number' must be of the type string, but it is bigint", frame, calibrated, text="number")
    renamed = frame.withColumnRenamed("number", "score")
    refuses("C455", "'score' cannot be kept", renamed, calibrated, keep=["score"])
    refuses("C001", "unit must be one of token, .*'word'", frame, calibrated, unit="word")
    refuses("C446", "no scores of the unit 'entity', only of tokens .*; set unit to token or", frame, calibrated, unit="entity")
    refuses("C001", "batch_size must be", frame, calibrated, batch_size=0)


def test_what_a_worker_cannot_use_is_said_in_one_sentence(session, frame, calibrated, trained_bytes, tmp_path):
    revive(trained_bytes).to_disk(tmp_path / "plain")
    refuses("C454", r"On a worker of Spark: Cannot load the pipeline 'nowhere'", frame, "nowhere")
    refuses("C027", r"The pipeline has no fitted calib pipe", frame, str(tmp_path / "plain"))
    refuses("C068", r"no fitted calib pipe with the prefix 'sure'", frame, calibrated, attr="sure")
