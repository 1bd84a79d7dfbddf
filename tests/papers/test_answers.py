"""Features of Table 1, by hand."""

import numpy as np
import pytest
from papers.chains.chains import Chains, Potentials
from papers.chains.sums import sum_chains
from papers.forecasts.answers import Rows, best_answers, size_curve
from papers.forecasts.forecasters import DecisionTree

from tests.papers.chains import enumerate_labellings


def test_gaps_marginals_and_pseudomargins_equal_those_of_all_labellings():
    rng = np.random.default_rng(0)
    potentials = Potentials(rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3))
    scores = [rng.normal(size=(n, 3)) for n in (3, 1, 4)]
    found = best_answers(sum_chains(Chains.from_scores(scores, potentials)), np.concatenate(scores))
    offset = 0
    for number, own in enumerate(scores):
        n, totals = len(own), enumerate_labellings(own, potentials)
        every, values = list(totals), np.array(list(totals.values()))
        order = np.argsort(-values)
        answer = every[order[0]]
        assert found.each()[number] == answer
        assert np.isclose(found.gaps[number], values[order[0]] - values[order[1]])
        chance = np.exp(values - values.max())
        chance /= chance.sum()
        assert np.isclose(np.exp(found.log_chances[number]), chance.max())
        for place in range(n):
            marginal = [sum(c for c, one in zip(chance, every, strict=True) if one[place] == label) for label in range(3)]
            rest = [np.exp(totals[(*answer[:place], label, *answer[place + 1 :])]) for label in range(3)]
            assert np.allclose(found.marginals[offset + place], marginal)
            assert np.allclose(found.conditionals[offset + place], np.array(rest) / sum(rest))
        offset += n


def steps(n: int, seed: int = 0) -> Rows:
    """P(yes) is .9 above 0 and .2 below; two rows a unit."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return Rows(x[:, None], rng.random(n) < np.where(x > 0, 0.9, 0.2), np.arange(n) // 2)


def test_calibration_error_falls_with_the_size_and_sharpness_stays():
    fit, test = steps(1200), steps(3000, seed=1)
    points = size_curve(DecisionTree(), fit, test, (20, 500), 5, np.random.default_rng(0), sizes=(5, 20, 80))
    small, large = ([one for one in points if one.units == n] for n in (20, 500))
    assert len(small) == len(large) == 5
    assert np.mean([one.parts.calibration for one in large]) < 0.3 * np.mean([one.parts.calibration for one in small])
    assert np.mean([one.parts.sharpness for one in large]) == pytest.approx(0.35**2, abs=0.02)
    assert {one.size for one in points} <= {5, 20, 80}
