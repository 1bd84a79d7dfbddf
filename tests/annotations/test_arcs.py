"""When an arc is right, and a sentence."""

from __future__ import annotations

import numpy as np
import pytest
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_calib.annotations import get_annotation, label_hashes
from spacy_calib.annotations.span_events import span_hits

HEAD, ARC = get_annotation("head"), get_annotation("arc")


def doc_of(words: str, heads: list[int], deps: str, vocab: Vocab) -> Doc:
    starts = [head == i for i, head in enumerate(heads)]
    return Doc(vocab, words=words.split(" "), heads=heads, deps=deps.split(), sent_starts=[i == 0 for i in range(len(starts))])


def judge(annotation, example) -> list[bool]:
    n = len(example.predicted)
    return annotation.is_gold(example, np.arange(n), annotation.hashes(example.predicted)).tolist()


def example_of(predicted: tuple, gold: tuple) -> Example:
    vocab = Vocab()
    return Example(doc_of(*predicted, vocab), doc_of(*gold, vocab))


def test_heads_and_labels():
    """Labels in lower case, as spaCy's scorer compares them; ROOT and root are one; punctuation counts."""
    example = example_of(
        ("dogs chase big cats !", [1, 1, 3, 1, 3], "nsubj ROOT amod OBJ punct"),
        ("dogs chase big cats !", [1, 1, 1, 1, 1], "obl root amod obj punct"),
    )
    assert judge(HEAD, example) == [True, True, False, True, False]
    assert judge(ARC, example) == [False, True, False, True, False]
    assert ARC.label(example.reference[1]) == "ROOT"
    assert ARC.count_gold([example.reference])["ROOT"] == 1


def test_another_label_than_the_one_on_the_doc():
    """What a map of labels makes of it is judged, be it known to the vocab or not."""
    example = example_of(("a b", [1, 1], "x ROOT"), ("a b", [1, 1], "Obj root"))
    assert ARC.is_gold(example, np.array([0, 0, 0]), label_hashes(["obj", "x", "never met"])).tolist() == [True, False, False]


def test_tokens_that_align_with_no_single_one():
    """Their gold is not known; of others with such a head the arc is wrong."""
    example = example_of(("can't stop it", [1, 1, 1], "aux ROOT obj"), ("can 't stop it", [2, 2, 2, 2], "aux advmod root obj"))
    assert (HEAD.aligned_gold(example) != 0).tolist() == [False, True, True]
    assert judge(HEAD, example) == [False, True, True]
    example = example_of(("can't stop", [0, 0], "ROOT xcomp"), ("can 't stop", [0, 0, 0], "root advmod xcomp"))
    assert judge(HEAD, example) == [False, False]


def test_missing_gold_and_white_space():
    example = example_of(("a \n b", [2, 2, 2], "x dep ROOT"), ("a \n b", [2, 2, 2], "x dep root"))
    example.reference[0].dep_ = ""
    assert (HEAD.aligned_gold(example) != 0).tolist() == [False, False, True]


@pytest.mark.parametrize(("annotation", "wanted"), [(HEAD, [1, 0, -1, -1]), (ARC, [0, 0, -1, -1])])
def test_sentences(annotation, wanted):
    """Right where all arcs of their words are; not judged where the gold of a word is missing, or there is none."""
    words, heads = "a b c d e f \n", [1, 1, 3, 3, 5, 5, 5]
    deps = "x ROOT x ROOT x ROOT dep"
    example = example_of((words, heads, deps), (words, [1, 1, 2, 2, 5, 5, 5], "y root x root x root dep"))
    example.reference[4].dep_ = ""
    spans = [(0, 2, 0), (2, 4, 0), (4, 6, 0), (6, 7, 0)]
    assert annotation.evaluate_spans(example, spans).tolist() == wanted


def test_sentences_by_the_labels_of_a_map():
    example = example_of(("a b c d", [1, 1, 3, 3], "x ROOT z ROOT"), ("a b c d", [1, 1, 3, 3], "y root y root"))
    mapped = get_annotation('arc {"x": "y"}')
    assert span_hits(example, mapped, [(0, 2, 0), (2, 4, 0)], "exact").tolist() == [1, 0]


def test_sentences_of_a_doc():
    vocab = Vocab()
    doc = Doc(vocab, words=["a", "b"], heads=[0, 1], deps=["ROOT", "ROOT"], sent_starts=[True, True])
    assert [(span.start, span.end) for span in HEAD.spans_on(doc)] == [(0, 1), (1, 2)]
    assert HEAD.spans_on(Doc(vocab, words=["a", "b"])) == ()
