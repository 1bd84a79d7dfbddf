"""`spacy calib plot`: the files, the numbers behind them, and every fault of the input in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spacy_calib.cli.plot import plot
from spacy_calib.errors import CalibError

from .conftest import calib, refuses, save_docs

pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def numbers(*arguments: object) -> dict:
    outcome = calib("plot", *arguments, "--format", "json")
    assert outcome.code == 0, outcome.text
    return json.loads(outcome.printed[outcome.printed.index("{") :])


def test_all_pictures_in_a_folder(calibrated, test_file, tmp_path):
    outcome = calib("plot", calibrated, test_file, "--output", tmp_path / "new" / "plots", "--dpi", 40)
    assert outcome.code == 0, outcome.text
    assert names_in(tmp_path / "new" / "plots") == ["coverage.png", "errors.png", "groups.png", "reliability.png", "top.png"]
    for path in (tmp_path / "new" / "plots").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.name.removesuffix(".png") in outcome.text


def test_one_picture_as_a_file_is_the_same_every_time(calibrated, test_file, tmp_path):
    for name in ("a.svg", "b.svg"):
        calib("plot", calibrated, test_file, "-o", tmp_path / name, "--kind", "reliability", "--silent")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    assert names_in(tmp_path) == ["a.svg", "b.svg"], "nothing half-written is left"


def test_the_numbers_are_those_of_evaluate(calibrated, test_file, tmp_path):
    calib("evaluate", calibrated, test_file, "--silent", "--bins", 5, "-o", tmp_path / "evaluate.json")
    [table] = json.loads((tmp_path / "evaluate.json").read_text()).values()
    held = plot(str(calibrated), test_file, bins=5, format="json")
    assert held["pictures"]["errors"] == table["errors"]
    whole, *groups, _ = table["errors"]
    [one] = held["pictures"]["reliability"]
    assert [one["raw"]["error"], one["calibrated"]["error"]] == pytest.approx([whole["raw"], whole["calibrated"]], abs=1e-12)
    assert one["pairs"] == whole["pairs"]
    panels = [panel["calibrated"]["error"] for panel in held["pictures"]["groups"]]
    assert panels == pytest.approx([row["calibrated"] for row in groups], abs=1e-12)
    assert held["files"] == {}


def test_tags_alone_where_they_are_asked_for(calibrated, test_file, tmp_path):
    held = numbers(calibrated, test_file, "--tag", "NOUN", "--tag", "VERB", "-o", tmp_path / "tags.png", "--dpi", 40)
    assert list(held["pictures"]) == ["tags"]
    assert [panel["title"] for panel in held["pictures"]["tags"]] == ["NOUN", "VERB"]
    assert held["files"] == {"tags": str(tmp_path / "tags.png")}
    assert names_in(tmp_path) == ["tags.png"]


def test_entities_unless_tokens_are_asked_for(calibrated_ner, entity_test):
    entities = plot(str(calibrated_ner), entity_test, kind="reliability", format="json")
    tokens = plot(str(calibrated_ner), entity_test, kind="reliability", of="tokens", format="json", n_process=2)
    assert (entities["of"], tokens["of"]) == ("entities", "tokens")
    assert 0 < entities["pairs"] < tokens["pairs"]
    assert entities["pictures"]["reliability"][0]["title"] == "All labels"


def test_the_pipe_is_chosen_by_its_prefix(two_pipes, entity_test):
    assert plot(str(two_pipes), entity_test, attr="tag_calib", kind="reliability", format="json")["of"] == "tokens"
    outcome = calib("plot", two_pipes, entity_test, "--attr", "x", "--format", "json")
    refuses(outcome, "no fitted calib pipe with the prefix 'x'")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--kind", "pie"),
            "Option --kind must be one of reliability, top, groups, errors, coverage, all, watch, but 'pie' was given.",
        ),
        (("--of", "words"), "Option --of must be one of tokens, entities, documents, but 'words' was given."),
        (("--of", "entities"), "calibrates 'tagger', which finds no entities"),
        (("--tag", "NOPE"), "judges no tag 'NOPE'; it judges:"),
        (("--bins", "0"), "Option --bins must be at least 1, but 0 was given."),
        (("--dpi", "0"), "Option --dpi must be at least 10, but 0 was given."),
        (("--dpi", "20000"), "Option --dpi must be at most 2,400, but 20000 was given."),
        (("--n-process", "0"), "Option --n-process must be at least 1, but 0 was given."),
        (("--seed", "-1"), "Option --seed must be at least 0, but -1 was given."),
        (("--image", "gif"), "Option --image must be one of png, svg, but 'gif' was given."),
        (("--format", "yaml"), "Option --format must be one of table, json, but 'yaml' was given."),
        (("--bins", "100000"), "which is fewer than the 100000 bins"),
    ],
)
def test_wrong_options(calibrated, test_file, tmp_path, arguments, sentence):
    refuses(calib("plot", calibrated, test_file, "-o", tmp_path / "plots", "--silent", *arguments), sentence)
    assert not (tmp_path / "plots").exists()


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ((), "Option --output must be a folder, or a file that ends in .png or .svg, but nothing was given."),
        (("-o", "one.pdf"), "Option --output must be a folder, or a file that ends in .png or .svg, but one.pdf was given."),
        (
            ("-o", "one.png"),
            "The output one.png is one file, but there are several pictures to draw: reliability, top, groups, errors, coverage;",
        ),
    ],
)
def test_wrong_outputs(calibrated, test_file, output, sentence):
    refuses(calib("plot", calibrated, test_file, *output), sentence)


def test_an_older_picture_stays_when_the_new_one_cannot_be_written(calibrated, test_file, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("kept")
    refuses(calib("plot", calibrated, test_file, "-o", taken / "x.png", "--kind", "reliability", "--silent"), "Cannot write")
    assert taken.read_text() == "kept"


def test_data_without_gold(calibrated, tmp_path):
    from spacy.lang.en import English

    bare = save_docs(tmp_path / "bare.spacy", [English()("the dog saw a duck")])
    refuses(calib("plot", calibrated, bare, "--format", "json", "--silent"), "The data has no gold tag annotation")


def test_without_matplotlib_the_numbers_can_still_be_had(calibrated, test_file, monkeypatch, tmp_path):
    import sys

    for name in {"matplotlib", "matplotlib.figure", *(name for name in sys.modules if name.split(".")[0] == "matplotlib")}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CalibError, match=r"\[C061\]"):
        plot(str(calibrated), test_file, output=tmp_path / "x.png", kind="groups")
    assert plot(str(calibrated), test_file, kind="groups", format="json")["pictures"]["groups"]
