from __future__ import annotations

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from spacy.tokens import Doc

from spacy_calib.errors import CalibError
from spacy_calib.plugins.sequence.features import FeatureIndex, SparseFeatures, Template, cut, feature_hashes, read_templates
from spacy_calib.plugins.sequence.inference.best import k_best, k_best_one, viterbi, viterbi_one
from spacy_calib.plugins.sequence.inference.chains import Chains, Potentials
from spacy_calib.plugins.sequence.online import (
    RULES,
    Arow,
    ConfidenceWeighting,
    Difference,
    OnlineLearner,
    PassiveAggressive,
    Perceptron,
    make_rule,
)


def learn(learner, data, rounds):
    """Pass over the data in several random orders; how many sequences each round labelled wrongly."""
    rng = np.random.default_rng(0)
    return [sum(learner.update(*data[i]) for i in rng.permutation(len(data)).tolist()) for _ in range(rounds)]


def dense(learner, tokens, labels):
    """All features of a labelling, as a vector of the size of mu."""
    vector = np.zeros(len(learner.mu))
    for i, label in enumerate(labels):
        for row in tokens.rows[tokens.starts[i] : tokens.starts[i + 1]]:
            vector[row * learner.n_labels + label] += 1
        if i:
            vector[(learner.n_features + labels[i - 1]) * learner.n_labels + label] += 1
    return vector


def made_up(seed, n=6, n_features=8, n_labels=3):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, n)
    tokens = SparseFeatures(rng.integers(0, n_features, counts.sum()), np.concatenate([[0], np.cumsum(counts)]))
    return rng, tokens, rng.integers(0, n_labels, n)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_scores_and_differences_are_those_of_the_features(seed):
    rng, tokens, gold = made_up(seed)
    learner = OnlineLearner(8, 3, make_rule("perceptron"))
    learner.mu[:] = rng.normal(size=len(learner.mu))
    scores, transitions = learner.scores(learner.mu, tokens), learner.transitions(learner.mu)
    total = scores[np.arange(6), gold].sum() + transitions[gold[:-1], gold[1:]].sum()
    assert total == pytest.approx(learner.mu @ dense(learner, tokens, gold))
    rival = viterbi_one(scores, transitions)
    assert (
        rival.tolist() == viterbi(Chains.from_scores([scores], Potentials(transitions, np.zeros(3), np.zeros(3))))[0].tolist()
    )
    if (rival != gold).any():
        found = learner.difference(tokens, gold, rival)
        vector = np.zeros(len(learner.mu))
        vector[found.parameters] = found.amounts
        assert vector == pytest.approx(dense(learner, tokens, gold) - dense(learner, tokens, rival))


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_one_sequence_has_the_same_best_labellings_as_among_many(seed, k):
    rng = np.random.default_rng(seed)
    scores, transitions = rng.normal(size=(int(rng.integers(1, 5)), 3)), rng.normal(size=(3, 3))
    many = k_best(Chains.from_scores([scores], Potentials(transitions, np.zeros(3), np.zeros(3))), k)[0]
    assert k_best_one(scores, transitions, k).tolist() == many.labels.tolist()


@pytest.mark.parametrize("name", RULES)
def test_every_rule_learns_and_averages(name):
    data = [made_up(seed, n_features=400)[1:] for seed in range(15)]
    learner = OnlineLearner(400, 3, make_rule(name))
    wrong = learn(learner, data, 15)
    assert wrong[-1] < wrong[0]
    assert (learner.sigma > 0).all()


def test_the_mean_is_that_of_mu_after_each_sequence():
    learner, seen = OnlineLearner(8, 3, make_rule("perceptron")), []
    for seed in range(10):
        learner.update(*made_up(seed)[1:])
        seen.append(learner.mu.copy())
    assert learner.mean == pytest.approx(np.mean(seen, axis=0))


def test_features_see_their_window_and_nothing_beyond():
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["a", "b", "a", "b", "c"])
    templates = [Template.parse("ORTH[0]"), Template.parse("ORTH[-1] ORTH[0]")]
    whole = feature_hashes(doc, [(0, 5)], templates)
    assert whole[0, 0] == whole[2, 0] != whole[1, 0]
    assert whole[1, 1] == whole[3, 1]
    assert whole[0, 1] != whole[2, 1]
    apart = feature_hashes(doc, [(0, 2), (2, 5)], templates)
    assert apart[0, 1] == apart[2, 1]  # both begin a sequence


def test_unknown_features_are_left_out():
    nlp = spacy.blank("en")
    templates = read_templates(["ORTH[0]", "LOWER[0]"])
    index = FeatureIndex.from_hashes([feature_hashes(Doc(nlp.vocab, words=["a", "b"]), [(0, 2)], templates)])
    assert len(index) == 5
    found = index.rows(feature_hashes(Doc(nlp.vocab, words=["z", "b"]), [(0, 2)], templates))
    assert np.diff(found.starts).tolist() == [1, 3]
    assert cut(found, 1, 2).rows.tolist() == found.rows[1:].tolist()


@pytest.mark.parametrize(("name", "kinds"), [("chunking", ("ORTH", "TAG")), ("spelling", ("LOWER", "SHAPE"))])
def test_sets_of_templates_look_at_a_window_of_five(name, kinds):
    """Words, and tags or shapes; Sha and Pereira's (2003) neighbours joined too: pairs of words with the token, pairs and triples of all tags."""
    found = [template.parts for template in read_templates(name)]
    for kind in kinds:
        assert [((kind, i),) for i in range(-2, 3)] == [parts for parts in found if len(parts) == 1 and parts[0][0] == kind][:5]
    joined = {tuple(distance for _, distance in parts) for parts in found if len(parts) > 1 and parts[0][0] == kinds[0]}
    assert joined == {(-1, 0), (0, 1)}
    if name == "chunking":
        tags = [tuple(distance for _, distance in parts) for parts in found if len(parts) > 1 and parts[0][0] == "TAG"]
        assert tags == [(-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)]


@pytest.mark.parametrize("given", ["words", ["ORTH"], ["NOTHING[0]"], [""]])
def test_bad_templates(given):
    with pytest.raises(CalibError, match="template"):
        read_templates(given)


def test_a_rule_by_distance_skips_only_what_would_teach_nothing():
    """Passive-aggressive: the same weights whether or not sequences that beat every rival are passed over, as some are."""
    asked = {True: 0, False: 0}

    class Counting(type(make_rule("pa"))):
        def steps(self, mu, sigma, rivals):
            asked[self.by_distance] += 1
            return super().steps(mu, sigma, rivals)

    slow = type("Slow", (Counting,), {"by_distance": False})
    truth, one, other = (OnlineLearner(20, 3, rule) for rule in (make_rule("pa"), Counting(), slow()))
    truth.mu[:] = np.random.default_rng(0).normal(size=len(truth.mu))
    tokens = [made_up(seed, n_features=20)[1] for seed in range(12)]
    data = [(own, viterbi_one(truth.scores(truth.mu, own), truth.transitions(truth.mu))) for own in tokens]
    assert learn(one, data, 20) == learn(other, data, 20)
    assert asked[False] == 240
    assert 120 < asked[True] < 230
    assert one.mean == pytest.approx(other.mean)
    assert one.n_seen == other.n_seen == 240


ONE = Difference(np.array([0, 2]), np.array([1.0, -1.0]), 1)


def applied(rule, mu, sigma, rivals):
    mu, sigma = mu.copy(), sigma.copy()
    for step in rule.steps(mu, sigma, rivals):
        mu[step.parameters] += step.mean
        if step.variance is not None:
            sigma[step.parameters] -= step.variance
    return mu, sigma


@pytest.mark.parametrize(
    ("rule", "mu", "sigma"),
    [
        (Perceptron(), [1, 0, -1], [1, 1, 1]),
        # v = 1 + 1 = 2, m = 0, one label differs: alpha = 1 / (1 + 2), beta = 1; sigma loses 1 * 1 / (1 + 2).
        (Arow(r=1), [1 / 3, 0, -1 / 3], [2 / 3, 1, 2 / 3]),
        # The rival loses 1 - 0 on features of squared length 2: each moves by half.
        (PassiveAggressive(k=1), [0.5, 0, -0.5], [1, 1, 1]),
    ],
)
def test_a_step_by_hand(rule, mu, sigma):
    found = applied(rule, np.zeros(3), np.ones(3), [ONE])
    assert found[0] == pytest.approx(mu)
    assert found[1] == pytest.approx(sigma)


@given(st.floats(0.1, 3), st.floats(-3, 3), st.floats(0.1, 5))
def test_cw_reaches_its_confidence_just_so(phi, m, v):
    """After the update P(w . Delta > 0) = Phi(phi) under the full covariance: m' = phi sqrt(v')."""
    alpha, beta = ConfidenceWeighting(phi=phi).rates(v, m, 1)
    after_mean, after_variance = m + alpha * v, v - beta * v**2 / (1 + beta * v)
    if alpha == 0:
        assert m >= phi * np.sqrt(v) - 1e-9
    else:
        assert after_mean == pytest.approx(phi * np.sqrt(after_variance), rel=1e-6)
        assert norm.cdf(after_mean / np.sqrt(after_variance)) == pytest.approx(norm.cdf(phi), abs=1e-6)


@given(st.integers(0, 10_000))
def test_pa_makes_every_rival_lose_by_its_distance_where_it_may(seed):
    rng = np.random.default_rng(seed)
    rivals = [
        Difference(at, rng.choice([-1.0, 1.0, 2.0], len(at)), int(rng.integers(1, 4)))
        for at in (np.sort(rng.choice(12, 5, replace=False)) for _ in range(3))
    ]
    before = rng.normal(size=12)
    mu, _ = applied(PassiveAggressive(k=3, most=1e9, rounds=2000), before, np.ones(12), rivals)
    margins = [mu[one.parameters] @ one.amounts - one.distance for one in rivals]
    assert min(margins) > -1e-3
    # The least such change: no step is longer than the one that repairs each alone, one after the other.
    if all(before[one.parameters] @ one.amounts >= one.distance for one in rivals):
        assert (mu == before).all()


@pytest.mark.parametrize(("name", "settings"), [("mira", {}), ("cw", {"phi": 0}), ("arow", {"r": -1})])
def test_faults(name, settings):
    with pytest.raises(CalibError):
        make_rule(name, **settings)
