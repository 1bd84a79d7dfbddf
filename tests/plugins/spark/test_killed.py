"""A worker or its whole executor is killed, in processes of their own: a session for these tests alone."""

from pathlib import Path

import pytest

from spacy_calib.plugins.spark import TextScorer
from tests.plugins.spark.conftest import by_text, expected

MASTER = "local-cluster[1,2,1024]"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to find the executor by")
@pytest.mark.parametrize("executor", [False, True], ids=["process", "executor"])
def test_a_worker_that_is_killed_changes_nothing(frame, calibrated, tmp_path, executor):
    """The first task that reads partition 3 kills the Python process that it runs in, or the executor too, after rows were made."""
    scorer, marker = TextScorer(calibrated, id="number"), tmp_path / "killed"

    def score_and_kill(batches):
        import os
        import signal

        from pyspark import TaskContext

        for rows in scorer(batches):
            if TaskContext.get().partitionId() == 3 and not marker.exists():
                marker.touch()
                with open(f"/proc/{os.getppid()}/stat") as stat:
                    jvm = int(stat.read().rpartition(")")[2].split()[1])
                os.kill(jvm if executor else os.getpid(), signal.SIGKILL)
            yield rows

    rows = frame.mapInPandas(score_and_kill, scorer.schema).collect()
    assert marker.exists()
    assert by_text(rows) == expected(calibrated, "token")
