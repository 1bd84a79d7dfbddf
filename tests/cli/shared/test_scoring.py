"""MODEL and DATA -> the scored corpus: readers, pipes that run, entities."""

import json
import os

import pytest
import spacy
from spacy.training import Example

from spacy_calib.cli.shared.examples import RunSettings, read_texts, stream_examples, text_files
from spacy_calib.cli.shared.run import pipes_to_run, score
from spacy_calib.errors import CalibError
from spacy_calib.gold.keys import ORIGIN
from spacy_calib.pipe.pipeline import check_readable, fitted_pipes_with, load_pipeline
from tests.cli.conftest import docs_in, json_of, save_gold
from tests.sentences import says

TEXTS = ["The dog runs.", "Ünïcode \u2028 here", "  indented"]


def opened(model, attr=None):
    nlp = load_pipeline(str(model))
    pipe = fitted_pipes_with(nlp, attr)[0]
    check_readable(nlp, pipe)
    return nlp, pipe


@pytest.fixture
def texts(tmp_path):
    """A folder with the same texts as .txt (with an empty line) and .jsonl, beside a file of another kind and a hidden one."""
    (tmp_path / "a.txt").write_text("\n".join(["The dog runs.", "", "  indented"]) + "\n", encoding="utf-8")
    lines = [json.dumps({"text": text, "id": i}, ensure_ascii=False) for i, text in enumerate(TEXTS)]
    (tmp_path / "b.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8-sig")
    (tmp_path / "c.md").write_text("not read")
    (tmp_path / ".hidden.txt").write_text("not read")
    return tmp_path


def test_texts_are_read_line_by_line(texts):
    assert [file.name for file in text_files(texts)] == ["a.txt", "b.jsonl"]
    assert [text for text, _ in read_texts(texts / "a.txt")] == ["The dog runs.", "  indented"]
    assert [text for text, _ in read_texts(texts / "b.jsonl")] == TEXTS
    examples = list(stream_examples(spacy.blank("xx"), texts))
    assert [example.text for example in examples] == ["The dog runs.", "  indented", *TEXTS]
    assert not examples[0].reference.has_annotation("TAG")


@pytest.mark.parametrize(("name", "content", "message"), [
    (
        "a.jsonl",
        b'{"text": "fine"}\n{"txt": 1, "n": 2}\n',
        r'line 2 is no object with a "text" \(it has: txt, n; --columns text=NAME names another\); save it as UTF-8',
    ),
    ("a.jsonl", b'{"text": 5}', 'the "text" of line 1 is no text; save it as UTF-8'),
    ("a.jsonl", b"not json", 'line 1 is no object with a "text"; save it as UTF-8'),
    ("a.jsonl", b'{"text": "fine"}\n{"text": "x", "id": 1e400}', "line 2"),
    ("a.jsonl", b'{"text": "x", "id": NaN}', "line 1"),
    ("a.jsonl", b'{"text": "x", "meta": {"a": [-Infinity]}}', "line 1"),
    ("a.jsonl", b'{"text": "half \\ud800"}', "line 1"),
    ("a.jsonl", b'{"text": "x", "meta": {"\\udc00": 1}}', "line 1"),
    (
        "a.jsonl",
        b'{"text": "x", "meta": ' + b"[" * 500 + b"]" * 500 + b"}",
        'the "meta" of line 1 is nested more than 100 deep',
    ),
    ("a.jsonl", b'{"text": "x", "meta": ' + b"[" * 90000 + b"]" * 90000 + b"}", "line 1"),
    ("a.txt", "caf\xe9".encode("latin-1"), "save it as UTF-8"),
    ("a.txt", b"a" * 1_000_001, says("C448", line=1, n="1,000,001", most="1,000,000")),
    ("a.txt", b"\n\n", says("C052")),
    ("a.spacy", b"", "it is empty"),
    ("a.spacy", b"rubbish", "is not a readable DocBin"),
    ("a.doc", b"text", says("C073")),
])  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CalibError, match=message):
        list(stream_examples(spacy.blank("xx"), tmp_path / name))


def test_a_bad_line_of_the_last_file_is_named_before_the_first_text_is_scored(tmp_path):
    (tmp_path / "a.txt").write_text("the dog .")
    (tmp_path / "b.jsonl").write_text('{"text": "the cat ."}\n{"text": "x", "id": 1e400}\n')
    with pytest.raises(CalibError, match="b.jsonl.*line 2"):
        next(stream_examples(spacy.blank("xx"), tmp_path))


def test_files_whose_names_are_not_utf8_are_read(tmp_path):
    for name in (b"caf\xe9.txt", b"b.txt"):
        (tmp_path / os.fsdecode(name)).write_text("the dog .")
    origins = [example.reference.user_data[ORIGIN]["file"] for example in stream_examples(spacy.blank("xx"), tmp_path)]
    assert sorted(origins) == ["b.txt", "caf\\xe9.txt"]


def test_a_folder_without_texts_and_a_path_without_anything(tmp_path):
    with pytest.raises(CalibError, match=says("C073")):
        text_files(tmp_path)
    with pytest.raises(CalibError, match="Data not found"):
        text_files(tmp_path / "none")


def test_pipes_run_up_to_the_scores_or_to_the_sentences(calibrated):
    nlp, pipe = opened(calibrated)
    names = pipes_to_run(nlp, pipe)
    assert names[-1] == "calib"
    assert "senter" not in names
    assert pipes_to_run(nlp, pipe, sentences=True)[-1] == "senter"


def test_later_pipes_that_change_entities_run_too(calibrated_ner, entity_test, tmp_path):
    """What commands score is what `nlp` finds: here a ruler takes an entity away, and tokens are merged."""
    (tmp_path / "texts.txt").write_text("\n".join(doc.text for doc in docs_in(entity_test)))
    options = (tmp_path / "texts.txt", "--repeats", "--top", 10_000)
    taken = next(row["focus"] for row in json_of("rank", calibrated_ner, *options)["ranked"] if " " not in row["focus"])
    nlp = spacy.load(calibrated_ner)
    ruler = nlp.add_pipe("entity_ruler", config={"overwrite_ents": True})
    ruler.add_patterns([{"label": "RULED", "pattern": taken}])
    nlp.add_pipe("merge_entities")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "ruled")
    nlp, pipe = opened(tmp_path / "ruled")
    assert pipes_to_run(nlp, pipe)[-1] == "merge_entities"
    assert pipes_to_run(nlp, pipe, sentences=True)[-1] == "sentencizer"
    ranked = json_of("rank", tmp_path / "ruled", *options)["ranked"]
    docs = nlp.pipe(record.text for record in stream_examples(nlp, tmp_path / "texts.txt"))
    found = sorted(ent.text for doc in docs for ent in doc.ents if ent._.calib_ent_score is not None)
    assert sorted(record["focus"] for record in ranked) == found
    assert taken not in found


def test_a_prefix_that_no_pipe_has(calibrated):
    with pytest.raises(CalibError, match="no fitted calib pipe with the prefix 'other'; its prefixes are: calib"):
        opened(calibrated, "other")


def test_texts_without_a_score_are_refused(calibrated, tmp_path):
    (tmp_path / "a.txt").write_text("one two")
    nlp, pipe = opened(calibrated)
    empty = [Example(nlp.make_doc(""), nlp.make_doc(""))]
    with pytest.raises(CalibError, match="gave no token of the 1 documents a score"):
        score(nlp, pipe, empty)


def test_every_text_says_where_it_stood(calibrated, tmp_path):
    (tmp_path / "a.txt").write_text("the dog runs .\n\nthe cat eats .\n")
    (tmp_path / "b.jsonl").write_text('{"text": "a duck .", "id": 7, "meta": {"source": "pond"}, "label": []}\n')
    nlp, pipe = opened(calibrated)
    assert score(nlp, pipe, stream_examples(nlp, tmp_path / "a.txt")).origins == ({"line": 1}, {"line": 3})
    both = score(nlp, pipe, stream_examples(nlp, tmp_path), RunSettings(n_process=2))
    assert [both.origin(doc) for doc in range(3)] == [
        {"file": "a.txt", "line": 1},
        {"file": "a.txt", "line": 3},
        {"file": "b.jsonl", "line": 1, "id": 7, "meta": {"source": "pond"}},
    ]
    gold = save_gold(tmp_path / "c.spacy", 2, 1)
    assert score(nlp, pipe, stream_examples(nlp, gold)).origin(1) == {}
