"""Texts from Parquet and from compressed JSON Lines, and what is wrong with them in a sentence."""

import datetime
import gzip
import json
import sys

import pytest
import spacy

from spacy_calib.cli.shared.examples import holds_gold, read_texts, stream_examples, text_files
from spacy_calib.cli.shared.records import MAX_DEPTH, Fields, fault_of, read_records
from spacy_calib.errors import CalibError
from tests.cli.conftest import calib, ok, refuses
from tests.forked import in_own_process
from tests.sentences import says

RECORDS = [{"text": "The dog runs.", "id": 7}, {"text": None, "id": 8}, {"text": " ", "id": 9}, {"text": "A cat.", "id": None}]


def write_parquet(path, columns, **types):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    arrays = {name: pa.array(values, types.get(name)) for name, values in columns.items()}
    pyarrow.parquet.write_table(pa.table(arrays), path)
    return path


def as_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def test_compressed_lines_parquet_and_plain_lines_say_the_same(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.jsonl").write_bytes(as_lines(RECORDS))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(as_lines(RECORDS)))
    write_parquet(tmp_path / "a.parquet", {name: [record[name] for record in RECORDS] for name in ("text", "id")})
    files = text_files(tmp_path)
    assert [file.name for file in files] == ["a.jsonl", "a.jsonl.gz", "a.parquet"]
    for file in files:
        (first, one), (second, two) = read_texts(file)
        assert (first, one) == ("The dog runs.", {"line": 1, "id": 7})
        assert (second, two["line"], two.get("id")) == ("A cat.", 4, None)
    assert len(list(stream_examples(spacy.blank("xx"), tmp_path))) == 6


def test_parquet_is_read_in_batches_and_rows_count_through(tmp_path):
    file = write_parquet(tmp_path / "a.parquet", {"text": [f"text {i}" for i in range(2_500)]})
    held = list(read_records(file))
    assert [number for number, _ in held] == list(range(1, 2_501))
    assert held[-1][1]["text"] == "text 2499"


def test_other_columns_are_named_and_dates_become_text(tmp_path):
    day = datetime.date(2024, 2, 1)
    columns = {"body": ["a dog"], "key": ["k1"], "text": [3], "when": [day], "meta": [{"by": "Ann"}]}
    file = write_parquet(tmp_path / "a.parquet", columns)
    fields = Fields("body", "key")
    assert list(read_texts(file, "when", fields)) == [
        ("a dog", {"line": 1, "id": "k1", "meta": {"by": "Ann"}, "value": "2024-02-01"})
    ]
    (tmp_path / "a.jsonl").write_bytes(as_lines([{"body": "a dog", "key": "k1", "text": 3, "id": 4}]))
    assert list(read_texts(tmp_path / "a.jsonl", fields=fields)) == [("a dog", {"line": 1, "id": "k1"})]


def test_texts_of_a_dictionary_column_and_of_large_strings_are_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    kinds = (pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
    for kind in kinds:
        file = write_parquet(tmp_path / "a.parquet", {"text": ["a dog", None]}, text=kind)
        assert [text for text, _ in read_texts(file)] == ["a dog"]


@pytest.mark.parametrize(("columns", "fields", "message"), [
    ({"body": ["a"]}, Fields(), "has no column 'text'; it has: body"),
    ({"text": ["a"]}, Fields(id="key"), "has no column 'key'; it has: text"),
    ({"text": [1]}, Fields(), 'the "text" of row 1 is no text'),
    ({"text": ["a", "b"], "id": [1.0, float("nan")]}, Fields(), 'the "id" of row 2 contains a number that is not finite'),
])  # fmt: skip
def test_what_is_wrong_with_a_parquet_file_is_named(tmp_path, columns, fields, message):
    file = write_parquet(tmp_path / "a.parquet", columns)
    with pytest.raises(CalibError, match=message):
        list(read_texts(file, fields=fields))


def test_what_is_no_parquet_and_what_is_cut_short_is_named(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"rubbish")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(as_lines(RECORDS))[:-9])
    (tmp_path / "c.jsonl.gz").write_bytes(b"rubbish")
    for file in text_files(tmp_path):
        with pytest.raises(CalibError, match=rf"Cannot read the texts in .*{file.name}"):
            list(read_texts(file))
    with pytest.raises(CalibError, match=r"a.parquet: .*; write the file again\.$"):
        list(read_texts(tmp_path / "a.parquet"))


def test_two_columns_of_one_name_are_a_sentence(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for other in ("text", "id"):
        parquet.write_table(pa.table([["a"], ["b"], ["c"]], names=["text", other, other]), tmp_path / "a.parquet")
        with pytest.raises(CalibError, match=f"several of its columns are called '{other}'; write the file again"):
            list(read_texts(tmp_path / "a.parquet"))


@in_own_process
def test_without_pyarrow_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        CalibError, match=r'Parquet needs pyarrow, which is not installed; run `pip install "spacy-calib\[parquet\]"`'
    ):
        list(read_texts(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    ("command", "options"),
    [("expect", []), ("rank", []), ("expect", ["--by", "day"])],
)
def test_every_command_that_reads_texts_takes_parquet_and_the_names_of_its_columns(command, options, calibrated, tmp_path):
    texts = ["the dog saw a cat .", None, "a red duck eats .", "every run saw light ."] * 20
    days = [datetime.date(2024, 1 + number // 40, 3) for number in range(len(texts))]
    file = write_parquet(tmp_path / "a.parquet", {"body": texts, "key": list(range(len(texts))), "day": days})
    ok(calib(command, calibrated, file, "--columns", "text=body,id=key", *options))
    refuses(calib(command, calibrated, file, *options), says("C441", name="text", known="body, key, day"))


@pytest.mark.parametrize("command", ["expect", "rank"])
def test_no_command_takes_columns_of_files_that_have_none(command, calibrated, test_file, tmp_path):
    (tmp_path / "a.txt").write_text("the dog saw a cat .\n")
    for file, columns in ((tmp_path / "a.txt", "text=body"), (test_file, "id=key")):
        sentence = f"Option --columns must be left out for files without columns ({file.suffix}), but it was given."
        refuses(calib(command, calibrated, file, "--columns", columns), sentence)


@pytest.mark.parametrize("given", ["body", "text=", "word=body"])
def test_columns_that_cannot_be_read(given):
    with pytest.raises(CalibError, match="Option --columns must be text=NAME"):
        Fields.read(given)


def test_columns_with_commas_in_their_names():
    assert Fields.read("id=a,b,text=c=d,e") == Fields("c=d,e", "a,b")


def test_columns_are_of_the_files_that_have_them(tmp_path):
    (tmp_path / "a.txt").write_text("the dog saw a cat .\n")
    (tmp_path / "b.jsonl").write_text('{"body": "a duck ."}\n')
    assert len(text_files(tmp_path, Fields("body"))) == 2


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_texts_of_a_csv_file_are_read_by_the_name_of_their_column(tmp_path, separator):
    rows = [["key", "text"], ["7", "The dog runs."], ["8", ""], ["9", '"A ""big"" cat."']]
    (tmp_path / "a.csv").write_text("\r\n".join(separator.join(row) for row in rows), encoding="utf-8-sig")
    read = list(read_records(tmp_path / "a.csv", Fields(id="key")))
    assert [(number, record["text"], record["id"]) for number, record in read] == [
        (1, "The dog runs.", "7"),
        (2, "", "8"),
        (3, 'A "big" cat.', "9"),
    ]
    with pytest.raises(CalibError, match=says("C441", name="body", known="key, text")):
        list(read_records(tmp_path / "a.csv", Fields(text="body")))


TASK = {"data": {"text": "Anna left."}, "annotations": [{"result": []}]}


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("a.json", json.dumps([TASK]), True),
    ("a.jsonl", json.dumps(TASK), True),
    ("a.jsonl", '{"tokens": ["Anna"], "ner_tags": ["B-PER"]}', True),
    ("a.jsonl", '{"text": "Anna left.", "label": "mine"}', False),  # a text with a column of somebody's own
    ("a.jsonl", '{"body": "Anna left."}', False),
    ("a.csv", "text\nAnna left.", False),
])  # fmt: skip
def test_answers_are_gold_among_texts(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert holds_gold(tmp_path / name) == expected


def nested(depth):
    held = 1
    for level in range(depth):
        held = [held] if level % 2 else {"part": held}
    return held


@pytest.mark.parametrize(("data", "fault"), [
    (float("inf"), "not finite"), ({"a": [1, {"b": float("nan")}]}, "not finite"), (["\ud800"], "surrogate"),
    ({"\udfff": 1}, "surrogate"), (nested(MAX_DEPTH + 1), "nested more than 100 deep"),
    (nested(100_000), "nested more than 100 deep"),
])  # fmt: skip
def test_data_that_json_cannot_hold_is_named(data, fault):
    assert fault in fault_of(data)


@pytest.mark.parametrize("data", [None, True, 0, -1.5, "💻\0", [], {}, {"a": [10**30, None]}, nested(MAX_DEPTH)])
def test_plain_data_is_fine(data):
    assert fault_of(data) is None
    json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
