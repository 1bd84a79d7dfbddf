import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.chains import sums
from papers.chains.best import best_through, k_best, viterbi
from papers.chains.chains import Chains, Potentials
from papers.chains.sums import sum_chains
from scipy.special import logsumexp

from tests.papers.chains import enumerate_labellings, probabilities, small_chains


def marginals_of(chances, length, n_labels):
    table = np.zeros((length, n_labels))
    for labels, chance in chances.items():
        table[np.arange(length), labels] += chance
    return table


WAYS = ["_sum_scaled", "_sum_logarithms"]


def sums_by(way, chains):
    with np.errstate(divide="ignore"):
        return getattr(sums, way)(chains)


@pytest.mark.parametrize(
    ("way", "spread"), [*((way, 3.0) for way in WAYS), *(("sum_chains", spread) for spread in (30.0, 100.0, 500.0))]
)
@settings(max_examples=60)
@given(data=st.data())
def test_sums_are_those_of_all_labellings(way, spread, data):
    made = data.draw(small_chains(spread))
    found = sums_by(way, made.chains)
    expected = np.zeros_like(made.potentials.transitions)
    for i, scores in enumerate(made.scores):
        every, chances = enumerate_labellings(scores, made.potentials), probabilities(scores, made.potentials)
        assert found.log_z[i] == pytest.approx(logsumexp(list(every.values())), rel=1e-12, abs=1e-9)
        table = marginals_of(chances, len(scores), made.potentials.n_labels)
        assert found.by_sequence()[i] == pytest.approx(table, abs=1e-9)
        for labels, chance in chances.items():
            np.add.at(expected, (labels[:-1], labels[1:]), chance)
    assert found.expected_transitions == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=30)
@given(made=small_chains())
def test_pairs_of_neighbours_are_those_of_all_labellings(way, made):
    found, start = sums_by(way, made.chains), 0
    for scores in made.scores:
        packed = found.chains.packing.packed_index[start : start + len(scores)]
        wanted = np.zeros((len(scores) - 1, *made.potentials.transitions.shape))
        for labels, chance in probabilities(scores, made.potentials).items():
            wanted[np.arange(len(scores) - 1), labels[:-1], labels[1:]] += chance
        assert found.joint(packed[:-1], packed[1:]) == pytest.approx(wanted, abs=1e-9)
        start += len(scores)


@settings(max_examples=40)
@given(made=small_chains(), seed=st.integers(0, 1000))
def test_what_no_labelling_may_pass_is_named(made, seed):
    rng = np.random.default_rng(seed)
    for scores in made.scores:
        scores[rng.random(scores.shape) < 0.5] = -np.inf
    best = [max(enumerate_labellings(scores, made.potentials).values()) for scores in made.scores]
    for ask in (sum_chains, viterbi, lambda chains: k_best(chains, 2)):
        if np.isfinite(best).all():
            ask(made.chains)
        else:
            with pytest.raises(ValueError, match="no allowed labelling"):
                ask(made.chains)


@pytest.mark.parametrize("scores", [
    # Each keeps its label: 0 costs 800 nats, 1 costs 750, all of them at once, which no float holds beside a 1.
    [[0, -750], [-400, 0], [-400, 0]],
    # 0 costs 1,200 nats, 1 costs 1,000, little by little.
    [[0, -100]] * 10 + [[-100, 0]] * 12,
])  # fmt: skip
def test_what_vanishes_beside_others_may_be_the_best_in_the_end(scores):
    keep = Potentials(np.array([[0.0, -np.inf], [-np.inf, 0.0]]), np.zeros(2), np.zeros(2))
    found = sum_chains(Chains.from_scores([np.array(scores, dtype=float)], keep))
    assert found.log_z == pytest.approx([max(np.sum(scores, axis=0))])
    assert found.marginals[:, 1] == pytest.approx(np.ones(len(scores)), abs=1e-12)


def test_scores_far_apart_are_summed_in_logarithms():
    # The likely labels of both positions may not follow one another, and the way through the others costs 2,000 nats.
    scores = [np.array([[0.0, -2000.0], [-2000.0, 0.0]])]
    potentials = Potentials(np.array([[0.0, -np.inf], [-np.inf, 0.0]]), np.zeros(2), np.zeros(2))
    found = sum_chains(Chains.from_scores(scores, potentials))
    assert found.by_sequence()[0] == pytest.approx(np.full((2, 2), 0.5))
    assert found.log_z[0] == pytest.approx(-2000 + np.log(2))
    assert found.joint(np.array([0]), np.array([1]))[0] == pytest.approx(np.eye(2) / 2)


def test_no_sequences():
    chains = Chains.from_scores([], Potentials(np.zeros((3, 3)), np.zeros(3), np.zeros(3)))
    found = sum_chains(chains)
    assert found.by_sequence() == viterbi(chains) == k_best(chains, 2) == []
    assert found.marginals.shape == best_through(chains).shape == (0, 3)
    assert len(found.log_z) == len(chains.scores_of([])) == 0
    assert (found.expected_transitions == 0).all()


@pytest.mark.parametrize("size", [1e4, 1e300])
@settings(max_examples=30)
@given(made=small_chains(forbid=True))
def test_huge_scores(size, made):
    """Those of one position decide, by far: all mass is on the best labelling."""
    scores = [one * size for one in made.scores]
    chains = Chains.from_scores(scores, made.potentials)
    found, best = sum_chains(chains), viterbi(chains)
    assert found.log_z == pytest.approx(chains.scores_of(best), rel=1e-12)
    for marginals, labels, own in zip(found.by_sequence(), best, made.scores, strict=True):
        apart = np.sort(list(enumerate_labellings(own * size, made.potentials).values()))
        if len(apart) == 1 or apart[-1] - apart[-2] > 100:
            assert marginals == pytest.approx(np.eye(made.potentials.n_labels)[labels], abs=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_neighbours_in_a_batch_change_nothing(way):
    rng = np.random.default_rng(0)
    potentials = Potentials(*(rng.normal(size=shape).astype("f") for shape in ((30, 30), 30, 30)))
    scores = [rng.normal(scale=4, size=(n, 30)).astype("f") for n in (2, 300, 1, 40, 1)]
    together = sums_by(way, Chains.from_scores(scores, potentials))
    best, several = viterbi(together.chains), k_best(together.chains, 3)
    for i, own in enumerate(scores):
        doubles = Potentials(*(part.astype("float64") for part in vars(potentials).values()))
        alone = sums_by(way, Chains.from_scores([own.astype("float64")], doubles))
        assert together.by_sequence()[i] == pytest.approx(alone.marginals, abs=1e-12)
        assert together.log_z[i] == pytest.approx(alone.log_z[0], rel=1e-13)
        assert best[i].tolist() == viterbi(alone.chains)[0].tolist()
        assert several[i].labels.tolist() == k_best(alone.chains, 3)[0].labels.tolist()
