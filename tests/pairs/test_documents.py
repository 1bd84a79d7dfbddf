"""Documents of the source as numbers, and how tables name them."""

from __future__ import annotations

import pytest

from spacy_calib.pairs.documents import (
    DOC,
    DOCUMENT,
    SENTENCE,
    TEXT,
    DocumentNumbers,
    SourceDocument,
    block_of,
    by_unit,
    counted,
)


def test_parts_of_one_document_have_one_number_wherever_they_stand():
    numbers = DocumentNumbers()
    parts = [SourceDocument(DOCUMENT, key) for key in ("a", "b", "a", "c", "b")]
    assert [numbers.number(part) for part in parts] == [0, 1, 0, 2, 1]
    assert (len(numbers), numbers.unit) == (3, DOCUMENT)
    assert numbers.number(SourceDocument(SENTENCE, "a")) == 3


@pytest.mark.parametrize(
    ("units", "named"),
    [
        ([], DOC),
        ([SENTENCE, SENTENCE], SENTENCE),
        ([SENTENCE, DOC], DOC),
        ([DOCUMENT, SENTENCE], "document or sentence"),
        ([TEXT, DOCUMENT], "document or text"),
    ],
)
def test_the_unit_is_named_by_what_is_known(units, named):
    numbers = DocumentNumbers()
    for key, unit in enumerate(units):
        numbers.number(SourceDocument(unit, key))
    assert numbers.unit == named


def test_words_for_tables():
    assert block_of("Doc of the file") == "block of Docs of the file"
    assert by_unit(DOCUMENT, 2077) == "by document (2,077)"
    assert [counted(DOC, 1), counted(DOC, 1208), counted(SENTENCE, 2)] == [
        "1 Doc of the file",
        "1,208 Docs of the file",
        "2 sentences",
    ]
