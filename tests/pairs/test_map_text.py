"""The map that a message suggests can be given back as it is printed."""

from __future__ import annotations

import pytest

from spacy_calib.pairs.label_map import UnknownGold, map_to_paste, read_map

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


@pytest.mark.parametrize(
    ("given", "table"),
    [
        ("NN=SG-NOM,IN=ADP,,=Comma,.=Period", {"NN": "SG-NOM", "IN": "ADP", ",": "Comma", ".": "Period"}),
        ("DATE=,,=Comma", {"DATE": "", ",": "Comma"}),
        ("PUNCT=,,X=Y", {"PUNCT": ",", "X": "Y"}),
        ("''=Quote,``=Quote,==Equals", {"''": "Quote", "``": "Quote", "=": "Equals"}),
        (",".join(f"A{i}=B" for i in range(5_000)), {f"A{i}": "B" for i in range(5_000)}),
    ],
)
def test_a_comma_may_be_a_label(given, table):
    assert read_map(given) == table


def test_the_map_for_unknown_gold_is_one_that_can_be_given_back():
    unknown = UnknownGold.from_confusions({(",", "Comma"): 9, ("DATE", "O"): 2}, 9, {"Comma": 9, "O": 2}, (",", "DATE", "O"))
    assert unknown.message_fields()["map"] == 'map.json, a file with {",": "Comma", "DATE": ""}'
