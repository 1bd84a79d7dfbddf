import numpy as np
import pytest
import spacy
from spacy.language import Language

from spacy_calib.calibration.saved import unpack
from spacy_calib.errors import CalibError
from spacy_calib.pipe.component import Calibrator
from spacy_calib.pipe.saved import FITTED, dump
from tests.made import doc_scored, examples_before_calib, reads_given_scores, with_gold_tags

from ..conftest import examples_for

CONTEXT = {"@calib_contexts": "spacy-calib.Context.v1"}


def with_context(nlp: Language, context: dict = CONTEXT, n: int = 120, **settings) -> Language:
    """A pipe behind the tagger, fitted on made-up sentences."""
    calib = nlp.add_pipe("calib", after="tagger", config={"context": context, **settings})
    calib.fit(examples_before_calib(nlp, n, 2))
    return nlp


def texts(nlp: Language, n: int) -> list[str]:
    return [eg.predicted.text for eg in examples_for(nlp, n, seed=5)]


@pytest.fixture(scope="module")
def in_context(trained_bytes) -> Language:
    from ..conftest import revive

    return with_context(revive(trained_bytes), n=150, normalize=True)


def scores(docs) -> list[float | None]:
    return [token._.calib_score for doc in docs for token in doc]


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_a_stream_gives_what_single_docs_give(in_context, batch_size):
    given = [*texts(in_context, 20), "", " \n", "dog  cat."]
    assert scores(in_context.pipe(given, batch_size=batch_size)) == scores(map(in_context, given))


def test_it_survives_saving_whole(in_context, tmp_path):
    in_context.to_disk(tmp_path / "saved")
    again = spacy.load(tmp_path / "saved")
    given = texts(in_context, 5)
    assert scores(map(again, given)) == scores(map(in_context, given))
    assert again.get_pipe("calib").fit_info == in_context.get_pipe("calib").fit_info


def test_the_fit_says_what_it_learned(in_context):
    about = in_context.get_pipe("calib").fit_info.context
    assert about["kept"]
    assert about["forms"] > 5
    assert about["columns"][-2:] == ["confidence in the previous token", "confidence in the next token"]
    assert "the document's mean confidence" in about["columns"]
    assert set(in_context.get_pipe("calib").tokens.context.model_.weights) == {
        "line", "bends", "tag", "rival", "ending", "form", "before", "behind", "shape", "features",
    }  # fmt: skip


def test_a_label_that_the_model_holds_unlikely_is_scored_in_its_context_too(in_context):
    doc = in_context(texts(in_context, 1)[0])
    for token in doc:
        token.tag_ = "PUNCT"
    in_context.get_pipe("calib")(doc)
    assert all(token._.calib_score is not None for token in doc)


def test_a_single_document_gets_no_context_and_says_why(nlp):
    calib = nlp.add_pipe("calib", after="tagger", config={"context": CONTEXT})
    calib.fit(examples_before_calib(nlp, 1, 2))
    assert calib.tokens.context is None
    assert "needed" in calib.fit_info.context["why"]
    assert nlp("the dog saw")[0]._.calib_score is not None


def test_lemmas_have_context(nlp):
    source = {"@calib_sources": "spacy-calib.Softmax.v1", "component": "trainable_lemmatizer"}
    calib = nlp.add_pipe("calib", config={"context": CONTEXT, "source": source})
    calib.fit(examples_before_calib(nlp, 120, 2))
    assert calib.tokens.context is not None
    assert scores(nlp.pipe(texts(nlp, 5), batch_size=2)) == scores(map(nlp, texts(nlp, 5)))


@pytest.fixture(scope="module")
def of_two_kinds() -> Calibrator:
    """A pipe whose context looks at nothing but the scores of the token: with a likeliest score of .6, its second and third tag are right far
    more often than with one of .45, at the same scores; the likeliest is right far less often, and the second more often, where the second has .28.
    """
    rng = np.random.default_rng(0)
    tops, seconds = rng.choice([0.45, 0.6], (30, 20)), rng.choice([0.2, 0.28], (30, 20))
    thirds = rng.uniform(0.08, 0.11, (30, 20))
    chances = np.where(tops[..., None] > 0.5, [0.7, 0.15, 0.15, 0.0], [0.5, 0.03, 0.03, 0.44])
    chances[..., :2] += np.multiply.outer(seconds > 0.25, [-0.3, 0.1])
    golds = (rng.random((30, 20, 1)) > chances.cumsum(axis=2)).sum(axis=2).clip(0, 3)
    scores = np.stack([tops, seconds, thirds, np.zeros((30, 20))], axis=2)
    calib = reads_given_scores(
        context={**CONTEXT, "features": []}, recalibrator={"@calib_recalibrators": "spacy-calib.Platt.v1"}
    )
    return calib.fit([with_gold_tags(doc_scored(table), gold) for table, gold in zip(scores, golds, strict=True)])


def test_the_score_of_a_token_depends_on_its_neighbours(of_two_kinds):
    row, other = [0.6, 0.2, 0.1, 0.0], [0.1, 0.2, 0.6, 0.0]
    one, two = of_two_kinds(doc_scored([row, row])), of_two_kinds(doc_scored([row, other]))
    assert one[0]._.calib_raw == two[0]._.calib_raw
    assert one[0]._.calib_score != two[0]._.calib_score


def test_the_likeliest_tag_of_a_token_looks_at_the_second(of_two_kinds):
    low, high = of_two_kinds(doc_scored([[0.6, 0.2, 0.1, 0.0], [0.6, 0.28, 0.1, 0.0]]))
    assert high._.calib_score < low._.calib_score - 0.05


def test_the_other_tags_of_a_token_look_at_its_likeliest(of_two_kinds):
    low, high = of_two_kinds(doc_scored([[0.45, 0.2, 0.1, 0.0], [0.6, 0.2, 0.1, 0.0]]))
    for other in "BC":
        assert high._.calib_scores[other] > 1.4 * low._.calib_scores[other]


def test_a_tag_has_its_score_in_context_whether_it_reaches_the_threshold_or_not(of_two_kinds, monkeypatch):
    doc = of_two_kinds(doc_scored([[0.45, 0.2, 0.1, 0.0], [0.6, 0.2, 0.1, 0.0]]))
    above = [token._.calib_scores["C"] for token in doc]
    for token in doc:
        token.tag_ = "C"
    monkeypatch.setattr(of_two_kinds, "threshold", 0.2)
    of_two_kinds(doc)
    assert all("C" not in token._.calib_scores for token in doc)
    # What the features say of a token is less then: its other entries are below the threshold too.
    assert [token._.calib_score for token in doc] == pytest.approx(above, abs=0.1)


def test_features_are_named_in_the_config_and_saved(nlp):
    calib = with_context(nlp, {**CONTEXT, "features": ["neighbours", "document"]}).get_pipe("calib")
    assert calib.fit_info.context["columns"][:2] == ["confidence in the previous token", "confidence in the next token"]
    saved = calib.to_bytes()
    state = unpack(saved, FITTED)
    assert state["context"]["settings"] == {"features": ["neighbours", "document"], "when": "always", "shrink": 0.0}
    calib.from_bytes(saved)
    assert [feature.name for feature in calib.tokens.context.features] == ["neighbours", "document"]
    state["context"]["settings"]["features"] = ["neighbours", "nobody"]
    with pytest.raises(CalibError, match=r"C010.*some of document, hints, neighbours"):
        calib.from_bytes(dump(state))


@pytest.mark.parametrize("given", ["nobody", "*", "spacy-calib.Hints.v1"])
def test_names_of_no_feature(nlp, given):
    with pytest.raises(CalibError, match=r"C001.*features must be some of document, hints, neighbours"):
        nlp.add_pipe("calib", config={"context": {**CONTEXT, "features": [given]}})
