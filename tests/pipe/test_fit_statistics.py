"""A fit from statistics of shards is to the byte that of one shard, and that of the examples in the order of their digests."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from spacy_calib.calibration.registered import recalibrators, scalings
from spacy_calib.calibration.sets import ConformalSets
from spacy_calib.calibration.tag_offsets import TagOffsets
from spacy_calib.doc.reading import document_digest, document_of
from spacy_calib.errors import CalibError
from spacy_calib.pairs.keyed import Key, keyed
from spacy_calib.pipe.collecting import collect_statistics
from spacy_calib.pipe.registered import make_context, make_selector
from spacy_calib.statistics.collected import FitStatistics
from tests.conftest import examples_for, revive, run_upstream

KEY = Key(bytes(range(32)))


@cache
def prepared(trained):
    """(pipeline with a calib pipe, examples of distinct documents that it ran over)."""
    nlp = revive(trained())
    calib = nlp.add_pipe("calib", after="tagger")
    with nlp.select_pipes(disable=["calib"]):
        examples = run_upstream(nlp, examples_for(nlp, 150, seed=9))
    distinct = {eg.reference.text: eg for eg in examples}
    return calib, list(distinct.values())


@pytest.fixture(scope="module")
def made(trained_bytes):
    return prepared(lambda: trained_bytes)


def with_settings(calib, **settings):
    defaults = {
        "recalibrator": recalibrators()["isotonic"],
        "scaling": None,
        "selection": None,
        "pooling": None,
        "context": None,
    }
    defaults |= {"intervals": False, "sets": None}
    for name, value in {**defaults, **settings}.items():
        setattr(calib, name, value)
    return calib


def shards_of(calib, examples, n, **options):
    parts = [collect_statistics(calib, examples[i::n], f"{i + 1}/{n}", key=KEY, **options) for i in range(n)]
    return FitStatistics.merged(parts[::-1])


@pytest.fixture(scope="module")
def collected(made):
    """A function of how many shards, and how many pairs are kept: their sum, made once for the fits of all steps."""
    calib, examples = made

    def collect(n, sample):
        return shards_of(with_settings(calib), examples, n, sample=sample)

    return cache(collect)


def fitted_bytes(calib, statistics, **options):
    return calib.fit(statistics, key=KEY, **options).to_bytes(), calib.fit_info


STEPS = {
    **{name: {"recalibrator": method} for name, method in recalibrators().items()},
    **{f"after {name}": {"scaling": scaling} for name, scaling in scalings().items()},
    "offsets, intervals, sets": {"pooling": TagOffsets(), "intervals": True, "sets": ConformalSets(0.2)},
    "auto": {"selection": make_selector(), "context": make_context("no_worse"), "intervals": True},
}


@pytest.mark.parametrize("name", STEPS)
def test_the_steps_of_a_fit_change_nothing_of_what_is_collected(made, name):
    calib, examples = made
    with_step, without = [
        shards_of(with_settings(calib, **settings), examples[:20], 1).to_bytes() for settings in (STEPS[name], {})
    ]
    assert with_step == without


@pytest.mark.parametrize("sample", [500_000, 700])
def test_any_number_of_shards_holds_the_same(collected, sample):
    """But for their names: what is fitted of one number of them is what is fitted of another."""
    whole, *others = [replace(collected(n, sample), shards=()).to_bytes() for n in (1, 2, 7)]
    assert others == [whole] * 2


@pytest.mark.parametrize("name", STEPS)
def test_any_number_of_shards_gives_the_same_fit(made, collected, name):
    calib, examples = made
    shards = [collected(n, 700) for n in (1, 7)]
    with_settings(calib, **STEPS[name])
    (whole, info), (again, _) = [fitted_bytes(calib, each) for each in shards]
    assert again == whole
    assert (info.docs, info.sampled is None) == (len(examples), False)


def test_a_sample_of_all_is_none(made, collected):
    calib, examples = made
    _, info = fitted_bytes(with_settings(calib), collected(2, 500_000))
    assert (info.docs, info.sampled) == (len(examples), None)


@pytest.mark.parametrize("name", ["isotonic", "after temperature", "auto"])
def test_it_is_the_fit_of_the_documents_in_the_order_of_their_digests(made, name):
    calib, examples = made
    with_settings(calib, **STEPS[name])
    digests = keyed(
        np.array([document_digest(document_of(eg), eg.reference) for eg in examples], dtype=np.uint64), KEY.of_documents
    )
    ordered = [examples[i] for i in np.argsort(digests)]
    from_statistics, _ = fitted_bytes(calib, shards_of(calib, examples, 3))
    assert calib.fit(ordered, key=KEY).to_bytes() == from_statistics


def test_maps_of_cells_are_near_those_of_all_pairs(made):
    calib, examples = made
    with_settings(calib, **STEPS["isotonic"])
    _, info = fitted_bytes(calib, shards_of(calib, examples, 7, sample=700))
    scores = np.linspace(0.02, 0.98, 25)
    of_cells = [calib.tokens.maps.predict(scores, np.full(25, tag)) for tag in range(3)]
    exact = calib.fit(examples).fit_info
    of_pairs = [calib.tokens.maps.predict(scores, np.full(25, tag)) for tag in range(3)]
    assert (info.pairs, info.sampled["tables"]) == (exact.pairs, ["maps"])
    assert np.abs(np.subtract(of_cells, of_pairs)).mean() < 1e-3


def test_what_the_statistics_cannot_serve_is_refused(made):
    calib, examples = made
    with_settings(calib)
    statistics = collect_statistics(calib, examples, "all")
    before = calib.learned
    calib.threshold = 0.05
    with pytest.raises(
        CalibError,
        match=r"C425.*of shard 'all' and of the pipeline.*they differ in the threshold \(--threshold\) \(0.01; 0.05\)",
    ):
        calib.fit(statistics)
    calib.threshold = 0.01
    weights = calib.lookup.component().model.get_ref("output_layer")
    kept = weights.get_param("b").copy()
    weights.set_param("b", kept + 1)
    with pytest.raises(CalibError, match="they differ in the weights of the component"):
        calib.fit(statistics)
    weights.set_param("b", kept)
    parts = [collect_statistics(calib, examples[i::3], f"{i + 1}/3") for i in (0, 2)]
    with pytest.raises(CalibError, match="C428.*2/3 missing"):
        calib.fit(FitStatistics.merged(parts))
    assert calib.learned is before


def test_pairs_exactly_at_the_threshold_count(made):
    """The fit of the examples takes them, so must the tables of pairs."""
    calib, examples = made
    with_settings(calib)
    few = examples[:60]
    scores = collect_statistics(calib, few, "all").sample.readings.pairs(0).scores
    scores = np.sort(scores[scores >= calib.threshold])
    calib.threshold = float(scores[len(scores) // 2])
    try:
        _, info = fitted_bytes(calib, collect_statistics(calib, few, "all", sample=100, key=KEY))
        assert info.pairs == calib.fit(few).fit_info.pairs
        assert info.sampled is not None
    finally:
        calib.threshold = 0.01


def test_without_their_key_a_context_does_not_look_at_forms_and_says_so(made):
    calib, examples = made
    with_settings(calib, context=make_context("always"))
    statistics = collect_statistics(calib, examples, "all", key=KEY)
    of_key = calib.fit(statistics, key=KEY).fit_info.context
    without = calib.fit(statistics).fit_info.context
    assert (of_key["forms"] > 0, without["forms"]) == (True, 0)
    assert calib.learned.seen is None
    assert (of_key["words"], without["words"]) == (True, False)
    assert not {"form", "ending"} & set(calib.tokens.context.model_.weights)
    with pytest.raises(CalibError, match=r"C481.*shard 'all' was collected with [0-9a-f]{16}; give the same key"):
        calib.fit(statistics, key=Key.draw())
    with pytest.raises(CalibError, match=r"C481.*shard 'all' was collected with no key"):
        calib.fit(collect_statistics(calib, examples, "all"), key=KEY)
