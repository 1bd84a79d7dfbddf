"""Scores of tokens that look at the word and at the rest of their Doc, on made-up arrays."""

from functools import cache

import numpy as np
import pytest

from spacy_calib.calibration.solvers import log_odds
from spacy_calib.calibration.steps import OUTPUT_ONLY, Predictions
from spacy_calib.context.blocks import TokenView, pair_inputs
from spacy_calib.context.features import NO_ENTRY, DocumentConfidence, FurtherScoresFeature, NeighbourConfidence, TokenScores
from spacy_calib.context.fit import ContextComparison, fit_token_context
from spacy_calib.context.log_linear import RIDGES
from spacy_calib.context.ridge import RidgeModel
from spacy_calib.context.tokens import LabelMatch, TokenContext, replace_top_scores, span_columns
from spacy_calib.errors import CalibError
from spacy_calib.pairs.pairing import find_top
from spacy_calib.schema import InvalidState
from spacy_calib.types import Groups, Pairs, Spans
from tests.context.made_up import words_and_pairs, words_of

EVERY = (NeighbourConfidence(), DocumentConfidence(), FurtherScoresFeature())


@cache
def fitted_context(n_docs: int = 60, **settings):
    """(what a fit gives, words, pairs), the same for every test that asks for it: it must not be changed."""
    words, pairs, documents = words_and_pairs(n_docs)
    fit = fit_token_context(
        TokenContext(EVERY, "always"), pairs, Pairs.empty(), documents, words, n_tags=2, salt="salt", **settings
    )
    return fit, words, pairs


def adjusted_scores(context: TokenContext, words, pairs):
    return context.apply(Predictions.of_pairs(pairs, 0.0, words)).scores


def predictions_with_context(context: TokenContext, words, rows, tags, scores, below=((), (), ())) -> Predictions:
    """What the context makes of these entries, and of others below the threshold: (rows, tags, scores)."""
    given = Predictions.of_pairs(
        Pairs(np.array(rows), np.array(tags), np.array(scores), np.zeros(len(rows), bool), len(words)), 0.0, words
    )
    return context.apply(
        given.with_output_only(*(np.array(part, dtype=kind) for part, kind in zip(below, (int, int, float), strict=True)))
    )


def token_scores(words, rows, tags, scores) -> TokenScores:
    return TokenScores(np.array(rows), np.array(tags), np.array(scores), words)


def test_entropy_counts_what_the_scores_leave_to_all_other_tags():
    # .5 log 2 + 2 * .25 log 4 = 1.5 log 2
    assert token_scores(words_of([[1]]), [0, 0], [0, 1], [0.5, 0.25]).entropy == pytest.approx([1.5 * np.log(2)])


def test_a_neighbour_is_of_the_same_doc_and_no_white_space():
    tokens = token_scores(words_of([[1, 2], [3, -4, 5]]), np.arange(5), np.arange(5), [0.5, 0.6, 0.7, 0.8, 0.9])
    before, after = tokens.neighbours
    assert before[1].tolist() == [-1, 0, -1, 2, -1]
    assert after[1].tolist() == [1, -1, -1, 4, -1]
    assert before[0] == pytest.approx([3.0, 0.0, 3.0, log_odds(np.array([0.7]))[0], 3.0])


def test_empty_docs_part_no_neighbours():
    tokens = token_scores(words_of([[], [1, 2], [], []]), [0, 1], [4, 5], [0.5, 0.6])
    before, after = tokens.neighbours
    assert (before[1].tolist(), after[1].tolist()) == ([-1, 4], [5, -1])


def test_document_means_are_shrunk_towards_those_of_average_tokens():
    tokens = token_scores(words_of([[1, 2, -3], [4]]), [0, 1], [0, 0], [0.6, 0.8])
    # (.6 + .8 + 10 * .9) / (2 + 10), and of a Doc without scores .9
    assert DocumentConfidence()(tokens)[0] == pytest.approx([10.4 / 12] * 3 + [0.9])


def test_the_rival_is_the_second_likeliest_entry():
    tokens = token_scores(words_of([[1, 2]]), [0, 0, 0, 1], [4, 5, 6, 7], [0.1, 0.6, 0.2, 0.9])
    assert tokens.top_tags.tolist() == [[5, 7], [6, -1]]
    assert tokens.top_log_odds[0] == pytest.approx(log_odds(np.array([0.6, 0.9])))
    assert tokens.top_log_odds[1] == pytest.approx([log_odds(np.array([0.2]))[0], NO_ENTRY])
    assert tokens.is_top.tolist() == [False, True, False, True]


def test_of_equal_entries_the_first_is_the_top_one():
    tokens = token_scores(words_of([[1, 2, 3]]), [0, 0, 2, 2, 2], [4, 5, 6, 7, 8], [0.4, 0.4, 0.0, 0.3, 0.0])
    assert tokens.top_tags.tolist() == [[4, -1, 7], [5, -1, 6]]
    assert tokens.is_top.tolist() == [True, False, False, True, False]


def test_words_tell_apart_what_scores_cannot():
    found, words, pairs = fitted_context()
    compared = found.about["comparison"]
    assert compared["with_context"] < compared["without"] - 2 * compared["error"]
    hard, lead = words.forms[pairs.rows] > 100, pairs.scores >= 0.5
    raised = found.held_out - pairs.scores
    assert raised[hard & lead].mean() < -0.1
    assert raised[hard & ~lead].mean() > 0.1
    assert abs(raised[~hard].mean()) < 0.02


def test_scores_of_a_doc_depend_on_no_other_doc():
    found, words, pairs = fitted_context()
    whole = adjusted_scores(found.context, words, pairs)
    starts = words.starts[[0, 7, 8, 60]]
    for first, end in zip(starts[:-1], starts[1:], strict=True):
        mine = np.flatnonzero((pairs.rows >= first) & (pairs.rows < end))
        bounds = zip(words.starts[:-1], words.starts[1:], strict=True)
        docs = [words.forms[a:b].astype(int).tolist() for a, b in bounds if first <= a < end]
        own = Pairs(pairs.rows[mine] - first, pairs.tags[mine], pairs.scores[mine], pairs.hits[mine], end - first)
        assert np.array_equal(adjusted_scores(found.context, words_of(docs), own), whole[mine])


def test_a_feature_with_fewer_columns_than_in_the_fit_is_refused():
    found, words, pairs = fitted_context()
    values = [feature(token_scores(words, pairs.rows, pairs.tags, pairs.scores)) for feature in found.context.features]
    with pytest.raises(CalibError, match="C204"):
        found.context.standardize([values[0][:1], *values[1:]], len(words))


def test_tokens_without_entries_and_empty_docs():
    found, _, _ = fitted_context()
    words = words_of([[], [1, -2, 3], []])
    scores = predictions_with_context(found.context, words, [2], [1], [0.7], ([0, 1], [0, 1], [0.001, 0.0])).scores
    assert np.isfinite(scores).all()
    assert 0 < scores[2] < 1
    assert len(adjusted_scores(found.context, words_of([]), Pairs.empty())) == 0


def test_a_tag_that_the_fit_did_not_know_has_no_weights_of_its_own():
    found, words, _ = fitted_context()
    seen = predictions_with_context(found.context, words_of([[1, 2]]), [0, 1], [0, 7], [0.9, 0.9])
    assert np.isfinite(seen.scores).all()
    places = found.context.vocabulary_.find_indices(words_of([[1, 2]]))
    pair = np.array([1]), np.array([7]), np.zeros(1), np.array([True])
    inputs = pair_inputs(found.context.blocks, seen.view.tokens, places, seen.view.columns, pair, 2)
    weights = {block.name: found.context.model_.weights[block.name].find(inputs.inputs_of(block)[0]) for block in inputs.blocks}
    assert not any(weights[name].any() for name in ("tag", "form", "ending", "rival"))


def test_too_little_data_or_overlapping_labels_leave_scores_as_they_are():
    few, words, pairs = fitted_context(n_docs=1)
    assert few.why == "one document, but at least two are needed"
    assert np.array_equal(few.held_out, pairs.scores)
    assert np.array_equal(adjusted_scores(few.context, words, pairs), pairs.scores)
    several, _, _ = fitted_context(n_docs=12, overlapping=True)
    assert several.why == "a token may have several labels"


def test_of_few_documents_little_but_a_line_is_learned():
    found, words, pairs = fitted_context(n_docs=5)
    assert found.about["ridge"] == RIDGES[0]
    shift = log_odds(adjusted_scores(found.context, words, pairs)) - log_odds(pairs.scores)
    line = np.polynomial.Polynomial.fit(log_odds(pairs.scores), shift, 1)
    assert np.abs(shift - line(log_odds(pairs.scores))).max() < 0.05


def test_no_worse_is_so_in_the_mean():
    hits, documents = np.array([True, True, False, False]), np.array([0, 0, 1, 1])
    without = np.array([0.8, 0.8, 0.2, 0.2])
    # Log loss falls by log(.9/.8) in one document and rises by log(.8/.7) in the other.
    compared = ContextComparison.from_scores(without, np.array([0.9, 0.9, 0.3, 0.3]), hits, documents)
    fall, rise = np.log(0.9 / 0.8), np.log(0.8 / 0.7)
    mean = (rise - fall) / 2
    assert compared.with_context - compared.without == pytest.approx(mean)
    assert compared.error == pytest.approx(np.sqrt(2 * (2 * rise - 2 * mean) ** 2) / 4)
    assert not compared.no_worse  # one standard error would have kept it
    assert ContextComparison.from_scores(without, without, hits, documents).no_worse


def test_what_was_learned_survives_saving():
    found, words, pairs = fitted_context()
    state = found.context.state()
    again = TokenContext(EVERY, state["settings"]["when"])
    again.load_learned(state["learned"])
    assert np.array_equal(adjusted_scores(again, words, pairs), adjusted_scores(found.context, words, pairs))
    assert state["settings"]["features"] == ["neighbours", "document", "hints"]


@pytest.mark.parametrize("change", [{"centers": np.zeros(9)}, {"columns": [["entropy", "x"]]}, {"n_tags": 3}, {"model": 3}])
def test_a_state_that_does_not_fit_together_is_refused(change):
    state = fitted_context()[0].context.state()["learned"]
    with pytest.raises(InvalidState):
        TokenContext(EVERY).load_learned({**state, **change})


def test_columns_of_a_feature_that_is_not_there_are_refused():
    state = fitted_context()[0].context.state()["learned"]
    with pytest.raises(InvalidState, match="features in the settings"):
        TokenContext(EVERY[:1]).load_learned({**state, "model": None})


def test_a_whole_constant_is_a_number_like_others():
    model = RidgeModel(1.0, 0, np.array([0.5]))
    assert model.margins([np.array([1.0, -2.0])]).tolist() == [0.5, -1.0]


def test_settings_out_of_range():
    with pytest.raises(CalibError, match="C001"):
        TokenContext(EVERY, "sometimes")


def test_an_entry_has_the_same_score_whether_it_reaches_the_threshold_or_not():
    found, words, pairs = fitted_context()
    others = np.flatnonzero(~find_top(pairs.rows, pairs.scores))
    again = (column[others] for column in (pairs.rows, pairs.tags, pairs.scores))
    seen = predictions_with_context(found.context, words, pairs.rows, pairs.tags, pairs.scores, tuple(again))
    assert np.array_equal(seen.scores[seen.levels == OUTPUT_ONLY], seen.scores[seen.kept_indices][others])


def test_what_a_fit_says_does_not_depend_on_its_salt():
    words, pairs, documents = words_and_pairs()
    found = [
        fit_token_context(TokenContext(EVERY), pairs, Pairs.empty(), documents, words, n_tags=2, salt=salt).context
        for salt in ("", "one", "other")
    ]
    assert len({context.vocabulary_.forms.tobytes() for context in found}) == 3
    first = adjusted_scores(found[0], words, pairs)
    assert all(np.array_equal(adjusted_scores(context, words, pairs), first) for context in found)


def view_of(n_tokens, rows, tags, scores):
    tokens = token_scores(words_of([[1] * n_tokens]), rows, tags, scores)
    return TokenView(tokens, np.zeros((0, n_tokens)), np.zeros(n_tokens, dtype=np.intp), np.array(scores) / 2)


@pytest.mark.parametrize(("tags", "prefixed", "labels"), [
    (("O", "PER", "LOC"), False, ("GPE", "PER", "LOC")),
    (("O", "B-PER", "L-PER", "U-LOC"), True, ("PER", "LOC")),
    (("nsubj", "obj"), False, ("",)),
])  # fmt: skip
def test_which_labels_of_tokens_are_those_of_spans(tags, prefixed, labels):
    made = LabelMatch.from_labels(tags, prefixed, labels)
    for tag, number in zip(tags, made.tags.tolist(), strict=True):
        own = [label for label, other in zip(labels, made.labels.tolist(), strict=True) if other == number]
        assert own == [label for label in labels if label in ("", tag[2:] if prefixed else tag)]


def test_labels_that_share_a_counterpart_share_its_scores():
    made = LabelMatch.from_labels(("O", "LOC", "PER"), False, ("LOC", "PER", "LOC"))
    view = view_of(2, [0, 0, 1], [1, 2, 0], [0.6, 0.3, 0.9])
    # halves of .6, .3 and .6; at the other token LOC has no score, of the label that came later nothing is known
    assert made.scores(view, np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 3])).tolist() == [0.3, 0.15, 0.3, 0.0, 1.0]


def test_tags_of_one_label_are_added_up_and_a_token_without_any_is_not_doubted():
    made = LabelMatch.from_labels(("O", "B-A", "I-A", "U-B"), True, ("A", "B"))
    view = view_of(3, [0, 0, 0, 2], [0, 1, 2, 9], [0.2, 0.5, 0.3, 0.9])
    assert made.scores(view, np.array([0, 1, 2]), np.array([0, 0, 1])).tolist() == [0.4, 1.0, 0.0]


def test_columns_of_spans_by_hand():
    """Spans of tokens 0 and 1 with label A, and of token 2 with label B; of the forms the first one alone is known."""
    rows, tags, scores = [0, 0, 1, 1, 2], [0, 1, 0, 1, 1], [0.6, 0.2, 0.2, 0.5, 0.9]
    tokens = token_scores(words_of([[1] * 3]), rows, tags, scores)
    view = TokenView(tokens, np.array([[1.0, 2.0, 4.0]]), np.array([0, -1, -1]), np.array(scores) / 2)
    ends = np.array([2, 3])
    spans = Spans(np.array([0, 2]), ends, np.array([0, 1]), np.ones(3), np.ones(2), np.ones(2, dtype=bool))
    columns = span_columns(
        view, spans, Groups(("g",), np.array([0, -1])), LabelMatch.from_labels(("A", "B"), False, ("A", "B"))
    )
    entropies = [-sum(p * np.log(p) for p in left) for left in ([0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.9, 0.1])]
    # The mean of the feature and of the entropy, the share of unknown forms, the length, and whether the label is of the group.
    assert [column.tolist() for column in (*columns[:4], columns[7])] == [
        [1.5, 4.0], pytest.approx([(entropies[0] + entropies[1]) / 2, entropies[2]]), [0.5, 1.0], [np.log(2), 0.0], [1.0, 0.0],
    ]  # fmt: skip
    # Halves of .6 and .2 for A, and of .9 for B: minimum, product and mean.
    for column, probabilities in zip(columns[4:7], ([0.1, 0.45], [0.03, 0.45], [0.2, 0.45]), strict=True):
        assert column == pytest.approx(log_odds(np.array(probabilities)))


def test_labels_beside_one_that_moved_share_what_it_leaves():
    """.4 of .4 becomes all of .7; .3 and .2 of .5 share .2. What leads nothing, and what is asked for below the threshold, keeps its proportion."""
    rows, scores = np.array([0, 0, 1, 1, 1, 2]), np.array([0.6, 0.4, 0.5, 0.3, 0.2, 0.004])
    found = replace_top_scores(rows, scores, np.array([0, 2]), np.array([0.3, 0.8]))
    assert found == pytest.approx([0.3, 0.7, 0.8, 0.12, 0.08, 0.004])
    # a certain label leaves nothing, and what rounding left beside it stays a probability
    rest = replace_top_scores(np.array([0, 0]), np.array([1.0, 1e-9]), np.array([0]), np.array([0.5]))
    assert rest == pytest.approx([0.5, 5e-6])
