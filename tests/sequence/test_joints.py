from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.analysis.tag_pairs import joint_pairs
from spacy_calib.sequence.inference.sums import sum_chains
from spacy_calib.sequence.joints import joint_marginals, places_inside
from tests.sequence.inference.chains import probabilities, small_chains


@settings(max_examples=40)
@given(made=small_chains(), seed=st.integers(0, 1000))
def test_joints_are_those_of_all_labellings(made, seed):
    width = made.potentials.n_labels
    lengths = np.array([len(scores) for scores in made.scores])
    wanted = np.zeros((lengths.sum(), width * width))
    for start, scores in zip(np.cumsum(lengths) - lengths, made.scores, strict=True):
        for labels, chance in probabilities(scores, made.potentials).items():
            for i in range(len(labels) - 1):
                wanted[start + i, labels[i] * width + labels[i + 1]] += chance
    found = joint_marginals(sum_chains(made.chains), threshold=1e-9)
    dense = np.zeros((max(0, lengths.sum() - 1), width * width))
    dense[found.rows, found.tags] = found.scores
    assert dense == pytest.approx(wanted[: len(dense)], abs=1e-8)
    assert (np.diff(found.rows) >= 0).all()
    gold = np.random.default_rng(seed).integers(0, width, lengths.sum())
    pairs = joint_pairs(found, gold, width, places_inside(lengths))
    assert pairs.n_units == sum(lengths - 1)
    assert pairs.hits.sum() <= pairs.n_units


def test_places_between_chains_do_not_count():
    assert places_inside(np.array([2, 1, 3])).tolist() == [True, False, False, True, True]
