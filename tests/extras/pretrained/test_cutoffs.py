"""One cut-off for all labels: counts, what it reaches, and which one is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib import CalibError
from spacy_calib.extras.pretrained.card import CUTOFFS, find_card
from spacy_calib.extras.pretrained.cutoffs import choose_cutoff, count_above, evaluate_cutoffs, lowest_cutoff

# 20 entities with .9, all right but two; 20 with .6, half of them right. The other source has 40 with .8, 30 of them right.
FIRST = count_above(np.repeat([0.9, 0.6], 20), np.array([True] * 18 + [False] * 2 + [True, False] * 10))
OTHER = count_above(np.full(40, 0.8), np.array([True] * 30 + [False] * 10))


def test_scores_that_equal_a_cutoff_are_counted():
    accepted, right = FIRST["above"]["accepted"], FIRST["above"]["right"]
    assert FIRST["right"] == 28
    assert [accepted[CUTOFFS.index(cutoff)] for cutoff in (0.01, 0.6, 0.61, 0.9, 0.91)] == [40, 40, 20, 20, 0]
    assert [right[CUTOFFS.index(cutoff)] for cutoff in (0.01, 0.6, 0.61, 0.9, 0.91)] == [28, 28, 18, 18, 0]


def test_precision_is_the_mean_of_sources_and_nothing_accepted_reaches_none():
    results = {result.cutoff: result for result in evaluate_cutoffs([FIRST, OTHER])}
    assert (results[0.7].mean, results[0.7].worst) == (pytest.approx((0.9 + 0.75) / 2), 0.75)
    assert results[0.7].kept == pytest.approx((18 / 28 + 1) / 2)
    assert (results[0.85].mean, results[0.85].worst) == (0.45, 0)  # the other source accepts nothing


def test_the_lowest_cutoff_by_the_mean_and_the_worst():
    chosen = lowest_cutoff([FIRST, OTHER], 0.8)
    assert chosen is not None
    assert (chosen.cutoff, chosen.worst) == (0.61, 0.75)
    coarse = lowest_cutoff([FIRST, OTHER], 0.8, step=5)
    assert coarse is not None
    assert coarse.cutoff == 0.65
    assert lowest_cutoff([FIRST, OTHER], 0.8, worst=0.8) is None
    assert lowest_cutoff([FIRST, OTHER], 0.95) is None


def test_few_accepted_entities_reach_no_precision():
    few = count_above(np.repeat([0.9, 0.5], [9, 11]), np.repeat([True, False], [9, 11]))
    assert lowest_cutoff([few], 0.9) is None


@pytest.mark.parametrize("name", ["en_core_web_sm-ner", "en_core_web_md-ner"])
def test_the_cutoffs_of_the_cards(name):
    card = find_card(name)
    default, stricter = choose_cutoff(card, None), choose_cutoff(card, 0.9)
    assert default is not None
    assert stricter is not None
    assert default["precision"] == 0.8 <= default["worst"]
    assert stricter["mean"] >= 0.9
    assert stricter["worst"] >= 0.8
    assert stricter["kept"] < default["kept"]
    sources = card.data["cutoffs"]["sources"]
    below = lowest_cutoff(sources, 0.0, worst=0.0)
    assert below is not None
    assert below.cutoff == 0.01
    assert [source["right"] for source in sources] == [row["right"] for row in card.data["left_out"]]


def test_nested_cutoffs_keep_their_promise_on_the_source_left_out():
    for name in ("en_core_web_sm-ner", "en_core_web_md-ner"):
        rows = find_card(name).data["left_out"]
        precisions = [row["accepted_right"] / row["accepted"] for row in rows]
        assert min(precisions) >= 0.77
        assert sum(precisions) / len(rows) >= 0.8


def test_a_precision_that_is_not_reached_is_refused_and_tags_have_no_cutoff():
    with pytest.raises(CalibError, match=r"\[C839\].*'en_core_web_sm-ner'.*0.999.*calib threshold"):
        choose_cutoff(find_card("en_core_web_sm-ner"), 0.999)
    assert choose_cutoff(find_card("en_core_web_sm-tagger"), 0.9) is None
