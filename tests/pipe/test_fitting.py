"""A fit takes over all that it learned, or nothing."""

from __future__ import annotations

import random

import pytest
import spacy

from spacy_calib.pipe import fitting
from tests.conftest import examples_for, run_upstream
from tests.doc.test_span_attributes import draw_doc, draw_examples, make_calib


@pytest.mark.parametrize("layer", ["ner", "spans:sc"])
def test_cutoffs_do_not_outlive_the_maps_that_they_were_found_for(layer):
    nlp = spacy.blank("xx")
    calib = make_calib(nlp, layer)
    assert calib.spans.cutoffs is not None
    calib.fit(draw_examples(nlp, layer))
    assert calib.spans.cutoffs is None
    doc = calib(draw_doc(random.Random(1), nlp.vocab, layer))
    assert doc._.calib.ents
    assert {entry.accept for entry in doc._.calib.ents} == {None}


def test_a_fit_that_fails_at_its_last_step_changes_nothing(fitted, monkeypatch):
    calib = fitted.get_pipe("calib")
    before, meta = calib.learned, str(fitted.meta["performance"])
    with fitted.select_pipes(disable=["calib"]):
        examples = run_upstream(fitted, examples_for(fitted, 30, seed=9))
    monkeypatch.setattr(fitting, "describe", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        calib.fit(examples)
    assert calib.learned is before
    assert str(fitted.meta["performance"]) == meta
