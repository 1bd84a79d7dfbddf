"""`calib apply`: scores of many texts as files, shard by shard, as an undisturbed run would write them."""

import csv
import json
import os
import shutil
import signal
import sys

import pytest
import spacy
from spacy.cli._util import app
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_calib import CalibError
from spacy_calib.cli.applying import inputs
from spacy_calib.cli.applying.inputs import look_at
from spacy_calib.cli.shared import writing
from spacy_calib.cli.shared.records import FIELDS
from spacy_calib.doc.collect import ORIGIN
from spacy_calib.doc.reading import DOC_KEY
from spacy_calib.doc.score_rows import COLUMNS, score_rows
from spacy_calib.pipe.component import sentence_finders
from tests.cli.conftest import bare_docs, calib, entity_docs, files_of, refuses
from tests.cli.shared.test_records import write_parquet
from tests.conftest import made_up_sentences
from tests.forked import fork

TEXTS = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(23, 31)]


def write_texts(path, texts=TEXTS, first=0):
    lines = (json.dumps({"text": text, "id": f"t{number}"}) for number, text in enumerate(texts, first))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def texts(tmp_path):
    return write_texts(tmp_path / "texts.jsonl")


def rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def read(folder, form="jsonl"):
    """The rows of all shards."""
    files = sorted(folder.glob(f"part-*.{form}"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def by_hand(model, texts=TEXTS, unit="token"):
    nlp = spacy.load(model)
    ids = [f"t{number}" for number in range(len(texts))]
    return rows(score_rows(nlp.pipe(texts), "calib", unit, ids=ids))


def same(found, expected):
    assert [{**row, "score": None, "raw": None} for row in found] == [{**row, "score": None, "raw": None} for row in expected]
    for name in ("score", "raw"):
        assert [row[name] for row in found] == pytest.approx([row[name] for row in expected], abs=1e-5)


# What is written


def test_entities_are_those_of_the_doc(calibrated_ner):
    nlp = spacy.load(calibrated_ner)
    docs = list(nlp.pipe(bare_docs(nlp, entity_docs(5, 3, nlp.vocab))))
    docs[0].set_ents([*docs[0].ents, Span(docs[0], len(docs[0]) - 1, len(docs[0]), "NEW")])
    held = rows(score_rows(docs, "calib", "entity"))
    found = [ent for doc in docs for ent in doc.ents]
    assert [(row["start"], row["end"], row["text"], row["label"]) for row in held] == [
        (ent.start_char, ent.end_char, ent.text, ent.label_) for ent in found
    ]
    assert [(row["score"], row["raw"]) for row in held] == [(ent._.calib_score, ent._.calib_raw) for ent in found]
    assert any(row["score"] is None for row in held if row["label"] == "NEW")


def test_every_format_holds_the_same_rows(calibrated, texts, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    for form in ("jsonl", "parquet", "csv"):
        outcome = calib("apply", calibrated, texts, tmp_path / f"out.{form}")
        assert outcome.code == 0, outcome.text
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    same(lines, by_hand(calibrated))
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist() == lines
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert list(cells[0]) == list(COLUMNS["token"])
    assert [(row["id"], row["label"], float(row["score"])) for row in cells] == [
        (row["id"], row["label"], row["score"]) for row in lines
    ]


def test_docs_with_their_scores(calibrated, texts, tmp_path):
    assert calib("apply", calibrated, texts, tmp_path / "out", "--format", "spacy", "--shard-size", 10).code == 0
    nlp = spacy.load(calibrated)
    files = sorted((tmp_path / "out").glob("part-*.spacy"))
    docs = [doc for file in files for doc in DocBin().from_disk(file).get_docs(nlp.vocab)]
    assert [doc.text for doc in docs] == TEXTS
    assert docs[12].user_data[ORIGIN] == {"doc": 12, "line": 13, "id": "t12"}
    same(rows(score_rows(docs, "calib", "token")), by_hand(calibrated))
    assert docs[0][0].lemma_  # all pipes ran


def test_shards_have_names_that_sort_and_a_manifest(calibrated, texts, tmp_path):
    out = tmp_path / "out"
    outcome = calib("apply", calibrated, texts, out, "--format", "jsonl", "--shard-size", 10)
    assert "Wrote" in outcome.text
    assert sorted(file.name for file in out.iterdir()) == ["_manifest.json", *(f"part-0000000{i}.jsonl" for i in range(3))]
    same(read(out), by_hand(calibrated))
    manifest = json.loads((out / "_manifest.json").read_text())
    assert (manifest["shards"], manifest["rows_of_texts"], manifest["settings"]["unit"]) == (3, 23, "token")
    assert list(manifest["columns"]) == list(COLUMNS["token"])


def test_workers_and_batches_change_nothing(calibrated, texts, tmp_path):
    out = tmp_path / "out"
    options = ["--format", "jsonl", "--shard-size", 10, "--n-process", 2, "--batch-size", 3]
    assert calib("apply", calibrated, texts, out, *options).code == 0
    same(read(out), by_hand(calibrated))


def test_several_pipes_have_rows_each(two_pipes, tmp_path):
    texts = write_texts(tmp_path / "texts.jsonl", ["Ann lives in Paris .", "the old dog ."])
    assert calib("apply", two_pipes, texts, tmp_path / "all.jsonl").code == 0
    found = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert {row["attr"] for row in found} == {"calib", "tag_calib"}
    assert calib("apply", two_pipes, texts, tmp_path / "one.jsonl", "--attr", "calib").code == 0
    told = json.loads(calib("apply", two_pipes, texts, tmp_path / "two.jsonl", "--attr", "calib", "--format", "json").printed)
    assert (told["unit"], told["texts"], told["shards"]) == ("entity", 2, 0)


def test_the_texts_of_parquet_and_rows_without_text(calibrated, tmp_path):
    texts = write_parquet(tmp_path / "texts.parquet", {"body": ["the dog .", None, " ", "a cat ."], "key": [10, 11, 12, 13]})
    columns = ["--columns", "text=body,id=key"]
    outcome = calib("apply", calibrated, texts, tmp_path / "out.jsonl", *columns)
    assert "2 of 4 rows have no text (empty, blank or null) and are left out; the first is row 2 of" in outcome.text
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {(row["doc"], row["id"]) for row in found} == {(0, "10"), (3, "13")}


def test_gold_and_folders_are_read_and_their_rows_count_through(calibrated, test_file, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    write_texts(folder / "a.jsonl", TEXTS[:3])
    (folder / "b.txt").write_text("\nthe dog .\n")
    shutil.copyfile(test_file, folder / "c.spacy")
    assert calib("apply", calibrated, folder, tmp_path / "out.jsonl", "--unit", "document").code == 0
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    docs = list(DocBin().from_disk(test_file).get_docs(spacy.blank("xx").vocab))
    assert [row["text"] for row in found] == [*TEXTS[:3], "the dog .", *(doc.text for doc in docs)]
    assert [row["doc"] for row in found] == [0, 1, 2, 4, *range(5, 5 + len(docs))]


def test_docs_of_a_file_leave_no_words_behind_but_where_their_words_are_given(tmp_path):
    nlp, other = spacy.blank("en"), Vocab()
    words, long = ["only", "here"], ["longer", "than", "that"]
    nlp.max_length = 15
    spaced = Doc(other, words=words, spaces=[True, False], user_data={DOC_KEY: "d1"})
    DocBin(docs=[spaced, Doc(other, words=["not-split", "either"])], store_user_data=True).to_disk(tmp_path / "a.spacy")
    texts = look_at(nlp, tmp_path, FIELDS)
    assert "only" not in nlp.vocab.strings
    first, second = texts.stream(nlp)
    assert (first.text, first.id, first.origin) == ("only here", "d1", {"line": 1, "id": "d1"})
    assert [token.text for token in second.text] == ["not-split", "either"]
    assert second.text.vocab is nlp.vocab
    DocBin(docs=[Doc(other, words=long, spaces=[True, True, False])]).to_disk(tmp_path / "a.spacy")
    with pytest.raises(CalibError, match="The text in line 1 of .* has 16 characters, and the pipeline takes 15 at most"):
        look_at(nlp, tmp_path, FIELDS)


# Runs that were ended


def test_a_run_that_was_ended_goes_on_and_a_finished_one_has_nothing_to_do(calibrated, texts, tmp_path, monkeypatch):
    whole, out = tmp_path / "whole", tmp_path / "out"
    arguments = ["--format", "jsonl", "--shard-size", 5]
    assert calib("apply", calibrated, texts, whole, *arguments).code == 0
    shutil.copytree(whole, out)
    for number in (1, 4):
        (out / f"part-0000000{number}.jsonl").unlink()
    dead = f".part-00000001.jsonl.{4_000_000:010}-{writing._host()}abcdef.partial"
    (out / dead).write_text("half")
    first = (out / "part-00000000.jsonl").stat().st_mtime_ns
    outcome = calib("apply", calibrated, texts, out, *arguments)
    assert "in 2 shards" in outcome.text
    assert "3 shards of an earlier run stayed" in outcome.text
    assert (out / "part-00000000.jsonl").stat().st_mtime_ns == first
    assert files_of(out) == files_of(whole)
    monkeypatch.setattr("spacy_calib.cli.applying.inputs.scored", None)
    assert "Nothing to do: " in calib("apply", calibrated, texts, out, *arguments).text
    assert files_of(out) == files_of(whole)


@pytest.mark.parametrize("after", [1, 7, 13])
def test_a_run_killed_in_the_middle_of_a_shard_goes_on(calibrated, texts, tmp_path, after):
    whole, out = tmp_path / "whole", tmp_path / "out"
    arguments = ["--format", "jsonl", "--shard-size", 5]

    def run_and_die():
        stopping(after, lambda: os.kill(os.getpid(), signal.SIGKILL))
        calib("apply", calibrated, texts, out, *arguments)

    assert fork(run_and_die).end()[0] == -signal.SIGKILL
    left = sorted(file.name for file in out.iterdir())
    assert [name for name in left if name.startswith("part-")] == [f"part-0000000{i}.jsonl" for i in range(after // 5)]
    assert len([name for name in left if name.endswith(".partial")]) == 1
    for folder in (whole, out):
        assert calib("apply", calibrated, texts, folder, *arguments).code == 0
    assert files_of(out) == files_of(whole)


def stopping(at, act):
    """Does something where the row with this number is about to be written."""
    from spacy_calib.cli.applying import formats

    chunks = formats.RowWriter._chunks

    def stopped(writer, docs):
        def seen():
            for doc, row in docs:
                if row.number == at:
                    act()
                yield doc, row

        yield from chunks(writer, seen())

    formats.RowWriter._chunks = stopped


def test_a_second_run_is_refused_until_the_first_has_ended_and_one_that_was_killed_holds_nothing(calibrated, texts, tmp_path):
    out = tmp_path / "out"
    arguments = ["apply", calibrated, texts, out, "--format", "jsonl", "--shard-size", 10]

    def run_with_a_worker():
        def wait():
            if worker := os.fork():
                os.write(1, f"{worker}\n".encode())
            signal.pause()

        stopping(12, wait)
        calib(*arguments)

    first = fork(run_with_a_worker)
    worker = int(first.out.readline())
    refuses(calib(*arguments), "Another run of `calib apply` is writing into")
    refuses(calib(*arguments, "--force"), "Another run of `calib apply` is writing into")
    os.kill(first.pid, signal.SIGKILL)
    try:
        os.waitpid(first.pid, 0)
        assert (out / "_lock").exists()
        assert "1 shard of an earlier run stayed" in calib(*arguments).text
    finally:
        os.kill(worker, signal.SIGKILL)
        first.out.close()
        first.err.close()
    assert sorted(file.name for file in out.iterdir()) == ["_manifest.json", *(f"part-0000000{i}.jsonl" for i in range(3))]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(("output", "more"), [("out", ["--format", "jsonl"]), ("out.jsonl", [])])
def test_a_run_that_is_ended_says_what_is_finished(calibrated, texts, tmp_path, number, code, output, more):
    arguments = ["apply", str(calibrated), str(texts), str(tmp_path / output), "--shard-size", "10", *more]

    def run_and_end():
        stopping(12, lambda: os.kill(os.getpid(), number))
        app(["calib", *arguments])

    ended, _, said = fork(run_and_end).end()
    assert (ended, "Traceback" in said) == (code, False)
    sentence = f"1 of 3 shards of {tmp_path / output} are finished; the same command goes on from there."
    assert sentence in " ".join(said.split())
    assert "1 shard" in calib(*arguments).text
    assert sorted(file.name for file in tmp_path.iterdir()) == [output, "texts.jsonl"]


# One file


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "spacy"])
def test_one_file_goes_on_too_and_is_that_of_an_undisturbed_run(calibrated, texts, tmp_path, form):
    whole, out, size = tmp_path / f"whole.{form}", tmp_path / f"out.{form}", ["--shard-size", 10]
    assert calib("apply", calibrated, texts, whole, *size).code == 0

    def run_and_die():
        inputs.scored = dying
        calib("apply", calibrated, texts, out, *size)

    scored = inputs.scored

    def dying(nlp, rows, *more):
        for doc, row in scored(nlp, rows, *more):
            if row.number == 12:
                os.kill(os.getpid(), signal.SIGKILL)
            yield doc, row

    assert fork(run_and_die).end()[0] == -signal.SIGKILL
    hidden = tmp_path / f".out.{form}.shards"
    assert not out.exists()
    assert (hidden / f"part-00000000.{form}").exists()
    refuses(calib("apply", calibrated, texts, out, "--shard-size", 5), "--shard-size was 10, and now it is 5")
    outcome = calib("apply", calibrated, texts, out, *size)
    assert "beside those of 1 shard of an earlier run" in outcome.text
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == [out.name, "texts.jsonl", whole.name]


def test_one_file_is_replaced_when_the_new_one_is_whole(calibrated, texts, tmp_path):
    out, given = tmp_path / "out.jsonl", ["--shard-size", 10]
    assert calib("apply", calibrated, texts, out, *given).code == 0
    older = out.read_bytes()

    def run_and_die():
        stopping(12, lambda: os.kill(os.getpid(), signal.SIGKILL))
        calib("apply", calibrated, texts, out, *given, "--force")

    assert fork(run_and_die).end()[0] == -signal.SIGKILL
    assert out.read_bytes() == older
    assert "beside those of 1 shard" in calib("apply", calibrated, texts, out, *given, "--force").text  # not scored again
    assert out.read_bytes() == older
    assert fork(run_and_die).end()[0] == -signal.SIGKILL
    assert calib("apply", calibrated, texts, out, "--unit", "document", "--force").code == 0  # other settings begin anew
    assert len(out.read_text().splitlines()) == len(TEXTS)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.jsonl", "texts.jsonl"]


def test_one_file_without_any_row_has_its_columns(calibrated_ner, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = write_texts(tmp_path / "texts.jsonl", [".", "."])
    assert calib("apply", calibrated_ner, texts, tmp_path / "out.parquet", "--shard-size", 1).code == 0
    assert parquet.read_table(tmp_path / "out.parquet").column_names == list(COLUMNS["entity"])
    assert calib("apply", calibrated_ner, texts, tmp_path / "out.csv", "--shard-size", 1).code == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1


def test_force_writes_finished_shards_of_a_folder_again(calibrated, texts, tmp_path):
    out = tmp_path / "out"
    arguments = ["apply", calibrated, texts, out, "--format", "jsonl", "--shard-size", 10]
    assert calib(*arguments).code == 0
    whole = files_of(out)
    (out / "part-00000001.jsonl").write_text("old")
    assert "Nothing to do: " in calib(*arguments).text
    assert "in 3 shards" in calib(*arguments, "--force").text
    assert files_of(out) == whole


def test_force_starts_anew_with_other_settings(calibrated, texts, tmp_path):
    out = tmp_path / "out"
    assert calib("apply", calibrated, texts, out, "--format", "jsonl", "--shard-size", 5).code == 0
    assert calib("apply", calibrated, texts, out, "--format", "csv", "--unit", "document", "--force").code == 0
    assert sorted(file.name for file in out.iterdir()) == ["_manifest.json", "part-00000000.csv"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--unit", "document"], "--unit was token, and now it is document"),
        (["--shard-size", 7], "--shard-size was 10, and now it is 7"),
        (["--format", "csv"], "--format was jsonl, and now it is csv"),
        (["--columns", "id=key"], "--columns was None, and now it is id=key"),
    ],
)
def test_other_settings_are_not_mixed(calibrated, texts, tmp_path, options, sentence):
    out = tmp_path / "out"
    assert calib("apply", calibrated, texts, out, "--format", "jsonl", "--shard-size", 10).code == 0
    before = files_of(out)
    refuses(calib("apply", calibrated, texts, out, "--format", "jsonl", "--shard-size", 10, *options), sentence)
    assert files_of(out) == before


def test_other_texts_and_another_model_are_not_mixed(calibrated, calibrated_copy, texts, tmp_path):
    out = tmp_path / "out"
    assert calib("apply", calibrated, texts, out).code == 0
    assert "Nothing to do" in calib("apply", calibrated_copy, texts, out).text  # the same, elsewhere
    write_texts(texts, [*TEXTS[:-1], "the dog ."])
    refuses(calib("apply", calibrated, texts, out), "they are of other texts, or the texts have changed since")
    write_texts(texts)
    (calibrated_copy / "meta.json").write_text((calibrated_copy / "meta.json").read_text().replace("pipeline", "other"))
    refuses(calib("apply", calibrated_copy, texts, out), "another model wrote them, or it has changed since")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "Expecting"),
        ("[]", "it has no settings"),
        ('{"settings": {}, "spacy_calib_scores": 9}', "it is of version 9"),
        (None, "it is missing"),
    ],
)
def test_a_damaged_manifest_is_refused_until_force(calibrated, texts, tmp_path, content, why):
    out = tmp_path / "out"
    assert calib("apply", calibrated, texts, out).code == 0
    manifest = out / "_manifest.json"
    manifest.unlink() if content is None else manifest.write_text(content)
    refuses(calib("apply", calibrated, texts, out), why)
    assert calib("apply", calibrated, texts, out, "--force").code == 0


def test_texts_that_change_while_they_are_read(calibrated, texts, tmp_path, monkeypatch):

    look_at = inputs.look_at

    def look_and_cut(*given):
        found = look_at(*given)
        write_texts(texts, TEXTS[:12])
        return found

    monkeypatch.setattr(inputs, "look_at", look_and_cut)
    refuses(calib("apply", calibrated, texts, tmp_path / "out", "--shard-size", 10), "changed while it was read")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["_manifest.json", "part-00000000.parquet"]


# What is refused


def test_something_else_at_the_output_stays(calibrated, texts, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    for force in ([], ["--force"]):
        refuses(calib("apply", calibrated, texts, out, *force), "holds 'thesis.txt', which `calib apply` did not write")
    assert files_of(out) == {"thesis.txt": b"years of work"}
    (tmp_path / "file.jsonl").write_text("years of work")
    refuses(calib("apply", calibrated, texts, tmp_path / "file.jsonl"), "exists already; choose another path or add --force")
    refuses(calib("apply", calibrated, texts, tmp_path / "file.jsonl" / "in"), "is not a folder")
    (tmp_path / "plain").write_text("years of work")
    refuses(calib("apply", calibrated, texts, tmp_path / "plain"), "it is no folder")
    refuses(calib("apply", calibrated, texts, calibrated / "scores"), "which is only read")
    refuses(calib("apply", calibrated, tmp_path, tmp_path / "scores"), "outside the folder of the data")
    refuses(calib("apply", calibrated, texts, tmp_path), "would delete")


def test_a_folder_of_scores_takes_no_others(calibrated, texts, tmp_path):
    out = tmp_path / "out"
    assert calib("apply", calibrated, texts, out).code == 0
    for inside in (out / "more", out / "deep" / "more.csv", out / "part-00000001.parquet"):
        refuses(calib("apply", calibrated, texts, inside), f"lies in {out}, which holds the scores of another run")
    assert "Nothing to do" in calib("apply", calibrated, texts, out).text


def test_formats_that_there_are_not(calibrated, texts, tmp_path):
    refuses(
        calib("apply", calibrated, texts, tmp_path / "out.xml"), "must be a folder, or a file that ends in .parquet, .jsonl"
    )
    refuses(calib("apply", calibrated, texts, "-"), "must be a folder, or a file that ends in .parquet, .jsonl")
    refuses(calib("apply", calibrated, texts, tmp_path / "out.csv", "--format", "jsonl"), "must be csv, or left out, for")
    refuses(calib("apply", calibrated, texts, tmp_path / "out.spacy", "--unit", "token"), "left out for .spacy")


def test_units_that_nothing_scores(calibrated, calibrated_ner, texts, tmp_path):
    refuses(
        calib("apply", calibrated, texts, tmp_path / "o", "--unit", "entity"),
        "no rows of kind 'entity': the calib pipes score tokens (calib)",
    )
    whole = tmp_path / "whole"
    nlp = spacy.load(calibrated)
    for name in sentence_finders(nlp):
        nlp.remove_pipe(name)
    nlp.to_disk(whole)
    refuses(calib("apply", whole, texts, tmp_path / "o", "--unit", "entity"), "choose token or document (--unit)")
    refuses(
        calib("apply", calibrated_ner, texts, tmp_path / "o", "--unit", "sentence"), "Rows of sentences need what finds them"
    )


def test_texts_that_cannot_be_read(calibrated, tmp_path, monkeypatch):
    out = tmp_path / "out"
    empty = write_texts(tmp_path / "a.jsonl", ["", " "])
    refuses(calib("apply", calibrated, empty, out), "holds no documents")
    long = write_texts(tmp_path / "b.jsonl", ["short", "a" * 1_000_001])
    refuses(calib("apply", calibrated, long, out), "The text in line 2 of")
    refuses(calib("apply", calibrated, tmp_path / "none.parquet", out), "Data not found")
    file = write_parquet(tmp_path / "c.parquet", {"body": ["a dog"]})
    refuses(
        calib("apply", calibrated, file, out),
        "has no column 'text'; it has: body. Name the one that is meant (--columns text=NAME",
    )
    os.mkfifo(tmp_path / "pipe.jsonl")
    refuses(calib("apply", calibrated, tmp_path / "pipe.jsonl", out), "it can be read once only")
    assert not out.exists()


def test_without_pyarrow_parquet_is_no_format(calibrated, texts, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refuses(calib("apply", calibrated, texts, tmp_path / "out"), "Parquet needs pyarrow, which is not installed")
    assert calib("apply", calibrated, texts, tmp_path / "out", "--format", "jsonl").code == 0


def test_a_full_disk_is_a_sentence_and_finished_shards_stay(calibrated, texts, tmp_path, monkeypatch):
    out, written = tmp_path / "out", []
    replace = writing._replace_file

    def full(path, chunks):
        if path.name == "part-00000001.jsonl":
            next(iter(chunks))
            raise OSError(28, "No space left on device")
        written.append(path.name)
        replace(path, chunks)

    monkeypatch.setattr(writing, "_replace_file", full)
    refuses(calib("apply", calibrated, texts, out, "--format", "jsonl", "--shard-size", 10), "Cannot write the output")
    assert sorted(file.name for file in out.iterdir()) == ["_manifest.json", "part-00000000.jsonl"]
