"""A fit takes over all that it learned, or nothing."""

import random
from dataclasses import replace

import numpy as np
import pytest
import spacy

from spacy_calib.calibration.grouping.fixed import make_shared_grouping
from spacy_calib.calibration.recalibrators import Identity
from spacy_calib.calibration.solvers import log_odds
from spacy_calib.context.features import NeighbourConfidence
from spacy_calib.context.fit import fit_span_context, fit_token_context
from spacy_calib.context.tokens import TokenContext
from spacy_calib.pipe import fitting as calibrator_fit
from spacy_calib.pipe.component import Calibrator
from tests.doc.test_span_attributes import Drawn, draw_doc, draw_examples, make_calib
from tests.made import examples_before_calib


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
    examples = examples_before_calib(fitted, 30, 9)
    monkeypatch.setattr(calibrator_fit, "_describe", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        calib.fit(examples)
    assert calib.learned is before
    assert str(fitted.meta["performance"]) == meta


class TooSure(Drawn):
    """A source that says of every token that it stands outside of entities."""

    def read(self, pipe, docs):
        found = super().read(pipe, docs)
        found.marginals = replace(found.marginals, scores=np.full(found.n_tokens, 0.97))
        return found


def test_entities_look_at_what_is_kept_where_the_context_of_tokens_is_refused(monkeypatch):
    seen, learned = [], []

    def refused(*arguments, **settings):
        learned.append(fit_token_context(*arguments, **settings))
        return replace(learned[-1], why="refused")

    def watched(tokens, *arguments):
        seen.append(tokens.view.tokens.top_log_odds[0])
        return fit_span_context(tokens, *arguments)

    monkeypatch.setattr(calibrator_fit, "fit_token_context", refused)
    monkeypatch.setattr(calibrator_fit, "fit_span_context", watched)
    nlp, features = spacy.blank("xx"), [NeighbourConfidence()]
    examples = [one for _ in range(4) for one in draw_examples(nlp, "ner")]
    settings = {"grouping": make_shared_grouping(), "recalibrator": Identity(), "selection": {"methods": []}}
    calib = Calibrator(nlp, source=TooSure("ner"), context=TokenContext(features), **settings).fit(examples)
    assert len(learned) == 2
    assert calib.tokens.scaling is not None
    assert calib.spans.context is not None
    new = calib.predict([eg.predicted for eg in examples]).calibrated.view.tokens.top_log_odds[0]
    assert new.max() < log_odds(np.array([0.9]))[0]
    assert seen[0] == pytest.approx(new, abs=0.1)
