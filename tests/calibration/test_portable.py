"""The map for texts of sources that the fit does not know: its line, the conventions that it leaves out, and which Docs get it."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.calibration.portable import (
    Portable,
    UsualWords,
    find_conventions,
)
from spacy_calib.calibration.recalibrators import Platt
from spacy_calib.schema import Misfit
from spacy_calib.types import ANYWHERE, HOME, Pairs
from tests.context.made_up import words_of

USUAL = UsualWords(mean=0.2, within=0.16, between=0.01)


def sure_tokens(n: int, wrong: int, score: float = 0.99) -> tuple[Pairs, np.ndarray]:
    """n tokens of which the model is sure that they have tag 0; of the last ones the gold says 1."""
    gold = np.where(np.arange(n) >= n - wrong, 1, 0)
    return Pairs(np.arange(n), np.zeros(n, dtype=np.intp), np.full(n, score), gold == 0, n), gold


def portable_of(pairs: Pairs, sources=None, elsewhere=None, conventions=()) -> Portable:
    sources = np.full(len(pairs), -1) if sources is None else sources
    return Portable.fit(pairs, conventions, sources, elsewhere, None)


def drawn(n: int, seed: int, true: float = 1.0) -> Pairs:
    """Pairs whose log-odds are so many times too large."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(0, 2, n)
    hits = rng.random(n) < 1 / (1 + np.exp(-true * margins))
    return Pairs(np.arange(n), np.zeros(n, dtype=np.intp), 1 / (1 + np.exp(-margins)), hits, n)


@pytest.mark.parametrize(
    ("n", "wrong", "score", "found"),
    [
        (100, 10, 0.99, True),  # ten of a hundred, where one is expected
        (100, 9, 0.99, False),  # too few
        (400, 11, 0.999, False),  # less than three of a hundred
        (100, 10, 0.97, False),  # three are expected, and five times as many were wanted
        (100, 50, 0.89, False),  # the model is not sure
    ],
)
def test_conventions_meet_where_the_gold_contradicts_sure_scores(n, wrong, score, found):
    pairs, gold = sure_tokens(n, wrong, score)
    conventions = find_conventions(pairs, gold, np.full(n, -1))
    assert [(one.source, one.said, one.gold, len(one.rows), one.of) for one in conventions] == (
        [(-1, 0, 1, wrong, n)] if found else []
    )


def test_each_source_has_its_own_conventions_and_the_most_tokens_come_first():
    one, gold_of_one = sure_tokens(100, 12)
    other, gold_of_other = sure_tokens(100, 20)
    both = Pairs(np.arange(200), one.tags.repeat(2), np.full(200, 0.99), np.concatenate([one.hits, other.hits]), 200)
    found = find_conventions(both, np.concatenate([gold_of_one, gold_of_other]), np.repeat([0, 1], 100))
    assert [(each.source, len(each.rows)) for each in found] == [(1, 20), (0, 12)]
    assert found[0].rows.tolist() == list(range(180, 200))
    unknown = np.where(np.arange(200) % 2 == 0, -1, -2)  # gold that the model does not know, and none at all
    assert find_conventions(both, unknown, np.zeros(200, dtype=np.intp)) == []


def with_changed_gold(n: int, share: float, seed: int, one_way: bool) -> tuple[Pairs, np.ndarray]:
    """Tokens of 40 tags in Zipf's frequencies, scored truly; of those of tag 5 the gold then calls this share tag 1, or any."""
    rng = np.random.default_rng(seed)
    usual = 1 / np.arange(1, 41)
    said, scores = rng.choice(40, n, p=usual / usual.sum()), rng.beta(30, 1, n).clip(0.5, 0.9999)
    gold = np.where(rng.random(n) < scores, said, rng.choice(40, n, p=usual / usual.sum()))
    changed = np.flatnonzero((said == 5) & (gold == 5) & (rng.random(n) < share))
    others = np.where(np.arange(40) == 5, 0, usual)
    gold[changed] = 1 if one_way else rng.choice(40, len(changed), p=others / others.sum())
    return Pairs(np.arange(n), said, scores, gold == said, n), gold


def test_another_name_is_a_convention_and_as_many_errors_that_go_any_way_are_none():
    for n in (2_000, 20_000):
        for share in (0.3, 0.6, 0.9):
            for seed in range(5):
                found = {}
                for one_way in (True, False):
                    pairs, gold = with_changed_gold(n, share, seed, one_way)
                    found[one_way] = [(one.said, one.gold) for one in find_conventions(pairs, gold, np.full(n, -1))]
                assert found == {True: [(5, 1)], False: []}, (n, share, seed)


def test_half_of_those_that_the_gold_contradicts_have_to_go_one_way():
    pairs, gold = sure_tokens(100, 40)
    # Of -1 the model has no column, and -2 is no gold, which contradicts nothing.
    for others, sizes in (((1, 2), [20, 20]), ((1, 2, 3), []), ((-1, -1, 1), []), ((-2, -2, 1), [13])):
        changed = gold.copy()
        changed[gold == 1] = np.resize(others, 40)
        assert [len(one.rows) for one in find_conventions(pairs, changed, np.full(100, -1))] == sizes, others


def test_the_line_is_platts_without_the_tokens_of_conventions():
    pairs, gold = sure_tokens(200, 40)
    others = drawn(500, 0)
    every = Pairs(
        np.arange(700), np.append(pairs.tags, others.tags + 1), np.append(pairs.scores, others.scores),
        np.append(pairs.hits, others.hits), 700,
    )  # fmt: skip
    conventions = find_conventions(every, np.append(gold, np.ones(500, dtype=np.intp)), np.zeros(700, dtype=np.intp))
    kept = np.flatnonzero((np.arange(700) < 160) | (np.arange(700) >= 200))
    expected = Platt().fit(every.scores[kept], every.hits[kept])
    assert [len(one.rows) for one in conventions] == [40]
    assert portable_of(every, conventions=conventions).line == pytest.approx(expected.coefficients_)


def test_a_blend_by_hand():
    # Log-odds 2 at home, 0.5 * 3 - 1 = 0.5 on the line; in the middle 1.25.
    home, raw = 1 / (1 + np.exp(-np.array([2.0]))), 1 / (1 + np.exp(-np.array([3.0])))
    made = Portable(np.array([0.5, -1.0]), False, None)
    assert made.blend(home, raw) == pytest.approx([1 / (1 + np.exp(-1.25))])


def test_sources_that_were_left_out_say_whether_it_travels():
    pairs, sources = drawn(2000, 1, true=0.5), np.arange(2000) % 2
    sharp = Portable(np.array([3.0, 0.0]), False, None)
    too_sure = sharp.blend(pairs.scores, pairs.scores)  # twice the log-odds that the raw scores have
    assert portable_of(pairs, sources, too_sure).abroad is True
    true = Platt().fit(pairs.scores, pairs.hits).predict(pairs.scores)
    hits = np.where(pairs.hits, 0.9, 0.1)
    assert portable_of(pairs, sources, (true + hits) / 2).abroad is False
    assert portable_of(pairs, sources, None).abroad is False


def test_usual_words_by_hand():
    # Docs of 2 and 4 words, shares 1/2 and 1/4: mean 1/3; within (2 * 1/4 + 4 * 3/16) / (6 - 2); between (1/18 + 1/36 - 2 within) / 6 < 0.
    unknown = np.array([True, False, True, False, False, False])
    found = UsualWords.of(unknown, np.array([0, 0, 3, 3, 3, 3]))
    assert (found.mean, found.within, found.between) == (pytest.approx(1 / 3), pytest.approx(0.3125), 0.0)
    assert UsualWords.of(unknown, np.zeros(6, dtype=np.intp)) is None
    assert UsualWords.of(unknown, np.arange(6)) is None


def test_far_more_unknown_words_by_hand():
    # Of 16 words more than .2 + 3 * sqrt(.01 + .16 / 16) = .624: ten are .625. Of none, nothing is told.
    assert USUAL.exceeded(np.array([10, 9, 0]), np.array([16, 16, 0])).tolist() == [True, False, False]


def given(words, portable: Portable, map_for=None, sources=None) -> list[bool]:
    from dataclasses import replace

    held = replace(words, sources=None if sources is None else np.array(sources))
    return portable.away(held, words.forms > 100, map_for).tolist()


def test_which_docs_get_it():
    words = words_of([[101] * 16, [1] * 16, [101, -1, -1], []])
    by_words, abroad = (Portable(np.array([1.0, 0.0]), abroad, USUAL) for abroad in (False, True))
    assert given(words, by_words) == [True, False, False, False]  # one word alone is not enough
    assert given(words, by_words, sources=[0, -1, -1, -1]) == [False] * 4
    assert given(words, abroad, sources=[-1, 1, -1, -1]) == [True, False, True, True]
    assert given(words, by_words, ANYWHERE, sources=[0, 0, -1, -1]) == [True] * 4
    assert given(words, abroad, HOME) == [False] * 4
    assert given(words, Portable(np.array([1.0, 0.0]), False, None)) == [False] * 4


def test_each_doc_is_told_by_itself():
    rng = np.random.default_rng(4)
    docs = [rng.integers(80, 130, rng.integers(1, 40)).tolist() for _ in range(200)]
    portable = Portable(np.array([1.0, 0.0]), False, UsualWords(0.4, 0.24, 0.001))
    together = given(words_of(docs), portable)
    assert together == [given(words_of([doc]), portable)[0] for doc in docs]
    assert 0 < sum(together) < 200


def test_what_was_learned_survives_saving():
    for usual in (USUAL, None):
        made = Portable(np.array([0.6, -0.3]), True, usual)
        again = Portable.read(made.state())
        assert (again.line.tolist(), again.abroad, again.usual) == ([0.6, -0.3], True, usual)
    with pytest.raises(Misfit, match="two numbers"):
        Portable.read({"line": np.zeros(3), "abroad": True, "usual": None})
