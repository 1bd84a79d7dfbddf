"""Span categorizers: what they leave on the Doc, read, calibrated and judged."""

import math
import warnings
from functools import cache

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_calib.errors import CalibError
from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.sources.span_scores import SpancatSource
from tests.conftest import TOK2VEC, fit_calib, made_up_sentences, revive, run_upstream, train_briefly

KEY = "sc"
TEXT = "the light saw run a red duck ."


def gold_doc(vocab, sentence, key=KEY) -> Doc:
    """NP over determiner, adjectives and noun, N over the noun: every noun with a determiner is covered twice."""
    words, tags = zip(*sentence, strict=True)
    doc = Doc(vocab, words=words)
    spans = []
    for i, tag in enumerate(tags):
        if tag == "NOUN":
            spans.append(Span(doc, i, i + 1, label="N"))
            start = i
            while start and tags[start - 1] in ("DET", "ADJ"):
                start -= 1
            if start < i:
                spans.append(Span(doc, start, i + 1, label="NP"))
    doc.spans[key] = spans
    return doc


def examples_for(nlp, n, seed, key=KEY) -> list[Example]:
    references = [gold_doc(nlp.vocab, sentence, key) for sentence in made_up_sentences(n, seed)]
    return [Example(Doc(nlp.vocab, words=[t.text for t in ref]), ref) for ref in references]


@cache
def train(factory):
    """A pipeline with a span categorizer, trained once for the whole run, as config and bytes."""
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    model = {
        "@architectures": "spacy.SpanCategorizer.v1",
        "tok2vec": TOK2VEC,
        "reducer": {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 16},
        "scorer": {"@layers": "spacy.LinearLogistic.v1" if factory == "spancat" else "Softmax.v2"},
    }
    config = {"model": model, "suggester": {"@misc": "spacy.ngram_suggester.v1", "sizes": [1, 2, 3]}, "spans_key": KEY}
    nlp.add_pipe(factory, name="spancat", config={**config, **({"threshold": 0.1} if factory == "spancat" else {})})
    return train_briefly(nlp, examples_for(nlp, 60, seed=1), 12, 0.01)


@pytest.fixture(scope="module", params=["spancat", "spancat_singlelabel"])
def trained(request):
    return train(request.param)


def with_calib(trained, **config):
    nlp = revive(trained)
    source = {"@calib_sources": "spacy-calib.Spancat.v1", "component": "spancat"}
    grouping = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 2}
    nlp.add_pipe("calib", config={"source": source, "grouping": grouping, **config})
    return nlp


@pytest.fixture
def nlp(trained):
    """A span categorizer with a calib pipe that is not fitted."""
    return with_calib(trained)


@pytest.fixture(scope="module")
def fitted_bytes(trained):
    nlp = with_calib(trained)
    fit_calib(nlp, examples_for(nlp, 80, seed=2))
    return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}


@pytest.fixture
def fitted(fitted_bytes):
    """The same, fitted."""
    return revive(fitted_bytes)


def test_raw_scores_are_those_of_the_component_and_calibrated_ones_stand_beside_them(fitted):
    doc = fitted(TEXT)
    group = doc.spans[KEY]
    assert len(group) > 3
    raw = np.asarray(group.attrs["scores"], dtype=np.float64).reshape(-1)
    calibrated = group.attrs["calib_scores"]
    assert (calibrated.shape, calibrated.dtype) == ((len(group),), np.float64)
    assert [span._.calib_raw for span in group] == pytest.approx(raw.tolist())
    assert [span._.calib_score for span in group] == calibrated.tolist()
    assert not np.allclose(calibrated, raw)
    assert all(span._.calib_accept is None for span in group)
    ents = doc._.calib.ents
    assert [(e.start, e.end, e.label, e.score, e.event) for e in ents] == sorted(
        (s.start, s.end, s.label_, s._.calib_score, "exact") for s in group
    )
    assert doc._.calib.candidates == ()


def test_a_tokens_marginal_is_that_of_the_best_span_that_covers_it(fitted):
    doc = fitted(TEXT)
    group = doc.spans[KEY]
    scores = np.asarray(group.attrs["scores"], dtype=np.float64).reshape(-1)
    pipe = fitted.get_pipe("spancat")
    read = SpancatSource("spancat").read(pipe, [doc])
    labels = ["O", *pipe.labels]
    dense = np.zeros((len(doc), len(labels)))
    dense[read.marginals.rows, read.marginals.tags] = read.marginals.scores
    expected = np.zeros_like(dense)
    for span, score in zip(group, scores, strict=True):
        for token in range(span.start, span.end):
            column = labels.index(span.label_)
            expected[token, column] = max(expected[token, column], score)
    expected[:, 0] = 1 - expected[:, 1:].max(axis=1)
    np.testing.assert_allclose(dense, expected, atol=1e-12)
    for token in doc:
        best = labels[1 + int(expected[token.i, 1:].argmax())] if expected[token.i, 1:].any() else "O"
        assert token._.calib_raw == pytest.approx(expected[token.i, labels.index(best)])


def test_the_fit_learns_spans_and_tokens(fitted):
    calib = fitted.get_pipe("calib")
    spans = calib.fit_info.spans
    assert calib.labels == ("O", *fitted.get_pipe("spancat").labels)
    assert spans.labels == list(fitted.get_pipe("spancat").labels)
    assert (spans.event, spans.fallback, spans.candidates) == ("exact", "", 0)
    assert spans.spans > 100
    assert 0 < spans.right < spans.spans
    table = spans.table
    assert [row.group for row in table] == ["all", *calib.spans.groups.names]
    assert sum(row.pairs for row in table[1:]) == table[0].pairs == spans.spans
    assert table[0].calibrated < table[0].raw
    assert calib.tokens.maps.groups.names[0] == "O"
    assert calib.tokens.maps.groups.n_singletons == 1


def test_evaluated_figures_by_hand(fitted):
    examples = examples_for(fitted, 40, seed=4)
    scores = fitted.evaluate(examples)
    run_upstream(fitted, examples)
    raw, calibrated, right = [], [], []
    for example in examples:
        gold = {(s.start, s.end, s.label_) for s in example.reference.spans[KEY]}
        for span in example.predicted.spans[KEY]:
            raw.append(span._.calib_raw)
            calibrated.append(span._.calib_score)
            right.append((span.start, span.end, span.label_) in gold)
    assert sum(row["pairs"] for row in scores["calib_span_gmce_per_group"].values()) == len(right)
    for suffix, values in (("", np.array(calibrated)), ("_raw", np.array(raw))):
        assert scores[f"calib_span_brier{suffix}"] == pytest.approx(((values - right) ** 2).mean())
        clipped = np.clip(values, 1e-6, 1 - 1e-6)
        assert scores[f"calib_span_nll{suffix}"] == pytest.approx(-np.log(np.where(right, clipped, 1 - clipped)).mean())
    # Precision of spaCy's own scorer is the share of right ones.
    assert scores[f"spans_{KEY}_p"] == pytest.approx(np.mean(right))


def test_each_gold_label_of_a_token_is_a_hit(fitted):
    # "light" is covered by NP and by N: both pairs are hits.
    words, tags = TEXT.split(), ["DET", "NOUN", "VERB", "VERB", "DET", "ADJ", "NOUN", "PUNCT"]
    example = Example(Doc(fitted.vocab, words=words), gold_doc(fitted.vocab, list(zip(words, tags, strict=True))))
    pipe, calib = fitted.get_pipe("spancat"), fitted.get_pipe("calib")
    example.predicted.spans[KEY] = [Span(example.predicted, 0, 2, "NP"), Span(example.predicted, 1, 2, "N")]
    example.predicted.spans[KEY].attrs["scores"] = np.array([0.6, 0.8])
    example.predicted = calib(example.predicted)
    labels = ("O", *pipe.labels)
    pairs = corpus_of([example], "calib", labels).pairs().pairs
    found = {(row, labels[tag], score, hit) for row, tag, score, hit in zip(
        pairs.rows.tolist(), pairs.tags.tolist(), pairs.scores.round(6).tolist(), pairs.hits.tolist(), strict=True
    )}  # fmt: skip
    inside = {(0, "NP", 0.6, True), (0, "O", 0.4, False), (1, "NP", 0.6, True), (1, "N", 0.8, True), (1, "O", 0.2, False)}
    assert found == inside | {(row, "O", 1.0, row in (2, 3, 7)) for row in range(2, 8)}
    judged = corpus_of([example], "calib", labels).span_pairs(pipe.labels)
    assert judged.pairs.scores.tolist() == [0.6, 0.8]
    assert judged.pairs.hits.tolist() == [True, True]
    assert judged.documents.tolist() == [0, 0]


def test_missing_gold_takes_no_part(fitted):
    examples = examples_for(fitted, 10, seed=5)
    whole = fitted.evaluate(examples)
    bare = examples_for(fitted, 20, seed=6)
    for example in bare:
        del example.reference.spans[KEY]
    with_missing = run_upstream(fitted, [*examples_for(fitted, 10, seed=5), *bare])
    labels = fitted.get_pipe("spancat").labels
    n = sum(row["pairs"] for row in whole["calib_span_gmce_per_group"].values())
    assert len(corpus_of(with_missing, "calib", ("O", *labels)).span_pairs(labels)) == n


def test_an_absent_key_gives_none_and_one_warning(fitted):
    docs = [fitted.make_doc(TEXT) for _ in range(3)]
    with pytest.warns(UserWarning, match=rf"\[CW02\].*doc.spans has no key '{KEY}'") as caught:
        docs = [fitted.get_pipe("calib")(doc) for doc in docs]
    assert len(caught) == 1
    for doc in docs:
        assert doc._.calib is None
        assert all(token._.calib_score is None for token in doc)
        assert Span(doc, 0, 2, "NP")._.calib_score is None


def test_no_spans_is_no_fault(fitted):
    doc = fitted.make_doc(TEXT)
    doc.spans[KEY] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = fitted.get_pipe("calib")(doc)
    assert doc._.calib.ents == ()
    assert [token._.calib_raw for token in doc] == [1.0] * len(doc)
    assert doc.spans[KEY].attrs["calib_scores"].shape == (0,)


def test_spans_without_scores_give_none_and_one_warning(fitted):
    doc = fitted.make_doc(TEXT)
    doc.spans[KEY] = [Span(doc, 0, 2, "NP")]
    with pytest.warns(UserWarning, match=r"\[CW02\].*has no scores for its spans, or was changed"):
        doc = fitted.get_pipe("calib")(doc)
    assert doc._.calib is None
    assert doc.spans[KEY][0]._.calib_score is None


def test_a_group_that_was_changed_after_scoring(fitted):
    doc = fitted(TEXT)
    before = {(s.start, s.end, s.label_): s._.calib_score for s in doc.spans[KEY]}
    added = next(Span(doc, start, start + 4, "NP") for start in range(len(doc) - 3) if (start, start + 4, "NP") not in before)
    doc.spans[KEY].append(added)
    # The new one has no score, the others keep theirs.
    for span in doc.spans[KEY]:
        assert span._.calib_score == before.get((span.start, span.end, span.label_))
    assert len(doc._.calib.ents) == len(before)
    # Now the scores are not those of the spans any more: nothing is read, and nothing older is left.
    with pytest.warns(UserWarning, match=r"\[CW02\].*was changed since they were made"):
        doc = fitted.get_pipe("calib")(doc)
    assert doc._.calib is None
    assert all(span._.calib_score is None for span in doc.spans[KEY])
    old_scores = doc.spans[KEY].attrs.get("calib_scores")
    assert old_scores is None or (len(old_scores) == len(doc.spans[KEY]) and np.isnan(old_scores).all())


def test_spans_with_a_label_that_the_component_does_not_know_have_no_score(fitted):
    doc = fitted.make_doc(TEXT)
    doc.spans[KEY] = [Span(doc, 0, 2, "NP"), Span(doc, 1, 2, "OTHER")]
    doc.spans[KEY].attrs["scores"] = np.array([0.5, 0.9])
    doc = fitted.get_pipe("calib")(doc)
    known, other = doc.spans[KEY]
    assert known._.calib_raw == 0.5
    assert other._.calib_score is None
    scores = doc.spans[KEY].attrs["calib_scores"]
    assert scores[0] == known._.calib_score
    assert math.isnan(scores[1])
    assert doc[1]._.calib_score is None  # its best span is the unknown one
    assert doc[0]._.calib_raw == 0.5


def test_not_fitted_passes_the_scores_of_the_component_through(nlp):
    with pytest.warns(UserWarning, match=r"\[CW01\]"):
        doc = nlp(TEXT)
    for span, score in zip(doc.spans[KEY], doc.spans[KEY].attrs["calib_scores"], strict=True):
        assert span._.calib_score == span._.calib_raw == score
    scores = nlp.evaluate(examples_for(nlp, 5, seed=7))
    assert scores["calib_span_gmce"] is None
    assert scores["calib_span_gmce_per_group"] is None
    assert scores["calib_span_smce"] == scores["calib_span_smce_raw"]


def test_the_source(trained):
    nlp = revive(trained)
    pipe, source = nlp.get_pipe("spancat"), SpancatSource()
    assert source.component == "spancat"
    assert source.reads_output(pipe)
    assert source.annotation(pipe).name == f"spans:{KEY}"
    assert source.span_labels(pipe) == tuple(pipe.labels)
    assert not source.supports(nlp.add_pipe("sentencizer"))
    assert not source.is_trained(spacy.blank("xx").add_pipe("spancat"))


def test_fitting_on_docs_that_the_component_did_not_see_is_refused(nlp):
    with pytest.raises(CalibError, match=rf"\[C032\].*doc.spans has no key '{KEY}'"):
        nlp.get_pipe("calib").fit(examples_for(nlp, 5, seed=2))


def test_spans_that_the_component_left_out_are_candidates_where_they_are_asked_for(trained):
    nlp = revive(trained)
    pipe, doc = nlp.get_pipe("spancat"), nlp(TEXT)
    indices, scores = pipe.predict([doc])
    suggested = {
        (int(start), int(end), column): float(score)
        for (start, end), row in zip(indices.dataXd.tolist(), np.asarray(scores).tolist(), strict=True)
        for column, score in enumerate(row[: len(pipe.labels)])
    }
    found = {(span.start, span.end, pipe.labels.index(span.label_)) for span in doc.spans[KEY]}
    read = SpancatSource("spancat", lowest=0.02).read(pipe, [doc])
    spans = read.spans
    keys = list(zip(spans.starts.tolist(), spans.ends.tolist(), spans.labels.tolist(), strict=True))
    expected = {key: score for key, score in suggested.items() if key in found or score >= 0.02}
    assert dict(zip(keys, spans.scores.tolist(), strict=True)) == pytest.approx(expected)
    assert {key for key, chosen in zip(keys, spans.on_doc.tolist(), strict=True) if chosen} == found
    assert len(keys) > len(found)
    plain = SpancatSource("spancat").read(pipe, [doc])
    assert len(plain.spans) == len(found)
    with pytest.raises(CalibError, match="C001.*lowest"):
        SpancatSource("spancat", lowest=1.5)


def test_texts_too_short_for_the_suggester_have_no_candidates():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("spancat", config={"suggester": {"@misc": "spacy.ngram_suggester.v1", "sizes": [3]}})
    doc = nlp.make_doc("Ann Lee met Bob")
    gold = doc.copy()
    gold.spans["sc"] = [Span(gold, 0, 3, "P")]
    nlp.initialize(lambda: [Example(doc, gold)])
    read = SpancatSource("spancat", lowest=0.1).read(pipe, [nlp("Hi"), nlp("Yo")])
    assert (len(read.spans), read.marginals_above(0.0).n_tokens) == (0, 2)
