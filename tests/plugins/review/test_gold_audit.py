"""Gold that is probably wrong, beside Docs that the source cannot read."""

import warnings

import numpy as np
import pytest

from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.plugins.review.gold_audit import audit_gold, score_out_of_fold
from tests.made import GIVEN_LABELS, doc_scored, reads_given_scores, with_gold_tags


def test_a_doc_without_scores_moves_no_other_one():
    rng = np.random.default_rng(0)
    examples = []
    for _ in range(40):
        scores = rng.dirichlet(np.full(4, 0.4), size=5)
        examples.append(with_gold_tags(doc_scored(scores), [rng.choice(4, p=row) for row in scores]))
    scores = np.tile([0.97, 0.01, 0.01, 0.01], (5, 1))
    examples[21] = with_gold_tags(doc_scored(scores), [0, 0, 3, 0, 0])
    del examples[20].predicted.user_data["probs"]
    calib = reads_given_scores()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[CW")
        score_out_of_fold(calib, examples)
    corpus = corpus_of(examples, calib.attr, calib.lookup.labels())
    unit, found = audit_gold(calib, examples, corpus)
    assert (unit, found.n_labels) == ("token", 39 * 5)
    (doubt,) = [one for one in found.doubts if one.first // 5 == 21]
    assert (doubt.first % 5, doubt.gold, doubt.rival, doubt.raw) == (2, GIVEN_LABELS[3], GIVEN_LABELS[0], pytest.approx(0.01))
