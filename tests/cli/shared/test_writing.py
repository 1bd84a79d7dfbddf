import errno
import itertools
import json
import os
import signal
import sys

import pytest

from spacy_calib import CalibError
from spacy_calib.cli.shared.outputs import check_folder
from spacy_calib.cli.shared.writing import write_folder
from tests.forked import fork, in_own_process


def pipeline(path, mark):
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.cfg").write_text('[nlp]\nlang = "xx"\n')
    (path / "meta.json").write_text(json.dumps({"lang": "xx", "pipeline": [], "mark": mark}))
    (path / "vocab").mkdir(exist_ok=True)
    (path / "vocab" / "strings.json").write_text(mark)
    return path


def marks(path):
    return {json.loads((path / "meta.json").read_text())["mark"], (path / "vocab" / "strings.json").read_text()}


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def fail(folder):
    pipeline(folder, "half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_target_is_not_there_before_it_is_whole(tmp_path):
    def write(folder):
        assert folder.is_dir()
        assert not (tmp_path / "a" / "new").exists()
        pipeline(folder, "new")
        assert not (tmp_path / "a" / "new").exists()

    write_folder(tmp_path / "a" / "new", write)
    assert marks(tmp_path / "a" / "new") == {"new"}
    assert names(tmp_path / "a") == ["new"]


def test_a_failed_write_leaves_the_old_target_alone(tmp_path):
    old = pipeline(tmp_path / "old", "old")
    with pytest.raises(CalibError, match="Cannot write the output .*: No space left on device"):
        write_folder(old, fail, force=True)
    assert marks(old) == {"old"}
    assert names(tmp_path) == ["old"]


def test_what_git_and_a_hub_put_into_the_old_target_stays(tmp_path):
    old = pipeline(tmp_path / "old", "old")
    (old / ".git" / "objects").mkdir(parents=True)
    (old / ".git" / "objects" / "pack").write_text("years of commits")
    (old / "README.md").write_text("what people should know")
    (old / "accuracy.json").write_text("of the old pipeline")
    write_folder(old, lambda folder: pipeline(folder, "new"), force=True)
    assert marks(old) == {"new"}
    assert names(old) == [".git", "README.md", "config.cfg", "meta.json", "vocab"]
    assert (old / ".git" / "objects" / "pack").read_text() == "years of commits"
    assert (old / "README.md").read_text() == "what people should know"


@pytest.mark.parametrize("platform", [sys.platform, "another"])
def test_a_run_killed_at_any_step_loses_nothing(platform, tmp_path):
    """The n-th run is killed at its n-th change of the disk; the swap of two folders is one step or three."""
    (tmp_path / "thesis.txt").write_text("years of work")
    old = pipeline(tmp_path / "old", "old")
    (old / "README.md").write_text("what people should know")
    results = set()
    for step in range(1, 99):
        code, _, error = fork(lambda step=step: write_killed(old, step, platform)).end()
        if not code:
            break
        assert code == -signal.SIGKILL, error
        check_folder(old, force=True)  # every command begins with it
        (mark,) = marks(old)
        results.add(mark)
        assert (old / "README.md").read_text() == "what people should know"
        assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert step >= 20
    assert results == {"old", "new"}
    assert marks(old) == {"new"}
    assert names(tmp_path) == ["old", "thesis.txt"]


def write_killed(target, step, platform):
    """Write a new pipeline in a process that is killed at its change of the disk with this number."""
    changes = itertools.count(1)
    sys.platform = platform

    def hook(event, arguments):
        is_change = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir") or (
            event == "open" and "w" in str(arguments[1])
        )
        if is_change and next(changes) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    write_folder(target, lambda folder: pipeline(folder, "new"), force=True)


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt])
def test_faults_that_are_not_the_disks_pass_through(fault, tmp_path):
    def write(folder):
        raise fault("not the disk")

    with pytest.raises(fault, match="not the disk"):
        write_folder(tmp_path / "new", write)
    assert names(tmp_path) == []


def test_a_link_that_leads_nowhere_counts_as_there(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(CalibError, match="exists already"):
        check_folder(tmp_path / "link", force=False)


def test_a_link_to_a_pipeline_stays_a_link(tmp_path):
    old = pipeline(tmp_path / "old", "old")
    (tmp_path / "link").symlink_to("old")
    write_folder(tmp_path / "link", lambda folder: pipeline(folder, "new"), force=True)
    assert (tmp_path / "link").is_symlink()
    assert marks(old) == {"new"}
    assert names(tmp_path) == ["link", "old"]


def test_a_target_that_came_up_meanwhile_is_not_overwritten(tmp_path):
    def write(folder):
        pipeline(folder, "mine")
        pipeline(tmp_path / "new", "somebody else's")

    with pytest.raises(CalibError):
        write_folder(tmp_path / "new", write)
    assert marks(tmp_path / "new") == {"somebody else's"}
    assert names(tmp_path) == ["new"]


@in_own_process
def test_when_the_second_rename_fails_the_old_target_comes_back(tmp_path):
    sys.platform = "another"
    old = pipeline(tmp_path / "old", "old")
    rename = type(tmp_path).rename

    def rename_once(self, target):
        if self.name.endswith(".partial"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return rename(self, target)

    type(tmp_path).rename = rename_once
    with pytest.raises(CalibError, match="Permission denied"):
        write_folder(old, lambda folder: pipeline(folder, "new"), force=True)
    assert marks(old) == {"old"}
    assert names(tmp_path) == ["old"]
