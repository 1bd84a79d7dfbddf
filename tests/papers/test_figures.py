"""Figures of coreference, worked out by hand."""

import pytest
from papers.coref.figures import FIGURES, NOTHING, b_cubed, ceaf, lea, muc

# The example of Moosavi & Strube (2016): gold {a b c} {d e f g}, found {a b} {c d} {f g h i}.
GOLD = [frozenset("abc"), frozenset("defg")]
FOUND = [frozenset("ab"), frozenset("cd"), frozenset("fghi")]


def test_muc():
    # recall: (3 - 2) + (4 - 3) of 2 + 3 links (d, e, and f g are three parts); precision: (2 - 1) + (2 - 2) + (4 - 3) of 1 + 1 + 3
    shares = muc(FOUND, GOLD)
    assert shares.recall == (2, 5)
    assert shares.precision == (2, 5)
    assert shares.f == pytest.approx(0.4)


def test_b_cubed():
    # recall: a, b 2/3, c 1/3, d 1/4, e 0, f, g 2/4 of 7; precision: a, b 1, c, d 1/2, f, g 1/2, h, i 0 of 8
    shares = b_cubed(FOUND, GOLD)
    assert shares.recall == pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1 / 4 + 1 / 2 + 1 / 2, 7))
    assert shares.precision == pytest.approx((1 + 1 + 0.5 + 0.5 + 0.5 + 0.5, 8))


def test_ceaf():
    # {a b} with {a b c}: 2 * 2 / 5; {f g h i} with {d e f g}: 2 * 2 / 8
    shares = ceaf(FOUND, GOLD)
    assert shares.precision == pytest.approx((0.8 + 0.5, 3))
    assert shares.recall == pytest.approx((1.3, 2))


def test_lea():
    # Recall of the paper's section 4: (3 * 1/3 + 4 * 1/6) / 7; precision: (2 * 1 + 2 * 0 + 4 * 1/6) / 8.
    shares = lea(FOUND, GOLD)
    assert shares.r == pytest.approx((3 / 3 + 4 / 6) / 7)
    assert shares.p == pytest.approx((2 + 4 / 6) / 8)
    alone = lea([frozenset("a"), frozenset("b")], [frozenset("a"), frozenset("bc")])
    assert alone.precision == (1, 2)
    assert alone.recall == (1, 3)


@pytest.mark.parametrize("name", FIGURES)
def test_a_perfect_clustering_has_1_and_none_has_0(name):
    assert FIGURES[name](GOLD, GOLD).f == pytest.approx(1)
    assert FIGURES[name]([], GOLD).f == 0 == FIGURES[name]([], []).f
    both = FIGURES[name](FOUND, GOLD) + FIGURES[name](GOLD, GOLD) + NOTHING
    assert both.recall[1] == FIGURES[name](GOLD, GOLD).recall[1] * 2
