"""The source over entity recognizers: inline and in a second pass, greedy and with a beam, and what a calib pipe makes of it."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc, Span

from spacy_calib.errors import CalibError
from spacy_calib.sources.ner.readings import biluo_labels, type_labels
from spacy_calib.sources.ner.source import NerSource, kept_readings
from tests.sources.ner import (
    TEXTS,
    TYPES,
    add_calib,
    docs_of,
    entity_keys,
    entity_tokens,
    fit_on,
    gold_examples,
    random_drafts,
    random_pipeline,
    trained,
    trained_once,
)

# Preset entities are what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:.*CW05:UserWarning")

WORDS = "she saw Ann Lee ."
SETTINGS = [{}, {"granularity": "biluo"}, {"beam_width": 4}, {"granularity": "biluo", "beam_width": 4, "beam_density": 0.01}]


def fitted_recognizer(factory: str = "calib_ner", listener: bool = False, **settings: Any) -> tuple[Any, Any]:
    """(pipeline, its fitted calib pipe)."""
    nlp = trained(factory, listener)
    saved = shared_recognizer(factory, listener, **settings).get_pipe("calib").to_bytes()
    return nlp, add_calib(nlp, **settings).from_bytes(saved)


@cache
def shared_recognizer(factory: str = "calib_ner", listener: bool = False, **settings: Any) -> Any:
    """The same pipeline for every test that asks for it: it must not be changed."""
    nlp = trained(factory, listener)
    fit_on(nlp, add_calib(nlp, **settings))
    return nlp


def token_values(doc):
    return [(token._.calib_raw, token._.calib_score, token._.calib_scores) for token in doc]


def read_scores(source, nlp, texts) -> Any:
    docs = [doc for doc in nlp.pipe(texts) if len(doc)]
    return docs, source.read(nlp.get_pipe("ner"), docs)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("factory", ["ner", "calib_ner", "beam_ner", "calib_beam_ner"])
def test_family(factory, settings):
    """Rows match tokens and sum to 1 (outside for biluo), and entities are those of the Docs; for every recognizer."""
    nlp = trained_once(factory)
    source = NerSource("ner", **settings)
    docs, scores = read_scores(source, nlp, TEXTS)
    marginals = scores.probabilities
    assert marginals.shape == (sum(map(len, docs)), len(source.labels(nlp.get_pipe("ner"))))
    beam = settings.get("beam_width", 1) > 1 or "beam" in factory
    if "granularity" not in settings or (beam and factory != "beam_ner") or settings.get("beam_width", 1) > 1:
        assert marginals.sum(axis=1) == pytest.approx(np.ones(len(marginals)))
    spans: Any = scores.spans
    found = {(int(s), int(e), source.span_labels(nlp.get_pipe("ner"))[k]) for s, e, k in
             zip(spans.starts[spans.on_doc], spans.ends[spans.on_doc], spans.labels[spans.on_doc], strict=True)}  # fmt: skip
    starts = np.cumsum([0, *map(len, docs)])
    wanted = {(at + e.start, at + e.end, e.label_) for at, doc in zip(starts, docs, strict=False) for e in doc.ents}
    if factory != "beam_ner":  # a second pass over beam_ner decides greedily
        assert found == wanted
    assert wanted
    for number in range(len(spans)):
        one = spans.take(np.array([number]))
        rows = np.arange(one.starts[0], one.ends[0])
        columns = _columns(settings, int(one.labels[0]), len(rows))
        assert one.token_scores == pytest.approx(marginals[rows, columns])


def _columns(settings, kind, length):
    if "granularity" not in settings:
        return [1 + kind] * length
    first = 1 + 4 * kind  # B, I, L, U
    return [first + 3] if length == 1 else [first, *[first + 1] * (length - 2), first + 2]


def test_greedy_marginals_are_those_of_the_kept_reading():
    nlp = trained_once("calib_ner")
    for granularity in ("type", "biluo"):
        docs, scores = read_scores(NerSource("ner", granularity), nlp, TEXTS)
        readings: list[Any] = [kept_readings(doc, "ner") for doc in docs]
        parts = [one.type_marginals() if granularity == "type" else one.biluo_marginals() for one in readings]
        assert np.array_equal(scores.probabilities, np.concatenate(parts))
        assert len(scores.spans) == sum(len(one.entities) for one in readings)
        assert scores.spans.scores == pytest.approx(np.concatenate([one.entities.path for one in readings]))


def test_labels():
    pipe = random_pipeline().get_pipe("ner")
    types = NerSource().span_labels(pipe)
    assert sorted(types) == sorted(TYPES)
    assert NerSource().labels(pipe) == type_labels(types)
    assert NerSource(granularity="biluo").labels(pipe) == biluo_labels(types)
    pipe.add_label("0new")
    assert NerSource().labels(pipe) == (*type_labels(types), "0new")
    later = tuple(f"{prefix}-0new" for prefix in "BILU")
    assert NerSource(granularity="biluo").labels(pipe) == (*biluo_labels(types), *later)


def test_frequency_labels_and_o_alone():
    assert NerSource.singleton_labels == ("O",)
    assert [NerSource().frequency_label(label) for label in ("O", "C-D", "B-X")] == ["O", "C-D", "B-X"]
    biluo = NerSource(granularity="biluo")
    assert [biluo.frequency_label(label) for label in ("O", "B-C-D", "U-X")] == ["O", "C-D", "X"]


@pytest.mark.parametrize(("settings", "name"), [
    ({"granularity": "bio"}, "granularity"), ({"beam_width": 0}, "beam_width"), ({"beam_width": True}, "beam_width"),
    ({"beam_width": 2.5}, "beam_width"), ({"beam_density": 1.0}, "beam_density"), ({"beam_density": -0.1}, "beam_density"),
    ({"beam_density": float("nan")}, "beam_density"),
])  # fmt: skip
def test_bad_settings(settings, name):
    with pytest.raises(CalibError, match=f"C001.*{name} must be"):
        NerSource(**settings)


def test_other_components_are_not_read():
    nlp = trained("ner")
    assert not NerSource("tagger").supports(nlp.add_pipe("tagger"))
    calib = add_calib(nlp, component="tagger")
    with pytest.raises(CalibError, match="C022.*tagger"):
        calib.lookup.component()


def test_untrained_recognizers_are_not_read():
    nlp = trained_once()
    assert NerSource().is_trained(nlp.get_pipe("ner"))
    assert not NerSource().is_trained(nlp.create_pipe("calib_ner"))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_fit_and_annotate(settings):
    nlp = shared_recognizer(**settings)
    examples = gold_examples(nlp, 20, 7)
    docs = list(nlp.pipe([eg.predicted for eg in examples]))
    assert sum(len(doc.ents) for doc in docs) > 15
    biluo = settings.get("granularity") == "biluo"
    for doc in docs:
        for token in doc:
            label = token.ent_type_ or "O"
            assert any(key == label or key[2:] == label for key in token._.calib_scores)
            assert sum(key[1:2] == "-" for key in token._.calib_scores) == (len(token._.calib_scores) - 1 if biluo else 0)
        for ent in doc.ents:
            assert ent._.calib_raw == pytest.approx(np.prod([token._.calib_raw for token in ent]))
        assert {(e.start, e.end, e.label) for e in doc._.calib.ents} == set(entity_keys(doc))
        assert doc[0:1]._.calib_score is None or doc.ents[0].end == 1
    assert nlp.evaluate(gold_examples(nlp, 20, 8))["calib_brier"] < 0.15


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_preset_tokens_have_no_score(settings):
    """An entity that a rule component set says nothing of what the recognizer thinks: None, never 1.0."""
    nlp = shared_recognizer(**settings)
    doc = nlp.make_doc("she saw Rome , Bob and Ann Lee")
    doc.set_ents([Span(doc, 2, 3, label="LOC")], blocked=[doc[4:5]], default="missing")
    doc = nlp(doc)
    assert entity_tokens([doc])[0][2:5] == [(3, "LOC"), (2, ""), (3, "")]
    for i in (2, 4):
        assert doc[i]._.calib_score is None
        assert doc[i]._.calib_raw is None
        assert not doc[i]._.calib_scores
    assert doc.ents[0]._.calib_score is None
    assert doc.ents[0]._.calib_raw is None
    others = [token for token in doc if token.i not in (2, 4)]
    assert all(token._.calib_score is not None for token in others)
    assert all(ent._.calib_score is not None for ent in doc.ents[1:])
    assert all((ent.start, ent.end) != (2, 3) for ent in doc._.calib.ents)
    dense = doc._.calib.to_dense(["O", "PER", "LOC"])
    assert np.isnan(dense).all(axis=1).tolist() == [token.i in (2, 4) for token in doc]


def test_random_recognizers_with_presets():
    """Whatever is preset, scores are probabilities, and preset tokens have none."""
    nlp = random_pipeline(factory="calib_ner")
    add_calib(nlp)
    nlp.get_pipe("calib").warn.warned_keys.add("CW01{}")
    drafts = random_drafts(60, 51, "whole")
    for draft, doc in zip(drafts, nlp.pipe(docs_of(drafts, nlp.vocab)), strict=True):
        for token, iob in zip(doc, draft.iob, strict=True):
            if iob in (1, 3):
                assert token._.calib_raw is None
            else:
                assert 0 <= token._.calib_raw <= 1
        for ent in doc.ents:
            assert (ent._.calib_raw is None) == (draft.iob[ent.start] == 3)


@pytest.mark.parametrize("granularity", ["type", "biluo"])
def test_label_met_while_running(granularity):
    """A preset entity of a new type: spaCy's recognizer learns the label; the pipe says so once and goes on with the pooled map."""
    nlp, calib = fitted_recognizer(granularity=granularity)
    labels = calib.labels
    text = "she saw Ann Lee , Rome"
    wanted = token_values(nlp(text))
    doc = nlp.make_doc(text)
    doc.set_ents([Span(doc, 5, 6, label="NEW")], default="missing")
    n_new = 1 if granularity == "type" else 4
    with pytest.warns(UserWarning, match=rf"CW03.* {n_new} labels of component 'ner' were added after 'calib'"):
        doc = nlp(doc)
    assert calib.lookup.labels() == (*labels, *(("NEW",) if n_new == 1 else tuple(f"{p}-NEW" for p in "BILU")))
    stock = trained("ner")
    other = stock.make_doc(text)
    other.set_ents([Span(other, 5, 6, label="NEW")], default="missing")
    assert entity_tokens([doc]) == entity_tokens([stock(other)])
    assert doc[5]._.calib_score is None
    assert [token._.calib_score is not None for token in doc[:5]] == [True] * 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = token_values(nlp(text))  # a class that was never seen in training takes nothing from the others
    for given, before in zip(again, wanted, strict=True):
        assert given[:2] == pytest.approx(before[:2])
        assert {label: p for label, p in given[2].items() if "NEW" not in label} == pytest.approx(before[2])


def test_readings_made_before_a_label_came():
    """A batch is recognized before another teaches the label: its readings lack the column."""
    nlp, calib = fitted_recognizer()
    first = nlp.get_pipe("ner")(nlp.make_doc(WORDS))
    nlp.get_pipe("ner").add_label("NEW")
    with pytest.warns(UserWarning, match="CW03"):
        calib(first)
    assert all(token._.calib_score is not None for token in first)
    biluo = NerSource(granularity="biluo")
    later = biluo.read(nlp.get_pipe("ner"), [first]).probabilities
    assert later.shape == (5, len(biluo.labels(nlp.get_pipe("ner"))))
    assert (later[:, -4:] == 0).all()


@pytest.mark.parametrize("factory", ["ner", "calib_ner"])
def test_beam_keeps_the_entities_that_were_decided(factory):
    nlp, calib = fitted_recognizer(factory, beam_width=8, beam_density=0.0)
    ner = nlp.get_pipe("ner")
    n_candidates = 0
    stock = trained_once("ner")
    for text in [*TEXTS, *(eg.text for eg in gold_examples(nlp, 10, 9))]:
        doc = nlp(text)
        assert entity_tokens([doc]) == entity_tokens([stock(text)])
        if not len(doc):
            continue
        (scored,) = ner.scored_ents(ner.beam_parse([nlp.make_doc(text)], beam_width=8, beam_density=0.0))
        view = doc._.calib
        candidates = {(one.start, one.end, one.label): one.raw for one in view.candidates}
        chosen = {(one.start, one.end, one.label) for one in view.ents}
        assert chosen == set(entity_keys(doc))
        assert not chosen & set(candidates)
        assert {**candidates, **{key: scored[key] for key in chosen & set(scored)}} == pytest.approx(dict(scored), abs=1e-6)
        assert [one.score for one in view.candidates] == sorted((one.score for one in view.candidates), reverse=True)
        n_candidates += len(candidates)
    assert n_candidates > 20
    assert calib.spans.groups is not None


def test_calib_beam_ner_gives_its_candidates():
    nlp, _ = fitted_recognizer("calib_beam_ner")
    examples = gold_examples(nlp, 12, 10)
    docs = list(nlp.pipe([eg.predicted for eg in examples]))
    stock = trained_once("beam_ner")
    assert entity_tokens(docs) == entity_tokens(list(stock.pipe([eg.text for eg in examples])))
    assert any(doc._.calib.candidates for doc in docs)
    assert all(token._.calib_score is not None for doc in docs for token in doc)


def test_two_pipes_over_one_recognizer():
    nlp = trained("calib_ner")
    types = fit_on(nlp, add_calib(nlp, "calib"))
    biluo = fit_on(nlp, add_calib(nlp, "other", granularity="biluo"))
    doc = nlp(WORDS)
    assert types.fit_info.layer == "ner"
    assert biluo.fit_info.layer == "biluo"
    assert set(doc[2]._.calib_scores) == {"O", "PER", "LOC"}
    assert {"B-PER", "U-PER", "O"} <= set(doc[2]._.other_scores)
    label = doc[2].ent_type_
    assert doc[2].ent_iob_ == "B"
    own = [(tag, p) for row, tag, p in zip(doc._.other.rows, doc._.other.tags, doc._.other.raw, strict=True) if row == 2]
    assert doc[2]._.calib_raw == pytest.approx(sum(p for tag, p in own if tag in (f"B-{label}", f"U-{label}")))
    assert doc.ents[0]._.calib_score is not None
    assert doc.ents[0]._.other_score is not None
    loaded = trained("calib_ner").from_config(nlp.config.copy()).from_bytes(nlp.to_bytes())
    assert token_values(loaded(WORDS)) == token_values(doc)


def test_doc_that_the_recognizer_did_not_see():
    nlp, calib = fitted_recognizer()
    doc = Doc(nlp.vocab, words=WORDS.split(), ents=["O", "O", "B-PER", "I-PER", "O"])
    with pytest.warns(UserWarning, match="CW02.*'ner' did not run on the Doc in this process"):
        calib(doc)
    assert doc.ents[0]._.calib_score is None


def test_entities_changed_between_the_recognizer_and_the_pipe():
    nlp, calib = fitted_recognizer()
    doc = nlp.get_pipe("ner")(nlp.make_doc(WORDS))
    doc.ents = [Span(doc, 2, 4, label="LOC")]
    calib(doc)
    reading: Any = kept_readings(doc, "ner")
    column = type_labels(reading.types).index("LOC")
    assert [token._.calib_raw for token in doc[2:4]] == pytest.approx(reading.type_marginals()[2:4, column].tolist())
    assert doc.ents[0]._.calib_score is None
    assert doc._.calib.ents == ()


@pytest.mark.parametrize(
    ("settings", "listener"), [(SETTINGS[0], False), (SETTINGS[0], True), (SETTINGS[1], False), (SETTINGS[3], True)], ids=str
)
def test_second_pass_gives_what_the_inline_pipe_gives(settings, listener):
    inline, stock = shared_recognizer("calib_ner", listener, **settings), shared_recognizer("ner", listener, **settings)
    texts = [*TEXTS, *(eg.text for eg in gold_examples(inline, 8, 11))]
    for one, other in zip(inline.pipe(texts), stock.pipe(texts), strict=True):
        assert entity_tokens([one]) == entity_tokens([other])
        for token, twin in zip(one, other, strict=True):
            assert token._.calib_raw == pytest.approx(twin._.calib_raw, abs=1e-6)
            assert token._.calib_score == pytest.approx(twin._.calib_score, abs=1e-6)
            assert token._.calib_scores == pytest.approx(twin._.calib_scores, abs=1e-6)
        for ent, twin in zip(one.ents, other.ents, strict=True):
            assert ent._.calib_raw == pytest.approx(twin._.calib_raw, abs=1e-6)
            assert ent._.calib_score == pytest.approx(twin._.calib_score, abs=1e-6)


RULERS = {"entity_ruler": {}, "span_ruler": {"annotate_ents": True}}


def add_ruler(nlp: Any, pattern: str = "Rome", factory: str = "entity_ruler", **place: str) -> None:
    nlp.add_pipe(factory, config=RULERS[factory], **place).add_patterns([{"label": "PER", "pattern": pattern}])


@pytest.mark.parametrize("factory", RULERS)
def test_second_pass_refuses_presets(factory):
    """Entities of a component before `ner` cannot be told from its own."""
    nlp = trained("ner")
    add_ruler(nlp, factory=factory, before="ner")
    calib = add_calib(nlp)
    with pytest.raises(CalibError, match=f"C034.*'ner'.*'{factory}' sets entities before 'ner'"):
        fit_on(nlp, calib)
    assert not calib.fitted


def test_ruler_added_after_the_fit():
    nlp, calib = fitted_recognizer("ner")
    add_ruler(nlp, before="ner")
    with pytest.warns(UserWarning, match="CW02.*'entity_ruler' sets entities before 'ner'"):
        doc = nlp("she saw Rome")
    assert [token._.calib_score for token in doc] == [None] * 3
    with pytest.raises(CalibError, match="C034"):
        calib.fit(gold_examples(nlp, 4, 1))


@pytest.mark.parametrize("factory", RULERS)
def test_ruler_behind_the_recognizer_is_no_obstacle(factory):
    nlp, _ = fitted_recognizer("ner")
    add_ruler(nlp, "saw", factory, after="ner")
    assert all(token._.calib_score is not None for token in nlp("she saw Rome"))


def test_inline_pipe_takes_presets():
    nlp = trained("calib_ner")
    add_ruler(nlp, before="ner")
    fit_on(nlp, add_calib(nlp))
    doc = nlp("she saw Rome , Ann Lee")
    assert [(ent.text, ent.label_) for ent in doc.ents][0] == ("Rome", "PER")
    assert doc[2]._.calib_score is None
    assert doc.ents[0]._.calib_score is None
    assert all(token._.calib_score is not None for token in doc if token.i != 2)
    source = NerSource()
    preset = nlp.make_doc("Rome")
    preset.ents = [Span(preset, 0, 1, label="LOC")]
    assert not source.holds_preset(nlp.get_pipe("ner"), preset)
    stock = trained_once("ner").get_pipe("ner")
    assert source.holds_preset(stock, preset)
    assert not source.holds_preset(stock, nlp.make_doc("Rome"))
