"""Parts of a Doc: every token says what it said, and nothing of the rest of the Doc goes along."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin, Token

from spacy_calib.doc.attributes import doc_view
from spacy_calib.doc.cutting import cut, cut_block
from spacy_calib.doc.store import add_block, delete_blocks
from tests.pipe.test_guarantees import EVERYTHING, FRESH, pipeline, run, values


@pytest.fixture(scope="module")
def whole():
    """One Doc of all tokens."""
    nlp = pipeline(EVERYTHING)
    return nlp, spacy.tokens.Doc.from_docs(run(nlp, FRESH))


def arrays_of(doc) -> int:
    """Bytes of the arrays in its user data."""

    def size(value) -> int:
        return sum(map(size, value.values())) if isinstance(value, dict) else getattr(value, "nbytes", 0)

    return size(doc.user_data)


@pytest.mark.parametrize(("start", "end"), [(0, 1), (0, 60), (7, 9), (30, 60), (59, 60)])
def test_tokens_of_a_part_say_what_they_said(whole, start, end):
    nlp, _ = whole
    (doc,) = nlp.pipe([run(nlp, FRESH)[0]])
    end = min(end, len(doc))
    start = min(start, end - 1)
    part = cut(doc, start, end)
    assert values(part) == values(doc)[start:end]
    assert any(row != (None,) * 3 for row in values(part))
    ours, all_of_it = doc_view(part, "calib"), doc_view(doc, "calib")
    inside = (all_of_it.rows >= start) & (all_of_it.rows < end)
    assert ours.rows.tolist() == (all_of_it.rows[inside] - start).tolist()
    assert ours.tags.tolist() == all_of_it.tags[inside].tolist()


def test_lists_that_a_file_gave_back_as_tuples_are_cut_too(whole):
    nlp, _ = whole
    (of_tokens,) = run(nlp, FRESH)[0].user_data.values()
    spans = {"start": np.array([0, 8]), "end": np.array([3, 9]), "labels": ["A", "B"]}
    wanted = cut_block({**of_tokens, "spans": spans}, -7, 20)["spans"]
    given = cut_block({**of_tokens, "spans": {**spans, "labels": ("A", "B")}}, -7, 20)["spans"]
    assert list(given["labels"]) == wanted["labels"] == ["B"]


def test_flags_are_cut_with_their_tokens(whole):
    """They stayed as many as those of the whole, so that the part said nothing at all."""
    nlp, _ = whole
    (doc,) = nlp.pipe([run(nlp, FRESH)[0]])
    (block,) = doc.user_data.values()
    delete_blocks(doc.user_data, "calib")
    add_block(doc.user_data, "calib", {**block, "flag": np.arange(len(doc), dtype=np.int8) % 2})
    part = cut(doc, 7, 10)
    assert [token._.calib_flag for token in part] == [token._.calib_flag for token in doc[7:10]] == [True, False, True]
    assert values(part) == values(doc)[7:10]


def test_joined_docs_are_cut_with_the_blocks_of_each(whole):
    _, doc = whole
    for start in range(0, len(doc) - 5, 5):
        part = cut(doc, start, start + 5)
        assert values(part) == values(doc)[start : start + 5]


def test_a_part_holds_the_arrays_of_its_tokens_only(whole):
    _, doc = whole
    parts = [cut(doc, start, start + 5) for start in range(0, len(doc), 5)]
    assert sum(map(arrays_of, parts)) < 2 * arrays_of(doc)


def test_parts_survive_the_file(whole, tmp_path):
    nlp, doc = whole
    parts = [cut(doc, start, start + 4) for start in range(0, len(doc), 4)]
    DocBin(docs=parts, store_user_data=True).to_disk(tmp_path / "parts.spacy")
    back = list(DocBin().from_disk(tmp_path / "parts.spacy").get_docs(nlp.vocab))
    assert [row for part in back for row in values(part)] == values(doc)


def test_other_user_data_goes_with_its_tokens(whole):
    nlp, _ = whole
    (doc,) = nlp.pipe([run(nlp, FRESH)[0]])
    Token.set_extension("cut_note", default=None, force=True)
    doc[0]._.cut_note, doc[2]._.cut_note = "first", "third"
    doc.user_data["table"] = np.arange(2 * len(doc)).reshape(-1, 2)
    doc.user_data["id"] = "x"
    part = cut(doc, 2, 4)
    assert [token._.cut_note for token in part] == ["third", None]
    assert part.user_data["table"].tolist() == [[4, 5], [6, 7]]
    assert part.user_data["id"] == "x"
    assert "first" not in [value for value in part.user_data.values() if isinstance(value, str)]
