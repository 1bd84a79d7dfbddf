"""The spaCy projects for entity recognition: corpora are read as they say, the config trains, and the steps fit together."""

import gzip
import importlib.util
import json
import runpy
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import srsly
import typer
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from weasel.util import load_project_config

from spacy_calib.cli import calib_cli
from spacy_calib.cli.shared.writing import write_json
from tests.cli.conftest import spacy_command
from tests.configs import CONFIGS
from tests.forked import in_own_process

SPLITS = ("train", "dev", "test")
PROJECTS = ("wnut17", "wikineural_en")
COMMANDS = [("wnut17", "fit"), ("wnut17", "evaluate"), *(("wikineural_en", name) for name in ("fit", "evaluate", "threshold"))]


def script(name: str) -> ModuleType:
    """One of configs/scripts, as a module."""
    spec = importlib.util.spec_from_file_location(name, CONFIGS / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TAKE, CONVERT = script("take_entities"), script("convert_entities")


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    """The data step looks for the assets unless a test says otherwise."""
    monkeypatch.delenv("SPACY_CALIB_DATA", raising=False)


def fails(capsys: pytest.CaptureFixture[str], call: Callable[[], object]) -> str:
    """What a script prints before it ends with exit code 1."""
    with pytest.raises(SystemExit) as ended:
        call()
    assert ended.value.code == 1
    return capsys.readouterr().out


def rows(*sentences: list[tuple[str, str]]) -> str:
    return "".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in sentences)


def write_data(folder: Path, name: str, **splits: str) -> None:
    """The data folder's files of a corpus."""
    (folder / name).mkdir(parents=True)
    for split, text in splits.items():
        with gzip.open(folder / name / f"{split}.conll.gz", "wt", encoding="utf-8") as file:
            file.write(text)


def take(folder: Path, name: str) -> dict[str, str]:
    """Run the data step and read what it wrote."""
    TAKE.main(name, folder / "assets", folder / "corpus")
    return {split: (folder / "corpus" / f"{split}.conll").read_text(encoding="utf-8") for split in SPLITS}


def converted(folder: Path, text: str) -> list[Doc]:
    """Convert one text as all three splits, and read one of them."""
    (folder / "conll").mkdir(exist_ok=True)
    for name in SPLITS:
        (folder / "conll" / f"{name}.conll").write_text(text, encoding="utf-8")
    CONVERT.main(folder / "conll", folder / "corpus")
    return list(DocBin().from_disk(folder / "corpus" / "dev.spacy").get_docs(Vocab()))


def entities(docs: list[Doc]) -> list[list[tuple[str, str]]]:
    return [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]


@pytest.mark.parametrize("name", PROJECTS)
def test_take_says_what_to_do_without_a_corpus(tmp_path, monkeypatch, capsys, name):
    for data, hint in (("", "spacy project assets"), (str(tmp_path), "SPACY_CALIB_DATA must be")):
        monkeypatch.setenv("SPACY_CALIB_DATA", data)
        assert hint in fails(capsys, lambda: take(tmp_path, name))
    assert not (tmp_path / "corpus").exists()


def test_take_reads_the_files_of_wnut17(tmp_path):
    """Some of their empty lines hold a tab, a file may lack the last empty line, and a hashtag is a word."""
    names = {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"}
    (tmp_path / "assets").mkdir()
    for name in names.values():
        text = f"#{name}\tO\n#\tO\n\t\nRome\tB-location\n\n\t\n2\tB-product\nB\tI-product"
        (tmp_path / "assets" / name).write_text(text, encoding="utf-8")
    last = [("2", "B-product"), ("B", "I-product")]
    assert take(tmp_path, "wnut17") == {
        split: rows([(f"#{name}", "O"), ("#", "O")], [("Rome", "B-location")], last) for split, name in names.items()
    }


def test_take_splits_the_validation_file_of_wikineural(tmp_path):
    """Every tenth sentence, from index 9, goes to dev; the first column, the token's number, goes nowhere."""
    (tmp_path / "assets").mkdir()
    for name, n in (("val", 25), ("test", 11)):
        text = "".join(f"0\t{name}{i}\tB-PER\n1\tI\tO\n\n" for i in range(n))
        (tmp_path / "assets" / f"{name}.conllu").write_text(text, encoding="utf-8")
    wanted = {"train": [f"val{i}" for i in range(25) if i not in (9, 19)], "dev": ["val9", "val19"]}
    wanted["test"] = [f"test{i}" for i in range(11)]
    assert take(tmp_path, "wikineural_en") == {
        split: rows(*([(word, "B-PER"), ("I", "O")] for word in words)) for split, words in wanted.items()
    }


def test_convert_makes_one_doc_a_sentence_and_keeps_every_word(tmp_path):
    sentences = [
        [("#", "O"), ("#Rome", "B-location"), ("can't", "O"), ("http://a.b/c", "O"), ("\N{FACE WITH TEARS OF JOY}", "O")],
        [("New", "B-location"), ("York", "I-location"), ("Rome", "B-location")],
        [("nothing", "O")],
    ]
    docs = converted(tmp_path, rows(*sentences))
    assert [[token.text for token in doc] for doc in docs] == [[word for word, _ in sentence] for sentence in sentences]
    assert entities(docs) == [[("#Rome", "location")], [("New York", "location"), ("Rome", "location")], []]
    assert all(doc.has_unknown_spaces for doc in docs)  # so that readers keep the words
    assert all(doc.has_annotation("ENT_IOB", require_complete=True) for doc in docs)  # O is gold, not missing


@pytest.mark.parametrize(("tags", "wanted"), [
    ("I-A O", [("0", "A")]), ("I-A I-A O", [("0 1", "A")]), ("O I-A I-A", [("1 2", "A")]),
    ("B-A I-B I-B", [("0", "A"), ("1 2", "B")]), ("I-A I-B I-A", [("0", "A"), ("1", "B"), ("2", "A")]),
    ("B-A O I-A", [("0", "A"), ("2", "A")]), ("B-A I-A B-A", [("0 1", "A"), ("2", "A")]),
    ("I-A B-A I-A", [("0", "A"), ("1 2", "A")]), ("I-I I-I B-I", [("0 1", "I"), ("2", "I")]),
])  # fmt: skip
def test_convert_lets_an_unopened_tag_open_an_entity(tmp_path, tags, wanted):
    assert entities(converted(tmp_path, rows(list(zip("012", tags.split(), strict=False))))) == [wanted]


@pytest.mark.parametrize("row", ["Rome", "Rome B-LOC", "Rome\tLOC", "Rome\tB-", "Rome\tX\tB-LOC", "\tO", "Rome\t"])
def test_convert_names_the_line_that_it_cannot_read(tmp_path, capsys, row):
    printed = fails(capsys, lambda: converted(tmp_path, f"to\tO\n\n{row}\n"))
    assert "line 3" in " ".join(printed.split())  # a long path wraps the line


def gold(n: int) -> list[list[tuple[str, str]]]:
    """n sentences with two types of entity; one name is of both, so that nobody can be sure of its type."""
    people, places = ["Ann", "Bob", "Paris"], ["Rome", "Paris", "Lima"]
    return [
        [("she", "O"), ("saw", "O"), (people[i % 3], "B-PER"), ("Lee", "I-PER"), (".", "O")] if i % 4 == 0 else
        [("she", "O"), ("saw", "O"), (people[i % 3], "B-PER") if i % 2 else (places[i % 3], "B-LOC"), (".", "O")]
        for i in range(n)
    ]  # fmt: skip


@pytest.mark.parametrize("name", PROJECTS)
def test_project_fetches_every_file_that_the_data_step_reads(name):
    """Pinned to one commit of the source, named as `take_entities.py` wants them."""
    assets = load_project_config(CONFIGS / name)["assets"]
    files = sorted(asset["dest"].removeprefix("assets/") for asset in assets)
    assert files == sorted({file for file, _ in TAKE.SOURCES[name].values()})
    for asset in assets:
        folders = asset["url"].split("/")
        assert folders[-1] == asset["dest"].removeprefix("assets/")
        assert any(len(part) == 40 and set(part) <= set("0123456789abcdef") for part in folders)


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_project_calls_calib_commands_as_they_are(name, command):
    """The command line takes every option and argument that the project gives; so neither changes without the other."""
    project = load_project_config(CONFIGS / name)
    lines = [shlex.split(line) for step in project["commands"] for line in step["script"]]
    called = [line[5:] for line in lines if line[:5] == ["python", "-m", "spacy", "calib", command]]
    assert len(called) == 1
    typer.main.get_group(calib_cli).commands[command].make_context(command, called[0])


def steps_of(project: Path, variables: dict[str, Any]) -> list[dict[str, Any]]:
    """The commands of the workflow `all` in their order, with its variables put in."""
    config = load_project_config(project, overrides=variables)
    commands = {command["name"]: command for command in config["commands"]}
    return [commands[name] for name in config["workflows"]["all"]]


def run_line(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m spacy ...` or `python script.py ...`, in this process: each of their own imports torch for 4 s."""
    python, *arguments = shlex.split(line)
    assert python == "python"
    if arguments[:2] == ["-m", "spacy"]:
        done = spacy_command(*arguments[2:])
        assert done.code == 0, done.printed[-2000:]
    else:
        monkeypatch.setattr("sys.argv", arguments)
        with pytest.raises(SystemExit) as end:
            runpy.run_path(arguments[0], run_name="__main__")
        assert end.value.code == 0


@in_own_process
def test_project_runs_from_data_to_cutoffs(tmp_path, monkeypatch):
    """All steps of the longer project, on a small corpus; each finds what those before it made."""
    write_data(tmp_path / "data", "wikineural_en", **{split: rows(*gold(120)) for split in SPLITS})
    for path in ("scripts/take_entities.py", "scripts/convert_entities.py", "train_ner.cfg", "wikineural_en/project.yml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copyfile(CONFIGS / path, tmp_path / path)
    monkeypatch.setenv("SPACY_CALIB_DATA", str(tmp_path / "data"))
    project = tmp_path / "wikineural_en"
    monkeypatch.chdir(project)
    for step in steps_of(project, {"vars.max_steps": 60, "vars.eval_frequency": 20}):
        assert [path for path in step["deps"] if not Path(path).exists()] == []
        for line in step["script"]:
            run_line(f"{line} --allow-empty" if " calib threshold " in line else line, monkeypatch)
        assert [path for path in step["outputs"] if not Path(path).exists()] == []
    scored = srsly.read_json(project / "metrics" / "test.json")
    assert 0.5 < scored["ents_f"] < 1
    assert isinstance(scored["calib_ent_smce"], float)
    (table,) = srsly.read_json(project / "metrics" / "test.calib.json").values()
    assert table["component"] == "ner"
    assert srsly.read_json(project / "metrics" / "cutoffs.json")["precision"] == pytest.approx(0.95)


def test_written_cutoff_is_not_above_the_score_that_it_was_taken_from(tmp_path):
    """Cut to ten digits it could be, and the entities with just that score were lost to whoever used the file."""
    score = 0.7607375469852912
    write_json(tmp_path / "cutoffs.json", {"cutoff": score})
    assert json.loads((tmp_path / "cutoffs.json").read_text(encoding="utf-8"))["cutoff"] <= score
