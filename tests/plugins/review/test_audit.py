import json
from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.plugins.review.audit import (
    BORDER,
    LABEL,
    MISSING,
    SUPERFLUOUS,
    GoldSpan,
    audit_arcs,
    audit_pairs,
    audit_rows,
    audit_spans,
    audit_tasks,
    estimate_wrong,
)
from spacy_calib.plugins.review.queue.formats import WRITERS, to_record
from tests.made import corpus_of

ROWS = [
    [[("My", "D", {"D": 0.9, "N": 0.1}), ("fish", "N", {"N": 0.6, "V": 0.4}), ("swim", "V", {"V": 0.98})]],
    [[("\n", "N", {"N": 0.9}), ("a", "D", {"D": 0.99, "N": 0.01}), ("b", "D", {"D": 0.97})]],
]
# (word, P(O)) of two Docs
OUT = [("Ann", 0.1), ("B.", 0.2), ("saw", 0.95), ("Rome", 0.3), ("and", 0.9)]
SAID = [(0, 0, 2, "PER", 0.8), (0, 3, 4, "LOC", 0.7), (1, 0, 1, "PER", 0.9), (1, 3, 4, "DATE", 0.9)]


def gold_of(names):
    corpus = corpus_of(ROWS)
    return replace(corpus, gold=np.array([corpus.names.index(name) if name else -1 for name in names]))


def entities():
    docs = [[[(word, "O", {"O": score}) for word, score in OUT]]] * 2
    corpus = corpus_of(docs, SAID)
    return replace(corpus, spans=replace(corpus.spans, right=np.array([1, 0, 0, 0], dtype=np.int8)))


def test_rows_go_by_the_probability_of_gold_then_rival_and_raw_score():
    found = audit_rows(gold_of(["N", "V", "D", "D", "N", "V"]), np.full(6, 1e-4))
    # Gold without a score is as likely as 1e-4: .98 / 100 - 1e-4 + 4 / 1000 for the first. White space, gold or not, is none.
    expected = [(2, "D", "V"), (5, "V", "D"), (4, "N", "D"), (0, "N", "D"), (1, "V", "N")]
    assert [(one.first, one.gold, one.rival) for one in found.doubts] == expected
    assert [one.priority for one in found.doubts] == pytest.approx([0.0137, 0.0136, 0.0039, -0.087, -0.39])
    assert {one.kind for one in found.doubts} == {LABEL}
    assert found.n_labels == 5
    tasks = audit_tasks(gold_of(["N", "V", "D", "D", "N", "V"]), found.doubts, "token")
    assert [to_record(task)["raw"] for task in tasks] == [1e-4] * 5  # of the gold label, before calibration
    # The surest two of five (.99 and .98) are both disagreed with.
    assert found.n_wrong == pytest.approx(5.0)
    assert audit_rows(gold_of(["D", "N", "V", "", "D", "D"]), np.zeros(6)).doubts == []
    assert audit_rows(gold_of(["N", "V", "D", "D", "N", "V"]), np.full(6, np.nan)).n_labels == 0
    assert audit_rows(gold_of([""] * 6), np.zeros(6)).n_wrong is None


def test_half_of_the_labels_tell_how_many_are_wrong():
    assert estimate_wrong(np.array([0.9, 0.5, 0.8, 0.4]), np.array([True, False, False, False])) == pytest.approx(2.0)


def test_arcs_are_doubted_by_what_the_row_carries():
    corpus = gold_of(["D", "V", "V", "", "D", "N"])
    right = np.array([1, 0, 1, -1, 1, 0], dtype=np.int8)
    found = audit_arcs(replace(corpus, right=right))
    assert [(one.first, one.gold, one.rival) for one in found.doubts] == [(5, "N", "D"), (1, "V", "N")]
    assert [one.p_gold for one in found.doubts] == pytest.approx([0.03, 0.4])


def test_of_several_labels_each_is_there_or_not():
    corpus = gold_of(["D", "N", "D", "", "N", "D"])
    hits = np.array([1, 1, 1, 0, 0, -1, 0, 1, 1], dtype=np.int8)
    found = audit_pairs(replace(corpus, hits=hits))
    said = [(one.kind, one.first, one.gold, one.rival, round(one.p_rival, 2)) for one in found.doubts]
    # Of the row "swim" the scores do not name D, which its gold has.
    assert said[0] == (SUPERFLUOUS, 2, "D", "", 1.0)
    assert set(said[1:3]) == {(MISSING, 4, "", "D", 0.99), (SUPERFLUOUS, 4, "N", "", 0.99)}
    assert set(said[3:]) == {(MISSING, 2, "", "V", 0.98), (SUPERFLUOUS, 0, "N", "", 0.9)}


def test_spans_have_four_kinds_of_error_on_one_scale():
    gold = [GoldSpan(0, 0, 1, "PER"), GoldSpan(0, 3, 4, "PER"), GoldSpan(1, 2, 3, "ORG"), GoldSpan(1, 4, 5, "LOC")]
    found = audit_spans(entities(), gold, {"DATE": ""})
    said = [(one.kind, one.first, one.last, one.gold, one.rival) for one in found.doubts]
    assert said == [
        (SUPERFLUOUS, 7, 8, "ORG", ""),  # .95: outside
        (MISSING, 5, 6, "", "PER"),  # .9
        (SUPERFLUOUS, 9, 10, "LOC", ""),  # .9, later in the text
        (BORDER, 0, 1, "PER", "PER"),  # .8, "Ann B."
        (LABEL, 3, 4, "PER", "LOC"),  # .7
    ]
    assert (found.doubts[3].rival_first, found.doubts[3].rival_last) == (0, 2)
    assert found.n_labels == 4
    # Of the three predictions with gold (not DATE) the surest two, .9 and .8, are wrong once: 1.5 of 3, so 2 of 4 gold spans.
    assert found.n_wrong == pytest.approx(2.0)
    # A span as the prediction has it is not doubted; a label that the gold has by another name is the same.
    same = [GoldSpan(0, 0, 2, "PERSON"), GoldSpan(0, 3, 4, "LOC"), GoldSpan(1, 0, 1, "PERSON")]
    assert audit_spans(entities(), same, {"DATE": "", "PER": "PERSON"}).doubts == []


def test_a_gold_span_of_white_space_alone_is_none():
    corpus = corpus_of([[[("Ann", "O", {"O": 0.9})], [("\n", "O", {"O": 0.99})]]], [(0, 0, 1, "PER", 0.8)])
    found = audit_spans(corpus, [GoldSpan(0, 1, 2, "ORG"), GoldSpan(0, 0, 2, "ORG")])
    assert ([(one.kind, one.gold) for one in found.doubts], found.n_labels) == ([(BORDER, "ORG")], 1)
    assert [task.focus for task in audit_tasks(corpus, found.doubts, "entity")] == ["Ann"]


def test_every_format_has_the_gold_and_what_it_would_rather_be():
    corpus = entities()
    doubts = audit_spans(corpus, [GoldSpan(0, 0, 1, "PER"), GoldSpan(1, 0, 1, "PER")], {"DATE": ""}).doubts
    tasks = audit_tasks(corpus, doubts, "entity", lambda doubt: {"head": "saw"})
    assert [task.audit_fields["kind"] for task in tasks] == [BORDER, MISSING]
    border, missing = (to_record(task) for task in tasks)
    assert (border["gold"], border["focus"], border["suggestion"], border["suggested_text"]) == ("PER", "Ann", "PER", "Ann B.")
    assert [mark["label"] for mark in border["marks"]] == ["PER"]
    assert (border["raw"], missing["raw"]) == (None, None)  # the doubt about a span has no raw score
    assert (missing["gold"], missing["marks"], missing["suggestion"]) == (None, [], "LOC")
    for name, write in WRITERS.items():
        text = "".join(write(tasks))
        assert all(word in text for word in (BORDER, MISSING, "Ann B.", "saw")), name
    prodigy = [json.loads(line) for line in WRITERS["prodigy"](tasks)]
    assert [[span["label"] for span in one["spans"]] for one in prodigy] == [["PER"], []]
    assert prodigy[0]["meta"]["suggestion"] == "PER"
    assert prodigy[0]["meta"]["suggestion_score"] == pytest.approx(0.8)
    assert "".join(WRITERS["csv"](audit_tasks(corpus, [], "entity"))).startswith("rank,")
