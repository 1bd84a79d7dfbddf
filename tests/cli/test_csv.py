"""One rule for every CSV file that a command writes: no spreadsheet computes its cells, unless --raw-cells is given."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import calib, ok

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
RUN = '=HYPERLINK("http://x";"y")'


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    lines = [(f"{RUN} the dog runs .", "=1+1"), ("-LRB- the old duck saw @SUM(A1) .", "+49"), ("the cat eats .", "2026")]
    path.write_text("".join(json.dumps({"text": text, "id": by, "year": by}) + "\n" for text, by in lines))
    return path


def cells_in(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf8") as lines:
        return list(csv.reader(lines))


def is_negative(cell: str) -> bool:
    try:
        return float(cell) < 0
    except ValueError:
        return False


def test_texts_and_what_goes_with_them_are_no_formulas(calibrated, texts, tmp_path):
    ok(calib("rank", calibrated, texts, "--output", tmp_path / "made.csv", "--silent"))
    cells = [cell for row in cells_in(tmp_path / "made.csv") for cell in row]
    assert not [cell for cell in cells if cell.startswith(FORMULAS) and not is_negative(cell)]
    assert [cell for cell in cells if cell.startswith("'")]
