"""A tiny untrained curated transformer (the kind of en_core_web_trf) goes through fit, save and load."""

import pytest
import spacy
from spacy.util import fix_random_seed

from spacy_calib.sources.find import _models_of
from tests.conftest import WORDS, examples_for, fit_calib, made_up_sentences

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({word for words in WORDS.values() for word in words})]
TRANSFORMER = {
    "model": {
        "@architectures": "spacy-curated-transformers.BertTransformer.v1",
        "vocab_size": len(PIECES), "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_width": 16, "intermediate_width": 16,
        "piece_encoder": {"@architectures": "spacy-curated-transformers.BertWordpieceEncoder.v1"},
        "with_spans": {"@architectures": "spacy-curated-transformers.WithStridedSpans.v1"},
    }
}  # fmt: skip
LISTENER = {
    "@architectures": "spacy-curated-transformers.LastTransformerLayerListener.v1",
    "width": 16,
    "pooling": {"@layers": "reduce_mean.v1"},
}
pytestmark = pytest.mark.filterwarnings("ignore:(?!.*CW0)")  # torch warns of itself


def pieces_of(model, X=None, Y=None):
    from curated_tokenizers import WordPieceProcessor

    model.attrs["wordpiece_processor"] = WordPieceProcessor(PIECES)
    return model


@pytest.fixture(scope="module")
def trf():
    pytest.importorskip("spacy_curated_transformers", reason="the package spacy-curated-transformers is not installed")
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("curated_transformer", name="transformer", config=TRANSFORMER)
    nlp.add_pipe("tagger", config={"model": {"tok2vec": LISTENER}})
    nlp.get_pipe("transformer").model.get_ref("piece_encoder").init = pieces_of
    examples = examples_for(nlp, 30, seed=1)
    nlp.initialize(lambda: examples)
    head = nlp.get_pipe("tagger").model.get_ref("output_layer")  # untrained heads are zero
    head.set_param("W", head.ops.xp.linspace(-1, 1, head.get_param("W").size, dtype="f").reshape(head.get_param("W").shape))
    nlp.add_pipe("calib", after="tagger")
    fit_calib(nlp, examples_for(nlp, 60, seed=2))
    return nlp


def test_fit_save_and_load(trf, tmp_path):
    texts = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(5, 4)]
    expected = [[token._.calib_score for token in doc] for doc in trf.pipe(texts)]
    # How many differ depends on the processor: the maps have steps.
    assert len({score for row in expected for score in row}) > 1
    trf.to_disk(tmp_path / "m")
    again = spacy.load(tmp_path / "m")
    for doc, row in zip(again.pipe(texts), expected, strict=True):
        assert [token._.calib_score for token in doc] == pytest.approx(row, abs=1e-5)
    assert again.get_pipe("calib").lookup.weights_changed() is False


def test_the_transformer_belongs_to_the_weights(trf):
    assert len(_models_of(trf, trf.get_pipe("tagger"))) == 2
