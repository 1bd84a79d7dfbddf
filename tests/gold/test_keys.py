import pytest
import spacy

from spacy_calib.errors import CalibError
from spacy_calib.gold.keys import IN_LINE, ORIGIN, name_of, names_under, value_of
from tests.sentences import says


def doc_with_user_data(text="a dog", **held):
    doc = spacy.blank("en")(text)
    doc.user_data.update(held)
    return doc


def test_a_function_comes_before_user_data_and_these_before_the_line(register):
    register("calib_keys", "length", len)
    in_line = {ORIGIN: {IN_LINE: "of the line"}}
    assert value_of(doc_with_user_data(length="long", **in_line), "length") == 2
    assert value_of(doc_with_user_data(genre="blog", **in_line), "genre") == "blog"
    assert value_of(doc_with_user_data(**in_line), "genre") == "of the line"
    assert value_of(doc_with_user_data(), "genre") is None


def test_what_is_a_name():
    given = ["blog", " blog ", 7, 0, False, 2.5, None, "", "  ", ["a"], {"a": 1}, b"a"]
    assert list(map(name_of, given)) == ["blog", "blog", "7", "0", "False", "2.5", *[None] * 6]


def test_docs_are_grouped_where_some_share_a_name():
    assert names_under([doc_with_user_data(by="a"), doc_with_user_data(), doc_with_user_data(by="a")], "by") == ["a", None, "a"]
    assert names_under([doc_with_user_data(by="a"), doc_with_user_data(by="b")], "by") == ["a", "b"]
    with pytest.raises(CalibError, match=says("C601", key="of")):
        names_under([doc_with_user_data(by="a"), doc_with_user_data(of=[])], "of")
    with pytest.raises(CalibError, match=says("C602", n=3, key="by")):
        names_under([doc_with_user_data(by=name) for name in "abc"], "by")


def test_a_function_that_fails_is_named(register):
    register("calib_keys", "broken", lambda doc: 1 / 0)
    with pytest.raises(CalibError, match=r"\[C600\].*'broken' .* failed on the Doc that begins 'a dog'.*division by zero"):
        value_of(doc_with_user_data(), "broken")
