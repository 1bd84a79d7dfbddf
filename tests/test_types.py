"""The dataclasses check what they are built from."""

import doctest
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from spacy_calib import types
from spacy_calib.annotations import ARC_EVENTS
from spacy_calib.annotations.span_events import EVENTS
from spacy_calib.cli import api
from spacy_calib.cli.evaluating.options import PICTURE_KINDS
from spacy_calib.errors import CalibError
from spacy_calib.registry import recalibrators
from spacy_calib.types import Groups, Marginals, Pairs, Spans, as_hits, as_probabilities, as_weights, stack_spans

from .strategies import make_pairs


@pytest.mark.parametrize(
    "values",
    [[0.5, np.nan], [-0.1], [1.1], [np.inf], [-np.inf], [1 + 1e-6]],
    ids=["nan", "below", "above", "inf", "-inf", "1+"],
)
def test_scores_outside_the_unit_interval_are_refused(values):
    with pytest.raises(CalibError, match=r"\[C001\] scores must be numbers in \[0, 1\], but a range of"):
        as_probabilities("scores", values)


def test_scores_of_two_dimensions_are_refused():
    with pytest.raises(CalibError, match=r"\[C001\] scores must be a one-dimensional array, but one of shape \(2, 1\)"):
        as_probabilities("scores", [[0.5], [0.5]])


def test_rounding_errors_beyond_the_ends_are_cut_off():
    given = np.array([1 + 1e-12, -1e-12, 0.5])
    np.testing.assert_array_equal(as_probabilities("scores", given), [1.0, 0.0, 0.5])
    assert given[0] > 1, "the input was changed"


def test_scores_of_any_number_type_become_float64():
    for values in ([0, 1], np.array([0, 1], dtype=np.float32), (False, True), np.array([0, 1], dtype=np.int8)):
        made = as_probabilities("scores", values)
        assert made.dtype == np.float64
        assert made.tolist() == [0.0, 1.0]
    assert as_probabilities("scores", []).shape == (0,)


def test_hits_are_booleans_or_zeros_and_ones():
    for values in ([True, False], [1, 0], np.array([1.0, 0.0]), np.array([1, 0], dtype=np.uint8)):
        made = as_hits(values, 2)
        assert made.dtype == np.bool_
        assert made.tolist() == [True, False]


@pytest.mark.parametrize("values", [[0, 2], [0.5, 1], [-1, 1], [np.nan, 0]])
def test_other_hits_are_refused(values):
    with pytest.raises(CalibError, match=r"\[C001\] hits must be zeros and ones"):
        as_hits(values, 2)


def test_hits_of_another_length_are_refused():
    with pytest.raises(CalibError, match=r"\[C002\] .* one score for every hit, but got 2 and 3"):
        as_hits([0, 1, 1], 2)
    with pytest.raises(CalibError, match=r"\[C002\]"):
        as_hits([[0], [1]], 2)


def test_weights_are_positive_and_finite():
    assert as_weights(None, 3) is None
    assert as_weights([1, 2.5], 2).tolist() == [1.0, 2.5]
    assert as_weights([], 0).shape == (0,)
    for values in ([0, 1], [-1, 1], [np.inf, 1], [np.nan, 1]):
        with pytest.raises(CalibError, match=r"\[C001\] weights must be positive and finite"):
            as_weights(values, 2)
    with pytest.raises(CalibError, match=r"\[C002\] .* one score for every weight, but got 2 and 1"):
        as_weights([1], 2)


def test_marginals_know_where_each_token_begins():
    # Token 0 has two entries, token 1 none, token 2 one, token 3 none.
    marginals = Marginals(np.array([0, 0, 2]), np.array([1, 3, 0]), np.array([0.4, 0.5, 0.9]), 4)
    assert marginals.indptr.tolist() == [0, 2, 2, 3, 3]
    assert len(marginals) == 3


def test_marginals_of_unequal_lengths_are_refused():
    with pytest.raises(CalibError, match=r"\[C002\] Marginals"):
        Marginals(np.array([0, 0]), np.array([1]), np.array([0.4]), 1)
    with pytest.raises(CalibError, match=r"\[C002\] Marginals"):
        Marginals(np.array([0]), np.array([1, 2]), np.array([0.4]), 1)


@pytest.mark.parametrize("name", ["rows", "tags"])
def test_pairs_of_unequal_lengths_are_refused(name):
    parts = {"rows": np.arange(2), "tags": np.arange(2), "scores": np.array([0.1, 0.2]), "hits": np.array([True, False])}
    parts[name] = np.arange(3)
    with pytest.raises(CalibError, match=rf"\[C002\] Pairs needs one {name[:-1]} for every score, but got 3 and 2"):
        Pairs(n_units=2, **parts)


def test_pairs_check_scores_and_hits():
    with pytest.raises(CalibError, match=r"\[C001\] scores"):
        make_pairs([1.5], [True])
    with pytest.raises(CalibError, match=r"\[C002\]"):
        Pairs(np.arange(2), np.arange(2), np.array([0.1, 0.2]), np.array([True]), 2)


def three_spans() -> Spans:
    """Rows 0 and 1; rows 1 to 3, which overlaps the first; row 5, a candidate."""
    return Spans(
        np.array([0, 1, 5]), np.array([2, 4, 6]), np.array([1, 0, 1]), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        np.array([0.7, 0.8, 0.9]), np.array([True, True, False]),
    )  # fmt: skip


def as_rows(spans: Spans) -> list[tuple]:
    """(start, end, label, score, on_doc, token scores) of each span."""
    ends = np.cumsum(spans.ends - spans.starts).tolist()
    scores = [spans.token_scores[first:last].tolist() for first, last in zip([0, *ends], ends, strict=False)]
    columns = [getattr(spans, name).tolist() for name in ("starts", "ends", "labels", "scores", "on_doc")]
    return list(zip(*columns, scores, strict=True))


FIRST, SECOND, THIRD = ((0, 2, 1, 0.7, True, [0.1, 0.2]), (1, 4, 0, 0.8, True, [0.3, 0.4, 0.5]), (5, 6, 1, 0.9, False, [0.6]))


def test_some_of_the_spans_keep_their_own_token_scores():
    spans = three_spans()
    assert len(spans) == 3
    assert as_rows(spans) == [FIRST, SECOND, THIRD]
    assert as_rows(spans.take(np.array([0, 2]))) == [FIRST, THIRD]
    assert as_rows(spans.take(np.array([1]))) == [SECOND]
    assert as_rows(spans.take(spans.on_doc)) == [FIRST, SECOND]
    assert as_rows(spans.take(~spans.on_doc)) == [THIRD]
    assert as_rows(spans.take(np.zeros(3, dtype=bool))) == []
    assert as_rows(spans.take(np.zeros(0, dtype=np.intp))) == []
    assert as_rows(spans.take(np.array([2, 0]))) == [THIRD, FIRST]


def test_spans_of_documents_that_follow_one_another():
    spans = three_spans()
    none = spans.take(np.zeros(3, dtype=bool))
    stacked = stack_spans([none, spans, none, spans.take(np.array([1]))], [3, 7, 0, 4])
    shifted = [(start + by, end + by, *rest) for by, (start, end, *rest) in ((3, FIRST), (3, SECOND), (3, THIRD), (10, SECOND))]
    assert as_rows(stacked) == shifted
    assert stacked.starts.dtype == np.intp
    empty = stack_spans([], [])
    assert len(empty) == 0
    assert (empty.on_doc.dtype, empty.scores.dtype) == (np.bool_, np.float64)


@pytest.mark.parametrize("name", ["ends", "labels", "scores", "on_doc", "token_scores"])
def test_spans_of_unequal_lengths_are_refused(name):
    whole = three_spans()
    parts = {key: getattr(whole, key) for key in ("starts", "ends", "labels", "token_scores", "scores", "on_doc")}
    parts[name] = parts[name][:-1]
    with pytest.raises(CalibError, match=r"\[C002\] Spans needs one"):
        Spans(**parts)


def test_groups_keep_their_state():
    groups = Groups(("O", "1"), np.array([0, 1, -1]), np.array([9, 2, 0]), n_singletons=1)
    back = Groups.read(groups.state())
    assert (back.names, back.of_tag.tolist(), back.counts.tolist(), back.n_singletons) == (("O", "1"), [0, 1, -1], [9, 2, 0], 1)


def test_groups_of_tags():
    groups = Groups(("a", "b"), np.array([1, 0, -1, 1]), np.array([5, 9, 2, 5]))
    # Tag 2 has no group; tags 4 and 9 were appended after the fit.
    assert groups.find(np.array([0, 1, 2, 3, 4, 9, 1])).tolist() == [1, 0, -1, 1, -1, -1, 0]
    assert groups.find(np.zeros(0, dtype=np.intp)).tolist() == []
    assert groups.sizes == [1, 2]
    assert len(groups) == 2


def test_tags_of_a_group_are_listed_by_frequency_then_by_column():
    groups = Groups(("a", "b"), np.array([0, 0, 0, 1, 0]), np.array([3, 7, 3, 99, 0]))
    assert groups.tags_in(0).tolist() == [1, 0, 2, 4]
    assert groups.tags_in(1).tolist() == [3]


def test_groups_without_counts_have_zeros():
    assert Groups(("a",), np.array([0, 0])).counts.tolist() == [0, 0]
    assert Groups((), np.zeros(0)).find(np.array([0, 3])).tolist() == [-1, -1]


def test_a_group_without_tags_has_size_zero():
    assert Groups(("a", "b", "c"), np.array([0, 2])).sizes == [1, 0, 1]


def test_parts_of_checked_pairs_are_not_checked_again(monkeypatch):
    """A fit takes parts of its pairs some hundred times, and each used to be looked at anew."""
    pairs = make_pairs([0.1, 0.2, 0.3], [0, 1, 1], tags=[4, 5, 6], rows=[2, 5, 7], n_units=20)
    monkeypatch.setattr("spacy_calib.types.as_probabilities", lambda *_: pytest.fail("looked at again"))
    part = pairs.take(np.array([True, False, True]))
    assert (part.scores.tolist(), part.hits.tolist(), part.n_units) == ([0.1, 0.3], [False, True], 20)


def test_other_scores_of_pairs_are_checked():
    pairs = make_pairs([0.1, 0.2], [0, 1], tags=[4, 5])
    moved = pairs.with_scores(np.array([0.5, 1 + 1e-12]))
    assert (moved.scores.tolist(), moved.tags.tolist(), pairs.scores.tolist()) == ([0.5, 1.0], [4, 5], [0.1, 0.2])
    with pytest.raises(CalibError, match=r"\[C001\] scores must be numbers in \[0, 1\]"):
        pairs.with_scores(np.array([0.5, 2.0]))
    with pytest.raises(CalibError, match=r"\[C002\] Pairs needs one row for every score, but got 2 and 1"):
        pairs.with_scores(np.array([0.5]))


def test_the_examples_in_the_docstrings_hold():
    result = doctest.testmod(types)
    assert (result.failed, result.attempted > 5) == (0, True)


def test_a_type_checker_finds_misspelt_options_and_wrong_types():
    """The file uses all that is public; mypy reports a mistake of it that it does not find."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "tests/typed_surface.py"]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=600, check=False)
    assert done.stdout.startswith("Success"), done.stdout


def test_the_types_name_all_methods_events_and_pictures():
    assert get_args(api.Method) == ("auto", *recalibrators())
    assert get_args(api.Event) == (*EVENTS, *ARC_EVENTS)
    assert get_args(api.Picture) == (*PICTURE_KINDS, "all")
