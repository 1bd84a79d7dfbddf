"""On two workers of one core, in processes of their own. One file, so that one session serves all tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spacy

from spacy_calib import CalibError
from spacy_calib.doc.score_rows import score_rows
from tests.conftest import examples_for, made_up_sentences, revive, run_upstream

TEXTS = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(40, seed=7)]


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from spacy_calib.spark import local_session
    from spacy_calib.spark.session import check_java

    try:
        check_java()
    except CalibError as error:
        pytest.skip(str(error))
    settings = {"spark_sql_shuffle_partitions": 2, "spark_log_level": "OFF", "spark_ui_showConsoleProgress": "false"}
    session = local_session("local-cluster[2,1,1024]", **settings)
    application = session.sparkContext.applicationId
    yield session
    session.stop()
    # What the executors of a local cluster print lands beside Spark.
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)


@pytest.fixture(scope="session")
def calibrated(trained_bytes, tmp_path_factory) -> str:
    """A pipeline with a calib pipe fitted for its tagger."""
    nlp = revive(trained_bytes)
    calib = nlp.add_pipe("calib", after="tagger")
    with nlp.select_pipes(disable=["calib"]):
        examples = run_upstream(nlp, examples_for(nlp, 80, seed=2))
    calib.fit(examples)
    path = tmp_path_factory.mktemp("spark") / "calibrated"
    nlp.to_disk(path)
    return str(path)


@pytest.fixture(scope="session")
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


def test_the_pipeline_is_loaded_once_by_each_process(frame, calibrated):
    """A task asks the process that it runs in how often it has loaded this pipeline so far."""

    def loads(batches):
        import os

        import pyarrow as pa

        from spacy_calib.spark import workers

        for _ in batches:
            pass
        found = workers._loaded.cache_info()
        yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "loads": [found.misses], "hits": [found.hits]})

    for _ in range(2):
        score(frame, calibrated, check=False).count()
    found = frame.mapInArrow(loads, "pid long, loads long, hits long").collect()
    assert max(row["loads"] for row in found) == 1
    assert max(row["hits"] for row in found) > 2


def test_a_pipeline_that_was_written_anew_is_loaded_anew(calibrated, tmp_path):
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from spacy_calib.spark.workers import Model

    path = Path(shutil.copytree(calibrated, tmp_path / "copy"))
    model = Model(str(path))
    first = model.load()
    assert model.load() is first
    first.to_disk(path)
    assert model.load() is not first


def refuses(code: str, match: str, frame, *args, **kwargs):
    with pytest.raises(CalibError, match=rf"(?s)\[{code}\] .*{match}"):
        score(frame, *args, **kwargs)


def test_what_the_frame_does_not_have_is_named(frame, calibrated):
    refuses("C452", "no column 'body'; it has: number, weight, text", frame, calibrated, text="body")
    refuses("C452", "no column 'key'", frame, calibrated, id="key")
    refuses("C453", "'number' must be of the type string, but it is bigint", frame, calibrated, text="number")
    renamed = frame.withColumnRenamed("number", "score")
    refuses("C455", "'score' cannot be kept", renamed, calibrated, keep=["score"])
    refuses("C001", "unit must be one of token, .*'word'", frame, calibrated, unit="word")
    refuses("C001", "batch_size must be", frame, calibrated, batch_size=0)


def test_what_a_worker_cannot_use_is_said_in_one_sentence(session, frame, calibrated, trained_bytes, tmp_path):
    revive(trained_bytes).to_disk(tmp_path / "plain")
    refuses("C454", r"A worker of Spark says: \[C050\] Cannot load the pipeline 'nowhere'", frame, "nowhere")
    refuses("C454", r"\[C027\] The pipeline has no fitted calib pipe", frame, str(tmp_path / "plain"))
    refuses("C454", r"\[C068\] .*no fitted calib pipe with the prefix 'sure'", frame, calibrated, attr="sure")
