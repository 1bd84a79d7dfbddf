"""The pipe calib_event: what it writes, where that stays, what it learns from, how it is saved."""

from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.calibration.saved import FORMAT_VERSION, pack
from spacy_calib.doc.attributes import token_values
from spacy_calib.errors import CalibError
from spacy_calib.pipe import saved
from spacy_calib.pipe.score_readers import score_readers
from spacy_calib.plugins.events.component import EventPipe, HeldOutScores
from spacy_calib.plugins.report.view_server import list_views
from tests.sentences import says

from ...conftest import examples_for, run_upstream
from ...pipe.test_calibrator_adaptation import odd_examples

LOGISTIC = {"@calib_forecasters": "spacy-calib.Logistic.v1"}  # choosing one takes longer


def fit_both(nlp, n):
    """Fit the calib pipe, and an event pipe at the end of the pipeline. RETURNS (tuple): Both."""
    calib, pipe = nlp.get_pipe("calib"), nlp.add_pipe("calib_event", last=True, config={"forecaster": LOGISTIC})
    with nlp.select_pipes(disable=["calib", "calib_event"]):
        calib.fit(run_upstream(nlp, examples_for(nlp, n, seed=2)))  # held-out scores are not saved
    with nlp.select_pipes(disable=["calib_event"]):
        pipe.fit(run_upstream(nlp, examples_for(nlp, n, seed=2)), HeldOutScores(calib))
    return calib, pipe


@pytest.fixture
def asking(fitted) -> spacy.Language:
    """A fitted calib pipe, and at the end a fitted event pipe."""
    fit_both(fitted, 80)
    return fitted


def rights(doc: Doc) -> list[float | None]:
    return [sent._.calib_right for sent in doc.sents]


def test_each_sentence_has_a_probability(asking):
    (example,) = run_upstream(asking, examples_for(asking, 1, seed=5))
    said = rights(example.predicted)
    assert said
    assert all(value is not None and 0 <= value <= 1 for value in said)
    assert example.predicted[0:1]._.calib_right is None  # nothing was asked about that
    info = asking.get_pipe("calib_event").info
    assert (info.event, info.called, info.layer) == ("all labels right", ("sentence", "sentences"), "tag")
    assert info.units > 0
    assert info.loss == pytest.approx(min(trial.loss for trial in info.trials))


def test_the_page_of_view_marks_the_sentences(asking):
    (example,) = run_upstream(asking, examples_for(asking, 1, seed=5))
    doc, way = example.predicted, list_views(asking)[-1]
    assert (way.name, way.unit) == ("calib_event: all labels right", "sentence")
    for raw in (False, True):
        marks = way.read(doc, raw=raw).marks
        assert [(doc.text[mark.start : mark.end], mark.label) for mark in marks] == [
            (one.text, "sentence") for one in doc.sents
        ]
        assert [mark.raw if raw else mark.score for mark in marks] == rights(doc)


def test_a_forecast_stays_with_its_sentence(asking):
    docs = [example.predicted for example in run_upstream(asking, examples_for(asking, 3, seed=5))]
    before = [rights(doc) for doc in docs]
    joined = Doc.from_docs(docs)
    assert rights(joined) == sum(before, [])
    again = Doc(asking.vocab).from_bytes(docs[0].to_bytes())
    assert rights(again) == before[0]
    assert next(iter(docs[2].sents)).as_doc(copy_user_data=True)[:]._.calib_right == before[2][0]
    with docs[0].retokenize() as retokenizer:
        retokenizer.merge(docs[0][0:2])
    assert next(iter(docs[0].sents))._.calib_right is None  # the same text, other labels


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="pickle.py of Python 3.10 fails on two empty arrays, which old srsly runs into"
)
def test_a_forecast_stays_with_its_sentence_in_a_pickle(asking):
    (doc,) = [example.predicted for example in run_upstream(asking, examples_for(asking, 1, seed=5))]
    assert rights(pickle.loads(pickle.dumps(doc))) == rights(doc)


def test_saved_and_loaded(asking, tmp_path):
    asking.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    texts = [example.reference for example in examples_for(asking, 4, seed=6)]
    made = [[rights(nlp(Doc(nlp.vocab, words=[t.text for t in ref]))) for ref in texts] for nlp in (asking, again)]
    assert made[0] == made[1]
    assert again.get_pipe("calib_event").info == asking.get_pipe("calib_event").info


def test_state_that_is_not_of_its_form_is_refused(asking):
    pipe = asking.get_pipe("calib_event")
    state = pipe.fitted_state.state()
    for spoil in (
        {"info": None},
        {"info": {**state["info"], "loss": 2.0}},
        {"forecaster": {**state["forecaster"], "learned": {}}},
        {"forecaster": {"@calib_recalibrators": "spacy-calib.Identity.v1", "settings": {}, "learned": {}}},
    ):
        with pytest.raises(CalibError, match="C010"):
            pipe.from_bytes(saved.dump({**state, **spoil}))
    assert pipe.fitted
    with pytest.raises(CalibError, match="C010"):
        pipe.from_bytes(b"not of ours")
    for version in (1, FORMAT_VERSION + 1):
        why = f"C011.*'calib_event' has format version {version}, but .* reads version {FORMAT_VERSION}; fit the pipe again"
        with pytest.raises(CalibError, match=why):
            pipe.from_bytes(pack(state, "spacy-calib", version))


def test_the_pipe_learns_from_cross_validated_scores(asking):
    calib = asking.get_pipe("calib")
    examples = run_upstream(asking, examples_for(asking, 80, seed=2))
    held = HeldOutScores(calib)
    differ = 0
    for number, example in enumerate(examples):
        doc = example.predicted
        values = [token_values(token, "calib") for token in doc]
        found = held.take_next(doc, np.array([one.raw for one in values]))
        own = calib.held_out.pairs.rows
        offset = sum(len(one.predicted) for one in examples[:number])
        for i in np.flatnonzero(~np.isnan(found)).tolist():
            entries = np.flatnonzero((own == offset + i) & np.isclose(calib.held_out.pairs.scores, values[i].raw, atol=1e-5))
            assert found[i] in calib.held_out.calibrated[entries]
            differ += found[i] != values[i].calibrated
    assert differ
    # Other Docs than those of the fit have none.
    other = run_upstream(asking, examples_for(asking, 1, seed=77))[0].predicted
    raw = np.array([token_values(token, "calib").raw for token in other])
    assert np.isnan(HeldOutScores(calib).take_next(other, raw + 0.5)).all()


def test_forecasts_follow_adapted_scores(asking):
    # Those of tokens are too sure on the other kind of text, and so are forecasts; adapted scores make both truer.
    calib, others = asking.get_pipe("calib"), odd_examples(asking, 20, 7)
    before = judged(asking, others)
    calib.adapt(odd_examples(asking, 8, 3))
    after = judged(asking, others)
    assert after["loss"] < before["loss"] - 0.02
    held = HeldOutScores(calib)
    few = run_upstream(asking, odd_examples(asking, 8, 3))
    found = held.take_next(few[0].predicted, np.array([token_values(token, "calib").raw for token in few[0].predicted]))
    own = np.array([token_values(token, "calib").calibrated for token in few[0].predicted])
    assert not np.isnan(found).all()
    assert np.nanmax(np.abs(found - own)) > 0  # of an adaptation that did not see the document


def judged(nlp, examples) -> dict[str, float]:
    table = nlp.get_pipe("calib_event").event_table(run_upstream(nlp, examples))
    return next(row for row in table["rows"] if row["name"] == "forecast")


@pytest.mark.parametrize(("component", "layer"), [("morphologizer", "morph"), ("trainable_lemmatizer", "lemma")])
def test_sentences_get_a_probability_for_morphologizer_and_lemmatizer(nlp, component, layer):
    nlp.add_pipe("calib", after=component, config={"source": {"component": component}})
    _, pipe = fit_both(nlp, 60)
    assert pipe.info.layer == layer
    assert 0 < pipe.info.right < pipe.info.units
    examples = run_upstream(nlp, examples_for(nlp, 60, seed=5))
    values = [value for example in examples for value in rights(example.predicted)]
    assert values
    assert all(value is not None and 0 <= value <= 1 for value in values)
    hits = pipe.gather(examples)[0].hits
    assert np.mean(values) == pytest.approx(hits.mean(), abs=0.15)


def test_before_the_fit_the_pipe_writes_the_product_and_warns(fitted):
    pipe = fitted.add_pipe("calib_event", last=True)
    examples = examples_for(fitted, 1, seed=5)
    with pytest.warns(UserWarning, match="CW01.*calib_event"):
        (example,) = run_upstream(fitted, examples)
    (sent,) = example.predicted.sents
    product = np.prod([token._.calib_score for token in sent])
    assert sent._.calib_right == pytest.approx(product)
    assert score_readers(fitted, "calib") == {}
    assert score_readers(fitted, "calib", fitted_only=False) == {"calib_event": pipe}


def test_an_empty_text_does_not_use_up_the_warning(fitted):
    pipe = fitted.add_pipe("calib_event", last=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe(Doc(fitted.vocab))
    with pytest.warns(UserWarning, match="CW01.*calib_event"):
        run_upstream(fitted, examples_for(fitted, 1, seed=5))


def test_docs_without_scores_or_sentences(asking):
    pipe = asking.get_pipe("calib_event")
    with pytest.warns(UserWarning, match="CW23.*no token has scores with the prefix 'calib'"):
        pipe(Doc(asking.vocab, words=["a", "b"], sent_starts=[True, False]))
    with asking.select_pipes(disable=["senter"]), pytest.warns(UserWarning, match="CW23.*it has no sentences"):
        asking("the dog runs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(pipe.pipe([Doc(asking.vocab)]))[0].user_data == {}


def test_a_unit_with_a_word_that_has_no_score_has_none(asking):
    (example,) = run_upstream(asking, examples_for(asking, 1, seed=5))
    doc = example.predicted
    doc[0].tag_ = "NEVER_SEEN"
    asking.get_pipe("calib_event")(doc)
    assert rights(doc) == [None]


def test_no_gold_for_any_unit(asking):
    examples = run_upstream(asking, examples_for(asking, 3, seed=5))
    for example in examples:
        for token in example.reference:
            token.tag_ = ""
    pipe = asking.get_pipe("calib_event")
    with pytest.raises(CalibError, match="C382.*None of the sentences"):
        pipe.fit(examples)
    assert pipe.event_table(examples)["rows"] == []


def test_the_table_says_how_good_the_forecasts_are(asking):
    examples = run_upstream(asking, examples_for(asking, 60, seed=9))
    pipe = asking.get_pipe("calib_event")
    table = pipe.event_table(examples)
    found, _ = pipe.gather(examples)
    rows = {row["name"]: row for row in table["rows"]}
    assert table["units"] == len(found.hits)
    assert rows["product"]["loss"] == pytest.approx(np.mean((found.evidence.estimates - found.hits) ** 2))
    assert table["change"]["estimate"] == pytest.approx(rows["forecast"]["loss"] - rows["product"]["loss"])
    shown = [sent._.calib_right for example in examples for sent in example.predicted.sents]
    assert rows["forecast"]["loss"] == pytest.approx(np.mean((np.array(shown) - found.hits) ** 2))


def test_another_event_and_forecaster_from_a_config(fitted):
    config = {
        "event": {"@calib_events": "spacy-calib.Sentence.v1", "max_errors": 1},
        "forecaster": {"@calib_forecasters": "spacy-calib.Tree.v1"},
    }
    pipe = fitted.add_pipe("calib_event", config=config, last=True)
    assert isinstance(pipe, EventPipe)
    with fitted.select_pipes(disable=["calib_event"]):
        examples = run_upstream(fitted, examples_for(fitted, 60, seed=2))
    assert pipe.fit(examples).info.event == "at most 1 label wrong"
    assert [trial.name.partition(" ")[0] for trial in pipe.info.trials] == ["tree"]


def test_one_event_for_each_prefix(asking):
    with pytest.raises(CalibError, match=says("C385", owner="calib_event", attr="calib")):
        asking.add_pipe("calib_event", name="another")
