"""A session of Spark, a calibrated pipeline on disk, and gold whose statistics are known."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_calib import CalibError
from spacy_calib.doc.reading import DOC_KEY, GoldReader
from spacy_calib.pairs.keyed import Key
from tests.conftest import examples_for, gold_doc, made_up_sentences, revive, run_upstream
from tests.forked import ROOT, alone

KEY = Key(bytes(range(32)))  # that of save_key
# Jobs here are small and the processes short-lived: compilers and garbage collectors of the JVM cost more than they save, and waiting for the worker
# that has a partition takes longer than reading it again.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
QUICK = {
    "spark_driver_extraJavaOptions": _JVM,
    "spark_executor_extraJavaOptions": _JVM,
    "spark_sql_shuffle_partitions": 2,
    "spark_sql_adaptive_enabled": "false",
    "spark_sql_codegen_wholeStage": "false",
    "spark_locality_wait": 0,
    "spark_shuffle_io_retryWait": "100ms",
    "spark_log_level": "OFF",
    "spark_ui_showConsoleProgress": "false",
    "spark_python_daemon_module": "tests.spark.daemon",
    "spark_executorEnv_PYTHONPATH": alone(ROOT)["PYTHONPATH"],
}


@pytest.fixture(scope="module")
def session(request) -> Iterator[Any]:
    """Two threads of one Java, unless a file asks for others as MASTER. It ends with the file, and gives back Ctrl-C, which Spark takes for its own."""
    pyspark = pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from spacy_calib.spark import local_session
    from spacy_calib.spark.session import check_java

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
def gold_path(tmp_path_factory) -> Path:
    vocab = spacy.blank("xx").vocab
    docs = [gold_doc(vocab, sentence) for sentence in made_up_sentences(120, seed=12)]
    for number, doc in enumerate(docs):
        doc.user_data[DOC_KEY] = f"text {number // 2}"
    path = tmp_path_factory.mktemp("spark-gold") / "gold.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


@pytest.fixture
def golden(session, gold_path) -> Any:
    """Its documents in six partitions, some of which hold parts of one document."""
    from spacy_calib.spark import gold_frame

    return gold_frame(session, gold_path, docs=7).repartition(6)


@pytest.fixture(scope="session")
def in_one_pass(calibrated, gold_path) -> bytes:
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from spacy_calib.pipe.collecting import collect_statistics

    nlp = spacy.load(calibrated)
    examples = list(GoldReader().examples(nlp, gold_path))
    with nlp.select_pipes(disable=["calib"]):
        statistics = collect_statistics(nlp.get_pipe("calib"), run_upstream(nlp, examples), "all", key=KEY)
    return without_shards(statistics)


def without_shards(statistics) -> bytes:
    return replace(statistics, shards=()).to_bytes()


def collect(*args, **kwargs):
    from spacy_calib.spark import collect

    return collect(*args, **{"key": KEY, **kwargs})
