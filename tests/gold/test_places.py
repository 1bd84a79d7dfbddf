"""Places as tools count them are moved to the characters where the marked words are."""

import numpy as np
import pytest

from spacy_calib.gold.places import Coverage, MisplacedError, locate_words

LINES = "Name:\r\nAnn Lee\r\nCity:\r\nParis"
TWICE = "A &amp; B\r\n😀 &lt;Ann Lee&gt;\r\nAnn Lee"


@pytest.mark.parametrize(("text", "start", "end", "said", "words"), [
    ("Ann Lee", 0, 3, "Ann", "Ann"),
    ("Ann Lee", 0, 3, None, "Ann"),  # the tool does not say
    # "\r\n" is one character to a browser
    (LINES, 6, 13, "Ann Lee", "Ann Lee"),
    (LINES, 20, 25, "Paris", "Paris"),
    (LINES, 6, 19, "Ann Lee\nCity:", "Ann Lee\r\nCity:"),
    (LINES, 6, 19, "Ann Lee\\nCity:", "Ann Lee\r\nCity:"),  # as Label Studio writes a line end
    ("Name:\nAnn", 7, 10, "Ann", "Ann"),  # and was two before somebody changed the file
    # entities
    ("Hello &amp; Ann Lee", 8, 15, "Ann Lee", "Ann Lee"),
    ("Hello &amp; Ann Lee", 6, 15, "& Ann Lee", "&amp; Ann Lee"),
    ("AT&T; Ann Lee", 6, 13, "Ann Lee", "Ann Lee"),  # no entity
    # UTF-16
    ("😀 Ann", 3, 6, "Ann", "Ann"),
    ("😀 Ann", 0, 6, "😀 Ann", "😀 Ann"),
    # all of them: of the line and behind it
    (TWICE, 10, 17, "Ann Lee", "Ann Lee"),
    (TWICE, 19, 26, "Ann Lee", "Ann Lee"),
    # the first one whose words are the same to the sign counts; white space and entities may be written otherwise
    ("a  b", 0, 4, "a b", "a  b"),
])  # fmt: skip
def test_words_are_found_where_the_tool_counted(text, start, end, said, words):
    first, last = locate_words(text, start, end, said)
    assert text[first:last] == words


def test_both_places_of_the_same_words_are_told_apart():
    assert [locate_words(TWICE, *place, "Ann Lee")[0] for place in ((10, 17), (19, 26))] == [17, 30]


@pytest.mark.parametrize(("start", "end", "said"), [(0, 3, "Lee"), (5, 99, "Lee"), (-3, 0, "Lee"), (4, 1, "Lee")])
def test_other_words_are_refused(start, end, said):
    with pytest.raises(MisplacedError):
        locate_words("Ann Lee", start, end, said)


def test_stretches_that_overlap():
    rng = np.random.default_rng(0)
    for _ in range(300):
        places = [(start, start + length, "P") for start, length in rng.integers(1, 8, (rng.integers(4), 2)).tolist()]
        start, length = rng.integers(1, 16, 2).tolist()
        expected = any(first < start + length and start < end for first, end, _ in places)
        assert Coverage(places).overlaps((start, start + length)) == expected
