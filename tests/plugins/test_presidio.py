"""Presidio's spaCy recognizer with calibrated scores: against the real package, on a small recognizer."""

import importlib
import sys

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_model_from_config

from spacy_calib import CalibError
from spacy_calib.calibration.cutoffs import RecallCutoffs
from tests.cli.conftest import entity_docs, entity_examples, trained_recognizer
from tests.conftest import run_upstream
from tests.forked import in_own_process

TEXTS = [doc.text for doc in entity_docs(60, 5)]


def english(factory: str) -> Language:
    """The small recognizer with the language that Presidio asks for."""
    saved = trained_recognizer("ner")
    config = saved["config"].copy()
    config["nlp"]["lang"], config["components"]["ner"]["factory"] = "en", factory
    return load_model_from_config(config).from_bytes(saved["bytes"], exclude=["tokenizer"])


def calibrate(nlp: Language, attr: str = "calib") -> Language:
    """The same with a fitted calib pipe."""
    examples = run_upstream(nlp, entity_examples(nlp, 150, seed=2))
    source = {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}
    nlp.add_pipe("calib", name=attr, config={"attr": attr, "source": source}).fit(examples)
    return nlp


@pytest.fixture(scope="module")
def stock_folder(tmp_path_factory):
    """A pipeline with nothing of ours."""
    folder = tmp_path_factory.mktemp("presidio") / "stock"
    english("ner").to_disk(folder)
    return folder


@pytest.fixture(scope="module")
def calibrated_folder(stock_folder):
    folder = stock_folder.parent / "calibrated"
    calibrate(spacy.load(stock_folder)).to_disk(folder)
    return folder


@pytest.fixture
def own_nlp(calibrated_folder):
    """To be changed."""
    return spacy.load(calibrated_folder)


@pytest.fixture(scope="module")
def loaded(calibrated_folder):
    return spacy.load(calibrated_folder)


@pytest.fixture
def nlp(loaded):
    """Loaded once for all tests, which leave it as it is."""
    before = loaded.get_pipe("calib").to_bytes()
    yield loaded
    assert loaded.pipe_names == ["tok2vec", "tagger", "ner", "calib"], "take own_nlp"
    assert loaded.get_pipe("calib").to_bytes() == before, "take own_nlp"


@pytest.fixture(scope="module")
def presidio():
    """The package; on the CPU, as it would move spaCy to a GPU that it sees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRESIDIO_DEVICE", "cpu")
        yield pytest.importorskip("presidio_analyzer", reason="the extra `presidio` is not installed")


@pytest.fixture
def engine_class(presidio):
    from spacy_calib.plugins.presidio import CalibratedSpacyNlpEngine

    return CalibratedSpacyNlpEngine


@pytest.fixture
def configure(presidio):
    """NerModelConfiguration."""
    from presidio_analyzer.nlp_engine import NerModelConfiguration

    return NerModelConfiguration


MAPPED = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}  # what Presidio makes of them


def scores_of(results) -> dict[tuple[int, int, str], float]:
    """(start, end, type) -> score of what Presidio's spaCy recognizer found."""
    own = [r for r in results if r.recognition_metadata["recognizer_name"] == "SpacyRecognizer"]
    return {(r.start, r.end, r.entity_type): r.score for r in own}


def expected_of(doc: Doc, attr: str = "calib") -> dict[tuple[int, int, str], float]:
    """What they should be. Presidio drops results whose score is 0."""
    found = {
        (ent.start_char, ent.end_char, MAPPED[ent.label_]): ent._.get(f"{attr}_score")
        for ent in doc.ents
        if ent.label_ in MAPPED
    }
    return {key: score for key, score in found.items() if score > 0}


@pytest.fixture
def analyzing(presidio):
    """A function that makes an analyzer with spaCy's recognizer alone: it is made, and runs, in a tenth of the time."""
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer

    def make(engine, *languages: str):
        given = list(languages or ("en",))
        own = [SpacyRecognizer(supported_language=one) for one in given]
        registry = presidio.RecognizerRegistry(recognizers=own, supported_languages=given)
        return presidio.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=given)

    return make


def test_results_carry_the_calibrated_scores(presidio, engine_class, nlp):
    analyzer = presidio.AnalyzerEngine(nlp_engine=engine_class(nlp=nlp))
    found = [scores_of(analyzer.analyze(text, "en")) for text in TEXTS]
    assert found == [expected_of(nlp(text)) for text in TEXTS]
    scores = [score for one in found for score in one.values()]
    assert len(scores) > 40
    assert all(type(score) is float and 0 < score <= 1 for score in scores)
    assert len(set(scores)) > 2
    assert {kind for one in found for _, _, kind in one} <= {*MAPPED.values()}


@pytest.fixture(scope="module")
def keeping() -> Language:
    """What `spacy calib fit --component ner` writes: a recognizer that keeps its probabilities, whose scores come with the decoding."""
    return calibrate(english("calib_ner"))


@pytest.mark.parametrize("n_process", [1, 2])
@pytest.mark.parametrize("pipeline", ["nlp", "keeping"])
def test_a_batch_gives_the_same_as_single_texts(presidio, analyzing, engine_class, request, pipeline, n_process):
    nlp = request.getfixturevalue(pipeline)
    batch = presidio.BatchAnalyzerEngine(analyzing(engine_class(nlp=nlp)))
    found = batch.analyze_iterator(TEXTS[:20], "en", batch_size=8, n_process=n_process)
    wanted = [expected_of(nlp(text)) for text in TEXTS[:20]]
    assert [scores_of(results) for results in found] == [pytest.approx(one, abs=1e-5) for one in wanted]
    assert len({score for one in wanted for score in one.values()}) > 2


def test_a_batch_keeps_its_contexts(engine_class, nlp):
    engine = engine_class(nlp=nlp)
    single = [engine.process_text(text, "en") for text in TEXTS[:3]]
    made = list(engine.process_batch([(text, {"n": i}) for i, text in enumerate(TEXTS[:3])], "en", as_tuples=True))
    assert [(text, context) for text, _, context in made] == [(text, {"n": i}) for i, text in enumerate(TEXTS[:3])]
    assert [artifacts.scores for _, artifacts, _ in made] == [pytest.approx(artifacts.scores, abs=1e-6) for artifacts in single]


def test_the_artifacts_are_json(engine_class, nlp):
    # log_decision_process=True writes them.
    artifacts = engine_class(nlp=nlp).process_text(TEXTS[0], "en")
    assert len(artifacts.scores) == len(artifacts.entities) > 0
    assert '"scores": [' in artifacts.to_json()


@pytest.mark.parametrize("text", ["", " ", "the old apple saw a duck ."])
def test_texts_without_entities(analyzing, engine_class, nlp, text):
    assert not nlp(text).ents, "the example must be one without entities"
    assert analyzing(engine_class(nlp=nlp)).analyze(text, "en") == []


def with_ruler(nlp, **config) -> Language:
    """The same with NORP for "dog", which has no calibrated score, behind the recognizer."""
    ruler = nlp.add_pipe("entity_ruler", last=True, config=config)
    ruler.add_patterns([{"label": "NORP", "pattern": [{"LOWER": "dog"}]}])
    return nlp


OVER = {"overwrite_ents": True}


@pytest.mark.filterwarnings("ignore:.*CW78")
def test_an_entity_without_a_score_keeps_the_one_that_presidio_gives(analyzing, engine_class, configure, own_nlp):
    doc = with_ruler(own_nlp, **OVER)(next(text for text in TEXTS if text.count("dog") == 1))
    (norp,) = [ent for ent in doc.ents if ent.label_ == "NORP"]
    assert norp._.calib_score is None, "the example must be one without a score"
    for settings, score in ((configure(), 0.85), (configure(default_score=0.3), 0.3)):
        engine = engine_class(nlp=own_nlp, ner_model_configuration=settings)
        found = scores_of(analyzing(engine).analyze(doc.text, "en"))
        assert found == {**expected_of(doc), (norp.start_char, norp.end_char, "NRP"): score}


@pytest.mark.filterwarnings("ignore:.*CW78")
def test_a_score_that_is_not_calibrated_is_marked(presidio, analyzing, engine_class, own_nlp):
    from spacy_calib.plugins.presidio import UncalibratedScore

    engine = engine_class(nlp=with_ruler(own_nlp, **OVER))
    analyzer = analyzing(engine)
    text = next(text for text in TEXTS if "dog" in text and len(own_nlp(text).ents) > 1)
    results = analyzer.analyze(text, "en")
    assert {result.entity_type == "NRP" for result in results} == {True, False}
    for result in results:
        assert isinstance(result.score, UncalibratedScore) == (result.entity_type == "NRP")
        assert "calibrated" not in result.recognition_metadata
    engine.mark_results(analyzer.registry)
    marked = analyzer.analyze(text, "en")
    kept = [[(result.entity_type, result.start, result.score) for result in each] for each in (marked, results)]
    assert kept[0] == kept[1]
    for result in marked:
        assert result.recognition_metadata["calibrated"] == (result.entity_type != "NRP")
    assert [recognizer.name for recognizer in analyzer.registry.recognizers] == ["CalibratedSpacyRecognizer"]


def test_labels_without_a_calibrated_score_are_warned_of_once(engine_class, own_nlp):
    engine, text = engine_class(nlp=with_ruler(own_nlp, **OVER)), next(text for text in TEXTS if "dog" in text)
    with pytest.warns(UserWarning, match="label 'NORP' have no calibrated score: they keep the default_score of") as caught:
        _ = [engine.process_text(text, "en") for _ in range(2)]
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore:.*CW78")
def test_the_multiplier_leaves_probabilities_alone(analyzing, engine_class, configure, own_nlp):
    with_ruler(own_nlp)
    settings = configure(low_score_entity_names=[*MAPPED.values(), "NRP"], low_confidence_score_multiplier=0.5)
    analyzer = analyzing(engine_class(nlp=own_nlp, ner_model_configuration=settings))
    for text in TEXTS[:20]:
        found = scores_of(analyzer.analyze(text, "en"))
        without_score = [score for key, score in found.items() if key[2] == "NRP"]
        assert without_score == [0.85 * 0.5] * text.count("dog")
        assert {key: score for key, score in found.items() if key[2] != "NRP"} == expected_of(own_nlp(text))


@pytest.mark.parametrize(("per", "values"), [("all", {"all": None}), ("label", {"PER": None, "LOC": 0.3, "ORG": 1.0})])
def test_flagged_stretches_are_reported_too(analyzing, engine_class, own_nlp, per, values):
    own_nlp.get_pipe("calib").tokens.recall_cutoffs = RecallCutoffs(0.99, 0.95, per, values)
    plain = analyzing(engine_class(nlp=own_nlp))
    analyzer = analyzing(engine_class(nlp=own_nlp, flagged=True))
    n_more = 0
    for text in TEXTS[:15]:
        doc = own_nlp(text)
        entities = {(ent.start, ent.end) for ent in doc.ents}
        group = doc.spans["calib_doubtful"]
        wanted = expected_of(doc)
        for span, score in zip(group, group.attrs["scores"].tolist(), strict=True):
            if (span.start, span.end) not in entities and span.label_ in MAPPED:
                wanted[span.start_char, span.end_char, MAPPED[span.label_]] = max(score, 1e-6)  # 0 is left out
        found = scores_of(analyzer.analyze(text, "en"))
        # Of results of one type, one inside another, Presidio keeps the higher.
        assert found.items() <= wanted.items()
        assert set(scores_of(plain.analyze(text, "en"))) <= set(found)
        said = {i for start, end, _ in found for i in range(start, end)}
        assert said >= {i for start, end, _ in wanted for i in range(start, end)}
        n_more += len(found) - len(expected_of(doc))
        # The Doc's own group keeps its labels.
        assert {span.label_ for span in group} <= {"PER", "LOC", "ORG"}
    assert n_more > 5


@pytest.mark.parametrize("ignored", ["LOC", "LOCATION", "PER"])
def test_ignored_labels_do_not_shift_the_scores_of_the_others(analyzing, engine_class, configure, nlp, ignored):
    engine = engine_class(nlp=nlp, ner_model_configuration=configure(labels_to_ignore=[ignored]))
    analyzer = analyzing(engine)
    gone = MAPPED.get(ignored, ignored)
    for text in TEXTS:
        wanted = {key: score for key, score in expected_of(nlp(text)).items() if key[2] != gone}
        assert scores_of(analyzer.analyze(text, "en")) == wanted


@pytest.mark.filterwarnings("ignore:.*CW78")
def test_two_languages_in_one_engine(analyzing, engine_class, nlp, stock_folder):
    # Only one of them is calibrated: the other keeps Presidio's scores.
    engine = engine_class(nlp={"en": nlp, "xx": spacy.load(stock_folder)})
    analyzer = analyzing(engine, "en", "xx")
    for text in TEXTS[:10]:
        assert scores_of(analyzer.analyze(text, "en")) == expected_of(nlp(text))
    assert {score for text in TEXTS[:10] for score in scores_of(analyzer.analyze(text, "xx")).values()} == {0.85}


def test_presidios_provider_makes_the_engine(analyzing, engine_class, calibrated_folder, nlp):
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    settings = {
        "nlp_engine_name": "spacy",
        "models": [{"lang_code": "en", "model_name": str(calibrated_folder)}],
        "ner_model_configuration": {"labels_to_ignore": ["LOC", "ORG"]},
    }
    engine = NlpEngineProvider(nlp_engines=(engine_class,), nlp_configuration=settings).create_engine()
    assert isinstance(engine, engine_class)
    assert engine.is_loaded()
    analyzer = analyzing(engine)
    for text in TEXTS[:20]:
        persons = {key: score for key, score in expected_of(nlp(text)).items() if key[2] == "PERSON"}
        assert scores_of(analyzer.analyze(text, "en")) == persons


@pytest.mark.parametrize(("options", "sentence"), [
    ({"flagged": True}, r"flagged must be False until .* \(`python -m spacy calib threshold --recall` finds"),
    ({"attr": "sure"}, r"attr must be .*\(calib\), but 'sure' was given"),
])  # fmt: skip
def test_settings_that_do_not_fit_the_pipe_are_refused(engine_class, nlp, options, sentence):
    with pytest.raises(CalibError, match=rf"\[C001\] {sentence}"):
        engine_class(nlp=nlp, **options)


def test_either_models_or_pipelines(engine_class, nlp):
    with pytest.raises(CalibError, match=r"\[C001\] models must be .* but neither was given"):
        engine_class()
    with pytest.raises(CalibError, match=r"\[C001\] models must be .* but both was given"):
        engine_class([{"lang_code": "en", "model_name": "a"}], nlp=nlp)


def test_a_missing_pipeline_is_not_downloaded(analyzing, engine_class):
    engine = engine_class([{"lang_code": "en", "model_name": "en_core_web_lg_of_nobody"}])
    with pytest.raises(CalibError, match=r"\[C050\] Cannot load the pipeline 'en_core_web_lg_of_nobody'"):
        analyzing(engine)
    with pytest.raises(ValueError, match="model_name"):
        engine_class([{"lang_code": "en"}]).load()


def test_a_pipeline_without_calibration_is_refused(engine_class, stock_folder):
    with pytest.raises(CalibError, match=r"\[C027\] .* it has: tok2vec, tagger, ner"):
        engine_class(nlp=spacy.load(stock_folder))
    engine = engine_class([{"lang_code": "en", "model_name": str(stock_folder)}])
    with pytest.raises(CalibError, match=r"\[C027\]"):
        engine.load()
    assert not engine.is_loaded()


def test_a_calibrated_tagger_is_no_calibrated_recognizer(engine_class, fitted):
    with pytest.raises(CalibError, match=r"\[C065\] The pipe 'calib' calibrates 'tagger'"):
        engine_class(nlp=fitted)


def test_another_attribute(analyzing, engine_class, stock_folder):
    nlp = calibrate(spacy.load(stock_folder), attr="sure")
    analyzer = analyzing(engine_class(nlp=nlp, attr="sure"))
    found = [scores_of(analyzer.analyze(text, "en")) for text in TEXTS]
    assert found == [expected_of(nlp(text), attr="sure") for text in TEXTS]


@in_own_process
def test_without_presidio_the_module_says_what_to_install(hide_package):
    hide_package("presidio_analyzer", "spacy_calib.plugins.presidio")
    with pytest.raises(CalibError, match=r'\[C064\] .*pip install "spacy-calib\[presidio\]"'):
        importlib.import_module("spacy_calib.plugins.presidio")


@in_own_process
def test_a_broken_presidio_is_not_called_missing(hide_package, monkeypatch, tmp_path):
    hide_package("presidio_analyzer", "spacy_calib.plugins.presidio")
    monkeypatch.delitem(sys.modules, "presidio_analyzer")
    (tmp_path / "presidio_analyzer").mkdir()
    (tmp_path / "presidio_analyzer" / "__init__.py").write_text("import phonenumbers_of_nobody", encoding="utf8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'phonenumbers_of_nobody'"):
        importlib.import_module("spacy_calib.plugins.presidio")
