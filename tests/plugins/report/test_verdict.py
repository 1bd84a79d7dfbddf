"""The one rule of the verdict, as a table; and the sentences that no good figure takes back."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from spacy_calib.plugins.report.verdict import VerdictFigures, _error_clause, _group_sentences, status_of
from tests.plugins.report.made_up import FACTS, corpus_of, judged_of, random_corpus, view_of

CHANCE = VerdictFigures(0.010, 0.012, 0.0, 0.015, percent_right=90, leaning="sure")
TABLE = [
    # error, floor, interval, what else is known, status
    (0.010, 0.012, (0.0, 0.015), {}, "calibrated"),
    (0.010, 0.012, (None, None), {}, "calibrated"),
    (0.010, 0.012, (0.0, 0.015), {"is_uneven": True}, "uneven"),
    # Both say that it is more than chance: small, or not.
    (0.018, 0.012, (0.005, 0.020), {}, "close"),
    (0.018, 0.012, (None, None), {}, "close"),
    (0.018, 0.012, (0.005, 0.020), {"is_uneven": True}, "close-uneven"),
    (0.018, 0.012, (0.005, 0.020), {"percent_right": 80}, "sure"),
    (0.018, 0.012, (0.005, 0.020), {"percent_right": None}, "close"),
    (0.040, 0.012, (0.020, 0.050), {}, "sure"),
    (0.040, 0.012, (None, None), {"leaning": "modest"}, "modest"),
    (0.200, 0.080, (0.100, 0.250), {}, "sure"),
    # They disagree: neither too sure with an interval that holds 0, nor calibrated with one that does not.
    (0.0215, 0.0150, (0.0000, 0.0282), {}, "close"),
    (0.0215, 0.0150, (0.0000, 0.0282), {"percent_right": 80}, "unclear"),
    (0.010, 0.012, (0.002, 0.013), {}, "close"),
    # Chance reaches too far to tell.
    (0.060, 0.080, (0.0, 0.070), {}, "unclear"),
    (0.060, 0.080, (None, None), {}, "unclear"),
    (0.010, 0.012, (0.0, 0.060), {}, "unclear"),
    (0.060, 0.030, (0.0, 0.090), {}, "unclear"),
    (0.010, 0.012, (0.0, 0.015), {"has_few": True}, "unclear"),
    # Nothing counts on the fit data.
    (0.000, 0.012, (0.0, 0.0), {"was_fitted": True}, "seen"),
    (0.300, 0.012, (0.2, 0.4), {"was_fitted": True, "has_few": True}, "seen"),
]


@pytest.mark.parametrize(("error", "floor95", "interval", "more", "status"), TABLE)
def test_status_by_error_noise_floor_and_interval(error, floor95, interval, more, status):
    low, high = interval
    assert status_of(replace(CHANCE, error=error, floor95=floor95, low=low, high=high, **more)) == status


@pytest.mark.parametrize("status", ["sure", "modest", "off"])
@pytest.mark.parametrize("high", [0.01, 0.04, 0.3])
def test_no_fault_is_found_where_the_interval_holds_0(status, high):
    assert status_of(VerdictFigures(0.3, 0.01, 0.0, high, leaning=status)) in ("close", "unclear")


@pytest.mark.parametrize(("n_off", "words"), [(1, "1 of the 3 groups with pairs, each evaluated by itself, is off"), (2, "2 of the 3 groups with pairs, each evaluated by itself, are off"), (3, "All 3 groups with pairs, each evaluated by itself, are off")])  # fmt: skip
def test_one_group_is_off_and_several_are(n_off, words):
    rows = [
        {"group": str(i), "calibrated": 0.3 if i < n_off else 0.01, "floor95": 0.02, "true_low": 0.2 if i < n_off else 0.0}
        for i in range(3)
    ]
    (sentence,) = _group_sentences(rows)
    assert sentence.startswith(words)


def test_a_verdict_warns_of_a_label_that_is_never_right():
    """One label of five, predicted 60 times with a score of .9 and never right, among very many that are true."""
    corpus = random_corpus(4, 6000)
    assert view_of(corpus, judged_of(corpus), FACTS)["verdict"]["warnings"] == []
    wrong = [(f"x{i}", 0, 1, [(0, 0.9, 0.9)]) for i in range(60)]
    right = [(f"y{i}", 1, 1 if i % 10 else 2, [(1, 0.9, 0.9)]) for i in range(12000)]
    corpus = corpus_of([*wrong, *right], ("PERSON", "B", "C"), docs=[i // 20 for i in range(12060)])
    view = view_of(corpus, judged_of(corpus, 1), FACTS)
    assert [one["label"] for one in view["never_right"]] == ["PERSON"]
    assert view["verdict"]["warnings"][0].startswith("Predicted and never right: PERSON (60 times)")
    assert view["verdict"]["status"] in ("uneven", "close-uneven")


def test_an_error_beyond_the_floor_that_documents_leave_open_says_so():
    """The floor takes pairs for independent; the interval knows that documents differ. .074 is more than .061, and may be 0."""
    view = SimpleNamespace(pairs=range(400), documents=np.repeat(np.arange(20), 20))
    evidence = VerdictFigures(0.074, 0.061, 0.0, 0.12)
    assert status_of(evidence) == "unclear"
    assert _error_clause("unclear", view, evidence) == (
        ": 400 scores from 20 documents are off by 0.074 on average, where chance alone would show up to 0.061; that is more, but documents "
        "differ too much to tell (95 % interval 0.000 to 0.120)"
    )
