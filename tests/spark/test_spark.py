"""On two workers of one Java. One file, so that one session serves all tests; test_killed.py has executors in processes of their own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_calib import CalibError
from spacy_calib.doc.score_rows import score_rows
from spacy_calib.pipe.loading import import_user_code
from spacy_calib.statistics.collected import FitStatistics
from tests.cli.conftest import calib, entity_docs, save_key, save_recognizer
from tests.conftest import made_up_sentences, revive
from tests.docs.pages import DOCS, Run, blocks_of
from tests.spark.conftest import collect, without_shards

TEXTS = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(40, seed=7)]


@pytest.fixture(scope="module")
def frame(session) -> Any:
    """Texts in four partitions, each with a number and a weight; one is null, one is empty."""
    texts = [*TEXTS, None, ""]
    rows = [(number, number / 2, text) for number, text in enumerate(texts)]
    return session.createDataFrame(rows, "number long, weight double, text string").repartition(4).cache()


def score(*args, **kwargs):
    from spacy_calib.spark import score

    return score(*args, **kwargs)


def by_text(rows: list[Any], *without: str) -> dict[str, list[dict[str, Any]]]:
    """Id -> its rows, in the order of the text."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted((row.asDict(recursive=True) for row in rows), key=lambda row: row["start"] or 0):
        found.setdefault(row["id"], []).append({key: value for key, value in row.items() if key not in without})
    return found


def expected(model: str, unit: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the texts from one process; the empty text is the last."""
    nlp = spacy.load(model)
    texts = [*TEXTS, None, ""]
    numbers = [number for number, text in enumerate(texts) if text is not None]
    columns = score_rows(nlp.pipe(texts[number] for number in numbers), "calib", unit, ids=numbers)
    found: dict[str, list[dict[str, Any]]] = {}
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        del row["doc"]
        found.setdefault(row["id"], []).append(row)
    return found


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
    from spacy_calib.spark.models import Model

    path = Path(shutil.copytree(calibrated, tmp_path / "copy"))
    model = Model(str(path))
    first, pipes = model.fitted(None)
    assert [pipe.attr for pipe in pipes] == ["calib"]
    assert model.fitted(None)[0] is first
    first.to_disk(path)
    assert model.fitted(None)[0] is not first


# Statistics


def test_statistics_are_those_of_one_pass_bit_for_bit(golden, calibrated, in_one_pass):
    found = collect(golden, calibrated, mergers=2)
    assert len(found.shards) == 6
    assert without_shards(found) == in_one_pass


def test_a_partition_that_is_there_twice_counts_once(golden, calibrated, in_one_pass):
    once = golden.cache()
    found = collect(once.union(once), calibrated, mergers=2, check=False)
    assert len(found.shards) == 6
    assert without_shards(found) == in_one_pass


def test_files_are_rows_and_null_is_passed_over(session, gold_path, calibrated, in_one_pass):
    files = session.read.format("binaryFile").load(str(gold_path)).select("content")
    found = collect(files.union(session.sql("select cast(null as binary)")), calibrated, gold="content", check=False)
    assert without_shards(found) == in_one_pass


def test_a_pipeline_without_calib_gets_a_pipe_with_these_settings(golden, trained_bytes, tmp_path):
    revive(trained_bytes).to_disk(tmp_path / "plain")
    found = collect(golden, str(tmp_path / "plain"), component="morphologizer", settings={"threshold": 0.05}, mergers=1)
    assert (found.identity.component, found.identity.threshold) == ("morphologizer", 0.05)
    assert found.pairs.total > 0


def test_without_a_key_one_is_drawn_for_all_partitions(golden, calibrated, in_one_pass):
    found, of_key = collect(golden, calibrated, mergers=1, key=None, check=False), FitStatistics.from_bytes(in_one_pass)
    assert (found.n_documents, found.pairs.total) == (of_key.n_documents, of_key.pairs.total)
    assert found.identity.key not in ("", of_key.identity.key)
    with pytest.raises(CalibError, match="C480"):
        collect(golden, calibrated, key="nowhere")


def test_a_recognizer_is_read_as_calib_collect_reads_it(session, tmp_path):
    """SpaCy's own, which makes way for ours; with a map of labels, and a component of the user's own."""
    from spacy_calib.spark import gold_frame

    code, model, gold, file = (tmp_path / name for name in ("own.py", "ner", "gold.spacy", "gold.npz"))
    key = save_key(tmp_path / "key")
    code.write_text("from spacy import Language\n\n\n@Language.component('own_of_spark')\ndef own(doc):\n    return doc\n")
    import_user_code(code)
    save_recognizer("ner", model, lambda nlp: nlp.add_pipe("own_of_spark", first=True))
    DocBin(docs=entity_docs(30, 22)).to_disk(gold)
    assert calib("collect", model, gold, file, "--component", "ner", "--map", "ORG=LOC", "--code", code, "--key", key).code == 0
    frame = gold_frame(session, gold, docs=4).repartition(3)
    found = collect(frame, model, component="ner", labels={"ORG": "LOC"}, code=code, mergers=1, key=key)
    assert without_shards(found) == without_shards(FitStatistics.from_bytes(file.read_bytes()))
    with pytest.raises(CalibError, match=r"\[C165\] The map names 'ORGANIZATION'"):
        collect(frame, model, component="ner", labels={"ORGANIZATION": "LOC"}, code=code)
    with pytest.raises(CalibError, match=r"\[C062\] Cannot import the code in nowhere"):
        collect(frame, model, component="ner", code="nowhere")
    with pytest.raises(CalibError, match=r"\[C162\]"):
        collect(frame, model, component="ner", labels={})


def test_gold_that_cannot_be_collected_is_said_in_one_sentence(session, golden, calibrated, gold_path, tmp_path):
    from spacy_calib.spark import gold_frame

    def refused(code: str, match: str, *args, **kwargs):
        with pytest.raises(CalibError, match=rf"\[{code}\] .*{match}"):
            collect(*args, mergers=1, **kwargs)

    refused("C452", "no column 'docs'; it has: gold", golden, calibrated, gold="docs")
    refused("C453", "'gold' must be of the type binary, but it is string", golden.selectExpr("'a' as gold"), calibrated)
    refused("C454", "Cannot load the pipeline 'nowhere'", golden, "nowhere")
    refused("C317", "no component 'ner'", golden, calibrated, component="ner")
    refused("C456", "holds no documents", golden.limit(0), calibrated, check=False)
    refused("C457", "is no DocBin", golden.selectExpr("cast('a' as binary) as gold"), calibrated, check=False)
    refused("C160", "key", golden, calibrated, doc_key="name", check=False)
    for code, name in (("C051", "nowhere.spacy"), ("C052", "empty"), ("C053", "bad.spacy")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        (tmp_path / "bad.spacy").write_bytes(b"bad")
        with pytest.raises(CalibError, match=rf"\[{code}\]"):
            gold_frame(session, tmp_path / name)


def test_the_page_runs(session, calibrated, gold_path, trained_bytes, tmp_path, monkeypatch):
    """docs/how-to/spark.md but for the recipes of others; what is fitted of Spark's statistics gives scores."""
    shutil.copytree(calibrated, tmp_path / "calibrated")
    shutil.copy(gold_path, tmp_path / "dev.spacy")
    revive(trained_bytes).to_disk(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    run = Run()
    for block in blocks_of(DOCS / "how-to" / "spark.md"):
        if block.noted("needs extra") is None:
            run.block(block)
    assert all(token._.calib_score is not None for doc in spacy.load("fitted").pipe(TEXTS) for token in doc)


# What is refused


def refuses(code: str, match: str, frame, *args, **kwargs):
    with pytest.raises(CalibError, match=rf"(?s)\[{code}\] .*{match}"):
        score(frame, *args, **kwargs)


def test_what_the_frame_does_not_have_is_named(frame, calibrated):
    refuses("C001", "df must be a DataFrame of Spark, but str was given", "texts", calibrated)
    assert score(frame, calibrated, keep="weight", check=False).columns[0] == "weight"
    refuses("C452", "no column 'body'; it has: number, weight, text", frame, calibrated, text="body")
    refuses("C452", "no column 'key'", frame, calibrated, id="key")
    refuses("C453", "'number' must be of the type string, but it is bigint", frame, calibrated, text="number")
    renamed = frame.withColumnRenamed("number", "score")
    refuses("C455", "'score' cannot be kept", renamed, calibrated, keep=["score"])
    refuses("C001", "unit must be one of token, .*'word'", frame, calibrated, unit="word")
    refuses(
        "C446",
        "no rows of kind 'entity': the calib pipes score tokens .*; choose token or sentence or document [(]--unit",
        frame,
        calibrated,
        unit="entity",
    )
    refuses("C001", "batch_size must be", frame, calibrated, batch_size=0)


def test_what_a_worker_cannot_use_is_said_in_one_sentence(session, frame, calibrated, trained_bytes, tmp_path):
    revive(trained_bytes).to_disk(tmp_path / "plain")
    refuses("C454", r"On a worker of Spark: Cannot load the pipeline 'nowhere'", frame, "nowhere")
    refuses("C027", r"The pipeline has no fitted calib pipe", frame, str(tmp_path / "plain"))
    refuses("C068", r"no fitted calib pipe with the prefix 'sure'", frame, calibrated, attr="sure")
