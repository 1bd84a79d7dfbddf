"""Batches on disk."""

from __future__ import annotations

import csv
import io
import json

import pytest

from spacy_calib.corpus.active.files import csv_bytes, csv_texts, jsonl_bytes
from spacy_calib.errors import CalibError

ROWS = [
    {
        "rank": 1, "text": 'He said: "Où,\nwhere?"', "doc": 3, "origin": {"line": 4}, "sentence": 1, "start": 4, "end": 9, "words": 5, "score": 0.75,
        "expected_errors": 1.5,
        "reason": {"token": 2, "word": "Où", "label": "FW", "tag": "FW", "probability": 0.25, "raw": 0.1,
                   "alternatives": {"NN": 0.5, "``": 0.125}},
    }
]  # fmt: skip


def test_jsonl():
    (line,) = jsonl_bytes(ROWS).decode("utf8").splitlines()
    assert json.loads(line) == ROWS[0]
    assert "Où" in line


def test_csv_and_back(tmp_path):
    (row,) = csv.DictReader(io.StringIO(csv_bytes(ROWS).decode("utf8"), newline=""))
    assert row["text"] == ROWS[0]["text"]
    assert (row["rank"], row["score"], row["word"], row["probability"]) == ("1", "0.75", "Où", "0.25")
    assert (row["alternatives"], row["origin"]) == ("NN 0.5000; `` 0.1250", '{"line": 4}')
    path = tmp_path / "batch.csv"
    path.write_bytes(csv_bytes(ROWS))
    assert list(csv_texts(path)) == [ROWS[0]["text"]]


def test_guarded_texts_come_back(tmp_path):
    texts = ["-LRB- x", "=1+1", "'=1", "a\rb", "plain"]
    (tmp_path / "batch.csv").write_bytes(csv_bytes([{**ROWS[0], "text": text} for text in texts]))
    assert b"\r\n1,'-LRB- x," in (tmp_path / "batch.csv").read_bytes()
    assert list(csv_texts(tmp_path / "batch.csv")) == texts


@pytest.mark.parametrize("data", [b"", b"word,tag\na,b\n", b"\xff\xfe\x00"])
def test_a_csv_without_texts_is_refused(tmp_path, data):
    path = tmp_path / "other.csv"
    path.write_bytes(data)
    with pytest.raises(CalibError, match="Cannot read the texts in .*other.csv"):
        list(csv_texts(path))
