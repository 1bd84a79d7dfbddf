"""From a scored corpus to what the page says: values worked out by hand, and what must hold for any corpus."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.metrics.judged_view import judged_tokens
from spacy_calib.metrics.table import calibration_table
from spacy_calib.plugins.report.contents import confident_errors
from spacy_calib.plugins.report.passages import WINDOW, gold_of, passage_of
from spacy_calib.plugins.report.tag_rows import tag_rows, worst_tags
from spacy_calib.plugins.report.verdict import HEADINGS, right_at, verdict
from tests.plugins.report.made_up import FACTS, contents_of, corpus_of, judged_of, random_corpus, random_entities, view_of

NAMES = ("N", "V", "X")
# N right, N wrong (gold V), V right, and a V without gold.
SMALL = corpus_of(
    [
        ("The", 0, 0, [(0, 0.9, 0.8), (1, 0.1, 0.2)]), ("dog", 0, 1, [(0, 0.6, 0.5), (1, 0.4, 0.3)]),
        ("runs_", 1, 1, [(1, 0.7, 0.6)]), (".", 1, -1, [(1, 0.7, 0.6)]),
    ],
    NAMES,
    docs=[0, 0, 1, 1],
)  # fmt: skip
COUNTS = {"N": 30, "V": 10}


def small():
    return judged_tokens(SMALL, NAMES, groups=tag_frequency_groups(NAMES, COUNTS, 2), n_bins=1)


def test_a_row_for_each_tag_worked_out_by_hand():
    rows = tag_rows(SMALL, small())
    assert [row["tag"] for row in rows] == ["V", "N"]  # three pairs before two; X occurs nowhere
    v, n = rows
    assert (v["group"], v["counted"], v["gold"], v["pairs"], v["precision"]) == ("2", 10, 2, 3, 1.0)
    assert (n["group"], n["counted"], n["gold"], n["pairs"], n["precision"]) == ("1", 30, 1, 2, 0.5)
    assert v["mean_raw"] == pytest.approx((0.1 + 0.4 + 0.7) / 3)
    assert v["mean_calibrated"] == pytest.approx((0.2 + 0.3 + 0.6) / 3)
    assert v["right"] == pytest.approx(2 / 3)
    assert (n["mean_raw"], n["mean_calibrated"], n["right"]) == pytest.approx((0.75, 0.65, 0.5))
    assert v["raw"] is v["calibrated"] is None  # twenty pairs a bin are wanted


def test_a_tag_with_enough_pairs_has_an_error_of_its_own():
    corpus = corpus_of([("w", 0, i % 2, [(0, 0.9, 0.6)]) for i in range(20)], ("N", "V"))
    (row, other) = tag_rows(corpus, judged_of(corpus, n_bins=1))
    assert (row["raw"], row["calibrated"]) == pytest.approx((0.4, 0.1))
    assert (other["tag"], other["pairs"], other["mean_raw"], other["gold"]) == ("V", 0, None, 10)


def test_columns_that_do_not_name_the_label_give_no_gold_and_no_precision():
    trees = replace(SMALL, columns=SMALL.columns + 3)
    labels = ("0", "1", "2", "3", "4")
    judged = judged_tokens(trees, labels, groups=tag_frequency_groups(labels, {}, 1), n_bins=1)
    assert not judged.has_label_columns
    assert [(row["tag"], row["gold"], row["precision"]) for row in tag_rows(trees, judged)] == [
        (tag, None, None) for tag in "43"
    ]


def test_the_groups_are_those_of_table_1():
    view = view_of(SMALL, small(), FACTS)
    first, second = view["groups"]
    assert (first["names"], first["least"], first["most"], first["share"]) == (["N"], 30, 30, 0.75)
    assert (second["names"], second["least"], second["most"], second["share"]) == (["V", "X"], 0, 10, 0.25)
    assert (first["pairs"], first["units"], second["pairs"], second["units"]) == (2, 2, 3, 3)
    # One bin: raw .75 against one in two is .25 off, calibrated .65 is .15 off.
    assert (first["raw"], first["calibrated"], first["change"]) == pytest.approx((0.25, 0.15, -0.4))
    # Of the four tokens three have gold.
    assert view["accuracy"]["value"] == pytest.approx(2 / 3)
    assert (view["documents"], view["counted"], view["table"]["tokens"]) == (2, "2 documents", 3)


def test_figures_are_those_of_the_table_and_their_intervals_hold_them():
    corpus = random_corpus(5, 3000)
    view = view_of(corpus, judged_of(corpus), FACTS)
    of = {row["name"]: row for row in view["figures"]}
    assert list(of) == ["smce", "gmce", "ece", "nll", "brier"]
    assert of["smce"]["calibrated"] == view["table"]["errors"][0]["calibrated"]
    assert of["gmce"]["floor95"] == view["table"]["errors"][-1]["floor95"]
    for name in ("nll", "brier"):
        assert of[name]["raw"] == view["table"]["scores"][name]["raw"]
        for kind in ("raw", "calibrated"):
            assert of[name][f"{kind}_low"] < of[name][kind] < of[name][f"{kind}_high"]
    assert of["smce"]["raw_low"] < of["smce"]["raw"] < of["smce"]["raw_high"]
    assert view["accuracy"]["low"] < view["accuracy"]["value"] < view["accuracy"]["high"]
    for kind in ("raw", "calibrated"):
        assert view["decomposition"][kind]["brier"] == pytest.approx(of["brier"][kind])


def test_the_pictures_count_every_pair_once():
    corpus = random_corpus(5, 500)
    view = view_of(corpus, judged_of(corpus), FACTS)
    pictures = view["pictures"]
    (whole,), (top,), (coverage,) = pictures["reliability"], pictures["top"], pictures["coverage"]
    assert sum(whole["raw"]["pairs"]) == sum(whole["raw"]["histogram"]) == view["table"]["pairs"] == 1000
    assert sum(sum(panel["calibrated"]["pairs"]) for panel in pictures["groups"]) == 1000
    assert sum(top["raw"]["pairs"]) == 500  # a token has one top tag
    assert coverage["raw"][-1] == pytest.approx(view["accuracy"]["value"])


def test_the_context_is_the_sentence_character_for_character():
    corpus = corpus_of([(word, 0, 0, [(0, 1.0, 1.0)]) for word in ["A", "b_", "!", "C", "d_", "."]], ("N",), starts=[3])
    assert passage_of(corpus, 1, 2) == ("A ", "b", "! ".rstrip())
    assert passage_of(corpus, 4, 5) == ("C ", "d", ".")
    assert passage_of(corpus, 3, 4) == ("", "C", " d.")
    assert passage_of(corpus, 2, 4) == ("A b", "! C", " d.")  # an entity may cross a sentence's end


def test_a_long_sentence_is_cut_on_both_sides():
    corpus = corpus_of([(f"w{i}", 0, 0, [(0, 1.0, 1.0)]) for i in range(60)], ("N",))
    before, text, after = passage_of(corpus, 30, 31)
    assert (before.split()[:2], text, after.split()[-2:]) == (["…", f"w{30 - WINDOW}"], "w30", [f"w{30 + WINDOW}", "…"])
    assert passage_of(corpus, 0, 1)[0] == ""


def test_the_gold_of_several_tokens_names_equal_neighbours_once():
    corpus = corpus_of([("w", 0, gold, []) for gold in (0, 0, 1, -1, 0)], NAMES)
    assert gold_of(corpus, 0, 5) == "N V ? N"


def test_the_most_confident_errors_come_first_and_few_of_a_kind():
    wrong = [("x", 0, 1, [(0, 0.9, 0.5 + i / 100)]) for i in range(10)]
    right = [("y", 1, 1, [(1, 0.9, 0.99)])]
    other = [("z", 1, 0, [(1, 0.9, 0.2), (0, 0.8, 0.1)])]
    corpus = corpus_of([*wrong, *right, *other], NAMES, docs=list(range(12)))
    found = confident_errors(corpus, judged_of(corpus))
    # Equal words in equal sentences are one error where their scores are equal; here these differ.
    assert [error["calibrated"] for error in found] == pytest.approx([0.59, 0.58, 0.57, 0.2])
    assert [(error["carried"], error["gold"]) for error in found[2:]] == [("N", "V"), ("V", "N")]


def test_entities_have_one_label_each_and_their_errors_are_wrong_entities():
    corpus, judged = random_entities(300)
    view = view_of(corpus, judged, {**FACTS, "layer": "ner"})
    assert "top" not in view["pictures"]
    (coverage,) = view["pictures"]["coverage"]
    assert coverage["calibrated"][49] > coverage["calibrated"][99] == pytest.approx(view["accuracy"]["value"])
    assert view["noun"] == "label"
    scores = [error["calibrated"] for error in view["errors"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(corpus.spans.calibrated[corpus.spans.right == 0].max())
    first = view["errors"][0]
    place = int(np.flatnonzero(corpus.spans.calibrated == first["calibrated"])[0])
    assert (first["text"], first["carried"]) == (f"w{3 * place}", corpus.names[corpus.spans.labels[place]])


def test_the_worst_tag_is_the_one_that_was_made_wrong():
    rng = np.random.default_rng(1)
    tokens = []
    for i in range(1600):
        tag, score = i % 4, float(rng.uniform(0.3, 0.95))
        chance = score - 0.25 if tag == 2 else score
        tokens.append((f"w{i}", tag, tag if rng.random() < chance else 4, [(tag, score, score)]))
    corpus = corpus_of(tokens, ("A", "B", "C", "D", "other"), docs=[i // 40 for i in range(1600)])
    worst = worst_tags(corpus, judged_of(corpus))
    assert (worst["enough"], worst["judged"]) == (200, 4)
    assert worst["beyond"] == len(worst["tags"])
    first = worst["tags"][0]
    assert (first["tag"], first["leaning"], first["pairs"]) == ("C", "sure", 400)
    assert first["error"] == pytest.approx(0.25, abs=0.06)
    assert first["error"] > first["floor95"]
    assert first["mean"] - first["right"] == pytest.approx(0.25, abs=0.06)
    assert all(one["gold"] == "other" for one in first["examples"])
    scores = [one["calibrated"] for one in first["examples"]]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 3


def test_no_tag_is_called_wrong_when_none_has_enough_pairs():
    assert worst_tags(SMALL, small()) == {"enough": 20, "judged": 0, "beyond": 0, "tags": []}


def verdict_of(move, n=4000, n_bins=10):
    """The verdict on scores whose true probability is move(score)."""
    rng = np.random.default_rng(3)
    scores = rng.random(n)
    hits = rng.random(n) < move(scores)
    tokens = [("w", 0, int(not hit), [(0, score, score)]) for score, hit in zip(scores.tolist(), hits.tolist(), strict=True)]
    corpus = corpus_of(tokens, ("N", "V"), docs=[i // 20 for i in range(n)])
    judged = judged_of(corpus, 1, n_bins)
    table = calibration_table(judged.pairs, judged.calibrated, judged.groups, n_bins, 0, judged.documents)
    return verdict(judged, table, "tagger")


@pytest.mark.parametrize(("status", "move", "words"), [
    ("calibrated", lambda q: q, "Labels that this tagger scores 90 % are right"),
    ("sure", lambda q: 0.2 + 0.6 * q, "This tagger is overconfident: labels that this tagger scores 90 % are right 7"),
    (
        "modest",
        lambda q: np.clip(1.6 * q - 0.3, 0, 1),
        "is underconfident: labels that this tagger scores 90 % are right 100 %",
    ),
    ("off", lambda q: np.clip(q + 0.1, 0, 1), "This tagger is overconfident in places and underconfident in others"),
])  # fmt: skip
def test_the_verdict_says_what_was_made(status, move, words):
    found = verdict_of(move)
    assert (found["status"], found["heading"]) == (status, HEADINGS[status])
    assert words in found["sentence"]
    assert ("no more than chance" in found["sentence"]) == (status == "calibrated")


def test_few_pairs_give_no_verdict():
    found = verdict_of(lambda q: q, n=150)
    assert found["status"] == "unclear"
    assert "150 scores from 8 documents" in found["sentence"]
    assert "that is more, but of so few scores" in verdict_of(lambda q: 0 * q, n=150)["sentence"]
    assert "that is more" not in verdict_of(lambda q: q, n=180)["sentence"]


@pytest.mark.parametrize(("error", "groups_error", "status"), [
    (0.01, 0.01, "calibrated"), (0.01, 0.05, "calibrated"), (0.01, 0.07, "uneven"), (0.015, 0.05, "close"),
    (0.015, 0.07, "close-uneven"),
])  # fmt: skip
def test_frequent_tags_do_not_speak_for_the_groups(error, groups_error, status):
    """Within chance on the whole; but the mean of the groups is more than twice what chance would show."""
    judged = judged_of(random_corpus(4, 3000), 1)
    row = {"group": "all", "raw": 0.1, "calibrated": error, "floor95": 0.012, "true_low": None, "true_high": None}
    group = {**row, "group": "1", "calibrated": groups_error, "floor95": 0.03}
    rows = [row, group, {**group, "group": "2"}, {**group, "group": "mean"}]
    found = verdict(judged, {"errors": rows, "change": {"nll": dict.fromkeys(("value", "low", "high"))}}, "tagger")
    assert (found["status"], found["heading"]) == (status, HEADINGS[status])
    assert (", though not for each label by itself" in found["sentence"]) == status.endswith("uneven")
    assert ("no more than chance" in found["sentence"]) == (error < 0.012)


def test_the_share_that_is_right_at_ninety_percent_by_hand():
    scores = np.full(100, 0.92)
    assert right_at(scores, np.arange(100) < 82) == 80  # ten points below what was said, at 92 as at 90
    assert right_at(scores[:49], np.ones(49)) is None


def test_a_calibration_that_made_it_worse_is_called_so():
    tokens = [("w", 0, int(i % 2), [(0, 0.5, 0.9)]) for i in range(400)]
    corpus = corpus_of(tokens, ("N", "V"), docs=[i // 20 for i in range(400)])
    sentence = view_of(corpus, judged_of(corpus, 1), FACTS)["verdict"]["more"][0]
    assert sentence.startswith("Before calibration, scores were off by 0.000 on average; now they are by 0.400.")
    assert "Calibration made it worse on this data." in sentence


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text("aé< 😀", max_size=6), st.integers(-1, 2), st.integers(-1, 2),
            st.dictionaries(st.integers(0, 2), st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=3),
        ),
        min_size=1, max_size=12,
    ),
    st.integers(1, 4),
)  # fmt: skip
def test_any_corpus_with_gold_gives_plain_data(tokens, per_doc):
    held = [(word, label, gold, [(tag, *pair) for tag, pair in scores.items()]) for word, label, gold, scores in tokens]
    corpus = corpus_of(held, NAMES, docs=[i // per_doc for i in range(len(held))])
    judged = judged_of(corpus)
    if not len(judged.pairs):
        return
    contents = contents_of(view_of(corpus, judged, FACTS))
    text = json.dumps(contents, allow_nan=False)
    view = json.loads(text)["views"][0]
    assert sum(row["pairs"] for row in view["tags"]) == len(judged.pairs)
    assert sum(row["gold"] for row in view["tags"]) == int((corpus.gold >= 0).sum())
    assert all(0 <= row["right"] <= 1 for row in view["tags"] if row["pairs"])
    assert view["verdict"]["status"] in HEADINGS
