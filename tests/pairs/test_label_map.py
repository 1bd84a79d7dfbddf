import json

import pytest

from spacy_calib.errors import CalibError
from spacy_calib.pairs.label_map import UnknownGold, map_label, map_to_paste, merge_labels, read_map


def test_maps_are_read_from_the_option_and_from_files(tmp_path):
    wanted = {"PERSON": "PER", "GPE": "LOC", "DATE": ""}
    assert read_map("PERSON=PER, GPE=LOC,DATE=") == wanted
    (tmp_path / "map.json").write_text(json.dumps(wanted))
    assert read_map(str(tmp_path / "map.json")) == wanted
    (tmp_path / "map.tsv").write_text("PERSON\tPER\nGPE\tLOC\nDATE\t\n")
    assert read_map(str(tmp_path / "map.tsv")) == wanted
    (tmp_path / "map.json").write_text(json.dumps({"PRP$": "PP$", ",": "=", "$": "$"}))
    assert read_map(str(tmp_path / "map.json")) == {"PRP$": "PP$", ",": "=", "$": "$"}


@pytest.mark.parametrize(
    "given", ["", "PERSON", "A=B=C", "=PER", "A=B,A=C", "none.json", "bad.json", "deep.json", "list.json", "three.tsv"]
)
def test_what_is_no_map_is_refused(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "deep.json").write_text("[" * 99_999)
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "three.tsv").write_text("a\tb\tc\n")
    with pytest.raises(CalibError, match=r"\[C162\]"):
        read_map(given)


def test_labels_are_mapped_and_merged():
    table = {"PERSON": "PER", "GPE": "LOC", "DATE": "", "X": "O"}
    labels = ["O", "PERSON", "DATE", "LOC", "GPE", "X"]
    mapped = [map_label(table, label, "O") for label in labels]
    assert mapped == ["O", "PER", "O", "LOC", "LOC", "O"]
    names, columns = merge_labels(mapped)
    assert (names, columns.tolist()) == (("O", "PER", "LOC"), [0, 1, 0, 2, 2, 0])
    assert map_label({"NN": ""}, "NN") == ""
    assert merge_labels(["", "VB"])[1].tolist() == [-1, 0]
    prefixed = [map_label(table, label, "O", has_prefix=True) for label in ("B-PERSON", "U-DATE", "O", "L-ORG")]
    assert prefixed == ["B-PER", "O", "O", "L-ORG"]


def test_the_suggested_map_leaves_shared_labels_alone_and_names_those_that_stand_for_nothing():
    found = {
        ("ORG", "ORG"): 300, ("ORG", "MISC"): 96, ("GPE", "LOC"): 200, ("GPE", "PER"): 9, ("DATE", "O"): 50, ("O", "O"): 900,
    }  # fmt: skip
    gold = {"ORG": 300, "MISC": 96, "LOC": 200, "PER": 9, "O": 950}
    unknown = UnknownGold.from_confusions(found, 105, gold, ("O", "ORG", "GPE", "LOC", "DATE"))
    assert unknown.message_fields()["map"] == "GPE=LOC,DATE="
    assert unknown.pairs == [("ORG", "MISC", 96), ("GPE", "PER", 9)]
    assert unknown.share == 105 / 605


PENN = {",": "Comma", "''": "Quote", "``": "Quote", "$": "$"}


def test_a_map_of_plain_labels_is_given_back_in_a_line():
    table = {"NN": "SG-NOM", "-LRB-": "Bracket", "DATE": "", ".": "Period", "nsubj:pass": "nsubj"}
    assert map_to_paste(table) == "NN=SG-NOM,-LRB-=Bracket,DATE=,.=Period,nsubj:pass=nsubj"
    assert read_map(map_to_paste(table)) == table


@pytest.mark.parametrize("label", PENN)
def test_a_map_with_a_sign_of_its_own_or_of_a_shell_is_given_back_in_a_file(tmp_path, label):
    table = {"NN": "SG-NOM", label: PENN[label]}
    named, _, content = map_to_paste(table).partition(", a file with ")
    (tmp_path / named).write_text(content)
    assert read_map(str(tmp_path / "map.json")) == table


def test_the_map_for_unknown_gold_is_one_that_can_be_given_back():
    unknown = UnknownGold.from_confusions({(",", "Comma"): 9, ("DATE", "O"): 2}, 9, {"Comma": 9, "O": 2}, (",", "DATE", "O"))
    assert unknown.message_fields()["map"] == 'map.json, a file with {",": "Comma", "DATE": ""}'
