"""A fit from statistics of shards is to the byte that of one shard, and that of the examples in the order of their digests."""

from __future__ import annotations

from functools import cache

import pytest

from spacy_calib.calibration.sets import ConformalSets
from spacy_calib.calibration.tag_offsets import TagOffsets
from spacy_calib.doc.reading import document_of
from spacy_calib.doc.texts import document_digest
from spacy_calib.errors import CalibError
from spacy_calib.pipe.collecting import collect_statistics
from spacy_calib.pipe.registered import make_context, make_selector, recalibrators, scalings
from spacy_calib.statistics.collected import FitStatistics
from tests.conftest import examples_for, revive, run_upstream


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
    parts = [collect_statistics(calib, examples[i::n], f"{i + 1}/{n}", **options) for i in range(n)]
    return FitStatistics.merged(parts[::-1])


def fitted_bytes(calib, statistics, **options):
    return calib.fit(statistics, **options).to_bytes(), calib.fit_info


STEPS = {
    **{name: {"recalibrator": method} for name, method in recalibrators().items()},
    **{f"after {name}": {"scaling": scaling} for name, scaling in scalings().items()},
    "offsets, intervals, sets": {"pooling": TagOffsets(), "intervals": True, "sets": ConformalSets(0.2)},
    "auto": {"selection": make_selector(), "context": make_context("no_worse"), "intervals": True},
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("sample", [500_000, 700])
def test_any_number_of_shards_gives_the_same_fit(made, name, sample):
    calib, examples = made
    with_settings(calib, **STEPS[name])
    whole, info = fitted_bytes(calib, collect_statistics(calib, examples, "all", sample=sample))
    for n in (7,) if name == "auto" else (2, 7):
        again, _ = fitted_bytes(calib, shards_of(calib, examples, n, sample=sample))
        assert again == whole
    assert info.docs == len(examples)
    assert (info.sampled is None) == (sample == 500_000)


@pytest.mark.parametrize("name", ["isotonic", "after temperature", "auto"])
def test_it_is_the_fit_of_the_documents_in_the_order_of_their_digests(made, name):
    calib, examples = made
    with_settings(calib, **STEPS[name])
    ordered = sorted(examples, key=lambda eg: document_digest(document_of(eg), eg.reference))
    from_statistics, _ = fitted_bytes(calib, shards_of(calib, examples, 3))
    assert calib.fit(ordered).to_bytes() == from_statistics


def test_bounded_tables_add_up_too_and_are_near_the_exact_ones(made):
    calib, examples = made
    with_settings(calib, **STEPS["isotonic"])
    whole, info = fitted_bytes(calib, collect_statistics(calib, examples, "all", sample=700, bounded=True))
    again, _ = fitted_bytes(calib, shards_of(calib, examples, 7, sample=700, bounded=True))
    assert again == whole
    _, exact = fitted_bytes(calib, collect_statistics(calib, examples, "all", sample=700))
    assert (info.pairs, info.sampled) == (exact.pairs, exact.sampled)
    assert info.table[0].calibrated == pytest.approx(exact.table[0].calibrated, abs=0.02)


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
