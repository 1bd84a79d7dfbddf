"""Inputs of the log-linear model of pairs, by hand."""

import numpy as np
import pytest

from spacy_calib.context.blocks import blocks_for, pair_inputs
from spacy_calib.context.features import TokenScores
from spacy_calib.context.words import Words


def test_codes_of_pairs_by_hand():
    """Two tags of the fit, 0 and 1, and code 2 for all others and for none; the third token has a tag that the fit did not know."""
    hashes = np.arange(1, 4, dtype=np.uint64)
    words = Words(np.array([0, 3]), hashes, hashes, np.array([1, 0, 3]), np.ones(3, dtype=bool))
    tokens = TokenScores(np.arange(3), np.array([0, 1, 7]), np.array([0.6, 0.7, 0.8]), words)
    pairs = np.arange(3), np.array([0, 1, 7]), np.zeros(3), np.ones(3, dtype=bool)
    forms, endings = np.array([0, -1, 1]), np.array([2, 1, -1])
    inputs = pair_inputs(blocks_for(2, 2, 3, 0), tokens, (forms, endings), np.zeros((0, 3)), pairs, 2)
    # Twice the tag, and 1 for the top tag of its token.
    assert inputs.tag_codes.tolist() == [1, 3, 5]
    assert dict(zip(("rival", "ending", "form", "before", "behind", "shape"), inputs.codes.tolist(), strict=True)) == {
        "rival": [1 * 3 + 2, 3 * 3 + 2, 5 * 3 + 2],  # none has a second tag
        "ending": [2 * 3 + 0, 1 * 3 + 1, -1 * 3 + 2],
        "form": [0 * 3 + 0, -1 * 3 + 1, 1 * 3 + 2],
        "before": [0 * 3 + 2, 1 * 3 + 0, 2 * 3 + 1],  # no token, tag 0, tag 1
        "behind": [0 * 3 + 1, 1 * 3 + 2, 2 * 3 + 2],  # tag 1, tag 7, no token
        "shape": [4 * 1 + 1, 4 * 3 + 0, 4 * 5 + 3],
    }


def test_numbers_of_pairs_by_hand():
    """Two tags of one token, whose rivals are each other, with log-odds of 2 and -2; knots in units of 4."""
    p, words = (
        1 / (1 + np.exp(-2.0)),
        Words(np.array([0, 1]), *(np.ones(1, dtype=np.uint64),) * 2, np.ones(1), np.ones(1, dtype=bool)),
    )
    tokens = TokenScores(np.zeros(2, dtype=int), np.array([0, 1]), np.array([p, 1 - p]), words)
    pairs = tokens.rows, tokens.tags, np.array([2.0, -2.0]), np.array([True, False])
    inputs = pair_inputs(blocks_for(2, 0, 0, 0), tokens, (np.zeros(1), np.zeros(1)), np.full((1, 1), 9.0), pairs, 2)
    top, other = inputs.numbers.T.tolist()
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    assert top == pytest.approx([1, 0.5, -0.5, entropy, 1.25, 0.875, 0.5, 0.125, 0, 0, 0.25, 0, 0])
    assert other == pytest.approx([1, -0.5, 0.5, entropy, 0.25, 0, 0, 0, 0, 0, 1.25, 0.5, 0])
    assert inputs.codes.tolist() == [[1 * 3 + 1, 2 * 3 + 0]]
