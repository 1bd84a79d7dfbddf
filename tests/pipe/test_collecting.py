"""Statistics of shards of examples are those of one pass over all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.doc.reading import DOC_KEY
from spacy_calib.errors import CalibError
from spacy_calib.pairs.keyed import Key
from spacy_calib.pipe.collecting import collect_statistics
from spacy_calib.statistics.collected import FitStatistics
from tests.conftest import examples_for, run_upstream

KEY = Key(bytes(range(32)))


@pytest.fixture
def calib(nlp):
    return nlp.add_pipe("calib", after="tagger")


@pytest.fixture
def read(nlp, calib):
    with nlp.select_pipes(disable=["calib"]):
        return run_upstream(nlp, examples_for(nlp, 60, seed=9))


@pytest.mark.parametrize("n", [2, 7])
def test_shards_add_up_to_one_pass(calib, read, n):
    whole = collect_statistics(calib, read, "all", key=KEY)
    parts = [collect_statistics(calib, read[i::n], f"{i + 1}/{n}", key=KEY, at_once=40) for i in range(n)]
    merged = FitStatistics.merged(parts[::-1])
    merged.check_complete()
    assert replace(merged, shards=whole.shards).to_bytes() == whole.to_bytes()
    assert whole.totals.n_with_gold == sum(len(eg.reference) for eg in read)
    assert whole.sampled_all
    assert not collect_statistics(calib, read, "all", sample=100).sampled_all


def test_documents_are_known_by_their_names_and_else_by_their_texts(calib, read):
    texts = {eg.reference.text for eg in read}
    assert collect_statistics(calib, read, "a", key=KEY).n_documents == len(texts)
    for number, example in enumerate(read):
        example.reference.user_data[DOC_KEY] = f"document {number // 4}"
    named = collect_statistics(calib, read, "a", key=KEY)
    assert named.n_documents == 15
    assert np.unique(named.sample.readings.documents).tolist() == list(range(15))
    for number, example in enumerate(read):
        example.reference.user_data[DOC_KEY] = number // 4
    assert collect_statistics(calib, read, "a", key=KEY).identity == named.identity


def test_without_a_key_documents_are_known_by_their_shard_and_number(calib, read):
    one, again, other = (collect_statistics(calib, read, name) for name in ("a", "a", "b"))
    assert one.to_bytes() == again.to_bytes()
    assert one.n_documents == len(read)
    assert not np.isin(one.documents, other.documents).any()
    with pytest.raises(CalibError, match="C426.*'b' is there twice, also as 'a'"):
        FitStatistics.merged([one, other])
    half = collect_statistics(calib, read[:30], "c").merge(collect_statistics(calib, read[30:], "d"))
    assert half.n_documents == len(read)
    assert half.pairs.total == one.pairs.total


def test_settings_that_are_left_to_the_fit_are_refused(calib, read):
    calib.source.unsettled = True
    with pytest.raises(CalibError, match="C431.*A setting of the source of 'tagger' is left to the fit"):
        collect_statistics(calib, read, "a")
