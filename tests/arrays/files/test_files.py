"""Files of scores: what is read of them, what is written, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_calib.arrays import TagCalibrator
from spacy_calib.arrays.files import SUFFIXES, columns, is_score_file, npz, read_units, with_calibrated
from spacy_calib.arrays.files.units import chunks_of, format_of
from spacy_calib.errors import CalibError
from tests.scores import LABELS, rows_of, write_csv
from tests.strategies import score

# Two documents whose rows are mixed; the unit 7 of both is not one; x has no gold and no word.
ROWS = [
    {"document": "a", "unit": "7", "tag": "N", "score": 0.75, "gold": "N", "word": "fish", "note": '"so", he said'},
    {"document": "b", "unit": "7", "tag": "V", "score": 0.5, "gold": "", "word": "", "note": "zwölf\nlines"},
    {"document": "a", "unit": "7", "tag": "V", "score": 0.125, "gold": "", "word": "fish", "note": "=1+1"},
    {"document": "a", "unit": "8", "tag": "N", "score": 0.005, "gold": "Q", "word": "net", "note": ""},
]
CALIBRATED = np.array([0.5, 0.25, 1 / 3, np.nan])


def needs(suffix: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")


def written(path, rows, suffix):
    """A file of this format with these rows, made from a CSV file without the last column."""
    needs(suffix)
    source = write_csv(path / "source.csv", rows)
    if suffix == ".csv":
        return source
    target = path / f"made{suffix}"
    target.write_bytes(b"".join(with_calibrated(source, target, np.full(len(rows), 0.5))))
    return target


def table(path) -> list[dict]:
    """The rows of a file, whatever its format, as texts and numbers."""
    rows = []
    for chunk in chunks_of(path):
        for values in zip(*chunk.values(), strict=True):
            row = dict(zip(chunk, values, strict=True))
            scores = {
                name: None if columns.is_empty(row[name]) else float(row[name]) for name in columns.NUMBERS if name in row
            }
            texts = {name: "" if columns.is_empty(value) else str(value) for name, value in row.items() if name not in scores}
            rows.append({**texts, **scores})
    return rows


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_units_are_told_apart(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "ROWS", 3)  # so that a unit spans two chunks
    found = read_units(written(tmp_path, ROWS, suffix))
    assert found.labels == ["N", "V"]
    rows, tags, scores = found.P
    assert rows.tolist() == [0, 1, 0, 2]
    assert tags.tolist() == [0, 1, 1, 0]
    assert scores.tolist() == [0.75, 0.5, 0.125, 0.005]
    assert found.y().tolist() == ["N", None, "Q"]
    assert [found.documents.at(unit) for unit in range(3)] == ["a", "b", "a"]
    assert [found.name_of(unit) for unit in range(3)] == ["unit 7 of a", "unit 7 of b", "unit 8 of a"]
    assert found.words.values().tolist() == ["fish", None, "net"]
    assert found.sentences is None


def test_a_unit_without_a_name_is_none_of_the_document_before(tmp_path):
    """Nor of the one behind; rows of one document without a name are of one unit."""
    places = [("a", "1"), ("b", ""), ("a", "2"), ("", "2"), ("b", "1"), ("", ""), ("b", ""), ("c", "")]
    rows = [{"document": d, "unit": u, "tag": f"t{i}", "score": 0.5} for i, (d, u) in enumerate(places)]
    assert read_units(write_csv(tmp_path / "a.csv", rows)).P[0].tolist() == [0, 1, 2, 3, 4, 5, 1, 6]


def test_a_score_at_the_threshold_reaches_it(tmp_path):
    np.savez(tmp_path / "wide.npz", P=[[0.75, 0.5], [0.125, 0.005]], labels=["N", "V"])
    for found in (read_units(write_csv(tmp_path / "a.csv", ROWS)), read_units(tmp_path / "wide.npz")):
        assert [found.n_reaching(threshold) for threshold in (0.124, 0.125, 0.126, 0.75, 0.76)] == [3, 3, 2, 1, 0]


@pytest.mark.parametrize("target", SUFFIXES)
@pytest.mark.parametrize("source", SUFFIXES)
def test_rows_come_back_with_one_column_more(source, target, tmp_path, monkeypatch):
    needs(target)
    monkeypatch.setattr(columns, "ROWS", 3)
    path = written(tmp_path, ROWS, source)
    output = tmp_path / f"output{target}"
    output.write_bytes(b"".join(with_calibrated(path, output, CALIBRATED)))
    wanted = [None if value != value else value for value in CALIBRATED.tolist()]
    assert table(output) == [{**row, "calibrated": value} for row, value in zip(ROWS, wanted, strict=True)]
    assert read_units(output).y().tolist() == ["N", None, "Q"]


TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=6)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
@example(words=["a\rb", "c\nd", '"', ",\t", " "], scores=None)
@given(words=st.lists(TEXT, min_size=1, max_size=5), scores=st.data())
def test_any_text_comes_back(suffix, words, scores, tmp_path_factory):
    values = [0.5 if scores is None else scores.draw(score) for _ in words]
    chunk = {"tag": [f"t{i}" for i in range(len(words))], "word": words, "score": values}
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(b"".join(format_of(path).written([chunk])))
    assert [row["word"] for row in table(path)] == words
    assert read_units(path).P[2].tolist() == values
    again = b"".join(with_calibrated(path, path, np.array(values)))
    path.write_bytes(again)
    assert [(row["word"], row["calibrated"]) for row in table(path)] == list(zip(words, values, strict=True))


def test_text_formats_keep_what_they_hold(tmp_path):
    lines = [{"tag": "N", "score": 0.25, "more": {"a": [1]}}, {"tag": "V", "score": 0.5, "gold": None, "n": 3}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    written = b"".join(with_calibrated(path, tmp_path / "b.jsonl", np.array([0.5, np.nan])))
    assert list(map(json.loads, written.splitlines())) == [
        {**lines[0], "calibrated": 0.5},
        {**lines[1], "calibrated": None},
    ]
    assert b'{""a"": [1]}' in b"".join(with_calibrated(path, tmp_path / "b.csv", np.array([0.5, np.nan])))


def test_parquet_keeps_its_types(tmp_path):
    pa = pytest.importorskip("pyarrow")

    path, output = tmp_path / "a.parquet", tmp_path / "b.parquet"
    columns = {
        "unit": pa.array([1, 2]),
        "tag": pa.array(["N", "V"]).dictionary_encode(),
        "score": pa.array([0.5, 0.25], pa.float32()),
    }
    pa.parquet.write_table(pa.table(columns), path)
    output.write_bytes(b"".join(with_calibrated(path, output, np.array([0.5, np.nan]))))
    found = pa.parquet.read_table(output)
    assert found.schema.names == ["unit", "tag", "score", "calibrated"]
    assert found.schema.field("unit").type == pa.int64()
    assert found.column("score").type == pa.float32()
    assert found.column("calibrated").to_pylist() == [0.5, None]
    assert read_units(output).name_of(1) == "unit 2"


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_matrix_and_its_rows_calibrate_alike(made, suffix, tmp_path):
    path = tmp_path / "wide.npz"
    np.savez(path, P=made.P[:, ::-1], labels=LABELS[::-1], y=made.y, documents=made.documents)
    wide = read_units(path)
    assert (wide.n_units, wide.n_entries) == (600, np.count_nonzero(made.P))
    wanted = TagCalibrator("platt", scaling="vector").fit(made.P, made.y, made.documents)
    calibrator = TagCalibrator("platt", scaling="vector", classes=LABELS).fit(wide.scores_for(LABELS), wide.y(), wide.groups)
    assert calibrator.predict_proba(made.P).tobytes() == wanted.predict_proba(made.P).tobytes()
    of_rows = wide.of_rows(calibrator.transform(wide.scores_for(LABELS)), LABELS, 0.01)
    output = tmp_path / f"output{suffix}"
    output.write_bytes(b"".join(with_calibrated(path, output, of_rows)))
    if suffix == ".npz":
        with np.load(output) as held:
            assert held["calibrated"].tobytes() == calibrator.transform(made.P)[:, ::-1].tobytes()
            assert sorted(held) == ["P", "calibrated", "documents", "labels", "y"]
        return
    long = read_units(output)
    rows, columns, scores = long.scores_for(LABELS)
    assert (long.n_units, long.documents.names[11], long.y().tolist()) == (600, "11", made.y.tolist())
    assert scores.tolist() == made.P[rows, columns].tolist()


def test_rows_calibrate_as_arrays_do(made, tmp_path):
    found = read_units(write_csv(tmp_path / "a.csv", rows_of(made)))
    without = np.arange(600) % 50 == 2
    assert np.equal(found.y(), None).tolist() == without.tolist()
    y = np.where(without, "", made.y)
    wanted = TagCalibrator("isotonic", classes=LABELS).fit(made.P, y, made.documents)
    calibrator = TagCalibrator("isotonic", classes=LABELS).fit(found.scores_for(LABELS), found.y(), found.groups)
    assert calibrator.predict_proba(made.P).tobytes() == wanted.predict_proba(made.P).tobytes()


def test_without_units_each_row_is_one(tmp_path):
    found = read_units(write_csv(tmp_path / "a.csv", [{"tag": "N", "score": 0.5}, {"tag": "N", "score": 0.25}]))
    assert (found.n_units, found.groups, found.name_of(1), found.by) == (2, None, "unit 2", "unit")


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("", "C302", "holds no scores"),
        ("tag,score\n", "C302", "holds no scores"),
        ("tag,prob\nN,.5\n", "C300", "has no column score; it has: tag, prob"),
        ("document,score\nN,.5\n", "C300", "has no column tag"),
        ("tag,score\nN,.5\nN,1.5\n", "C301", "Row 2 of .* cannot be read: the score '1.5' is no number from 0 to 1"),
        ("tag,score\nN,nan\n", "C301", "Row 1 of .*: the score 'nan' is no number from 0 to 1"),
        ("tag,score\nN,half\n", "C301", "Row 1 of .*: the score 'half' is no number"),
        ("tag,score\nN,\n", "C301", "Row 1 of .*: there is no score in it"),
        ("tag,score\n,.5\n", "C301", "Row 1 of .*: there is no tag in it"),
        ("tag,score\nN,.5,7\n", "C301", "Line 2 of .*: it has 3 cells, and there are 2 columns"),
        ('tag,score\n"N,.5\n', "C301", "Line 2 of .*: unexpected end of data"),
        ("tag,score,tag\nN,.5,V\n", "C303", "two of its columns have one name"),
        ("unit,tag,score,gold\n1,N,.5,N\n1,V,.5,V\n", "C301", "Row 2 of .*: its gold is 'V', and that of an earlier row of the same unit 'N'"),
        ("unit,tag,score\n1,N,.5\n1,N,.4\n", "C301", "Row 2 of .*: the tag 'N' stands twice for unit 1[.]"),
        ("tag,score\nN\udcff,.5\n", "C303", "it is not UTF-8"),
    ],
)  # fmt: skip
def test_tables_that_are_none_are_refused(text, code, why, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CalibError, match=why) as caught:
        read_units(path)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("\n", "C302", "holds no scores"),
        ('{"tag": "N"}\n', "C300", "has no column score"),
        ('{"tag": "N", "score": 0.5}\n[1]\n', "C301", "Line 2 of .*: it is no object"),
        ('{"tag": "N", "score": 0.5\n', "C301", "Line 1 of .*: it is no JSON"),
        ('{"tag": "N", "score": 1}\n{"tag": ' + "[" * 99_999, "C301", "Line 2 of .*: it is nested more than 100 deep"),
        (
            '{"tag": "N", "score": 1, "x": ' + "[" * 900 + "]" * 900 + "}",
            "C301",
            "Line 1 of .*: it is nested more than 100 deep",
        ),
        ('{"tag": "N", "score": [0.5]}\n', "C301", r"Row 1 of .*: the score '\[0.5\]' is no number"),
        ('{"tag": "N", "score": null}\n', "C301", "Row 1 of .*: there is no score in it"),
    ],
)
def test_lines_that_are_none_are_refused(text, code, why, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(CalibError, match=why) as caught:
        read_units(path)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("arrays", "code", "why"),
    [
        ({}, "C302", "holds no scores"),
        ({"tag": np.array(["N"])}, "C300", "has no column score"),
        ({"tag": np.array(["N"]), "score": np.array([0.5, 0.5])}, "C303", r"no columns of one length: tag \(1,\), score \(2,\)"),
        ({"P": np.ones((2, 2))}, "C300", "has no column labels; it has: P"),
        ({"P": np.ones((2, 2)), "labels": np.array(["N"])}, "C303", r"its arrays do not go together: P \(2, 2\), 1 labels"),
        ({"P": np.ones(2), "labels": np.array(["N"])}, "C303", r"do not go together: P \(2,\)"),
        ({"P": np.ones((2, 1)), "labels": np.array(["N"]), "y": np.array(["N"])}, "C303", r"1 labels, y \(1,\)"),
        ({"P": np.array([[0.5], [np.nan]]), "labels": np.array(["N"])}, "C301", "Row 2 of .*: its scores from nan to nan are no"),
        ({"P": np.array([[1.5]]), "labels": np.array(["N"])}, "C301", "Row 1 of .*: its scores from 1.5 to 1.5 are no"),
        ({"P": np.ones((0, 1)), "labels": np.array(["N"])}, "C302", "holds no scores"),
        ({"tag": np.array(["N"], dtype=object), "score": np.array([0.5])}, "C303", "an array of Python objects; save texts as astype"),
    ],
)  # fmt: skip
def test_arrays_that_are_none_are_refused(arrays, code, why, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(CalibError, match=why) as caught:
        read_units(tmp_path / "a.npz")
    assert caught.value.code == code


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".jsonl"])
def test_files_of_another_kind_are_refused(suffix, tmp_path):
    needs(suffix)
    path = tmp_path / f"a{suffix}"
    with pytest.raises(CalibError, match=r"\[C051\] Data not found"):
        read_units(path)
    path.write_bytes(b"PK\x03\x04 and nothing else \xff")
    with pytest.raises(CalibError, match=r"\[C303\] .* cannot be read as a file of scores \(.*; give .csv"):
        read_units(path)


def test_other_names_are_refused(tmp_path):
    for name in ("a.txt", "a"):
        with pytest.raises(CalibError, match=r"\[C303\] .* \(it ends in (.txt|nothing)\); give .csv"):
            read_units(tmp_path / name)
    assert is_score_file(tmp_path / "a.CSV")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(CalibError, match=r"\[C303\] .*Is a directory"):
        read_units(tmp_path / "folder.csv")


def test_parquet_needs_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        CalibError, match=r'\[C304\] Parquet needs pyarrow, which is not installed; run `pip install "spacy-calib\[parquet\]"`'
    ):
        read_units(tmp_path / "a.parquet")


def test_gold_that_is_needed_and_not_there_is_named(tmp_path):
    path = write_csv(tmp_path / "a.csv", [{"tag": "N", "score": 0.5, "gold": ""}])
    with pytest.raises(CalibError, match=r"\[C305\] .* has no gold, which is needed to learn and to judge; add a column gold"):
        read_units(path).y()


def test_tags_that_the_calibrator_does_not_know_are_named(tmp_path):
    path = write_csv(tmp_path / "a.csv", [{"tag": "Q", "score": 0.5}])
    with pytest.raises(CalibError, match=r"\[C294\] There is no tag 'Q' among the classes; they are: N, V"):
        read_units(path).scores_for(["N", "V"])


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path):
    path = write_csv(tmp_path / "a.csv", ROWS)
    for n in (3, 5):
        with pytest.raises(CalibError, match=r"\[C301\] .* the file changed while it was read"):
            b"".join(with_calibrated(path, tmp_path / "b.csv", np.full(n, 0.5)))


def test_a_column_that_npz_would_blow_up_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "_MOST_BYTES", 150)
    path = write_csv(tmp_path / "a.csv", ROWS)
    with pytest.raises(
        CalibError, match=r"The column 'note' of .*: a text of 13 characters makes it .* GiB in .npz; write another"
    ):
        b"".join(with_calibrated(path, tmp_path / "b.npz", np.full(4, 0.5)))
