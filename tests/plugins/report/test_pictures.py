"""The pictures of `spacy calib evaluate`: the files, the numbers behind them, and every fault of the input in one sentence."""

import json
from pathlib import Path

import pytest

from spacy_calib.cli.evaluate_command import evaluate
from spacy_calib.errors import CalibError
from tests.cli.conftest import calib, ok, refuses
from tests.forked import in_own_process
from tests.sentences import says

pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def pictures(model: Path, data: Path, **options: object) -> dict:
    """Those of the only pipe that has some."""
    result = evaluate(str(model), data, **options)
    (held,) = [table["pictures"] for table in result.values() if "pictures" in table]
    return held


def test_all_pictures_in_a_folder(calibrated, test_file, tmp_path):
    outcome = ok(calib("evaluate", calibrated, test_file, "--output", tmp_path / "new" / "plots"))
    assert names_in(tmp_path / "new" / "plots") == ["coverage.png", "errors.png", "groups.png", "reliability.png", "top.png"]
    for path in (tmp_path / "new" / "plots").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.name.removesuffix(".png") in outcome.text


def test_a_folder_that_is_not_empty_wants_force(calibrated, test_file, tmp_path):
    (tmp_path / "mine.txt").write_text("")
    for folder in (tmp_path, Path("/")):
        message = f"The output {folder} exists already; choose another path or add --force"
        refuses(calib("evaluate", calibrated, test_file, "--output", folder), message)
    assert names_in(tmp_path) == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    ok(calib("evaluate", calibrated, test_file, "--output", tmp_path / "empty", "--kind", "top"))
    ok(calib("evaluate", calibrated, test_file, "--output", tmp_path, "--kind", "top", "--force"))
    assert names_in(tmp_path) == ["empty", "mine.txt", "top.png"]


def test_every_output_by_its_suffix_and_the_same_every_time(calibrated, test_file, tmp_path):
    names = ["a.html", "a.json", "a.pdf", "a.png", "a.svg"]
    for folder in ("one", "two"):
        outputs = [word for name in names for word in ("-o", tmp_path / folder / name)]
        assert calib("evaluate", calibrated, test_file, *outputs, "--silent").printed == ""
    assert names_in(tmp_path / "one") == names, "nothing half-written is left"
    for name in names:
        held = (tmp_path / "one" / name).read_bytes()
        assert held == (tmp_path / "two" / name).read_bytes()
        assert held.startswith(BEGINNINGS.get(Path(name).suffix, b""))
    (table,) = json.loads((tmp_path / "one" / "a.json").read_text()).values()
    assert list(table["pictures"]["numbers"]) == ["reliability"]


def test_capitals_in_a_suffix_change_nothing(calibrated, test_file, tmp_path):
    outputs = [word for name in ("a.svg", "B.SVG", "C.HTML") for word in ("-o", tmp_path / name)]
    ok(calib("evaluate", calibrated, test_file, *outputs, "--silent"))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "B.SVG").read_bytes()
    assert (tmp_path / "C.HTML").read_text(encoding="utf8").startswith("<!DOCTYPE html>")


def test_the_numbers_are_those_of_the_table(calibrated, test_file):
    (table,) = evaluate(str(calibrated), test_file, kind="all").values()
    held = table["pictures"]["numbers"]
    assert held["errors"] == table["errors"]
    whole, *groups, _ = table["errors"]
    [one] = held["reliability"]
    assert [one["raw"]["error"], one["calibrated"]["error"]] == pytest.approx([whole["raw"], whole["calibrated"]], abs=1e-12)
    assert one["pairs"] == whole["pairs"]
    panels = [panel["calibrated"]["error"] for panel in held["groups"]]
    assert panels == pytest.approx([row["calibrated"] for row in groups], abs=1e-12)


def test_tags_alone_where_they_are_asked_for(calibrated, test_file, tmp_path):
    held = pictures(calibrated, test_file, tags=["NOUN", "VERB"], output=tmp_path / "tags.png")
    assert list(held["numbers"]) == ["tags"]
    assert [panel["title"] for panel in held["numbers"]["tags"]] == ["NOUN", "VERB"]
    assert names_in(tmp_path) == ["tags.png"]


def test_entities_where_the_pipe_scores_them(calibrated_ner, two_pipes, entity_test):
    entities = pictures(calibrated_ner, entity_test, kind="reliability")
    tokens = pictures(two_pipes, entity_test, kind="reliability", component="tagger", n_process=2)
    assert (entities["unit"], tokens["unit"]) == ("entity", "token")
    assert 0 < entities["pairs"] < tokens["pairs"]
    assert entities["numbers"]["reliability"][0]["title"] == "All labels"


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("--kind", "pie"), "--kind must be one of reliability, top, groups, errors, coverage, all, but 'pie' was given"),
    (("--tag", "NOPE"), says("C098", tag="NOPE")),
    (("-o", "one.png", "--kind", "all"), says("C097", path="one.png")),
])  # fmt: skip
def test_wrong_options(calibrated, test_file, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    refuses(calib("evaluate", calibrated, test_file, "-o", "plots", "--silent", *arguments), sentence)
    assert list(tmp_path.iterdir()) == []


@in_own_process
def test_without_matplotlib_the_numbers_can_still_be_had(calibrated, test_file, hide_package, tmp_path):
    hide_package("matplotlib")
    with pytest.raises(CalibError, match=r"\[C061\]"):
        evaluate(str(calibrated), test_file, output=tmp_path / "x.png", kind="groups")
    assert pictures(calibrated, test_file, kind="groups")["numbers"]["groups"]
