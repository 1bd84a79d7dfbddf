"""A Spark session on this machine, for trying things out and for tests; on a cluster the session is there already."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ..errors import calib_error

# Spark 4 runs on Java 17 and later.
_JAVA = 17


def local_session(master: str = "local[*]", **settings: Any) -> SparkSession:
    """Start a Spark session on this machine, or take the one that runs.

    Workers run the Python that this is, and talk over the loopback interface, unless PYSPARK_PYTHON and SPARK_LOCAL_IP say otherwise; the web page of the
    session is off.
    master (str): As Spark has it: local[2] is one process with two workers, local-cluster[2,1,1024] two processes of one core and 1,024 MB.
    settings: Of Spark, with _ for each dot: `spark_task_maxFailures=1`.
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
    """Ask before Spark does, which shows a traceback and two pages. RAISES C451: there is no Java, or an old one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise calib_error("C451", why="there is none on the path, and JAVA_HOME is not set")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace").stderr
    except OSError:
        raise calib_error("C451", why=f"there is none at {java}, where JAVA_HOME points") from None
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < _JAVA:
        raise calib_error("C451", why=f"{java} is " + (f"Java {version[1]}" if version else "none that works"))
