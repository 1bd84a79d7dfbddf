"""What is asked before a session begins; no session is started here."""

from __future__ import annotations

import importlib

import pytest

from spacy_calib import CalibError


@pytest.fixture
def spark():
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    return importlib.import_module("spacy_calib.plugins.spark")


def written(folder, says: str, name: str = "java"):
    """A program that says this on its error stream, as `java -version` does."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin" / name
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    return folder


def test_without_pyspark_the_extra_is_named(hide_package):
    hide_package("pyspark", "spacy_calib.plugins.spark")
    with pytest.raises(CalibError, match=r'\[C450\] .*pip install "spacy-calib\[spark\]"'):
        importlib.import_module("spacy_calib.plugins.spark")


def test_without_java_one_sentence_says_so(spark, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(CalibError, match=r"\[C451\] Spark needs Java 17 or later, but there is none on the path"):
        spark.local_session()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(CalibError, match=r"\[C451\] .*none at .*nowhere.*where JAVA_HOME points"):
        spark.local_session()


@pytest.mark.parametrize(
    ("says", "wrong"),
    [('openjdk version "11.0.2"', "is Java 11;"), ('java version "1.8.0_381"', "is Java 8;"), ("bad magic", "none that works")],
)
def test_an_old_java_is_refused(spark, monkeypatch, tmp_path, says, wrong):
    monkeypatch.setenv("JAVA_HOME", str(written(tmp_path, says)))
    with pytest.raises(CalibError, match=rf"\[C451\] .*{wrong}"):
        spark.local_session()


@pytest.mark.parametrize("says", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19'])
def test_a_new_java_is_taken(spark, monkeypatch, tmp_path, says):
    from spacy_calib.plugins.spark.session import check_java

    monkeypatch.setenv("JAVA_HOME", str(written(tmp_path, says)))
    check_java()


def test_a_file_of_code_is_found_from_anywhere_and_a_module_stays_a_name(spark, monkeypatch, tmp_path):
    from spacy_calib.plugins.spark.models import Model

    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own.py").touch()
    assert [Model.from_name("m", code).code for code in ("own.py", "own", None)] == [str(tmp_path / "own.py"), "own", None]
