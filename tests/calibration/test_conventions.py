"""Where the tags of a model and those of the gold look like two conventions."""

import numpy as np
import pytest

from spacy_calib.calibration.conventions import find_conventions
from spacy_calib.types import Pairs


def sure_tokens(n: int, wrong: int, score: float = 0.99) -> tuple[Pairs, np.ndarray]:
    """n tokens of which the model is sure that they have tag 0; of the last ones the gold says 1."""
    gold = np.where(np.arange(n) >= n - wrong, 1, 0)
    return Pairs(np.arange(n), np.zeros(n, dtype=np.intp), np.full(n, score), gold == 0, n), gold


@pytest.mark.parametrize(("n", "wrong", "score", "found"), [
    (100, 10, 0.99, True),  # ten of a hundred, where one is expected
    (100, 9, 0.99, False),  # too few
    (400, 11, 0.999, False),  # less than three of a hundred
    (100, 10, 0.97, False),  # three are expected, and five times as many were wanted
    (100, 50, 0.89, False),  # the model is not sure
])  # fmt: skip
def test_conventions_meet_where_the_gold_contradicts_sure_scores(n, wrong, score, found):
    pairs, gold = sure_tokens(n, wrong, score)
    conventions = find_conventions(pairs, gold, np.zeros(n, dtype=np.intp))
    assert [(one.file, one.predicted_tag, one.gold, len(one.rows), one.n_confident) for one in conventions] == (
        [(0, 0, 1, wrong, n)] if found else []
    )


def test_each_file_has_its_own_conventions_and_the_most_tokens_come_first():
    one, gold_of_one = sure_tokens(100, 12)
    other, gold_of_other = sure_tokens(100, 20)
    both = Pairs(np.arange(200), one.tags.repeat(2), np.full(200, 0.99), np.concatenate([one.hits, other.hits]), 200)
    found = find_conventions(both, np.concatenate([gold_of_one, gold_of_other]), np.repeat([0, 1], 100))
    assert [(each.file, len(each.rows)) for each in found] == [(1, 20), (0, 12)]
    assert found[0].rows.tolist() == list(range(180, 200))
    assert found[0].to_dict(["NN", "NNP"]) == {
        "file": 1, "said": "NN", "gold": "NNP", "tokens": 20, "of": 100, "in_gold": 168,
    }  # fmt: skip
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
                    found[one_way] = [
                        (one.predicted_tag, one.gold) for one in find_conventions(pairs, gold, np.zeros(n, dtype=np.intp))
                    ]
                assert found == {True: [(5, 1)], False: []}, (n, share, seed)


def test_half_of_those_that_the_gold_contradicts_have_to_go_one_way():
    pairs, gold = sure_tokens(100, 40)
    # Of -1 the model has no column, and -2 is no gold, which contradicts nothing.
    for others, sizes in (((1, 2), [20, 20]), ((1, 2, 3), []), ((-1, -1, 1), []), ((-2, -2, 1), [13])):
        changed = gold.copy()
        changed[gold == 1] = np.resize(others, 40)
        assert [len(one.rows) for one in find_conventions(pairs, changed, np.zeros(100, dtype=np.intp))] == sizes, others
