from __future__ import annotations

import numpy as np
import pytest
from spacy.tokens import Doc

from spacy_calib.errors import CalibError
from spacy_calib.plugins.coref import view as module
from tests.plugins.events.test_draws import agree
from tests.sentences import says

from .made import example, trained

N = 4000


@pytest.fixture(scope="module")
def nlp():
    return trained(6, penalty=100.0)  # unsure


@pytest.fixture
def doc(nlp):
    return nlp(example(nlp, 100).predicted)


def shares(found) -> np.ndarray:
    pairs = found.view.pairs
    return (found.first[:, pairs.later] == found.first[:, pairs.earlier]).mean(axis=0)


def test_pairs_are_together_as_often_as_calibrated(doc):
    view = doc._.coref
    found = view.draws(N, seed=1)
    as_it_is = view.draws(N, seed=1, calibrated=False)
    assert found.off < np.sqrt(np.mean((view.pairs.probabilities - view.calibrated) ** 2)) / 2
    assert np.sqrt(np.mean((shares(found) - view.calibrated) ** 2)) < found.off + 0.02
    agree(shares(as_it_is), view.pairs.probabilities)
    assert as_it_is.off < 1e-9


def test_a_draw_makes_a_doc_with_its_clusters(doc):
    before = {name: len(group) for name, group in doc.spans.items()}
    found = doc._.coref.draws(20, seed=0)
    for draw, copy in zip(found, found.docs(), strict=True):
        wanted = [[(span.start, span.end) for span in own] for own in doc._.coref.clusters_in(found.first[draw.number])]
        groups = [group for name, group in copy.spans.items() if name.startswith("coref_clusters_")]
        assert [[(span.start, span.end) for span in group] for group in groups] == wanted
    assert {name: len(group) for name, group in doc.spans.items()} == before
    assert len(found) == 20
    assert (found.first[:5] == doc._.coref.draws(5, seed=0).first).all()
    assert (found.first != doc._.coref.draws(20, seed=1).first).any()


def test_docs_with_few_and_with_too_many_mentions(nlp, doc, monkeypatch):
    empty = nlp(Doc(nlp.vocab))
    assert empty._.coref.draws(3).first.shape == (3, 0)
    alone = Doc(nlp.vocab, words=["Anna"])
    alone.spans["coref_mentions"] = [alone[:1]]
    assert nlp(alone)._.coref.draws(3).first.tolist() == [[0]] * 3
    monkeypatch.setattr(module, "DENSE", 3)
    with pytest.raises(CalibError, match=says("C415", wanted=3)):
        doc._.coref.draws(2)
    assert len(doc._.coref.draws(2, calibrated=False)) == 2
    with pytest.raises(CalibError, match="C001"):
        doc._.coref.draws(-1)
