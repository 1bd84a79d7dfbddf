"""Scaling and normalization as a pipeline gives them: on tokens, on fresh data, and wherever a Doc may go."""

import functools
import json
import pickle

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib import CalibError
from spacy_calib.calibration.scaling import FLOOR, VectorScaling
from spacy_calib.calibration.tokens import TokenCalibration
from tests.cli.conftest import bare_docs, entity_docs, entity_examples, revive_recognizer
from tests.conftest import run_upstream
from tests.made import TOKEN_LABELS, TOKENS_PER_DOCUMENT, SampledTokens, ScoreTable, fit_data, sample_tokens
from tests.sentences import says

TFG = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 3}
PLATT = {"@calib_recalibrators": "spacy-calib.Platt.v1"}
VECTOR = {"@calib_scalings": "spacy-calib.VectorScaling.v1"}
TEMPERATURE = {"@calib_scalings": "spacy-calib.TemperatureScaling.v1"}
MATRIX = {"@calib_scalings": "spacy-calib.MatrixScaling.v1", "ridge": 100.0}


EVERYTHING = {"scaling": VECTOR, "normalize": True}


def docs_of(nlp: Language, tokens: SampledTokens) -> list[Doc]:
    """Docs of TOKENS_PER_DOCUMENT tokens that carry their likeliest tag; the probabilities stand in doc.tensor."""
    docs = []
    for start in range(0, len(tokens), TOKENS_PER_DOCUMENT):
        own = tokens.probabilities[start : start + TOKENS_PER_DOCUMENT]
        words = [f"w{start + i}" for i in range(len(own))]
        doc = Doc(nlp.vocab, words=words, tags=[TOKEN_LABELS[column] for column in own.argmax(axis=1)])
        doc.tensor = own
        docs.append(doc)
    return docs


def gold_of(column: int) -> str:
    return {-1: "UNKNOWN", -2: ""}[column] if column < 0 else TOKEN_LABELS[column]


def examples_of(nlp: Language, tokens: SampledTokens) -> list[Example]:
    tags = [gold_of(column) for column in tokens.gold.tolist()]
    return [
        Example(doc, Doc(nlp.vocab, words=[token.text for token in doc], tags=tags[start : start + len(doc)]))
        for doc, start in zip(docs_of(nlp, tokens), range(0, len(tokens), TOKENS_PER_DOCUMENT), strict=True)
    ]


def unfitted(*settings: dict[str, object]) -> Language:
    """A calib pipe for each of the settings; the first is named calib, the others calib2, calib3."""
    nlp = spacy.blank("xx")
    source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": TOKEN_LABELS, "key": "tensor", "layer": "tag"}
    for number, own in enumerate(settings, start=1):
        name = f"calib{number if number > 1 else ''}"
        nlp.add_pipe("calib", name=name, config={"attr": name, "source": source, "grouping": TFG, "recalibrator": PLATT, **own})
    return nlp


def pipeline(*settings: dict[str, object], n: int = 300, threshold: float = 0.01) -> Language:
    """The same, fitted on n tokens."""
    return pickle.loads(_pickled(json.dumps(settings), n, threshold))


@functools.cache
def _pickled(settings: str, n: int, threshold: float) -> bytes:
    nlp = unfitted(*({"threshold": threshold, **own} for own in json.loads(settings)))
    examples = examples_of(nlp, sample_tokens(n, 1))
    for _, pipe in nlp.pipeline:
        pipe.fit(examples)
    return pickle.dumps(nlp)


@pytest.fixture
def nlp() -> Language:
    """One fitted pipe with all that there is."""
    return pipeline(EVERYTHING)


def run(nlp: Language, tokens: SampledTokens) -> list[Doc]:
    return list(nlp.pipe(docs_of(nlp, tokens)))


def tokens_of(docs: list[Doc]) -> list:
    return [token for doc in docs for token in doc]


def values(doc: Doc, attr: str = "calib") -> list[tuple]:
    return [tuple(token._.get(f"{attr}_{name}") for name in ("score", "raw", "scores")) for token in doc]


FRESH = sample_tokens(60, 9)


def test_a_token_has_a_score_of_its_label(nlp):
    for token in tokens_of(run(nlp, FRESH)):
        assert token._.calib_score == token._.calib_scores[token.tag_]
        assert list(token._.calib_scores.values()) == sorted(token._.calib_scores.values(), reverse=True)
        assert sum(token._.calib_scores.values()) == pytest.approx(1)


def test_the_pipe_gives_what_the_steps_give():
    nlp = pipeline(EVERYTHING, threshold=1e-5)
    calib = nlp.get_pipe("calib")
    docs = run(nlp, FRESH)
    found = calib.tokens.calibrate(ScoreTable(FRESH.probabilities), 1e-5)
    bounds = found.marginals.indptr
    for i, token in enumerate(tokens_of(docs)):
        part = slice(bounds[i], bounds[i + 1])
        tags = [TOKEN_LABELS[column] for column in found.marginals.tags[part]]
        assert token._.calib_scores == pytest.approx(dict(zip(tags, found.scores[part], strict=True)), abs=1e-9)


def test_a_scaling_is_fitted_on_what_it_will_read():
    """On all that reaches its floor, far below the threshold."""
    nlp = pipeline({"scaling": VECTOR})
    data = fit_data(sample_tokens(300, 1), 0.01, FLOOR)
    expected = VectorScaling()
    expected.cross_fit(data.pairs, data.documents, len(TOKEN_LABELS))
    found = nlp.get_pipe("calib").tokens.scaling
    assert found.factor_ == pytest.approx(expected.factor_, abs=1e-9)
    assert found.biases_ == pytest.approx(expected.biases_, abs=1e-9)
    assert len(data.pairs) > len(data.kept_indices) + 100


def test_a_label_set_by_hand_has_its_own_score(nlp):
    token = max(tokens_of(run(nlp, FRESH)), key=lambda one: len(one._.calib_scores))
    before = token._.calib_scores
    for tag in token._.calib_scores:
        token.tag_ = tag
        assert token._.calib_score == token._.calib_scores[tag]
        assert token._.calib_scores == before
    for tag in (set(TOKEN_LABELS) - set(token._.calib_scores)) | {"NEVER_SEEN", ""}:
        token.tag_ = tag
        assert (token._.calib_score, token._.calib_raw) == (None, None)
        assert token._.calib_scores == before


@pytest.mark.parametrize("scaling", [None, VECTOR, MATRIX])
@pytest.mark.parametrize("threshold", [0.3, 0.01, 1e-5])
def test_a_label_kept_from_before_has_a_score_below_the_threshold_too(scaling, threshold):
    """The same one whatever the threshold is: it only says what is looked at."""
    nlp = pipeline({"scaling": scaling})
    docs = docs_of(nlp, FRESH)
    for doc in docs:
        for token in doc:
            token.tag_ = TOKEN_LABELS[int(doc.tensor[token.i].argmin())]
    calib = nlp.get_pipe("calib")
    calib.threshold = 1e-9
    expected = [values(doc) for doc in calib.pipe(docs)]
    calib.threshold = threshold
    below = 0
    for doc, held in zip(calib.pipe(docs), expected, strict=True):
        for token, (score, raw, _) in zip(doc, held, strict=True):
            assert token._.calib_raw == raw
            assert token._.calib_score == pytest.approx(score, abs=1e-9)
            below += token.tag_ not in token._.calib_scores
    assert below > 10 or threshold == 1e-5


def test_tokens_without_annotation_have_scores_of_labels_and_none_of_their_own(nlp):
    doc = docs_of(nlp, FRESH)[0]
    doc[3].tag_ = ""
    whole = nlp(docs_of(nlp, FRESH)[0])
    doc = nlp(doc)
    assert values(doc)[:3] + values(doc)[4:] == values(whole)[:3] + values(whole)[4:]
    assert values(doc)[3][:2] == (None, None)
    assert doc[3]._.calib_scores == whole[3]._.calib_scores


def test_worker_processes(nlp):
    expected = [values(doc) for doc in nlp.pipe(docs_of(nlp, FRESH), batch_size=1)]
    found = [values(doc) for doc in nlp.pipe(docs_of(nlp, FRESH), n_process=2, batch_size=1)]
    assert found == expected


@pytest.mark.parametrize("scaling", [VECTOR, MATRIX, TEMPERATURE])
def test_a_saved_pipeline_gives_the_same_bits(scaling, tmp_path):
    settings = {"tag_offsets": True}
    nlp = pipeline({**EVERYTHING, **settings, "scaling": scaling}, n=200)
    expected = [values(doc) for doc in run(nlp, FRESH)]
    nlp.to_disk(tmp_path / "model")
    by_bytes = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    for again in (spacy.load(tmp_path / "model"), by_bytes, pickle.loads(pickle.dumps(nlp))):
        assert [values(doc) for doc in run(again, FRESH)] == expected
        ours, theirs = nlp.get_pipe("calib"), again.get_pipe("calib")
        assert theirs.to_bytes() == ours.to_bytes()
        assert theirs.fit_info == ours.fit_info
        assert theirs.normalize is True
    block = spacy.load(tmp_path / "model").config["components"]["calib"]
    assert block["normalize"] is True
    assert block["scaling"]["@calib_scalings"] == scaling["@calib_scalings"]


def test_the_fit_leaves_its_prototypes_alone_and_says_what_it_did(nlp):
    calib = nlp.get_pipe("calib")
    assert not calib.scaling.fitted
    info = calib.fit_info
    assert info.scaling["name"] == VECTOR["@calib_scalings"]
    assert info.scaling["size"] == calib.tokens.scaling.size()
    # Pairs between the scaling's floor and the threshold are no pairs of the maps.
    assert info.pairs == np.count_nonzero(sample_tokens(300, 1).probabilities >= 0.01) == info.table[0].pairs
    assert json.loads(json.dumps(info.state())) == info.state()


def test_a_failed_fit_leaves_all_parts(nlp):
    calib = nlp.get_pipe("calib")
    before = calib.to_bytes()
    tokens = sample_tokens(40, 1)
    with pytest.raises(CalibError, match="C030"):
        calib.fit(examples_of(nlp, SampledTokens(tokens.probabilities, tokens.truth, np.full(40, -2))))
    assert calib.to_bytes() == before


@pytest.mark.parametrize("threshold", [0.0, 1e-6, 1e-4, 0.4])
def test_any_threshold_will_do(threshold):
    nlp = pipeline(EVERYTHING, n=200, threshold=threshold)
    for token in tokens_of(run(nlp, FRESH)):
        scores = token._.calib_scores
        assert len(scores) == np.count_nonzero(token.doc.tensor[token.i] >= threshold)
        assert token._.calib_score == scores.get(token.tag_, token._.calib_score)
        assert np.isfinite(list(scores.values())).all()


def test_auto_chooses_a_scaling_where_tags_must_be_weighed_beside_one_another():
    selection = {"n_groups": [1, 3], "methods": ["platt"]}
    nlp = pipeline({"selection": selection, "normalize": True}, n=1000)
    calib = nlp.get_pipe("calib")
    assert calib.fit_info.selection["chosen"] == "vector scaling"
    assert calib.fit_info.scaling["name"] == "spacy-calib.VectorScaling.v1"
    expected = [values(doc) for doc in run(nlp, FRESH)]
    assert [values(doc) for doc in run(pickle.loads(pickle.dumps(nlp)), FRESH)] == expected
    assert all(None not in value for doc in expected for value in doc)
    assert len(calib.tokens.maps.groups) == 1


def with_recognizer(granularity: str, **settings) -> Language:
    """tok2vec, tagger, and a recognizer that keeps its probabilities, with an unfitted calib pipe."""
    nlp = revive_recognizer("calib_ner")
    source = {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner", "granularity": granularity}
    nlp.add_pipe("calib", config={"source": source, "token_scores": True, **settings})
    return nlp


@pytest.mark.parametrize("granularity", ["type", "biluo"])
def test_labels_of_entities_have_scores(granularity, tmp_path):
    nlp = with_recognizer(granularity, **{**EVERYTHING, "scaling": MATRIX})
    with nlp.select_pipes(disable=["calib"]):
        examples = run_upstream(nlp, entity_examples(nlp, 40, 51))
    nlp.get_pipe("calib").fit(examples)
    fresh = entity_docs(40, 52, nlp.vocab)
    found = list(nlp.pipe(bare_docs(nlp, fresh)))
    labels = set(nlp.get_pipe("calib").labels)
    for token in tokens_of(found):
        assert sum(token._.calib_scores.values()) <= 1 + 1e-9
        assert set(token._.calib_scores) <= labels
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    again = list(loaded.pipe(bare_docs(loaded, fresh[:5])))
    assert [values(doc)[0][2] for doc in again] == [values(doc)[0][2] for doc in found[:5]]


def preset_first(nlp: Language, docs: list[Doc]) -> list[Doc]:
    """The first token of each Doc is an entity before the recognizer runs."""
    for doc in docs:
        doc.set_ents([doc[0:1].char_span(0, len(doc[0]), label="ORG")], default="missing")
    return docs


def test_preset_tokens_have_no_scores_and_take_no_part_in_the_fit():
    nlp = with_recognizer("type")
    examples = entity_examples(nlp, 40, 51)
    preset_first(nlp, [example.predicted for example in examples])
    with nlp.select_pipes(disable=["calib"]):
        run_upstream(nlp, examples)
    calib = nlp.get_pipe("calib").fit(examples)
    n_tokens = sum(len(example.predicted) for example in examples)
    assert len(np.unique(calib.held_out.pairs.rows)) == n_tokens - len(examples)
    with pytest.warns(UserWarning, match="CW05"):
        (doc,) = nlp.pipe(preset_first(nlp, bare_docs(nlp, entity_docs(1, 52, nlp.vocab))))
    assert (doc[0]._.calib_score, doc[0]._.calib_raw) == (None, None)
    assert all(token._.calib_score is not None for token in doc[1:])


def test_labels_that_may_overlap_cannot_be_scaled_or_normalized():
    nlp = revive_recognizer("spancat")
    source = {"@calib_sources": "spacy-calib.Spancat.v1", "component": "spancat"}
    examples = run_upstream(nlp, entity_examples(nlp, 40, 51))
    for name, setting in (("scaling", VECTOR), ("normalize", True)):
        calib = nlp.add_pipe("calib", config={"source": source, name: setting})
        with pytest.raises(CalibError, match=says("C072", setting=name, layer="spans:sc", unit="token")):
            calib.fit(examples)
        assert not calib.fitted
        nlp.remove_pipe("calib")
    auto = {"n_groups": [1], "methods": ["beta"]}
    calib = nlp.add_pipe("calib", config={"source": source, "selection": auto}).fit(examples)
    tried = {trial["candidate"] for trial in calib.fit_info.selection["trials"]}
    assert tried == {"raw scores", "platt, 2 groups", "beta, 2 groups"}  # "O" has a map of its own
    (doc,) = nlp.pipe(bare_docs(nlp, entity_docs(1, 52, nlp.vocab)))
    assert all(token._.calib_score is not None for token in doc)


def test_normalize_is_read_from_the_pipe_and_kept_by_the_calibration(nlp):
    calib = nlp.get_pipe("calib")
    sums = {}
    for normalize in (False, True):
        calib.normalize = normalize
        assert calib.normalize == calib.tokens.normalize is normalize
        sums[normalize] = np.array([sum(token._.calib_scores.values()) for token in tokens_of(run(nlp, FRESH))])
    assert sums[True] == pytest.approx(np.ones(60))
    assert np.abs(sums[False] - 1).max() > 0.01
    assert isinstance(calib.tokens, TokenCalibration)
