"""One rule for every CSV file that a command writes: no spreadsheet computes its cells, unless --raw-cells is given."""

import csv
import json
import re

from tests.cli.conftest import calib, ok

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
RUN = '=HYPERLINK("http://x";"y")'


def test_texts_and_what_goes_with_them_are_no_formulas(calibrated, tmp_path):
    texts = [(f"{RUN} the dog runs .", "=1+1"), ("-LRB- the old duck saw @SUM(A1) .", "+49"), ("the cat eats .", "2026")]
    lines = [json.dumps({"text": text, "id": by, "year": by}) for text, by in texts]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    ok(calib("rank", calibrated, tmp_path / "texts.jsonl", "--output", tmp_path / "made.csv", "--silent"))
    with (tmp_path / "made.csv").open(newline="", encoding="utf8") as rows:
        cells = [cell for row in csv.reader(rows) for cell in row]
    assert not [cell for cell in cells if cell.startswith(FORMULAS) and not re.fullmatch(r"-[\d.e-]+", cell)]
    assert [cell for cell in cells if cell.startswith("'")]
