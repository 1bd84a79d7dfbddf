"""A worker or its whole executor is killed, in processes of their own: a session for these tests alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.spark.conftest import by_text, expected, score

MASTER = "local-cluster[1,2,1024]"


def killing(marker: Path, executor: bool) -> type:
    """A task of `score`; the first one that reads partition 3 kills the Python process that it runs in, or the executor too."""
    from spacy_calib.plugins.spark.scoring import _Scoring

    class Killing(_Scoring):
        def batches(self, batches):
            yield from _Scoring.batches(self, map(self.passed, batches))

        def passed(self, batch):
            import os
            import signal

            from pyspark import TaskContext

            if TaskContext.get().partitionId() == 3 and not marker.exists():
                marker.touch()
                daemon = os.getppid()
                with open(f"/proc/{daemon}/stat") as stat:
                    jvm = int(stat.read().rpartition(")")[2].split()[1])
                os.kill(jvm if executor else os.getpid(), signal.SIGKILL)
            return batch

    return Killing


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to find the executor by")
@pytest.mark.parametrize("executor", [False, True], ids=["process", "executor"])
def test_a_worker_that_is_killed_changes_nothing(frame, calibrated, tmp_path, monkeypatch, executor):
    marker = tmp_path / "killed"
    monkeypatch.setattr("spacy_calib.plugins.spark.scoring._Scoring", killing(marker, executor))
    rows = score(frame, calibrated, id="number", check=False).collect()
    assert marker.exists()
    assert by_text(rows, "doc") == expected(calibrated, "token")
