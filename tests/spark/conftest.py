"""A calibrated pipeline on disk."""

from __future__ import annotations

import pytest

from tests.conftest import examples_for, revive, run_upstream


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
