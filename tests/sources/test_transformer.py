"""A transformer pipeline goes through fit, evaluate and save/load; the head reads doc._.trf_data through a listener."""

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed

from tests.conftest import examples_for, fit_calib, made_up_sentences
from tests.made import category_docs
from tests.tiny_transformers import save_text_model, save_token_model

TRANSFORMER = {
    "@architectures": "spacy-transformers.TransformerModel.v3",
    "get_spans": {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 48, "stride": 32},
    "tokenizer_config": {"use_fast": True}, "transformer_config": {}, "mixed_precision": False, "grad_scaler_config": {},
}  # fmt: skip
LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
    "upstream": "*",
}
pytestmark = pytest.mark.filterwarnings("ignore")  # torch and transformers warn about each other


@pytest.fixture(autouse=True, scope="module")
def transformers():
    """Here, and not at the top: it takes five seconds to import them, in each worker."""
    pytest.importorskip("spacy_transformers", reason="the extra `transformers` is not installed")


@pytest.fixture(scope="module")
def trf(tmp_path_factory):
    """A transformer and a tagger, trained for a moment on made-up sentences."""
    folder, sentences = tmp_path_factory.mktemp("transformer"), made_up_sentences(100, 4)
    save_token_model(folder, *([[part[i] for part in sentence] for sentence in sentences] for i in (0, 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        fix_random_seed(0)
        nlp = spacy.blank("xx")
        nlp.add_pipe("transformer", config={"model": {**TRANSFORMER, "name": str(folder)}})
        nlp.add_pipe("tagger", config={"model": {"tok2vec": LISTENER}})
        examples = examples_for(nlp, 200, seed=1)
        optimizer = nlp.initialize(lambda: examples[:20])
        optimizer.learn_rate = 0.01
        for step in range(25):
            nlp.update(examples[8 * step : 8 * step + 8], sgd=optimizer)
        nlp.add_pipe("calib", after="tagger")
        fit_calib(nlp, examples_for(nlp, 120, seed=2))
        yield nlp


def test_fit_evaluate_save_and_load(trf, tmp_path):
    scores = trf.evaluate(examples_for(trf, 60, seed=3))
    assert scores["tag_acc"] > 0.5
    assert scores["calib_smce"] < 0.2
    texts = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(5, 4)]
    expected = [[t._.calib_score for t in doc] for doc in trf.pipe(texts)]
    trf.to_disk(tmp_path / "m")
    again = spacy.load(tmp_path / "m")
    got = [[t._.calib_score for t in doc] for doc in again.pipe(texts)]
    for one, other in zip(expected, got, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_categories_that_a_model_of_hugging_face_leaves(tmp_path, monkeypatch):
    pytest.importorskip("spacy_huggingface_pipelines", reason="spacy-huggingface-pipelines is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    texts = category_docs(60, 1)
    words = [[token.text for token in doc] for doc in texts]
    save_text_model(tmp_path / "model", words, [max(doc.cats, key=doc.cats.__getitem__) for doc in texts])
    nlp = spacy.blank("xx")
    nlp.add_pipe("hf_text_pipe", config={"model": str(tmp_path / "model")})
    source = {"@calib_sources": "spacy-calib.DocScores.v1", "component": "hf_text_pipe"}
    calib = nlp.add_pipe("calib", config={"source": source})
    gold = category_docs(120, 2, vocab=nlp.vocab)
    with nlp.select_pipes(disable=["calib"]):
        calib.fit([Example(nlp(Doc(nlp.vocab, words=[token.text for token in doc])), doc) for doc in gold])
    assert calib.labels == ("film", "food", "music")
    doc = nlp(" ".join(words[0]))
    likeliest = max(doc.cats, key=doc.cats.__getitem__)
    assert doc._.calib_raw == doc.cats[likeliest]
    assert doc._.calib_score == doc._.calib_cats[likeliest] != doc._.calib_raw
    nlp.to_disk(tmp_path / "saved")
    assert spacy.load(tmp_path / "saved")(doc.text)._.calib_cats == pytest.approx(doc._.calib_cats, abs=1e-5)
