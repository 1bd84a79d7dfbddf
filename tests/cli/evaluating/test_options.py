"""What `evaluate --output` writes, by the suffix of each path."""

from pathlib import Path

import pytest

from spacy_calib.cli.evaluating.options import PICTURE_KINDS, kind_of, picture_files, picture_names
from spacy_calib.errors import CalibError
from tests.sentences import says


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.json", "numbers"), ("a.HTML", "page"), ("a.htm", "page"), ("a.svg", "pictures"), ("plots", "pictures"), ("there.d", "pictures")],
)  # fmt: skip
def test_the_suffix_says_what_is_written_and_a_folder_gets_pictures(tmp_path, name, kind):
    (tmp_path / "there.d").mkdir()
    assert kind_of(tmp_path / name) == kind


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(CalibError, match=says("C056", option="--output")):
        kind_of(tmp_path / "gone.d")


@pytest.mark.parametrize(("kind", "tags", "names"), [
    (None, None, ["reliability"]), (None, ["NN"], ["tags"]), ("top", ["NN"], ["top", "tags"]),
    ("all", None, [*PICTURE_KINDS]),
])  # fmt: skip
def test_names_of_pictures(kind, tags, names):
    assert picture_names(kind, tags, ["reliability"]) == names


def test_a_file_holds_one_picture_and_a_folder_one_of_each():
    folder, file = Path("plots"), Path("one.svg")
    assert picture_files([file], "top", None) == [("top", file)]
    assert picture_files([folder], None, None) == [(name, folder / f"{name}.png") for name in PICTURE_KINDS]
    with pytest.raises(CalibError, match=says("C097", path=file)):
        picture_files([folder, file], "all", None)
