"""Check a job before Spark starts it, so that a fault is one sentence, and start a local session for trials and tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from ...errors import CalibError
from .messages import calib_error

# Spark 4 runs on Java 17 and later.
_JAVA = 17


def local_session(master: str = "local[*]", **settings: Any) -> SparkSession:
    """Start a Spark session on this machine, or return the running one.

    Workers run the current Python, over the loopback interface, unless PYSPARK_PYTHON and SPARK_LOCAL_IP are set. The web page
    of the session is off.
    master (str): Master URL of Spark: local[2] is one process with two workers, local-cluster[2,1,1024] two workers of one core
    and 1,024 MB each. settings: Settings of Spark, with _ for each dot: `spark_task_maxFailures=1`.
    RAISES C451: there is no Java, or an old one.
    """
    check_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("spacy-calib").config("spark.ui.enabled", "false")
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), str(value))
    return builder.getOrCreate()


def check_java() -> None:
    """Check that Java is installed, as Spark itself would print two pages of traceback. RAISES C451: none, or an old one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise calib_error("C451", why="there is none on the path, and JAVA_HOME is not set")
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace").stderr
    except OSError:
        raise calib_error("C451", why=f"there is none at {java}, where JAVA_HOME points") from None
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    if version is None or int(version[1]) < _JAVA:
        raise calib_error("C451", why=f"{java} is " + (f"Java {version[1]}" if version else "none that works"))


def check_columns(df: DataFrame, names: Sequence[str]) -> None:
    """Check that a DataFrame has some columns. RAISES C001: df is no DataFrame. C452: a column is missing."""
    if not isinstance(df, DataFrame):
        raise calib_error("C001", name="df", wanted="a DataFrame of Spark", given=type(df).__name__)
    for name in names:
        if name not in df.columns:
            raise calib_error("C452", given=name, available=", ".join(df.columns))


def check_type(df: DataFrame, name: str, data_type: DataType) -> None:
    """Check the type of a column. RAISES C453: it is another one."""
    actual = df.schema[name].dataType
    if type(actual) is not type(data_type):
        raise calib_error("C453", name=name, wanted=data_type.simpleString(), given=actual.simpleString())


def check_worker(session: SparkSession, load: Callable[[], Any]) -> None:
    """Load what a job needs on one worker, where it is cached. RAISES C454: no pipeline there. Others: errors of `load`."""
    faults = session.range(0, 1, 1, 1).mapInArrow(partial(_report_fault, load), "code string, why string").collect()
    if faults:
        code, why = faults[0]["code"], faults[0]["why"]
        raise calib_error("C454", why=why) if code == "C050" else CalibError(code, why)


def _report_fault(load: Callable[[], Any], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row with the code and the message of the error if loading fails, else no row."""
    for _ in batches:
        try:
            load()
        except CalibError as error:
            yield pa.RecordBatch.from_pydict({"code": [error.code], "why": [error.message]})
