"""The event of a pair of mentions: which pairs, what is known of them, when they are right, and the pipe that learns it."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.calibration.spans import logit
from spacy_calib.plugins.coref.event import PAIR_FEATURES, PairEvent
from spacy_calib.plugins.events.questions import UNKNOWN
from tests.conftest import run_upstream

from .made import example, trained


@pytest.fixture(scope="module")
def nlp():
    return trained()


@pytest.fixture(scope="module")
def done(nlp):
    """An example that has passed."""
    one = example(nlp, 100)
    one.predicted = nlp(one.predicted)
    return one


def test_a_unit_is_a_mention_with_its_likeliest_antecedent(done):
    doc, event = done.predicted, PairEvent()
    view, best = doc._.coref, doc._.coref.antecedents.best()
    later = np.flatnonzero(best >= 0)
    units = event.units(doc)
    assert [(unit.start, unit.end) for unit in units] == [(view.mentions[i].start, view.mentions[i].end) for i in later]
    known = event.evidence(doc, units)
    assert known.features.shape == (len(units), len(PAIR_FEATURES))
    assert known.raw_estimates.tolist() == [view.raw(i, best[i]) for i in later]
    assert known.estimates.tolist() == [view.probability(i, best[i]) for i in later]
    column = dict(zip(PAIR_FEATURES, known.features.T, strict=True))
    assert np.allclose(column["raw probability"], logit(known.raw_estimates))
    assert np.allclose(np.expm1(column["mentions between"]), later - best[later])
    assert np.allclose(
        np.expm1(column["sentences between"]), view.mention_arrays.sentences[later] - view.mention_arrays.sentences[best[later]]
    )
    assert np.allclose(sum(column[name] for name in PAIR_FEATURES if name.startswith("later is")), 1)


def test_a_pair_is_right_if_both_mentions_are_in_one_gold_cluster(nlp, done):
    event, doc = PairEvent(), done.predicted
    gold, best = nlp.get_pipe("calib_coref").gold_of(done), doc._.coref.antecedents.best()
    cluster = [gold[span.start, span.end] for span in doc._.coref.mentions]
    wanted = [int(cluster[i] == cluster[best[i]]) for i in np.flatnonzero(best >= 0)]
    units = event.units(doc)
    assert event.judge(done, units, np.zeros(0)).tolist() == wanted
    assert sum(wanted) > 0
    other = PairEvent(prefix="others", mentions="none")
    assert set(other.judge(done, units, np.zeros(0)).tolist()) == {UNKNOWN}
    assert event.units(Doc(nlp.vocab, words=["she", "left"])) == ()  # a Doc without coreference


def test_an_event_pipe_of_pairs_is_fitted_and_saved(tmp_path):
    nlp = trained(4)
    logistic = {"@calib_forecasters": "spacy-calib.Logistic.v1"}
    config = {"attr": "link", "event": {"@calib_events": "spacy-calib.Pair.v1"}, "forecaster": logistic}
    pipe = nlp.add_pipe("calib_event", config=config, last=True)
    with nlp.select_pipes(disable=["calib_event"]):
        examples = run_upstream(nlp, [example(nlp, seed) for seed in range(300, 330)])
    info = pipe.fit(examples).info
    assert info.called == ("pair", "pairs")
    assert info.loss <= info.product
    assert pipe.event_table(examples)["rivals"] == ["raw probability", "calibrated probability"]
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    one, other = (model(example(model, 100).predicted) for model in (nlp, again))
    said = [mention._.link_right for mention in one._.coref.mentions]
    assert said == [mention._.link_right for mention in other._.coref.mentions]
    best = one._.coref.antecedents.best()
    assert [value is None for value in said] == (best < 0).tolist()
