"""A session of Spark, a calibrated pipeline on disk, texts, and the rows of their scores."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spacy

from spacy_calib.plugins.spark import score_rows
from tests.conftest import made_up_sentences, revive
from tests.forked import ROOT, alone

TEXTS = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(40, seed=7)]
# Jobs here are small and the processes short-lived: compilers and garbage collectors of the JVM cost more than they save, and waiting for the worker
# that has a partition takes longer than reading it again.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
QUICK = {
    "spark.driver.extraJavaOptions": _JVM, "spark.executor.extraJavaOptions": _JVM, "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false", "spark.locality.wait": "0",
    "spark.shuffle.io.retryWait": "100ms", "spark.log.level": "OFF", "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false", "spark.executorEnv.PYTHONPATH": alone(ROOT)["PYTHONPATH"],
}  # fmt: skip


@pytest.fixture(scope="module")
def session(request) -> Iterator[Any]:
    """Two threads of one Java, unless a file asks for others as MASTER. It ends with the file, and gives back Ctrl-C, which Spark takes for its own."""
    pyspark = pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from pyspark.sql import SparkSession

    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17")
    on_interrupt = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(getattr(request.module, "MASTER", "local[2]")).config(map=QUICK)
        session = builder.getOrCreate()
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
    """Texts in four partitions, each with a number; one is null, one is empty."""
    rows = list(enumerate([*TEXTS, None, ""]))
    return session.createDataFrame(rows, "number long, text string").repartition(4).cache()


def by_text(rows: list[Any]) -> dict[str, list[dict[str, Any]]]:
    """Id -> its rows, in the order of the text."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted((row.asDict(recursive=True) for row in rows), key=lambda row: row["start"]):
        found.setdefault(row["id"], []).append(row)
    return found


def expected(model: str, unit: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the texts from one process; the empty text is the last, and the null before it has none."""
    columns = score_rows(spacy.load(model).pipe([*TEXTS, ""]), "calib", unit, ids=[*range(len(TEXTS)), len(TEXTS) + 1])
    found: dict[str, list[dict[str, Any]]] = {}
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        found.setdefault(row["id"], []).append(row)
    return found
