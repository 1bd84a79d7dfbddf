"""A pipe that was fitted on one kind of text, and a few labelled documents of another."""

import random
from dataclasses import replace

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.calibration.cutoffs import Cutoffs
from spacy_calib.errors import CalibError
from spacy_calib.metrics.proper import log_losses
from spacy_calib.pairs.pairing import top_pairs
from spacy_calib.pipe.record.fit_record import read_record
from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.types import Groups
from tests.conftest import gold_doc, made_up_sentences, run_upstream
from tests.doc.test_span_attributes import draw_examples, make_calib
from tests.made import doc_scored, reads_given_scores, with_gold_tags

WRONG = 0.4


def odd_examples(nlp, n_documents: int, seed: int) -> list[Example]:
    """Documents of ten sentences in which so many of the gold tags are others than the tagger knows the words by: it is too sure there."""
    rng = random.Random(seed)
    found = []
    for number in range(n_documents):
        tags = ["DET", "NOUN", "VERB", "ADJ"]
        sentences = [
            [(word, rng.choice(tags) if rng.random() < WRONG else tag) for word, tag in sentence]
            for sentence in made_up_sentences(10, 100 * seed + number)
        ]
        gold = Doc.from_docs([gold_doc(nlp.vocab, sentence) for sentence in sentences])
        found.append(Example(Doc(nlp.vocab, words=[token.text for token in gold]), gold))
    with nlp.select_pipes(disable=[name for name in nlp.pipe_names if name.startswith("calib")]):
        return run_upstream(nlp, found)


def judged(nlp, examples):
    """(scores of the likeliest tags, hits) of a pipeline's pipe `calib`."""
    calib = nlp.get_pipe("calib")
    for example in examples:
        calib(example.predicted)
    found = corpus_of(examples, calib.attr, calib.lookup.labels()).pairs()
    top = top_pairs(found.pairs)
    return found.calibrated[top], found.pairs.hits[top]


def test_five_documents_make_scores_true(fitted):
    calib, others = fitted.get_pipe("calib"), odd_examples(fitted, 20, 7)
    before, hits = judged(fitted, others)
    assert before.mean() - hits.mean() > 0.1
    maps, seen = calib.tokens.maps, calib.learned.seen_texts
    assert calib.adapt(odd_examples(fitted, 5, 3)) is calib
    after, _ = judged(fitted, others)
    assert abs(after.mean() - hits.mean()) < 0.05
    assert log_losses(after, hits).mean() < 0.95 * log_losses(before, hits).mean()
    assert calib.tokens.maps is maps
    assert len(calib.learned.seen_texts.digests) > len(seen.digests)
    (made,) = calib.fit_info.adaptations
    assert made["docs"] == 5
    assert made["tokens"]["after"]["log_loss"] < made["tokens"]["before"]["log_loss"]
    assert made["tokens"]["leading"]["intercept"] < 0
    assert repr(calib).endswith("documents, adapted to 5 Docs of the file>")
    assert read_record(calib).accuracy == pytest.approx(made["tokens"]["right"] / made["tokens"]["entries"])
    figures = fitted.meta["performance"]
    assert figures["calib_nll"] < figures["calib_nll_raw"]


def test_a_second_adaptation_follows_the_first_and_both_are_saved(fitted, trained_bytes):
    calib = fitted.get_pipe("calib")
    calib.adapt(odd_examples(fitted, 4, 3)).adapt(odd_examples(fitted, 4, 5))
    assert len(calib.tokens.adaptations) == len(calib.fit_info.adaptations) == 2
    second = calib.fit_info.adaptations[1]["tokens"]
    assert second["before"]["expected"] == pytest.approx(
        second["right"] / second["entries"], abs=0.06
    )  # the first did most of it
    data = calib.to_bytes()
    doc = odd_examples(fitted, 1, 9)[0].predicted
    wanted = [token._.calib_score for token in calib(doc)]
    calib.learned = type(calib.learned)()
    calib.from_bytes(data)
    assert [token._.calib_score for token in calib(doc)] == wanted
    assert calib.fit_info.adaptations[1]["tokens"] == second


def test_labels_below_the_threshold_are_adapted_too(nlp):
    calib = nlp.add_pipe("calib", after="tagger", config={"threshold": 0.2})
    calib.fit(odd_examples(nlp, 12, 1))
    examples = odd_examples(nlp, 3, 2)
    doc = examples[0].predicted
    doc[0].tag_ = next(label for label in calib.labels if label not in calib(doc)[0]._.calib_scores)
    before = np.array([token._.calib_score for token in calib(doc)])
    calib.adapt(odd_examples(nlp, 5, 3))
    after = [token._.calib_score for token in calib(doc)]
    (adaptation,) = calib.tokens.adaptations
    leads = np.arange(len(doc)) > 0  # the label of the first one is not the likeliest
    tags = np.array([calib.labels.index(token.tag_) for token in doc])
    np.testing.assert_allclose(after, adaptation.adjust(before, leads, tags), atol=1e-12)


def test_an_adaptation_that_fails_changes_nothing(fitted):
    calib = fitted.get_pipe("calib")
    before = calib.learned
    bare = [Example(example.predicted, example.predicted.copy()) for example in odd_examples(fitted, 2, 3)]
    for example in bare:
        for token in example.reference:
            token.tag_ = ""
    with pytest.raises(CalibError, match="C030"):
        calib.adapt(bare)
    assert calib.learned is before


def test_a_pipe_that_is_not_fitted_is_refused(nlp):
    calib = nlp.add_pipe("calib", after="tagger")
    with pytest.raises(CalibError, match="C216"):
        calib.adapt(odd_examples(nlp, 2, 3))


def test_one_document_warns_and_leaves_no_record(fitted):
    calib = fitted.get_pipe("calib")
    with pytest.warns(UserWarning, match=r"\[CW13\]"):
        calib.adapt(odd_examples(fitted, 1, 3))
    assert calib.learned.record is None
    assert calib.fit_info.adaptations[0]["tokens"]["after"] is None
    assert "calib_smce" not in fitted.meta.get("performance", {})


def test_the_documents_of_the_fit_are_noticed(nlp):
    calib = nlp.add_pipe("calib", after="tagger").fit(odd_examples(nlp, 6, 3))
    with pytest.warns(UserWarning, match=r"\[CW14\] 100 %"):
        calib.adapt(odd_examples(nlp, 6, 3))


def test_an_adaptation_stands_after_the_context(nlp):
    """What it moves are the scores that the context gave to the same Docs; tokens without gold are looked at by both."""
    context = {"@calib_contexts": "spacy-calib.Context.v1"}
    calib = nlp.add_pipe("calib", after="tagger", config={"context": context}).fit(odd_examples(nlp, 14, 1))
    assert calib.tokens.context is not None
    examples = odd_examples(nlp, 4, 2)
    for token in examples[0].reference[:12]:
        token.tag_ = ""
    doc = examples[1].predicted
    before = np.array([token._.calib_score for token in calib(doc)])
    calib.adapt(examples)
    (adaptation,) = calib.tokens.adaptations
    tags = np.array([calib.labels.index(token.tag_) for token in doc])
    after = [token._.calib_score for token in calib(doc)]
    np.testing.assert_allclose(after, adaptation.adjust(before, np.ones(len(doc), dtype=bool), tags), atol=1e-9)
    assert calib.fit_info.adaptations[0]["tokens"]["entries"] == sum(len(example.predicted) for example in examples) - 12


@pytest.mark.filterwarnings("ignore:.*CW14")
@pytest.mark.parametrize("layer", ["ner", "spans:sc"])
def test_spans_are_adapted_and_their_cut_offs_stay(layer):
    """A score means the same before and after; but what a random sample of the former scores promised is not promised of these."""
    nlp = spacy.blank("xx")
    calib = make_calib(nlp, layer)
    cutoffs = Cutoffs(0.9, 0.95, "label", {"A": 0.5})
    sample = {"answers": 250, "documents": 240, "drawn_from": 4000, "accepted": 0.6}
    calib.spans.cutoffs = replace(cutoffs, sample=sample)
    assert calib.spans.cutoffs.promise({})
    calib.adapt(draw_examples(nlp, layer))
    (made,) = calib.fit_info.adaptations
    assert calib.spans.cutoffs == cutoffs
    assert not calib.spans.cutoffs.promise({})
    assert made["spans"]["entries"] > 0
    fit = calib.held_out_spans
    hits = fit.data.hits[fit.data.known_indices] == 1
    assert made["spans"]["after"]["log_loss"] == pytest.approx(log_losses(fit.held_out, hits).mean())
    assert len(calib.spans.adaptations) == 1
    learned = calib.spans.adaptations[0].leading.line
    again = calib.from_bytes(calib.to_bytes())
    assert again.spans.adaptations[0].leading.line == learned


def examples_off(n: int, seed: int, off: float = 0.0) -> list[Example]:
    """Documents of 20 tokens whose likeliest tags are right as often as their scores say; tags A and B less, by so much in log-odds."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        tags, top = rng.integers(0, 4, 20), rng.uniform(0.7, 0.99, 20)
        scores = np.repeat((1 - top)[:, None] / 3, 4, axis=1)
        scores[np.arange(20), tags] = top
        right = rng.random(20) < 1 / (1 + (1 - top) / top * np.exp(off * (tags < 2)))
        found.append(with_gold_tags(doc_scored(scores), np.where(right, tags, (tags + rng.integers(1, 4, 20)) % 4)))
    return found


@pytest.mark.filterwarnings("ignore:.*CW14")
def test_what_all_tags_of_a_group_share_is_added_once():
    """By the offset of their group; those of the tags are what is left."""
    calib = reads_given_scores()
    calib.grouping = lambda labels, counts: Groups(("A, B", "C, D"), np.array([0, 0, 1, 1]), np.ones(4, dtype=int))
    calib.fit(examples_off(100, 1))
    calib.adapt(examples_off(60, 2, off=2.0))
    judged = [
        (token.tag_ in "AB", token._.calib_score, token.tag_ == gold.tag_)
        for example in examples_off(100, 3, off=2.0)
        for token, gold in zip(calib(example.predicted), example.reference, strict=True)
    ]
    for group in (True, False):
        scores, hits = np.array([one[1:] for one in judged if one[0] is group]).T
        assert abs(scores.mean() - hits.mean()) < 0.05


@pytest.mark.filterwarnings("ignore:.*CW14")
def test_a_document_is_judged_by_what_the_others_teach():
    """All tags of the one document are right, none of the other: each teaches the contrary of what is true of its neighbour."""
    calib = reads_given_scores().fit(examples_off(30, 1))
    right = doc_scored(np.tile([0.7, 0.2, 0.1, 0.0], (40, 1)))
    calib.adapt([with_gold_tags(right, np.zeros(40, dtype=int)), with_gold_tags(right.copy(), np.full(40, 3))])
    tokens = calib.fit_info.adaptations[0]["tokens"]
    assert tokens["after"]["log_loss"] > tokens["before"]["log_loss"] + 0.2
