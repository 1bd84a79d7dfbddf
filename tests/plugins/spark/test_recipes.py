"""The recipes of docs/guides/production.md for Ray and Dask, where these are installed; Spark's blocks are run by test_spark.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import spacy

from tests.docs.pages import DOCS, Run, blocks_of

PAGE = DOCS / "guides" / "production.md"


def run_recipe(extra: str, calibrated: Path, tmp_path: Path, monkeypatch) -> dict:
    pytest.importorskip(extra, reason=f"{extra} is not installed: pip install {extra}")
    shutil.copytree(calibrated, tmp_path / "calibrated")
    monkeypatch.chdir(tmp_path)
    run = Run(names={"Path": Path})
    blocks = [block for block in blocks_of(PAGE) if block.noted("needs extra") == extra]
    assert blocks
    for block in blocks:
        run.block(block)
    return run.names


def expected(model: Path) -> list[float | None]:
    docs = spacy.load(model).pipe(["The old dog saw a duck.", "Every cat eats."])
    return [token._.calib_score for doc in docs for token in doc]


def test_ray(calibrated, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        names = run_recipe("ray", calibrated, tmp_path, monkeypatch)
    finally:
        ray.shutdown()
    rows = sorted(names["scored"], key=lambda row: (row["id"], row["start"]))
    assert [row["score"] for row in rows] == expected(calibrated)


def test_dask(calibrated, tmp_path, monkeypatch):
    names = run_recipe("dask", calibrated, tmp_path, monkeypatch)
    assert [score for columns in names["columns"] for score in columns["score"]] == expected(calibrated)
