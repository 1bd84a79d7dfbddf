import numpy as np
import pytest

from spacy_calib.plugins.review.queue.orders import ORDERS, token_doubts
from tests.made import corpus_of

# One sentence; the raw score is the square of the calibrated one. The last token carries nothing.
WORDS = [("a", "X", {"X": 0.7, "Y": 0.2}), ("b", "X", {"X": 0.4, "Y": 0.6}), ("c", "X", {"X": 0.9}), ("d", "", {"X": 0.5})]
CORPUS = corpus_of([[WORDS]])


@pytest.mark.parametrize(
    ("by", "wanted"),
    [("calibrated", [0.3, 0.6, 0.1]), ("raw", [1 - 0.49, 1 - 0.16, 1 - 0.81]), ("margin", [0.2 - 0.7, 0.6 - 0.4, 0 - 0.9])],
)
def test_by_hand(by, wanted):
    found = token_doubts(CORPUS, by)
    np.testing.assert_allclose(found[:3], wanted, atol=1e-8)
    assert np.isnan(found[3])


@pytest.mark.parametrize("by", ORDERS)
def test_every_signal_is_about_the_counted_tokens(by):
    np.testing.assert_array_equal(~np.isnan(token_doubts(CORPUS, by)), CORPUS.is_counted)
