"""Lists of names: phrases and words by hand, what they say of entities, the files, and what a missing one leads to."""

import zlib

import numpy as np
import pytest
from pretrain.entities import CONTRADICTIONS, SUPPORTS, current_lists

from spacy_calib.plugins.pretrained import names
from spacy_calib.plugins.pretrained.names import (
    COLUMNS,
    KINDS,
    NameLists,
    checksum,
    load_lists,
    match_lists,
    read_list,
    words_of,
)

LISTS = NameLists(
    {
        "places": {"york", "new york", "saint denis", "paris", "new york city", "washington d c", "guinea bissau"}, "large_places": {"new york"},
        "organizations": {"apple", "paris", "johnson johnson", "t mobile", "the guardian", "mcdonald s"}, "first_names": {"ann", "hope", "paris"}, "surnames": {"lee", "york", "young"},
        "ordinary_words": {"hope", "young", "new", "the", "apple", "people"}, "organization_first": {"bank"}, "organization_last": {"inc"},
    }
)  # fmt: skip


def read(text: str) -> dict[str, list[float]]:
    """COLUMNS of words that are apart by blanks."""
    words = text.split()
    described = np.array([LISTS.describe(word) for word in words])
    return dict(zip(COLUMNS, LISTS.read(words, described).T.tolist(), strict=True))


def test_a_column_of_phrases_holds_their_numbers_of_tokens():
    assert read("in New York City , York")["places"] == [0, 0b110, 1, 0, 0, 1]
    assert read("NEW YORK")["large_places"] == [0b10, 0]
    assert read("Washington D.C.")["places"] == [0b10, 0]
    assert read("New")["places"] == [0]
    assert read("New , York")["places"] == [0, 0, 1]  # a comma separates names


@pytest.mark.parametrize(("kind", "text", "expected"), [
    ("places", "Saint - Denis", [0b10, 0, 0]), ("places", "Saint-Denis", [1]), ("places", "Saint Denis", [0b10, 0]),
    ("places", "Guinea – Bissau", [0b10, 0, 0]), ("organizations", "Johnson & Johnson", [0b10, 0, 0]),
    ("organizations", "T - Mobile", [0b10, 0, 0]), ("organizations", "McDonald ’s", [0b10, 0]), ("surnames", "O'Young", [0]),
])  # fmt: skip
def test_joiners_have_no_say_in_the_lookup(kind, text, expected):
    assert read(text)[kind] == expected


def test_what_has_no_letter_is_ordinary():
    assert read("People & 24 Lee")["ordinary_words"] == [1, 1, 1, 0]


@pytest.mark.parametrize(("text", "words"), [
    ("Łódź", "lodz"), ("Þór", "thor"), ("Nguyễn", "nguyen"), ("O’Brien", "o brien"), ("IBM", "ibm"),
    ("T-Mobile", "t mobile"), ("&", ""),
])  # fmt: skip
def test_names_are_folded_words(text, words):
    assert words_of(text) == words


@pytest.mark.parametrize(("text", "kind", "expected"), [
    ("New York", "GPE", {"place", "large place"}),
    ("Paris", "FAC", {"place", "place, but an organization"}),
    ("Ann Lee", "PERSON", {"first name, several words", "surname, several words"}),
    ("Ann", "PERSON", {"first name alone"}),
    ("Lee", "PERSON", {"surname alone"}),
    ("Hope", "PERSON", set()),  # an ordinary word alone has no support, but it is a name
    ("Young", "PERSON", set()),
    ("Okonkwo", "PERSON", set()),
    ("Femi Okonkwo", "PERSON", set()),
    ("Apple", "ORG", {"organization"}),
    ("The Guardian", "ORG", {"organization"}),
    ("Bank of Foo", "ORG", {"organization word"}),
    ("Foo Inc.", "ORG", {"organization word"}),
    ("Paris", "PERSON", {"first name alone"}),  # a place, but a first name as well
    ("New York", "PERSON", {"surname, several words", "person, but a place"}),
    ("Saint-Denis", "ORG", {"organization, but a place"}),
    ("Foo Inc.", "PERSON", {"person, but an organization"}),
    ("Apple", "PERSON", {"person, but an organization", "person, but an ordinary word"}),
    ("Ann Lee", "ORG", {"no person, but a person's name"}),
    ("Foo people", "PERSON", {"person, but an ordinary word"}),
    ("The People", "ORG", {"organization, but ordinary words"}),
    ("The People", "LOC", {"place, but ordinary words"}),
    ("Ann Lee", "DATE", {"no person, but a person's name"}),
])  # fmt: skip
def test_what_lists_say_of_an_entity(text, kind, expected):
    columns = {name: np.array(values) for name, values in read(text).items()}
    first, end = np.array([0]), np.array([len(text.split())])
    flags = match_lists(np.array([kind]), columns, first, end, first, end - 1)
    assert list(flags) == [*SUPPORTS, *CONTRADICTIONS]
    assert {name for name, mask in flags.items() if mask[0]} == expected


@pytest.mark.parametrize(
    ("text", "start", "end"), [("The Guardian", 1, 2), ("McDonald 's", 0, 1), ("Apple 's", 0, 1), ("The Apple", 1, 2)]
)
def test_an_article_and_a_possessive_may_be_listed(text, start, end):
    columns = {name: np.array(values) for name, values in read(text).items()}
    flags = match_lists(np.array(["ORG"]), columns, np.array([start]), np.array([end]), np.array([0]), np.array([1]))
    assert flags["organization"].tolist() == [True]


def test_the_lists_of_the_package_are_those_of_each_kind():
    lists = current_lists()
    assert [name.split(".")[0] for name in lists] == list(KINDS)
    loaded = load_lists(tuple(lists.items()))
    assert loaded is not None
    for kind, entries in loaded.entries.items():
        assert entries
        assert {words_of(entry) for entry in entries} == entries, kind
        assert "" not in entries
    assert loaded.entries["large_places"] < loaded.entries["places"]
    assert {"ngozi", "wei", "ann"} <= loaded.entries["first_names"]


def test_no_lists_are_asked_for():
    assert load_lists(()) is None


def test_a_missing_list_and_another_one_are_told_and_not_used(tmp_path, monkeypatch):
    (tmp_path / "places.1.txt.z").write_bytes(zlib.compress(b"ghana\nparis"))
    monkeypatch.setattr(names, "list_folder", lambda: tmp_path)
    assert read_list(tmp_path / "places.1.txt.z") == "ghana\nparis"
    right = ("places.1", checksum("ghana\nparis"))
    assert load_lists((right,)).entries["places"] == {"ghana", "paris"}
    for wrong in (("places.1", "0" * 16), ("places.2", right[1])):
        with pytest.warns(UserWarning, match=rf"\[CW87\].*'{wrong[0]}'"):
            assert load_lists((right, wrong)) is None
