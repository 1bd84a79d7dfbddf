"""The pictures' specifications hold the numbers they are given, in the page's own colours."""

from __future__ import annotations

import re
import sys

import pytest

from spacy_calib.errors import CalibError
from spacy_calib.metrics.table import calibration_table
from spacy_calib.pages import charts
from tests.pages.made_up import judged_of, random_corpus

pytest.importorskip("altair", reason="altair (the extra `report`) is not installed")
pytest.importorskip("vl_convert", reason="vl-convert-python (the extra `report`) is not installed")


@pytest.fixture(scope="module")
def rows():
    corpus = random_corpus(5, 800)
    judged = judged_of(corpus)
    return calibration_table(judged.pairs, judged.calibrated, judged.groups, 10, 0, judged.documents)["errors"]


@pytest.fixture(scope="module")
def specs(rows):
    return charts.specifications(rows)


def test_the_pictures_of_scores_take_their_data_from_the_page(specs):
    assert specs["diagram"]["data"] == {"name": "bins"}
    assert specs["scores"]["data"] == {"name": "scores"}
    assert all(layer.get("data", specs["coverage"].get("data")) == {"name": "coverage"} for layer in specs["coverage"]["layer"])


def test_every_scale_of_numbers_is_named(specs):
    """Where one layer says that an axis has no title, it has none, whatever the others say."""
    for spec in specs.values():
        for layer in spec.get("layer", [spec]):
            x = layer["encoding"]["x"]
            assert x["type"] == "quantitative"
            assert x["title"]


def test_both_axes_of_the_diagram_are_whole(specs):
    points = specs["diagram"]["layer"][-1]["encoding"]
    assert points["x"]["scale"]["domain"] == points["y"]["scale"]["domain"] == [0, 1]


def test_raw_and_calibrated_differ_in_shape_as_well_as_colour(specs):
    for name in ("diagram", "errors"):
        encoding = specs[name]["layer"][-1]["encoding"]
        assert encoding["shape"]["scale"]["domain"] == ["raw", "calibrated"]
        assert len(set(encoding["shape"]["scale"]["range"])) == len(set(encoding["color"]["scale"]["range"])) == 2


def test_every_point_shows_its_values(specs):
    titles = [field["title"] for field in specs["diagram"]["layer"][-1]["encoding"]["tooltip"]]
    assert titles == ["scores", "mean score", "right", "95 %", "pairs"]


def test_the_errors_are_those_of_the_table(specs, rows):
    held = specs["errors"]["layer"][-1]["data"]["values"]
    assert len(held) == 2 * len(rows)
    of = {(row["name"], row["kind"]): row["error"] for row in held}
    assert of["all (SMCE)", "raw"] == rows[0]["raw"]
    assert of["group 2", "calibrated"] == rows[2]["calibrated"]
    assert of["mean (GMCE)", "calibrated"] == rows[-1]["calibrated"]


def test_without_intervals_there_is_no_mark_for_them(specs, rows):
    bare = charts.specifications([{**row, "true_low": None, "true_high": None} for row in rows])["errors"]
    assert len(bare["layer"]) == len(specs["errors"]["layer"]) - 1
    assert "true_low" in str(specs["errors"]["layer"][2]["encoding"]["x"])
    assert not any("true_low" in str(layer["encoding"]["x"]) for layer in bare["layer"])


def test_colours_are_variables_of_the_page(specs):
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", repr(specs))
    assert "var(--raw)" in repr(specs)


def test_the_library_is_one_script_that_loads_nothing():
    code = charts.library()
    assert "vegaEmbed" in code
    assert "</script" not in code
    assert not re.search(r"^\s*import\s", code, flags=re.M)


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_what_is_not_installed_is_named(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(CalibError, match=r"\[C080\].*pip install spacy-calib\[report\]"):
        charts.load_altair()
