"""Names that would break a pipeline are refused: of prefixes, and of pipes."""

import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.cli.fitting.settings import translate_options
from spacy_calib.doc.attributes import register
from spacy_calib.errors import CalibError

PREFIXES = {
    "": "C001", "a-b": "C001", "1st": "C001", "a b": "C001", "a.b": "C001", "calib\n": "C001",
    "class": "C112", "None": "C112",
    "get": "C112", "set": "C112", "has": "C112", "mutable_types": "C112", "doc_extensions": "C112",
    "_obj": "C112", "_start": "C112", "__class__": "C112",
    "vocab": "C112", "tokenizer": "C112", "meta": "C112", "config": "C112", "pipe": "C112", "to_disk": "C112",
}  # fmt: skip
NAMES = ["vocab", "tokenizer", "meta.json", "config.cfg", "VOCAB", "", ".", "..", "a/b", "../up", "a\\b", "a\0b"]


def by_pipe(attr):
    spacy.blank("xx").add_pipe("calib", config={"attr": attr, "source": {"component": ""}})


def by_option(attr):
    translate_options({"attr": attr})


@pytest.mark.parametrize("door", [register, by_pipe, by_option], ids=["register", "pipe", "option"])
@pytest.mark.parametrize(("attr", "code"), PREFIXES.items())
def test_prefixes_that_are_refused(door, attr, code):
    with pytest.raises(CalibError, match=code):
        door(attr)
    assert not Doc.has_extension(attr)


@pytest.mark.parametrize("attr", ["calib", "calib2", "tag", "morph", "text", "größe", "Vocab"])
def test_prefixes_that_are_taken(attr):
    assert attr in translate_options({"attr": attr}).values()


@pytest.mark.parametrize("name", NAMES)
def test_names_of_pipes_that_are_refused(name):
    nlp = spacy.blank("xx")
    with pytest.raises(CalibError, match="C113"):
        nlp.add_pipe("calib", name=name)
    assert nlp.pipe_names == []


def test_names_of_pipes_that_can_be_saved(tmp_path):
    nlp = spacy.blank("xx")
    for i, name in enumerate(["meta", "config", "my calib", "calib.2", "größe"]):
        nlp.add_pipe("calib", name=name, config={"attr": f"a{i}"})
    nlp.to_disk(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == sorted([*nlp.pipe_names, "vocab"])
