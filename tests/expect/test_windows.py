"""The counts of a window: by hand, merged in any order, and what expectations they give."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.expect.drift import DriftProfile, Labelled
from spacy_calib.expect.estimates import expected_accuracy, token_sums
from spacy_calib.expect.windows import ONE, Batch, Layout
from spacy_calib.schema import Misfit
from spacy_calib.types import Groups
from tests.expect.streams import made_batch


def test_the_counts_by_hand():
    fit = Labelled(np.repeat(np.arange(4), 2), 4, ["A", "O"] * 4, np.tile([0.2, 0.8], 4), np.full(8, 0.5))
    spans = Labelled(np.arange(4), 4, None, np.array([0.3, 0.3, 0.6, 0.6]), np.full(4, 0.5))
    layout = Layout.of(DriftProfile.of(fit, spans), ("A", "O", "new"), Groups(("1",), np.array([0, 0])))
    # Five tokens of the first document and none of the second; tag "new" has no group, tag -1 no name.
    batch = Batch(
        np.zeros(5, dtype=int), 2, np.array([0, 1, 1, 2, -1]), np.array([0.1, 0.9, 0.9, 0.9, 0.9]), np.array([0.5, 1, 0.75, 0.5, 0.25]),
        np.array([0.9]), np.array([0.25]),
    )  # fmt: skip
    counts = layout.count(batch)
    assert (counts.documents, counts.scored, counts.tokens, counts.squares) == (2, 1, 5, 25)
    assert counts.stretches == 2  # a fit document has two tokens
    assert counts.expected == 3 * ONE
    assert counts.independent == round((0.25 + 0 + 0.1875 + 0.25 + 0.1875) * ONE)
    assert counts.outside == 0.25 * ONE
    assert counts.raw.sum(axis=1).tolist() == [3, 2]
    assert counts.raw[:, 0].tolist() == [1, 0]  # the score below all edges
    assert np.flatnonzero(counts.calibrated[0]).tolist() == [10, 15, 19]
    assert dict(zip((*layout.profile.labels, "other"), counts.labels.tolist(), strict=True)) == {"A": 1, "O": 2, "other": 2}
    assert (counts.spans, counts.spans_expected, counts.spans_independent) == (1, ONE / 4, round(0.1875 * ONE))
    assert counts.span_raw[-1] == counts.span_calibrated[5] == 1


@given(order=st.permutations(range(6)), cut=st.integers(1, 5))
def test_windows_merged_in_any_order_and_grouping_are_the_same(layout, order, cut):
    parts = [layout.count(made_batch(seed, 7)) for seed in range(6)]
    whole = sum(parts[1:], parts[0]).to_dict()
    first, second = ([parts[i] for i in half] for half in (order[:cut], order[cut:]))
    assert (sum(second[1:], second[0]) + sum(first[1:], first[0])).to_dict() == whole


def test_batches_of_one_window_add_up_to_it(layout):
    batch = made_batch(3, 40)
    first = batch.documents < 17
    halves = [
        Batch(
            batch.documents[own] - start, n, batch.columns[own], batch.raw[own], batch.calibrated[own], np.zeros(0), np.zeros(0)
        )
        for own, start, n in ((first, 0, 17), (~first, 17, 23))
    ]
    assert (layout.count(halves[0]) + layout.count(halves[1])).to_dict() == layout.count(batch).to_dict()


def test_the_expected_accuracy_is_that_of_the_documents_themselves(layout, record):
    batch = made_batch(5, 30)
    alone = expected_accuracy(record.tokens, token_sums(batch.calibrated, batch.documents, 30))
    assert expected_accuracy(record.tokens, layout.count(batch).sums) == pytest.approx(alone, abs=1e-6)


def test_counts_come_back_from_json(layout):
    counts = layout.count(made_batch(3, 10))
    data = json.loads(json.dumps(counts.to_dict()))
    assert layout.read(data, "counts").to_dict() == counts.to_dict()
    assert (layout.read(data, "counts") + layout.nothing()).to_dict() == counts.to_dict()


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"tokens": -1}, "counts.tokens"),
        ({"labels": [1]}, "counts.labels"),
        ({"raw": [[0.5]]}, "counts.raw"),
        ({"expected": "1"}, "counts.expected"),
    ],
)
def test_counts_that_are_none_are_refused(layout, change, wanted):
    with pytest.raises(Misfit, match=wanted):
        layout.read({**layout.nothing().to_dict(), **change}, "counts")
