"""`spacy calib watch`: windows of texts through the real command, merged, and drawn."""

from __future__ import annotations

import pytest
import spacy

from spacy_calib import Monitor
from spacy_calib.watch.window import ONE
from tests.cli.conftest import bare_docs, entity_docs


def test_entities_are_counted_and_expected(calibrated_ner):
    nlp = spacy.load(calibrated_ner)
    docs, monitor = list(nlp.pipe(bare_docs(nlp, entity_docs(30, 23, nlp.vocab)))), Monitor(nlp)
    for doc in docs:
        monitor.update(doc)
    (window,) = monitor.snapshot()["windows"]
    scores = [span._.calib_score for doc in docs for span in doc.ents]
    assert window["counts"]["spans"] == window["entities"]["predicted"] == len(scores) > 0
    assert window["counts"]["spans_expected"] / ONE == pytest.approx(sum(scores), abs=1e-4)
    assert window["entities"]["f"]["low"] < window["entities"]["f"]["expected"] < window["entities"]["f"]["high"]
    assert window["counts"]["outside"] > 0
