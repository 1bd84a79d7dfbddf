"""A session of Spark, a calibrated pipeline on disk, texts, and the rows of their scores."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spacy

from spacy_calib import CalibError
from spacy_calib.plugins.spark.score_rows import score_rows
from tests.conftest import made_up_sentences, revive
from tests.forked import ROOT, alone

TEXTS = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(40, seed=7)]
# Jobs here are small and the processes short-lived: compilers and garbage collectors of the JVM cost more than they save, and waiting for the worker
# that has a partition takes longer than reading it again.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
QUICK = {
    "spark_driver_extraJavaOptions": _JVM, "spark_executor_extraJavaOptions": _JVM, "spark_sql_shuffle_partitions": 2,
    "spark_sql_adaptive_enabled": "false", "spark_sql_codegen_wholeStage": "false", "spark_locality_wait": 0,
    "spark_shuffle_io_retryWait": "100ms", "spark_log_level": "OFF", "spark_ui_showConsoleProgress": "false",
    "spark_python_daemon_module": "tests.plugins.spark.daemon", "spark_executorEnv_PYTHONPATH": alone(ROOT)["PYTHONPATH"],
}  # fmt: skip


@pytest.fixture(scope="module")
def session(request) -> Iterator[Any]:
    """Two threads of one Java, unless a file asks for others as MASTER. It ends with the file, and gives back Ctrl-C, which Spark takes for its own."""
    pyspark = pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from spacy_calib.plugins.spark import local_session
    from spacy_calib.plugins.spark.session import check_java

    try:
        check_java()
    except CalibError as error:
        pytest.skip(str(error))
    on_interrupt = signal.getsignal(signal.SIGINT)
    session = local_session(getattr(request.module, "MASTER", "local[2]"), **QUICK)
    signal.signal(signal.SIGINT, on_interrupt)
    application = session.sparkContext.applicationId
    yield session
    session.stop()
    # What the executors of a local cluster print lands beside Spark.
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)


@pytest.fixture(scope="session")
def calibrated(fitted_bytes, tmp_path_factory) -> str:
    """A pipeline with a calib pipe fitted for its tagger."""
    path = tmp_path_factory.mktemp("spark") / "calibrated"
    revive(fitted_bytes).to_disk(path)
    return str(path)


@pytest.fixture(scope="module")
def frame(session) -> Any:
    """Texts in four partitions, each with a number and a weight; one is null, one is empty."""
    texts = [*TEXTS, None, ""]
    rows = [(number, number / 2, text) for number, text in enumerate(texts)]
    return session.createDataFrame(rows, "number long, weight double, text string").repartition(4).cache()


def score(*args, **kwargs):
    from spacy_calib.plugins.spark import score

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
