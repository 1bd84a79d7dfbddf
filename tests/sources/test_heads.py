"""Heads: every kind that can be read, and what the lemmatizer's edit trees become, and half precision, of which a fit warns."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.annotations import get_annotation
from spacy_calib.errors import CalibError
from spacy_calib.pairs.scores import DenseScores, LogitScores, SparseScores
from spacy_calib.sources.heads import SoftmaxSource, half_precision_components, has_half_precision
from spacy_calib.sources.source import to_numpy
from spacy_calib.types import Marginals
from tests.conftest import examples_for, fit_calib, run_other_pipes
from tests.sources.ner import TOK2VEC

TEXT = "the old dog saw a duck . light run red ."
KINDS = {"tagger": "tag", "morphologizer": "morph", "senter": "sent", "trainable_lemmatizer": "lemma"}


def in_pairs(examples):
    """The texts of two examples in one: gold of sentence starts needs some inside of texts."""
    golds = [
        Doc.from_docs([first.reference, second.reference]) for first, second in zip(examples[::2], examples[1::2], strict=True)
    ]
    return [Example(Doc(gold.vocab, words=[token.text for token in gold]), gold) for gold in golds]


@pytest.mark.parametrize("component", KINDS)
def test_fit_annotate_and_score(nlp, component):
    config = {"source": {"@calib_sources": "spacy-calib.Softmax.v1", "component": component}}
    calib = nlp.add_pipe("calib", after=component, config=config)
    fit_calib(nlp, in_pairs(examples_for(nlp, 60, seed=2)))
    doc = nlp(TEXT)
    annotation = get_annotation(KINDS[component])
    for token in doc:
        label = annotation.label(token)
        if token._.calib_score is not None and token._.calib_raw >= 0.01:
            assert token._.calib_scores[label] == token._.calib_score
        assert label == "" or token._.calib_scores
    assert sum(t._.calib_score is not None for t in doc) >= len(doc) - 1
    assert calib.fit_info.layer == KINDS[component]
    assert sum(calib.tokens.maps.groups.counts) > 0
    assert nlp.evaluate(in_pairs(examples_for(nlp, 40, seed=6)))["calib_gmce_per_group"]


def test_lemmas_merge_the_trees_that_give_them(nlp):
    pipe = nlp.get_pipe("trainable_lemmatizer")
    doc = nlp("dogs eats saw")
    source = SoftmaxSource("trainable_lemmatizer")
    logits = pipe.model.predict([doc])[0].astype(np.float64)
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = exp / exp.sum(axis=1, keepdims=True)
    merged = source.read(pipe, [doc]).marginals_above(0.0)
    for row, token in enumerate(doc):
        expected: dict[str, float] = {}
        for column, tree in enumerate(pipe.labels):
            lemma = pipe.trees.apply(tree, token.text)
            if lemma is not None and p[row, column] >= 1e-6:
                expected[lemma] = expected.get(lemma, 0.0) + p[row, column]
        own = merged.rows == row
        got = {merged.names[i]: merged.scores[i] for i in np.flatnonzero(own)}
        assert got == pytest.approx(expected)
    assert len(merged.names) == len(merged)


def test_the_tag_of_a_lemma_is_the_likeliest_of_its_trees():
    """One tree takes an s from the end, the other from the beginning: of "ss" both make "s"."""
    nlp = spacy.blank("xx")
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": TOK2VEC}
    pipe = nlp.add_pipe("trainable_lemmatizer", config={"min_tree_freq": 1, "model": model})
    gold = Doc(nlp.vocab, words=["dogs", "star"], lemmas=["dog", "tar"])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["dogs", "star"]), gold)])
    source, head = SoftmaxSource("trainable_lemmatizer"), pipe.model.get_ref("output_layer")
    for likelier in (0, 1):
        head.set_param("b", np.eye(2, dtype="f")[likelier])
        merged = source.read(pipe, [Doc(nlp.vocab, words=["ss"])]).marginals_above(0.0)
        assert (list(merged.names), merged.tags.tolist()) == (["s"], [likelier])
        assert merged.scores == pytest.approx([1.0])


def test_counting_trees_does_not_add_trees(nlp):
    pipe = nlp.get_pipe("trainable_lemmatizer")
    before = len(pipe.trees)
    references = [example.reference for example in examples_for(nlp, 10, seed=1)]
    references[0][0].lemma_ = "somethingelse"
    counts = SoftmaxSource("trainable_lemmatizer").count_gold(pipe, references)
    assert len(pipe.trees) == before
    assert sum(counts.values()) == sum(len(doc) for doc in references)
    assert sum(counts[label] for label in SoftmaxSource().labels(pipe)) >= sum(counts.values()) - 1


def test_head_that_normalizes_is_not_normalized_twice(nlp):
    doc = nlp(TEXT)
    pipe = nlp.get_pipe("tagger")
    plain = SoftmaxSource().read(pipe, [doc]).marginals_above(0.0)
    pipe.model.get_ref("output_layer").attrs["softmax_normalize"] = True
    for source in (SoftmaxSource(), SoftmaxSource(normalized=True)):
        assert source.read(pipe, [doc]).marginals_above(0.0).scores == pytest.approx(plain.scores, abs=1e-6)


def test_temperature_of_the_head(nlp):
    doc = nlp(TEXT)
    pipe = nlp.get_pipe("tagger")
    logits = pipe.model.predict([doc])[0].astype(np.float64)
    pipe.model.get_ref("output_layer").attrs["softmax_temperature"] = 2.0
    exp = np.exp(logits / 2)
    expected = exp / exp.sum(axis=1, keepdims=True)
    assert SoftmaxSource().read(pipe, [doc]).marginals_above(0.0).scores == pytest.approx(expected.ravel())


def test_model_without_a_softmax_layer_needs_the_setting():
    model = SimpleNamespace(layers=(), attrs={})
    with pytest.raises(CalibError, match="normalized must be true or false"):
        SoftmaxSource()._output_form(model)
    assert SoftmaxSource(normalized=False)._output_form(model) == (False, 1.0)


def test_a_model_of_another_make_is_run_as_a_whole(nlp):
    pipe = nlp.get_pipe("tagger")
    docs = [nlp("dogs eats saw"), nlp("a cat")]
    logits = SoftmaxSource("tagger").read(pipe, docs).logits
    assert np.array_equal(logits, np.concatenate(pipe.model.predict(docs)))
    name, pipe.model.name = pipe.model.name, "own"
    try:
        assert np.array_equal(SoftmaxSource("tagger").read(pipe, docs).logits, logits)
    finally:
        pipe.model.name = name


def as_cupy(array):
    return SimpleNamespace(get=lambda: array)


def as_torch(array):
    return SimpleNamespace(detach=lambda: SimpleNamespace(cpu=lambda: SimpleNamespace(numpy=lambda: array)))


@pytest.mark.parametrize("wrap", [as_cupy, as_torch, np.asarray, np.ndarray.tolist])
def test_to_numpy(wrap):
    array = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(to_numpy(wrap(array)), array)


def test_logits_in_blocks_give_what_one_block_gives():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(50, 7)).astype("f") * 4
    whole = LogitScores(logits).marginals_above(0.01)
    small = LogitScores(logits)
    small._CELLS = 21
    parts = small.marginals_above(0.01)
    assert all(np.array_equal(getattr(whole, name), getattr(parts, name)) for name in ("rows", "tags", "scores"))
    assert LogitScores(logits[:0]).marginals_above(0.01).n_tokens == 0


@pytest.mark.parametrize(("cells", "rows"), [(21, 3), (7, 1), (6, 1), (0, 1)])
def test_a_block_of_logits_has_as_many_rows_as_fit_and_at_least_one(monkeypatch, cells, rows):
    scores = LogitScores(np.zeros((4, 7)))
    scores._CELLS = cells
    taken, above = [], scores._above
    monkeypatch.setattr(scores, "_above", lambda logits, *rest: taken.append(len(logits)) or above(logits, *rest))
    assert scores.marginals_above(0.01).n_tokens == 4
    assert taken == [min(rows, 4 - at) for at in range(0, 4, rows)]


@pytest.mark.parametrize("offset", [0.0, 550.0, 700.0, -700.0, 1e5])
def test_logits_far_from_zero_give_the_same_probabilities(offset):
    logits = np.random.default_rng(0).normal(0, 3, size=(40, 7))
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    wanted = exp / exp.sum(axis=1, keepdims=True)
    # Of one row alone, or of one that stands beside a row of another size.
    moved = logits + np.where(np.arange(40) % 3, offset, 0.0)[:, None]
    for given in (logits + offset, moved):
        found = LogitScores(given).marginals_above(0.0)
        assert found.scores == pytest.approx(wanted.ravel(), rel=1e-9)
        for threshold in wanted.ravel()[:20].tolist():
            kept = LogitScores(given).marginals_above(threshold)
            assert kept.scores.min() >= threshold
            assert len(kept) == np.count_nonzero(found.scores >= threshold)
        assert LogitScores(given).scores_at(found.rows, found.tags) == pytest.approx(found.scores, rel=1e-12)


def test_huge_logits_do_not_overflow():
    scores = LogitScores(np.array([[3e38, -3e38, 0.0]], dtype="f")).marginals_above(0.0)
    assert scores.scores.tolist() == [1.0, 0.0, 0.0]


def test_sparse_scores_at():
    marginals = Marginals(np.array([0, 0, 2]), np.array([1, 3, 0]), np.array([0.5, 0.25, 0.75]), 3, ["a", "b", "c"])
    sparse = SparseScores(marginals)
    assert sparse.scores_at(np.array([0, 2, 1]), np.array([3, 0, 0])).tolist() == [0.25, 0.75, 0.0]
    assert sparse.marginals_above(0.5).names == ["a", "c"]
    assert DenseScores(np.array([[0.5, 0.5]])).scores_at(np.array([0]), np.array([1])).tolist() == [0.5]


MIXED = SimpleNamespace(_mixed_precision=True, _model=None)


def test_float16_weights_of_a_head(nlp):
    assert half_precision_components(nlp, "tagger") == []
    head = nlp.get_pipe("tagger").model.get_ref("output_layer")
    head.set_param("W", head.get_param("W").astype(np.float16))
    assert half_precision_components(nlp, "tagger") == ["tagger"]
    assert half_precision_components(nlp, "morphologizer") == []
    assert half_precision_components(nlp, "") == []


def test_a_component_that_is_listened_to(nlp):
    nlp.get_pipe("tok2vec").model.shims.append(MIXED)
    assert half_precision_components(nlp, "tagger") == ["tok2vec"]
    nlp.get_pipe("tok2vec").listener_map["tagger"] = []
    nlp.get_pipe("tok2vec").listener_map.pop("tagger")
    assert half_precision_components(nlp, "tagger") == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_weights_of_torch(dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from thinc.api import PyTorchWrapper

    module = torch.nn.Linear(2, 2).to(getattr(torch, dtype))
    assert has_half_precision(PyTorchWrapper(module)) == (dtype != "float32")


def test_a_fit_warns_once(nlp):
    nlp.get_pipe("tok2vec").model.shims.append(MIXED)
    calib = nlp.add_pipe("calib", after="tagger")
    examples = run_other_pipes(nlp, examples_for(nlp, 60, seed=2))
    with pytest.warns(UserWarning, match=r"CW24.* 'calib' was fitted to scores of 'tok2vec', computed at half precision"):
        calib.fit(examples)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")  # old catalogue warns of its own
        calib.fit(examples)
    assert not [warning for warning in warned if "CW24" in str(warning.message)]
