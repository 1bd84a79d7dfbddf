"""A fit beside the pipe that was there: units by their keys, and what a comparison leaves as it was."""

from copy import deepcopy

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.calibration.replacement import ADAPTED, FIT, PRESENT
from spacy_calib.pairs.pairing import JudgedPairs
from spacy_calib.pipe.adapting import ScoredUnits, compare_with_present
from spacy_calib.pipe.component import Calibrator
from spacy_calib.types import Pairs
from tests.conftest import examples_for, run_upstream


def test_top_labels_are_told_apart_by_row_and_label():
    # Two tokens with two labels each; the first column of the pipe is called what the fit has as its third.
    pairs = Pairs(
        np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0.7, 0.3, 0.4, 0.6]), np.array([1, 0, 0, 1]) == 1, 2
    )
    judged = JudgedPairs(pairs, np.array([0.8, 0.2, 0.5, 0.55]), np.array([4, 4, 5, 5]))
    top = ScoredUnits.from_labels(judged, np.array([2, -1]), overlapping=False)
    assert top.keys.tolist() == [[0, 2], [1, -1]]  # -1: a label that the fit does not know
    assert (top.scores.tolist(), top.hits.tolist(), top.documents.tolist()) == ([0.8, 0.55], [True, True], [4, 5])
    every = ScoredUnits.from_labels(judged, np.array([2, -1]), overlapping=True)
    assert every.keys.tolist() == [[0, 2], [0, -1], [1, 2], [1, -1]]
    assert ScoredUnits.from_labels(None, np.array([2, -1]), overlapping=False) is None


def copied(nlp):
    """The pipe of a pipeline, and one that learned the same and stands in none."""
    calib = nlp.get_pipe("calib")
    settings = {name: getattr(calib, name) for name in ("attr", "source", "grouping", "recalibrator", "scorer")}
    return calib, Calibrator(nlp, **settings).from_bytes(calib.to_bytes())


def test_the_pipeline_of_the_fit_stays_as_it_is(fitted):
    calib, present = copied(fitted)
    examples = run_upstream(fitted, examples_for(fitted, 60, 31))
    calib.fit(examples)
    meta, before = deepcopy(fitted.meta), calib.to_bytes()
    comparison = compare_with_present(calib, present, examples)
    assert comparison.winner in (PRESENT, ADAPTED, FIT)
    assert comparison.replacement.units == sum(len(example.predicted) for example in examples)
    assert (fitted.meta, calib.to_bytes()) == (meta, before)
    assert len(present.fit_info.adaptations) == 1
    assert comparison.performance["calib_nll"] != meta["performance"]["calib_nll"]


def test_texts_of_the_older_fit_are_no_fair_comparison(fitted):
    calib = fitted.get_pipe("calib")
    examples = run_upstream(fitted, examples_for(fitted, 60, 31))
    calib.fit(examples)
    comparison = compare_with_present(calib, calib, examples)
    assert (comparison.winner, comparison.replacement) == (FIT, None)
    assert "100 % of the words" in comparison.why


def test_with_a_single_document_the_fit_has_shown_nothing(fitted):
    calib, present = copied(fitted)
    gold = Doc.from_docs([example.reference for example in examples_for(fitted, 60, 31)])
    (example,) = run_upstream(fitted, [Example(Doc(fitted.vocab, words=[token.text for token in gold]), gold)])
    calib.fit([example])
    comparison = compare_with_present(calib, present, [example])
    assert (comparison.winner, comparison.replacement) == (PRESENT, None)
    assert "one document" in comparison.why
    assert present.fit_info.adaptations == []
