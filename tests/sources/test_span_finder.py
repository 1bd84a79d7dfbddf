"""Span finders: the scores of their spans, those that they left out, and what a fit makes of both."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_calib.annotations.span_events import span_hits
from spacy_calib.errors import CalibError
from spacy_calib.sources.span_finder import SpanFinderSource
from spacy_calib.sources.span_finder import _spans_from as spans_from
from tests.cli.conftest import calib, ok, save_docs
from tests.conftest import TOK2VEC, fit_calib, made_once, made_up_sentences, revive, train_briefly
from tests.sources.test_spancat import KEY, examples_for, gold_doc

TEXT = "the light saw run a red duck ."


@cache
def trained() -> dict[str, Any]:
    def train() -> dict[str, Any]:
        fix_random_seed(0)
        nlp = spacy.blank("xx")
        scorer = {"@layers": "spacy.LinearLogistic.v1", "nO": 2}
        model = {"@architectures": "spacy.SpanFinder.v1", "tok2vec": TOK2VEC, "scorer": scorer}
        nlp.add_pipe("span_finder", config={"model": model, "spans_key": KEY, "max_length": 4, "threshold": 0.6})
        return train_briefly(nlp, examples_for(nlp, 60, seed=1), 10, 0.01)

    return made_once("span_finder", train)


def finding() -> Language:
    return revive(trained())


def test_a_span_has_the_score_of_its_start_times_that_of_its_end_and_what_was_left_out_is_a_candidate():
    nlp = finding()
    finder, doc = nlp.get_pipe("span_finder"), nlp(TEXT)
    scores = np.asarray(finder.model.predict([doc]), dtype=np.float64)
    found = {(span.start, span.end) for span in doc.spans[KEY]}
    every = {
        (start, end): scores[start, 0] * scores[end - 1, 1]
        for start in range(len(doc))
        for end in range(start + 1, min(len(doc), start + 4) + 1)
    }
    read = SpanFinderSource(lowest=0.2).read(finder, [doc])
    starts, ends, probabilities = (column.tolist() for column in (read.spans.starts, read.spans.ends, read.spans.scores))
    got = dict(zip(zip(starts, ends, strict=True), probabilities, strict=True))
    assert got == pytest.approx({key: score for key, score in every.items() if key in found or score >= 0.2})
    chosen = {key for key, is_chosen in zip(got, read.spans.on_doc.tolist(), strict=True) if is_chosen}
    assert chosen == found
    assert 0 < len(found) < len(got)
    inside = [max((score for (start, end), score in got.items() if start <= i < end), default=0.0) for i in range(len(doc))]
    assert read.scores_at(np.arange(len(doc)), np.ones(len(doc), dtype=np.intp)) == pytest.approx(inside)


def test_gold_spans_are_right_whatever_their_labels_and_one_that_ends_elsewhere_is_not():
    nlp = finding()
    annotation = SpanFinderSource().annotation(nlp.get_pipe("span_finder"))
    gold = gold_doc(nlp.vocab, [("the", "DET"), ("dog", "NOUN"), ("run", "VERB")])
    example = Example(Doc(nlp.vocab, words=["the", "dog", "run"]), gold)
    assert {span.label_ for span in gold.spans[KEY]} == {"N", "NP"}
    assert span_hits(example, annotation, [(0, 2, 0), (1, 2, 0), (0, 3, 0)], "exact").tolist() == [1, 1, 0]
    assert [annotation.label(token) for token in gold] == ["SPAN", "SPAN", "O"]
    del gold.spans[KEY]
    assert span_hits(example, annotation, [(0, 2, 0)], "exact").tolist() == [-1]
    assert not annotation.gold_hashes(gold).any()


def test_scores_stand_beside_the_spans_and_are_gone_where_tokens_changed():
    nlp = finding()
    nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.SpanFinder.v1", "component": "span_finder"}})
    fit_calib(nlp, examples_for(nlp, 80, seed=2))
    doc = nlp(TEXT)
    group = doc.spans[KEY]
    assert [span._.calib_score for span in group] == group.attrs["calib_scores"].tolist()
    assert None not in [span._.calib_score for span in group]
    assert doc._.calib.candidates
    assert all(Span(doc, one.start, one.end)._.calib_score is None for one in doc._.calib.candidates)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    assert doc[:2]._.calib_score is None or doc[:2].text == "the light saw"


@pytest.mark.parametrize("lowest", [0, 1, True, "0.1"])
def test_a_lowest_score_out_of_range_is_refused(lowest):
    with pytest.raises(CalibError, match="C001.*lowest"):
        SpanFinderSource(lowest=lowest)


def test_the_command_line_fits_and_judges_it(tmp_path):
    nlp = finding()
    nlp.to_disk(tmp_path / "model")
    for name, n, seed in (("dev", 40, 2), ("test", 30, 3)):
        save_docs(tmp_path / f"{name}.spacy", [gold_doc(nlp.vocab, one) for one in made_up_sentences(n, seed)])
    ok(calib("fit", tmp_path / "model", tmp_path / "dev.spacy", tmp_path / "fitted", "--component", "span_finder"))
    assert "whole entities" in ok(calib("evaluate", tmp_path / "fitted", tmp_path / "test.spacy")).text
    for command in (("rank",), ("threshold", "--precision", 0.6), ("threshold", "--recall", 0.6)):
        ok(calib(command[0], tmp_path / "fitted", tmp_path / "test.spacy", *command[1:]))


@pytest.mark.parametrize(("shortest", "longest"), [(1, 3), (2, 2), (3, 50), (4, 3)])
def test_candidates_are_all_pairs_in_reach_whose_score_is_high_enough(shortest, longest):
    scores = np.random.default_rng(shortest).random((12, 2))
    wanted = [
        [start, end, 0]
        for start in range(12)
        for end in range(start + 1, 13)
        if shortest <= end - start <= longest and scores[start, 0] * scores[end - 1, 1] >= 0.3
    ]
    assert spans_from(scores, 0.3, shortest, longest).tolist() == wanted


def test_a_long_text_takes_no_memory_for_pairs_out_of_reach():
    """All pairs of these starts and ends would take 29 GB."""
    assert len(spans_from(np.ones((60_000, 2)), 0.1, 1, 3)) == 3 * 60_000 - 3
