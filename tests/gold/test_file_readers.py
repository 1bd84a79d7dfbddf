"""What reads a file of gold, by its suffix; readers of other packages are in tests/cli/test_outside.py."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import spacy

from spacy_calib.errors import CalibError
from spacy_calib.gold import file_readers
from spacy_calib.gold.file_readers import file_reader, gold_suffixes


@pytest.fixture
def added(monkeypatch):
    """Two readers of another package, one of a suffix that is read already."""
    points = tuple(EntryPoint(name, "spacy:blank", file_readers.ENTRY_POINTS) for name in (".tsv", ".json"))
    monkeypatch.setattr(file_readers, "entry_points_of", lambda group: points)


def test_ours_come_first_and_are_not_replaced(added):
    assert gold_suffixes() == (".spacy", ".conllu", ".tsv")
    assert file_reader(Path("a.json")) is file_readers.answered_docs


def test_an_unknown_suffix_is_refused_with_those_that_are_read(added):
    with pytest.raises(CalibError, match=r"does not end in \.spacy, \.conllu, \.tsv, \.jsonl, \.jsonl\.gz or \.json"):
        file_reader(Path("a.txt"))


def test_a_reader_that_gives_no_docs_is_named(added):
    read = file_reader(Path("a.tsv"))
    with pytest.raises(CalibError, match=r"C748.*a\.tsv cannot be read by spacy:blank"):
        list(read(spacy.blank("xx"), Path("a.tsv")))


def test_a_suffix_may_have_two_endings_and_needs_a_dot(monkeypatch):
    points = tuple(EntryPoint(name, "builtins:list", file_readers.ENTRY_POINTS) for name in (".gz", ".tsv.gz", "tab"))
    monkeypatch.setattr(file_readers, "entry_points_of", lambda group: points)
    assert gold_suffixes() == (".spacy", ".conllu", ".gz", ".tsv.gz")
    loaded = []
    monkeypatch.setattr(file_readers, "_load_reader", lambda point: loaded.append(point.name))
    file_reader(Path("a.tsv.gz"))
    file_reader(Path("b.gz"))
    assert loaded == [".tsv.gz", ".gz"]
    with pytest.raises(CalibError, match="C053"):
        file_reader(Path("xtab"))
