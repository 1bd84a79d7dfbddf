"""The search for slices that nobody named."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.plugins.report.properties import Property
from spacy_calib.plugins.report.slice_search import MAX_SLICES, find_slices


def made_up(seed=0, n_documents=120, off=0.0):
    """(scores, hits, documents, properties): tokens of the second kind in long words are too sure by `off`."""
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(n_documents), 60)
    kinds, long = rng.integers(0, 3, len(documents)), rng.integers(0, 2, len(documents))
    scores = rng.uniform(0.6, 0.99, len(documents))
    true = scores - off * ((kinds == 1) & (long == 1))
    properties = [Property(kinds, ["of kind 0", "of kind 1", "of kind 2"]), Property(long, ["short", "long"])]
    return scores, rng.random(len(documents)) < true, documents, properties


def test_what_is_off_by_two_properties_is_found_with_its_units_of_one_half():
    scores, hits, documents, properties = made_up(off=0.2)
    (found,), confirming = find_slices(scores, hits, documents, properties)
    assert found.name == "of kind 1, long"
    inside = (properties[0].codes == 1) & (properties[1].codes == 1)
    assert found.units.tolist() == np.intersect1d(np.flatnonzero(inside), confirming).tolist()
    assert len(np.unique(documents[confirming])) == 60
    assert len(np.setdiff1d(documents, documents[confirming])) == 60


def test_a_part_that_another_one_explains_is_not_named_beside_it():
    scores, hits, documents, properties = made_up()
    wrong = hits & ~((properties[0].codes == 2) & (np.random.default_rng(1).random(len(hits)) < 0.3))
    found, _ = find_slices(scores, wrong, documents, properties)
    assert [one.name for one in found] == ["of kind 2"]


def test_scores_that_are_true_have_none():
    assert sum(bool(find_slices(*made_up(seed), seed)[0]) for seed in range(40)) <= 3


def test_no_more_than_ten_are_searched():
    rng = np.random.default_rng(0)
    documents, kinds = np.repeat(np.arange(60), 200), rng.integers(0, 30, 12_000)
    scores = np.full(12_000, 0.8)
    off = np.where(np.arange(30) % 2, 0.3, 0.95)[kinds]
    found, _ = find_slices(scores, rng.random(12_000) < off, documents, [Property(kinds, [f"of kind {i}" for i in range(30)])])
    assert 1 < len(found) <= MAX_SLICES


def test_a_half_needs_documents():
    scores, hits, documents, properties = made_up(n_documents=19)
    with pytest.raises(CalibError, match="there are 19 documents with gold and scores; give at least 20"):
        find_slices(scores, hits, documents, properties)
