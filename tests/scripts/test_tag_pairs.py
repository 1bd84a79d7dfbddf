"""Pairs of tags: products against every product, and against the attributes of the tokens of scored documents."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example
from study_tag_pairs import corpus_pairs, places_of, product_pairs

from spacy_calib.annotations import get_annotation
from spacy_calib.gold.collect import scored_corpus
from tests.conftest import gold_doc, made_up_sentences

from ..strategies import make_pairs, pairs_of_tokens

N_TAGS = 6


def test_products_worked_by_hand():
    # Tokens 0 to 3; no place between 1 and 2; token 2 has no tags.
    singles = make_pairs(
        [0.7, 0.3, 0.6, 0.4, 1.0], [1, 0, 0, 1, 1], tags=[0, 2, 1, 2, 0], rows=[0, 0, 1, 1, 3], n_units=4
    )  # fmt: skip
    found = product_pairs(singles, [True, False, True], 3, threshold=0.2)
    # 0.3 * 0.6 = 0.18 and 0.3 * 0.4 = 0.12 stay below.
    assert found.pairs.scores == pytest.approx([0.42, 0.28])
    assert found.pairs.rows.tolist() == [0, 0]
    assert found.pairs.tags.tolist() == [0 * 3 + 1, 0 * 3 + 2]
    assert found.pairs.hits.tolist() == [False, True]
    assert found.pairs.n_units == 2
    assert found.of(np.array([0.5, 0.1, 1.0, 0.2, 0.0])) == pytest.approx([0.5, 0.1])


@given(pairs_of_tokens(N_TAGS), st.floats(0, 0.9), st.lists(st.booleans(), min_size=19, max_size=19))
def test_no_product_is_missed_and_none_is_made_up(singles, threshold, joined):
    expected = [
        (singles.rows[i], singles.tags[i] * N_TAGS + singles.tags[j], singles.scores[i] * singles.scores[j],
         singles.hits[i] and singles.hits[j])
        for i in range(len(singles))
        for j in range(len(singles))
        if singles.rows[j] == singles.rows[i] + 1 and joined[singles.rows[i]]
        and singles.scores[i] * singles.scores[j] >= threshold
    ]  # fmt: skip
    found = product_pairs(singles, joined, N_TAGS, threshold)
    pairs = found.pairs
    assert list(zip(pairs.rows, pairs.tags, pairs.scores, pairs.hits, strict=True)) == expected
    assert found.of(singles.scores).tolist() == pairs.scores.tolist()
    assert pairs.n_units == sum(joined)


def gold_of_two(vocab, seed: int) -> Doc:
    """A gold Doc of two sentences."""
    return Doc.from_docs([gold_doc(vocab, sentence) for sentence in made_up_sentences(2, seed)])


@pytest.fixture
def examples(fitted) -> list[Example]:
    """30 Docs of two sentences as the tagger sees them; the first one lacks the gold tag of its second token."""
    made = []
    with fitted.select_pipes(disable=["senter"]):
        for seed in range(30):
            gold = gold_of_two(fitted.vocab, seed)
            if not seed:
                gold[1].tag_ = ""
            made.append(Example(fitted(Doc(fitted.vocab, words=[token.text for token in gold])), gold))
    return made


def expected_pairs(examples: list[Example], threshold: float) -> list[tuple]:
    """(text of the two tags, raw product, calibrated product, both right), token by token."""
    found = []
    for example in examples:
        view = example.predicted._.calib
        of_token = [[] for _ in example.predicted]
        for row, tag, raw, calibrated in zip(view.rows, view.tags, view.raw, view.calibrated, strict=True):
            of_token[row].append((tag, raw, calibrated))
        gold = example.reference
        for i in range(len(gold) - 1):
            if gold[i + 1].is_sent_start or not gold[i].tag_ or not gold[i + 1].tag_:
                continue
            for one, raw_one, calibrated_one in of_token[i]:
                for two, raw_two, calibrated_two in of_token[i + 1]:
                    if raw_one * raw_two >= threshold:
                        right = (one, two) == (gold[i].tag_, gold[i + 1].tag_)
                        found.append((f"{one} {two}", raw_one * raw_two, calibrated_one * calibrated_two, right))
    return found


@pytest.mark.parametrize("threshold", [0.01, 0.05])
def test_pairs_are_those_of_neighbours_in_a_sentence(fitted, examples, threshold):
    pipe = fitted.get_pipe("calib")
    corpus = scored_corpus(examples, "calib", get_annotation("tag"), pipe.lookup.labels())
    found = corpus_pairs(corpus, threshold)
    pairs, n = found.pairs, len(corpus.names)
    names = [f"{corpus.names[code // n]} {corpus.names[code % n]}" for code in pairs.tags.tolist()]
    calibrated = found.of(corpus.pairs().calibrated)
    expected = expected_pairs(examples, threshold)
    assert len(expected) > 10
    assert list(zip(names, pairs.scores, calibrated, pairs.hits, strict=True)) == expected
    # Five or so tokens a sentence: a place less than tokens in each, and two less where a gold tag is missing.
    n_tokens = sum(len(example.reference) for example in examples)
    assert pairs.n_units == n_tokens - 2 * len(examples) - 2
    assert np.array_equal(np.flatnonzero(~places_of(corpus))[:1], [0])


def test_a_sequence_model_is_judged_by_its_joint_marginals_too(tmp_path, capsys, monkeypatch):
    for name in ("study_tag_pairs", "frame"):  # which keeps the tables that were shown
        monkeypatch.delitem(sys.modules, name, raising=False)
    from study_tag_pairs import main

    from tests.cli.conftest import calib, ok

    nlp = spacy.blank("en")
    nlp.add_pipe("calib_hmm")
    for name, seed in (("train", 1), ("dev", 2), ("test", 3)):
        docs = [gold_doc(nlp.vocab, sentence) for sentence in made_up_sentences(40, seed)]
        for doc in docs[::5]:  # a model that is unsure must be wrong now and then
            doc[-1].tag_ = "NOUN"
        DocBin(docs=docs).to_disk(tmp_path / f"{name}.spacy")
    nlp.initialize(lambda: list(Corpus(tmp_path / "train.spacy")(nlp)))
    nlp.to_disk(tmp_path / "hmm")
    dev, test, sure = tmp_path / "dev.spacy", tmp_path / "test.spacy", tmp_path / "sure"
    ok(calib("fit", tmp_path / "hmm", dev, sure, "-C", "calib_hmm", "-m", "isotonic", "--silent"))
    capsys.readouterr()
    output = tmp_path / "pairs.json"
    assert main([str(sure), str(test), "--fit", str(dev), "--gold-preproc", "--output", str(output)]) == 0
    assert "pairs, joint calibrated, less pairs, joint raw: log loss -" in capsys.readouterr().out
    (table,) = json.loads(output.read_text())
    rows = [dict(zip(table["titles"], cells, strict=True)) for cells in table["rows"][4:]]
    assert [(row["event"], row["scores"]) for row in rows] == [
        ("pairs, joint", "raw"), ("pairs, joint", "calibrated"), ("pairs, product", "raw"),
        ("pairs, product", "of calibrated tags"), ("pairs, product", "calibrated"),
    ]  # fmt: skip
    assert len({(row["events"], row["right"]) for row in rows}) == 1  # the same events
    assert float(rows[1]["log loss"]) < float(rows[0]["log loss"])
    assert all(row["by group"] != "-" for row in rows)
