"""The pipe: annotate, fit, save, and everything that can happen to the component that it reads."""

import copy
import multiprocessing
import pickle
import sys
import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_calib import CalibError, DocCalib, register
from spacy_calib.doc.store import add_block, delete_blocks
from spacy_calib.pipe.component import Calibrator
from spacy_calib.pipe.scorer import corpus_of
from tests.cli.conftest import SPANS_KEY, entity_docs, entity_examples, revive_recognizer
from tests.conftest import examples_for, gold_doc, made_up_sentences, run_upstream, train_pipeline
from tests.docstrings import run_examples
from tests.forked import in_own_process
from tests.made import examples_before_calib

TEXT = "the old dog saw a duck . light run red ."


def values(doc):
    return [(t._.calib_score, t._.calib_raw, t._.calib_scores) for t in doc]


def softmax(logits):
    e = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_raw_scores_are_the_softmax_of_the_head(fitted):
    doc = fitted(TEXT)
    tagger = fitted.get_pipe("tagger")
    expected = softmax(tagger.model.predict([doc])[0])
    for token, row in zip(doc, expected, strict=True):
        assert token._.calib_raw == pytest.approx(row[tagger.labels.index(token.tag_)], abs=1e-12)
        kept = {label for label, p in zip(tagger.labels, row, strict=True) if p >= 0.01}
        assert set(token._.calib_scores) == kept
        assert list(token._.calib_scores.values()) == sorted(token._.calib_scores.values(), reverse=True)


def test_doc_view_agrees_with_the_tokens_and_is_read_only(fitted):
    doc = fitted(TEXT)
    view = doc._.calib
    assert len(view) == len(view.tags) == len(view.raw) == len(view.calibrated)
    for token in doc:
        own = view.rows == token.i
        assert dict(zip(view.tags[own], view.calibrated[own], strict=True)) == token._.calib_scores
    with pytest.raises(ValueError, match="read-only"):
        view.calibrated[0] = 1.0
    dense = view.to_dense(list(fitted.get_pipe("tagger").labels))
    assert dense.shape == (len(doc), len(fitted.get_pipe("tagger").labels))
    assert np.isfinite(dense).all()


def test_batched_pipe_gives_what_single_calls_give(fitted):
    texts = [" ".join(w for w, _ in s) for s in made_up_sentences(30, 5)] + ["", "   ", "dog"]
    single = [values(fitted(text)) for text in texts]
    batched = [values(doc) for doc in fitted.pipe(texts, batch_size=7)]
    for one, other in zip(single, batched, strict=True):
        assert [v[0] for v in one] == pytest.approx([v[0] for v in other], abs=1e-6)
        assert [list(v[2] or ()) for v in one] == [list(v[2] or ()) for v in other]


def test_no_tokens_only_spaces_and_very_long(fitted):
    assert fitted("")._.calib is None
    (space,) = fitted("  \n ")
    assert (space.tag_, space._.calib_score) == ("PUNCT", space._.calib_scores["PUNCT"])
    long = Doc(fitted.vocab, words=["dog", "saw"] * 50_000)
    with fitted.select_pipes(enable=["tok2vec", "tagger", "calib"]):
        long = fitted(long)
    assert len(long._.calib.scored) == 100_000
    assert long._.calib.scored.all()
    assert long[99_999]._.calib_score is not None


def test_running_again_replaces_the_block(fitted):
    doc = fitted(TEXT)
    before = values(doc)
    keys = list(doc.user_data)
    doc = fitted.get_pipe("calib")(doc)
    assert list(doc.user_data) == keys
    assert values(doc) == before


def test_cache_sees_a_block_that_was_written_anew(fitted):
    doc = fitted(TEXT)
    old = doc[0]._.calib_score
    block = copy.copy(next(v for k, v in doc.user_data.items() if k[1] == "_calib"))
    block["calibrated"] = np.full_like(block["calibrated"], 0.123)
    delete_blocks(doc.user_data, "calib")
    add_block(doc.user_data, "calib", block)
    assert old != 0.123
    assert doc[0]._.calib_score == 0.123


def test_unfitted_passes_raw_through_and_warns_once(nlp):
    nlp.add_pipe("calib", after="tagger")
    with pytest.warns(UserWarning, match=r"CW01.*not fitted.*`python -m spacy calib fit MODEL DATA OUTPUT`.*pretrained"):
        doc = nlp(TEXT)
    assert [t._.calib_score for t in doc] == [t._.calib_raw for t in doc]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp(TEXT)


def test_excluded_source_gives_none_and_one_warning(fitted, tmp_path):
    fitted.to_disk(tmp_path / "m")
    alone = spacy.load(tmp_path / "m", exclude=["tagger"])
    with pytest.warns(UserWarning, match=r"CW02.*no component 'tagger'"):
        doc = alone(TEXT)
    assert doc[0]._.calib_score is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(t._.calib_score is None for d in alone.pipe([TEXT] * 5) for t in d)


def test_disabled_source_leaves_no_annotation_and_no_score(fitted):
    with fitted.select_pipes(disable=["tagger"]), pytest.warns(UserWarning, match="no token carries a tag annotation"):
        doc = fitted(TEXT)
    assert doc[0]._.calib_score is None
    assert doc._.calib is None


def test_own_tok2vec():
    nlp = train_pipeline(["tagger"], listener=False, steps=2)
    calib = nlp.add_pipe("calib", after="tagger")
    calib.fit(examples_before_calib(nlp, 60, 2))
    doc = nlp(TEXT)
    expected = softmax(nlp.get_pipe("tagger").model.predict([doc])[0]).max(axis=1)
    assert [t._.calib_raw for t in doc] == pytest.approx(expected.tolist())


def test_labels_removed_or_reordered_are_refused(fitted):
    data = fitted.get_pipe("calib").to_bytes()
    tagger = fitted.get_pipe("tagger")
    first, second, *rest = tagger.cfg["labels"]
    tagger.cfg["labels"] = [second, first, *rest]
    with pytest.raises(CalibError, match="C020.*order"):
        fitted.get_pipe("calib").from_bytes(data)
    tagger.cfg["labels"] = [first, *rest]
    with pytest.raises(CalibError, match=f"C020.*'{second}' is gone"):
        fitted.get_pipe("calib").from_bytes(data)
    tagger.cfg["labels"] = [second, first, *rest]
    with pytest.raises(CalibError, match="C020"):
        fitted(TEXT)


def test_labels_appended_later_use_the_pooled_map(fitted):
    calib = fitted.get_pipe("calib")
    tagger = fitted.get_pipe("tagger")
    doc = fitted(TEXT)
    tagger.cfg["labels"] = [*tagger.labels, "NEW"]
    layer = tagger.model.get_ref("output_layer")
    n = layer.get_dim("nO")
    w, b = layer.get_param("W"), layer.get_param("b")
    layer._dims["nO"] = n + 1
    layer.set_param("W", np.vstack([w, w[-1:]]))
    layer.set_param("b", np.append(b, b[-1] + 3).astype("f"))
    with pytest.warns(UserWarning, match="CW03.*1 labels"):
        doc = fitted(TEXT)
    view = doc._.calib
    new = view.tags == "NEW"
    assert new.any()
    assert view.calibrated[new] == pytest.approx(calib.tokens.maps.pooled_.predict(view.raw[new]))


def test_attribute_prefix_of_another_pipe_is_refused(fitted):
    with pytest.raises(CalibError, match="C025.*'calib'"):
        fitted.add_pipe("calib", name="second", after="tagger")


def test_extension_of_somebody_else_is_refused():
    Doc.set_extension("taken_by_others", default=1, force=True)
    with pytest.raises(CalibError, match=r"C025.*Doc\._\.taken_by_others"):
        register("taken_by_others")
    with pytest.raises(CalibError, match="C001.*identifier"):
        register("not an identifier")
    register("twice")
    register("twice")


def test_fit_records_what_it_was_fitted_on(fitted):
    info = fitted.get_pipe("calib").fit_info
    assert info.docs == 80
    assert info.pairs == info.table[0].pairs == sum(row.pairs for row in info.table[1:])
    assert info.versions["spacy"] == spacy.__version__
    assert [row.group for row in info.table] == ["all", "1", "2"]


def test_fit_without_gold(nlp):
    calib = nlp.add_pipe("calib", after="tagger")
    with nlp.select_pipes(disable=["calib"]):
        docs = [nlp(TEXT)]
    examples = [Example(doc, Doc(nlp.vocab, words=[t.text for t in doc])) for doc in docs]
    with pytest.raises(CalibError, match="C030.*no gold tag"):
        calib.fit(examples)
    with pytest.raises(CalibError, match="C032"):
        calib.fit([])


def test_fit_with_unknown_gold_only(nlp):
    calib = nlp.add_pipe("calib", after="tagger")
    with nlp.select_pipes(disable=["calib"]):
        doc = nlp(TEXT)
    gold = Doc(nlp.vocab, words=[t.text for t in doc], tags=["XX"] * len(doc))
    with pytest.raises(CalibError, match="C031"):
        calib.fit([Example(doc, gold)])


def test_fit_before_its_source(nlp):
    calib = nlp.add_pipe("calib", before="tagger")
    with pytest.raises(CalibError, match="C028"):
        calib.fit(examples_for(nlp, 3, seed=1))


def test_nan_logits_are_refused_with_the_document(fitted):
    fitted.get_pipe("tagger").model.get_ref("output_layer").get_param("b")[0] = np.nan
    with pytest.raises(CalibError, match="C024.*'the old dog"):
        fitted(TEXT)


def test_error_handler_skips_the_batch(fitted):
    fitted.get_pipe("tagger").model.get_ref("output_layer").get_param("b")[0] = np.nan
    seen = []
    fitted.set_error_handler(lambda name, proc, docs, error: seen.append((name, len(docs))))
    assert list(fitted.pipe([TEXT, TEXT])) == []
    assert seen == [("calib", 2)]


def test_scores_are_plain_numbers_and_worked_on_the_same_pairs(fitted):
    scores = {k: v for k, v in fitted.evaluate(examples_for(fitted, 40, seed=9)).items() if k.startswith("calib_")}
    names = ("smce", "gmce", "ece", "brier", "nll", "smece")
    assert set(scores) == {f"calib_{n}{s}" for n in names for s in ("", "_raw")} | {"calib_gmce_per_group"}
    for key, value in scores.items():
        if key != "calib_gmce_per_group":
            assert type(value) is float, key
    per_group = scores["calib_gmce_per_group"]
    assert list(per_group) == ["1", "2"]
    for row in per_group.values():
        assert {key: type(value) for key, value in row.items()} == {"gmce": float, "gmce_raw": float, "pairs": int, "tags": int}
    assert scores["calib_gmce"] == pytest.approx(np.mean([row["gmce"] for row in per_group.values()]))


def test_scores_without_gold_or_tokens_are_none(fitted):
    examples = [Example(fitted.make_doc("dog"), Doc(fitted.vocab, words=["dog"]))]
    scores = fitted.evaluate(examples)
    assert scores["calib_smce"] is None
    assert scores["calib_gmce_raw"] is None
    assert scores["calib_gmce_per_group"] is None


def test_unfitted_pipe_scores_raw_as_calibrated(nlp):
    nlp.add_pipe("calib", after="tagger")
    with pytest.warns(UserWarning, match="CW01"):
        scores = nlp.evaluate(examples_for(nlp, 20, seed=9))
    assert scores["calib_smce"] == scores["calib_smce_raw"]
    assert scores["calib_gmce"] is None


def test_unknown_gold_stays_in_as_misses_and_missing_gold_is_left_out(fitted):
    sentence = made_up_sentences(1, 3)[0]
    base = gold_doc(fitted.vocab, sentence)
    words = [t.text for t in base]

    def brier(tags):
        reference = Doc(fitted.vocab, words=words, tags=tags)
        return fitted.evaluate([Example(Doc(fitted.vocab, words=words), reference)])["calib_brier_raw"]

    doc = fitted(Doc(fitted.vocab, words=words))
    view = doc._.calib
    gold = [t.tag_ for t in base]
    hit = np.array([gold[row] == tag for row, tag in zip(view.rows, view.tags, strict=True)])
    assert brier(gold) == pytest.approx(np.mean((view.raw - hit) ** 2))
    unknown = ["XX", *gold[1:]]
    assert brier(unknown) == pytest.approx(np.mean((view.raw - (hit & (view.rows > 0))) ** 2))
    missing = ["", *gold[1:]]
    keep = view.rows > 0
    assert brier(missing) == pytest.approx(np.mean((view.raw[keep] - hit[keep]) ** 2))


def test_misaligned_tokens_and_spaces_are_left_out(fitted):
    predicted = Doc(fitted.vocab, words=["the", "dog", "  ", "saw"], spaces=[True, False, False, False])
    reference = Doc(
        fitted.vocab, words=["the", "do", "g", "saw"], spaces=[True, False, False, False], tags=["DET", "NOUN", "NOUN", "VERB"]
    )
    example = Example(fitted(predicted), reference)
    pairs = corpus_of([example], "calib", fitted.get_pipe("tagger").labels).pairs().pairs
    assert set(pairs.rows.tolist()) == {0, 3}
    assert pairs.n_units == 2


def test_a_shared_map_can_be_judged_by_frequency_groups(nlp):
    config = {
        "grouping": {"@calib_groupings": "spacy-calib.SCW.v1"},
        "scorer": {"@scorers": "spacy-calib.Scorer.v1", "n_groups": 3},
    }
    calib = nlp.add_pipe("calib", after="tagger", config=config)
    calib.fit(examples_before_calib(nlp, 60, 2))
    assert len(calib.tokens.maps.groups) == 1
    scores = nlp.evaluate(examples_for(nlp, 40, seed=9))
    per_group = scores["calib_gmce_per_group"]
    assert list(per_group) == ["1", "2", "3"]
    assert sum(row["tags"] for row in per_group.values()) == len(calib.labels)
    assert scores["calib_gmce"] == pytest.approx(np.mean([row["gmce"] for row in per_group.values()]))


def entity_pipeline(factory):
    """A fitted calib pipe behind a recognizer or span categorizer; the factory may be one of ours with the weights of spaCy's."""
    nlp, name = revive_recognizer(factory), factory.removeprefix("calib_")
    source = "Ner" if name.endswith("ner") else "Spancat"
    block = {"@calib_sources": f"spacy-calib.{source}.v1", "component": name}
    calib = nlp.add_pipe("calib", config={"source": block, "token_scores": True})
    examples = entity_examples(nlp, 60, seed=51)
    with nlp.select_pipes(disable=["calib", "ner"] if factory == "ner" else ["calib"]):
        run_upstream(nlp, examples)
    calib.fit(examples)
    return nlp


FACTORIES = ["ner", "calib_ner", "spancat"]
ENTITY_TEXT = "Ann lives in New York . Acme bought Bank of Rome in Paris ."


@pytest.fixture(scope="module")
def entity_pipelines():
    """factory -> fitted pipeline. Not to be changed."""
    return {factory: entity_pipeline(factory) for factory in FACTORIES}


def spans_of(doc):
    return list(doc.spans[SPANS_KEY]) if SPANS_KEY in doc.spans else list(doc.ents)


def span_values_of(doc):
    return [(s.start, s.end, s.label_, s._.calib_score, s._.calib_raw, s._.calib_accept) for s in spans_of(doc)]


def same_spans(one, other, exactly=True):
    """Equal spans; the scores exactly, or but for the rounding of float32 that an isotonic map does not smooth."""
    assert [values[:3] for values in one] == [values[:3] for values in other]
    if exactly:
        assert one == other
    else:
        assert [values[4] for values in one] == pytest.approx([values[4] for values in other], abs=1e-5)


@pytest.mark.parametrize("factory", FACTORIES)
def test_entities_are_scored_alone_in_batches_and_after_saving(factory, entity_pipelines, tmp_path):
    nlp = entity_pipelines[factory]
    texts = [doc.text for doc in entity_docs(20, 52)] + ["", "  ", ENTITY_TEXT]
    single = [nlp(text) for text in texts]
    assert all(value[3] is not None for doc in single for value in span_values_of(doc))
    assert sum(len(spans_of(doc)) for doc in single) > 20
    for one, other in zip(single, nlp.pipe(texts, batch_size=7), strict=True):
        same_spans(span_values_of(one), span_values_of(other), exactly=False)
    nlp.to_disk(tmp_path / "m")
    loaded = spacy.load(tmp_path / "m")
    again = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    for other in (loaded, again):
        assert other.get_pipe("calib").to_bytes() == nlp.get_pipe("calib").to_bytes()
        same_spans(span_values_of(other(ENTITY_TEXT)), span_values_of(single[-1]), exactly=False)


@pytest.mark.parametrize("factory", FACTORIES)
def test_entity_scores_survive_pickling_the_pipeline_and_the_doc(factory, entity_pipelines):
    nlp = entity_pipelines[factory]
    doc = nlp(ENTITY_TEXT)
    same_spans(span_values_of(pickle.loads(pickle.dumps(nlp))(ENTITY_TEXT)), span_values_of(doc), exactly=False)
    packed = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    stored = next(iter(DocBin(store_user_data=True).from_bytes(packed).get_docs(spacy.blank("xx").vocab)))
    for other in (pickle.loads(pickle.dumps(doc)), doc.copy(), stored):
        same_spans(span_values_of(other), span_values_of(doc))
        assert other._.calib.ents == doc._.calib.ents


@pytest.mark.parametrize("method", ["fork", "spawn"])
@in_own_process
def test_entities_in_worker_processes(method, entity_pipelines):
    """What the recognizer kept of a Doc never leaves its process: the scores must be on the Doc when it does."""
    nlp = entity_pipelines["calib_ner"]
    texts = [doc.text for doc in entity_docs(6, 53)]
    expected = [span_values_of(doc) for doc in nlp.pipe(texts, batch_size=3)]
    multiprocessing.set_start_method(method, force=True)
    for one, other in zip(expected, nlp.pipe(texts, n_process=2, batch_size=3), strict=True):
        same_spans(one, span_values_of(other), exactly=False)


@pytest.mark.parametrize("factory", FACTORIES)
def test_entity_figures_of_the_scorer_are_plain_numbers(factory, entity_pipelines):
    nlp = entity_pipelines[factory]
    scores = nlp.evaluate(entity_examples(nlp, 40, seed=54))
    of_tokens, of_spans = ("calib", "calib_span") if factory == "spancat" else ("calib_token", "calib")
    for key in ("smce", "gmce", "ece", "brier", "nll", "smece"):
        for suffix in ("", "_raw"):
            assert type(scores[f"{of_spans}_{key}{suffix}"]) is float
            assert type(scores[f"{of_tokens}_{key}{suffix}"]) is float
    assert scores[f"{of_spans}_brier"] < scores[f"{of_spans}_brier_raw"]
    per_group = scores[f"{of_spans}_gmce_per_group"]
    assert list(per_group) == ["1", "2", "3"]
    assert sum(row["tags"] for row in per_group.values()) == 3


def test_evaluate_reads_gold_that_ends_in_white_space(fitted):
    """Gold words may end in a line break with a space behind; the tokenizer makes one token of the two."""
    texts, tags = ["the", "dog", "eats", "\n"], ["DET", "NOUN", "VERB", "X"]
    reference = Doc(fitted.vocab, words=texts, tags=tags)
    (example,) = run_upstream(fitted, [Example(fitted.make_doc(reference.text), reference)])
    view = example.predicted._.calib
    hits = np.array([tags[row] == tag for row, tag in zip(view.rows, view.tags, strict=True)])
    words = view.rows < 3
    expected = np.mean((view.raw[words] - hits[words]) ** 2)
    assert fitted.evaluate([example])["calib_brier_raw"] == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:.*CW01")
@pytest.mark.parametrize("function", [register, Calibrator.attach, DocCalib.to_dense])
def test_the_example_in_its_docstring_holds(function):
    run_examples(function, **vars(sys.modules[function.__module__]))
