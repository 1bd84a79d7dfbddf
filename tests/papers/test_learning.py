"""The fit: its slope, what it finds in made-up choices, and that cross-validation sees whole documents."""

import numpy as np
import pytest
from papers.coref.antecedents import Candidates
from papers.coref.learning import Choices, _StackedChoices, fit_weights, learn, right_options
from scipy.optimize import check_grad
from scipy.sparse import csr_matrix


def document(seed: int, n: int = 12) -> Choices:
    """Clusters by chance; the features tell NEW, links, and links within a cluster nine times of ten."""
    rng = np.random.default_rng(seed)
    clusters = rng.integers(4, size=n)
    candidates = Candidates(np.cumsum([0, *range(n)]), np.concatenate([np.arange(i) for i in range(n)]))
    same = clusters[candidates.earlier] == clusters[candidates.mentions]
    seen = same ^ (rng.random(len(same)) < 0.1)
    is_new = np.zeros(len(same) + n, dtype=bool)
    is_new[candidates.options[:-1]] = True
    features = np.zeros((len(is_new), 3))
    features[is_new, 0] = 1
    features[~is_new, 1], features[~is_new, 2] = seen, ~seen
    return Choices(csr_matrix(features), candidates, right_options(candidates, clusters))


def test_right_is_every_antecedent_of_the_cluster_or_new():
    candidates = Candidates(np.array([0, 0, 1, 3]), np.array([0, 0, 1]))
    # options: NEW of 0; NEW, 0 of 1; NEW, 0, 1 of 2
    assert right_options(candidates, np.array([5, 5, 5])).tolist() == [True, False, True, False, True, True]
    assert right_options(candidates, np.array([5, 6, 5])).tolist() == [True, True, False, False, True, False]


def test_the_slope_is_that_of_the_loss():
    stacked = _StackedChoices.from_documents([document(0), document(1)])
    weights = np.array([0.3, -0.2, 0.7])
    assert check_grad(lambda w: stacked.loss(w)[0], lambda w: stacked.loss(w)[1], weights) < 1e-4


def test_held_out_antecedents_are_by_weights_of_other_documents():
    documents = [document(seed) for seed in range(4)]
    found = learn(documents, [1.0, 1000.0], n_folds=4)
    assert found.penalty == 1.0
    assert found.losses[1.0] < found.losses[1000.0]
    left_out = [
        _StackedChoices.from_documents([one]).loss(fit_weights([d for d in documents if d is not one], 1.0))[0]
        for one in documents
    ]
    assert found.losses[1.0] == pytest.approx(sum(left_out) / sum(len(one.candidates) for one in documents))  # of a mention
    without = fit_weights(documents[1:], 1.0)
    assert found.held_out[0].probabilities == pytest.approx(documents[0].antecedents(without).probabilities)
    assert found.weights == pytest.approx(fit_weights(documents, 1.0))
